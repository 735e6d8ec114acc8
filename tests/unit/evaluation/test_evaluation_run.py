"""Evaluating a data set with an engine: rows, scores, and the fingerprint of an evaluation."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from kit.answering import MemoryStore, WordEmbedder, make_hit
from kit.queued_model import QueuedModel

import pipelines
from pipelines.answering.engine import QueryEngine
from pipelines.answering.question import EngineSettings
from pipelines.answering.retrieval.retriever import Retriever
from pipelines.answering.retrieval.search import RetrievalSettings
from pipelines.answering.settings import AnswerSettings, change
from pipelines.evaluation import results
from pipelines.evaluation.dataset import Example
from pipelines.evaluation.evaluator import EvaluationPlan, Evaluator, hit_sources, is_complete, is_settled
from pipelines.evaluation.fingerprint import CODE, code_files, meaning_of, public_settings
from pipelines.evaluation.fingerprint import evaluation_fingerprint as fingerprint
from pipelines.evaluation.judging.judge import Judge
from pipelines.evaluation.metrics import METRICS, Metric
from pipelines.evaluation.result_text import as_text
from pipelines.evaluation.statistics import NothingToScore
from pipelines.lexical import LexicalIndex
from pipelines.records import Answer, Index, IndexSettings, digest
from pipelines.store import EvaluatedQuestion, Judgement

BASE = "https://d.test/"
TEXTS = {
    "fruit.html#apple": "Apples are red fruit that grow on trees in an orchard.",
    "fruit.html#plum": "Plums are blue fruit with a stone inside.",
    "metal.html#iron": "Iron is a heavy metal that rusts in water.",
    "music.html#drum": "A drum is struck with sticks to keep the beat.",
}
EXAMPLES = [
    Example("Which metal rusts in water?", (f"{BASE}metal.html#iron",), "Iron rusts in water."),
    Example("What is struck with sticks?", (f"{BASE}music.html#elsewhere",)),
    Example("Which fruit is blue?", (f"{BASE}nowhere.html",)),
]
PLAN = EvaluationPlan("docs", (1, 2))
DESCRIBED = {"collection": "docs", "dataset": "three", "index": 1, "revision": 0, "seconds": 1.0}
INDEX = Index(1, "docs", IndexSettings(), "live", 1)


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore(*(make_hit(BASE + source, text) for source, text in TEXTS.items()))


@pytest.fixture
def engine(store: MemoryStore, tmp_path: Path) -> QueryEngine:
    embedder = WordEmbedder()
    patient = RetrievalSettings(patience_s=30)
    folder = lambda index: LexicalIndex(tmp_path / str(index.id))  # noqa: E731
    retriever = Retriever(store, lambda _: embedder, folder, collection="docs", settings=patient)
    retriever.prepare()
    return QueryEngine(retriever, settings=EngineSettings(k=2))


class CountingJudge:
    """Scores the n-th answer n. Every second judgement fails."""

    def __init__(self) -> None:
        self.answers: list[str] = []

    async def judge(self, example: Example, answer: Answer) -> dict[str, Judgement]:
        self.answers.append(answer.text)
        n = len(self.answers)
        score, error = (float(n), None) if n % 2 else (None, "no score in it")
        return {"quality": Judgement("quality", score, "because", error, hash="asked")}


def by_id(rows: list[EvaluatedQuestion]) -> dict[str, EvaluatedQuestion]:
    return {row.id: row for row in rows}


def test_row_records_its_hits_and_can_be_stored(engine):
    rows = Evaluator(engine, PLAN, index=INDEX).ask(EXAMPLES)
    assert [row.id for row in rows] == [example.id for example in EXAMPLES]
    assert all(is_complete(row) and len(row.hits) == 2 and row.timings["total"] > 0 for row in rows)
    assert hit_sources(rows[0]).sources[0] == (f"{BASE}metal.html#iron",)
    assert hit_sources(rows[0]).anchors[0] == (f"{BASE}metal.html#iron",)
    assert rows[0].answer is None and rows[0].scores == {}
    assert json.loads(json.dumps(rows[0].hits)) == list(rows[0].hits)


def test_rows_become_scores_with_intervals_and_seconds(engine):
    result = results.summarise(EXAMPLES, by_id(Evaluator(engine, PLAN).ask(EXAMPLES)), PLAN)
    assert (result["num_questions"], result["num_errors"], result["num_degraded"]) == (3, 0, 0)
    assert result["retrieval_score"] == {"1": 0.666667, "2": 0.666667}
    assert result["section_score"] == {"1": 0.333333, "2": 0.333333}
    assert result["mrr"] == 0.666667
    low, high = result["intervals"]["retrieval_score"]["1"]
    assert low == 0 and high == 1
    assert set(result["timings"]["total"]) == {"mean", "p50", "p95"}
    assert "similarity" not in result and "num_scored" not in result


def test_failed_question_is_an_error_and_not_part_of_any_mean(engine, store):
    good = Evaluator(engine, PLAN).ask(EXAMPLES)
    store.away = True
    failed = Evaluator(engine, PLAN).ask(EXAMPLES[2:])
    assert failed[0].error == "StoreUnavailable: the database can't be reached" and not is_complete(failed[0])
    result = results.summarise(EXAMPLES, by_id([*good[:2], *failed]), PLAN)
    assert (result["num_questions"], result["num_errors"]) == (3, 1)
    assert result["retrieval_score"]["1"] == 1
    for examples, rows in ((EXAMPLES[2:], by_id(failed)), ([], {})):
        with pytest.raises(NothingToScore):
            results.summarise(examples, rows, PLAN)


def test_degraded_answer_is_counted_and_incomplete(engine, store):
    store.slow = True
    rows = Evaluator(engine, PLAN).ask(EXAMPLES[:1])
    assert list(rows[0].degraded) == ["vector"] and not is_complete(rows[0])
    assert results.summarise(EXAMPLES[:1], by_id(rows), PLAN)["num_degraded"] == 1


def test_row_that_would_not_change_is_not_asked_again():
    row = EvaluatedQuestion("id", "q", ["u"], degraded=["vector"])
    cut_off = replace(row, degraded=["truncated"])
    assert is_complete(cut_off) and not is_complete(row) and not is_settled(row)
    assert is_settled(replace(row, attempts=3)) and not is_settled(replace(row, attempts=3, error="lost"))


@pytest.mark.parametrize("asks", ["asearch", "aquery"])
def test_index_published_meanwhile_is_not_taken_for_the_measured_one(engine, store, asks):
    """The publish comes before the search, or between the search and the answer."""
    ask = getattr(engine, asks)

    async def published_before(question, **more):
        store.publish(1, make_hit(f"{BASE}other.html#x", "Other words."))
        return await ask(question, **more)

    setattr(engine, asks, published_before)
    row = Evaluator(engine, replace(PLAN, answers=asks == "aquery"), index=INDEX).ask(EXAMPLES[:1])[0]
    assert row.error is not None and row.error.startswith("IndexChanged: index 1 revision 1")


def test_answers_are_scored_and_failed_judgements_counted_separately(engine):
    judge, plan = CountingJudge(), replace(PLAN, answers=True)
    rows = Evaluator(engine, plan, judge=judge).ask(EXAMPLES)
    assert rows[0].answer is not None and rows[0].answer["agent"] == "extractive"
    assert rows[0].answer["text"] == judge.answers[0] and "rusts in water" in judge.answers[0]
    assert rows[0].answer["judgements"]["quality"]["reasoning"] == "because"
    assert len(rows[0].answer["sources"]) == 2  # the maximum of /query, not the largest k
    assert "similarity" not in rows[1].scores  # it has no reference answer
    assert is_complete(rows[0]) and not is_complete(rows[1])
    result = results.summarise(EXAMPLES, by_id(rows), plan)
    scored = {name: result["num_scored"][name] for name in ("similarity", "token_f1", "answered", "quality")}
    assert scored == {"similarity": 1, "token_f1": 1, "answered": 2, "quality": 2}
    assert {name for name, count in result["score_errors"].items() if count} == {"quality"}
    assert result["quality"] == 2 and result["intervals"]["quality"] == [1, 3]
    assert 0.5 < result["similarity"] <= 1 and 0 < result["token_f1"] <= 1
    assert result["usage"]["calls"] == 0 and "synthesize" in result["timings"]


def test_off_topic_question_affects_no_hit_score_and_is_refused_or_not(engine):
    egg = Example("How long do I boil an egg?", (), "Ten minutes.")
    judge, plan = CountingJudge(), replace(PLAN, answers=True)
    rows = by_id(Evaluator(engine, plan, judge=judge).ask([EXAMPLES[0], egg]))
    assert set(rows[egg.id].scores) == {"refused", "source_cited"} and len(judge.answers) == 1
    both, alone = [results.summarise(asked, rows, plan) for asked in ([EXAMPLES[0], egg], [egg])]
    assert (both["num_questions"], both["num_unanswerable"]) == (2, 1)
    assert both["retrieval_score"]["1"] == both["mrr"] == 1
    assert both["refused"] == 1 and (both["num_true"]["refused"], both["num_scored"]["refused"]) == (1, 1)
    assert "mrr" not in alone and alone["refused"] == 1
    first, second = results.per_question([EXAMPLES[0], egg], rows, plan)
    assert first["scores"]["mrr"] == 1 and second["scores"] == {"refused": 1, "source_cited": 1}
    assert second["answerable"] is False
    lines = as_text({**both, **DESCRIBED}).splitlines()
    assert lines[0].endswith("2 questions of three, 1 about other things")
    assert any("refused" in line and line.endswith("1 of 1 question about other things") for line in lines)
    assert as_text({**alone, **DESCRIBED}).splitlines()[1].strip().startswith("refused")


def test_answers_of_substitute_agents_are_counted_and_reported(engine):
    plan = replace(PLAN, answers=True)
    rows = by_id(Evaluator(engine, plan).ask(EXAMPLES))
    result = results.summarise(EXAMPLES, rows, plan)
    assert result["num_stand_ins"] == 0 and "WARNING" not in as_text({**result, **DESCRIBED})
    assert "  answered by  extractive 3" in as_text({**result, **DESCRIBED}).splitlines()
    first = rows[EXAMPLES[0].id]
    rows[EXAMPLES[0].id] = replace(first, answer={**(first.answer or {}), "degraded": ["llm:small"]})
    result = results.summarise(EXAMPLES, rows, plan)
    assert result["num_stand_ins"] == 1
    lines = as_text({**result, **DESCRIBED}).splitlines()
    assert "1 of 3 answers come from another model" in lines[1]
    assert "  answered by  extractive 3 (2 as no model was asked, 1 as the model failed)" in lines


def test_missing_reference_answer_is_neither_judged_nor_a_failure(engine):
    judge, plan = Judge(QueuedModel("Score: 4")), replace(PLAN, answers=True)
    rows = Evaluator(engine, plan, judge=judge).ask(EXAMPLES)
    assert [row.scores.get("quality", "none") for row in rows] == [4, "none", "none"] and all(map(is_complete, rows))
    assert rows[1].answer is not None and "no reference" in rows[1].answer["judgements"]["quality"]["error"]
    result = results.summarise(EXAMPLES, by_id(rows), plan)
    assert result["num_scored"]["quality"] == 1 and result["score_errors"]["quality"] == 0


def test_each_answer_is_compared_with_one_from_its_reference_section(engine):
    judge, plan = CountingJudge(), replace(PLAN, answers=True, component=True)
    given = {f"{BASE}metal.html#iron": "Iron. Iron rusts in salt water."}
    passages = lambda sources: {source: given[source] for source in sources if source in given}  # noqa: E731
    rows = Evaluator(engine, plan, judge=judge, passages=passages).ask(EXAMPLES)
    first, second = rows[0], rows[1]
    assert first.answer is not None and "salt" in first.answer["context_only"]["text"]
    assert "salt" not in first.answer["text"] and "salt" in judge.answers[1]
    assert first.scores["quality"] == 1 and first.scores["context_only_quality"] is None
    assert "context_only_token_f1" in first.scores and "context_only_supported" in first.scores
    assert second.answer is not None and "context_only" not in second.answer  # the index has no text of its source
    result = results.summarise(EXAMPLES, by_id(rows), plan)
    assert result["score_errors"]["context_only_quality"] == 1 and result["num_scored"]["quality"] == 2
    assert result["intervals"]["context_only_token_f1"][0] > 0


def test_each_row_is_stored_immediately(engine):
    kept: list[EvaluatedQuestion] = []

    def keep(row: EvaluatedQuestion) -> None:
        if len(kept) == 2:
            raise OSError("the disk is full")
        kept.append(row)

    with pytest.raises(OSError, match="full"):
        Evaluator(engine, PLAN).ask(EXAMPLES, keep)
    assert [row.id for row in kept] == [example.id for example in EXAMPLES[:2]]


def test_question_with_two_reference_answers_is_scored_with_each(engine):
    both = [EXAMPLES[0], replace(EXAMPLES[0], answer="Something quite different.")]
    rows = by_id(Evaluator(engine, replace(PLAN, answers=True)).ask(both))
    assert rows[both[0].id].scores["token_f1"] > rows[both[1].id].scores["token_f1"] == 0


def test_each_question_has_its_own_scores(engine):
    rows = by_id(Evaluator(engine, PLAN).ask(EXAMPLES))
    rows[EXAMPLES[1].id] = EvaluatedQuestion(EXAMPLES[1].id, "q", EXAMPLES[1].sources, error="lost")
    first, second, third = results.per_question(EXAMPLES, rows, PLAN)
    assert (first["rank"], first["scores"]["section_score@1"], first["answer"]) == (1, 1, "Iron rusts in water.")
    assert (second["error"], second["scores"], second["rank"]) == ("lost", {}, None)
    assert (third["rank"], third["scores"]["mrr"], third["source"]) == (None, 0, f"{BASE}nowhere.html")


def test_declared_metric_is_measured_and_shown(engine, monkeypatch):
    shallow = Metric("shallow", "shallow hits", of_hits=lambda example, found, k: min(k, len(found.pages)) / 2)
    words = Metric("words", "words", of_answer=lambda example, answer, embed: float(len(answer.text.split())))
    for metric in (shallow, words):
        monkeypatch.setitem(METRICS, metric.name, metric)
    plan = replace(PLAN, answers=True)
    rows = by_id(Evaluator(engine, plan).ask(EXAMPLES))
    result = results.summarise(EXAMPLES, rows, plan)
    assert result["shallow"] == {"1": 0.5, "2": 1} and result["intervals"]["shallow"]["1"] == [0.5, 0.5]
    assert result["num_scored"]["words"] == 3 and result["words"] > 2
    scores = next(iter(results.per_question(EXAMPLES, rows, plan)))["scores"]
    assert scores["shallow@2"] == 1 and scores["words"] > 2
    lines = as_text({**result, **DESCRIBED}).splitlines()
    head, words = (next(n for n, line in enumerate(lines) if name in line) for name in ("shallow hits", "  words "))
    assert words < head and lines[head + 1].endswith("0.500")


def test_every_metric_is_documented():
    page = (Path(__file__).parents[3] / "docs" / "evaluation.md").read_text()
    assert [name for name in METRICS if f"`{name}`" not in page] == []


def test_files_are_complete_once_results_json_exists(engine, tmp_path):
    rows = by_id(Evaluator(engine, PLAN).ask(EXAMPLES))
    results.write_results(tmp_path / "out", {"mrr": 0.5}, results.per_question(EXAMPLES, rows, PLAN))
    lines = (tmp_path / "out" / "questions.jsonl").read_text().splitlines()
    assert [json.loads(line)["id"] for line in lines] == [example.id for example in EXAMPLES]
    assert json.loads((tmp_path / "out" / "results.json").read_text()) == {"mrr": 0.5}


# ---------------------------------------------------------------------------------------------- names

AGENT = {"name": "a", "model": "m", "api_key": "secret"}
CONFIGURATION = AnswerSettings.model_validate({"agents": [AGENT], "embedding_key": "secret", "llm_key": "secret"})


def named(examples=EXAMPLES, plan=PLAN, index=INDEX, configuration=CONFIGURATION, judge=""):
    return fingerprint(examples, plan, index, configuration, judge)


@pytest.mark.parametrize(
    "changed",
    [
        {"examples": [replace(EXAMPLES[0], answer="Other."), *EXAMPLES[1:]]},
        {"index": replace(INDEX, revision=2)},
        {"plan": replace(PLAN, ks=(1, 3))},
        {"plan": replace(PLAN, answers=True)},
        {"plan": replace(PLAN, component=True)},
        {"configuration": change(CONFIGURATION, {"retrieval.leg_depth": 9})},
        {"judge": "judge"},
    ],
)
def test_anything_that_changes_the_rows_changes_the_fingerprint(changed):
    assert named(**changed) != named()


def test_anything_that_changes_no_row_keeps_the_fingerprint():
    elsewhere = change(CONFIGURATION, {"home": Path("/elsewhere"), "retrieval.patience_s": 9.0, "embedding.key": "x"})
    assert named(plan=replace(PLAN, ks=(2,), seed=7), configuration=elsewhere) == named()


def test_retrained_model_at_the_same_path_is_another_configuration(tmp_path):
    configuration = change(CONFIGURATION, {"reranker.model": str(tmp_path)})
    before = named(configuration=configuration)
    (tmp_path / "model.skops").write_text("weights")
    assert named(configuration=configuration) != before


def test_answering_code_is_part_of_the_fingerprint():
    """A pattern that matches no file after a move would reuse old rows for new code."""
    folder = Path(pipelines.__path__[0])
    assert all(list(folder.glob(pattern)) for pattern in CODE)
    named = {path.relative_to(folder).as_posix() for path in code_files()}
    parts = [*(folder / "answering").rglob("*.*"), *(folder / "llm").glob("*.*")]
    answering = {path.relative_to(folder).as_posix() for path in parts if path.suffix != ".pyc"}
    assert named > answering | {"lexical/query.py", "llm/client.py", "store/search.sql", "evaluation/metrics.py"}


SOURCE = '''"""A module."""

class Scale(Base):
    """A scale."""

    def of(self, *, most: int = 0, **more) -> str:
        """Return it."""
        # A comment.
        return f"{most!r:>{more['w']}}{{x" if most else u"none"

    async def nothing(self) -> None:
        """Do nothing."""
'''
BARE = """class Scale(Base):
    def of(self, *, most: int = 0,
           **more) -> str: return f'{most!r:>{more["w"]}}{{x' if most else u'none'
    async def nothing(self) -> None: 'x'
"""


def test_prose_in_code_keeps_the_fingerprint():
    assert meaning_of(".py", SOURCE) == meaning_of(".py", BARE)
    assert meaning_of(".yaml", "# Words.\na: [x, 'y']\n") == meaning_of(".yaml", "a:\n  - x\n  - y # or z\n")
    assert meaning_of(".sql", "-- Words.\n-- name: a\nselect 1\n") == meaning_of(".sql", "-- name: a\nselect 1\n")


@pytest.mark.parametrize(
    ("suffix", "text", "old", "new"),
    [
        (".py", SOURCE, "most: int = 0", "most: int = 1"),
        (".py", SOURCE, "none", "None"),
        (".py", SOURCE, "async def", "def"),
        (".py", "x = None", "None", "..."),
        (".py", "x = 1", "1", "'1'"),
        (".yaml", "a: x", "x", "y"),
        (".sql", "-- name: a\nselect 1\n", "1", "2"),
        (".sql", "-- name: a\nselect 1\n", "name: a", "name: b"),
    ],
)
def test_change_of_code_changes_the_fingerprint(suffix, text, old, new):
    assert meaning_of(suffix, text) != meaning_of(suffix, text.replace(old, new, 1))


def test_code_has_the_same_digest_on_every_python():
    """Python 3.11, 3.12 and 3.13 gave this value when it was written."""
    assert digest(meaning_of(".py", SOURCE)) == "1953e4d7e859ee2875d0d3473b90fc1e"


def test_no_key_is_written_to_disk():
    assert "secret" not in json.dumps(public_settings(CONFIGURATION))
    assert public_settings(CONFIGURATION)["agents"][0]["model"] == "m"
