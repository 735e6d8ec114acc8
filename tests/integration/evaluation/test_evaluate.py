"""`python -m jobs.evaluate` on a real index: its last line, its files, resuming, and Ray Data."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from kit.databases import evaluation_row
from kit.scripted_llm import Reply, Request, ScriptedLLM
from kit.workshop import BASE, Workshop, small_site

from jobs import evaluate
from jobs.cli import run_job
from pipelines.answering.engine import QueryEngine
from pipelines.evaluation.dataset import Example, write_dataset
from pipelines.store import Store, StoreUnavailable

SITE = small_site(6)


@dataclass
class Done:
    code: int
    out: str
    err: str

    @property
    def result(self) -> dict[str, Any]:
        return json.loads(self.out.strip().splitlines()[-1])


Job = Callable[..., Done]


@pytest.fixture
def job(store: Store, database_url: str, tmp_path: Path, monkeypatch, capfd) -> Job:
    """Return a runner of `python -m jobs.evaluate` in this process, on an index of six pages with six questions."""
    Workshop(store).reindex(SITE)
    monkeypatch.setenv("DATABASE_URL", database_url)
    monkeypatch.setenv("RAYDEX_HOME", str(tmp_path / "home"))
    write_dataset(tmp_path / "six.jsonl", examples())

    def run(*words: str, dataset: str = "six.jsonl") -> Done:
        capfd.readouterr()
        code = run_job(evaluate.app, ["--dataset", str(tmp_path / dataset), *words])
        return Done(code, *capfd.readouterr())

    return run


def examples() -> list[Example]:
    """Return a question in the words of each page's second section. The last two name another page as their source."""
    texts = {path: sections["s1"] for path, sections in SITE.items()}
    sources = [f"{BASE}{path}#s1" for path in texts]
    sources[-2:] = [f"{BASE}missing", f"{BASE}p00#s0"]
    return [Example(text, (source,), text) for text, source in zip(texts.values(), sources, strict=True)]


def test_last_line_is_one_object_with_every_score_or_a_readable_table(job, store, tmp_path):
    done = job("--collection", "docs", "--k", "1,3", "--json", "--out", str(tmp_path / "out"))
    assert done.code == 0, done.err
    result = done.result
    assert (result["collection"], result["dataset"], result["num_questions"]) == ("docs", "six.jsonl", 6)
    assert result["retrieval_score"]["1"] == pytest.approx(4 / 6, abs=1e-5)
    assert result["section_score"]["1"] == pytest.approx(4 / 6, abs=1e-5)
    low, high = result["intervals"]["retrieval_score"]["1"]
    assert 0 < low < 4 / 6 < high <= 1
    assert result["num_not_indexed"] == 1 and "1 of 6 questions name no page of the index" in done.err
    write_dataset(tmp_path / "moved.jsonl", [examples()[0], Example("Where?", (f"{BASE}p00#gone",))])
    moved = job("--json", dataset="moved.jsonl")
    assert (moved.result["num_not_indexed"], moved.result["num_no_section"], result["num_no_section"]) == (0, 1, 0)
    assert f"1 of 2 questions name no section of the index, first {BASE}p00#gone" in moved.err
    live = store.live_index("docs")
    assert (result["index"], result["revision"], result["num_errors"]) == (live.id, live.revision, 0)
    assert result["configuration"]["retrieval.ranking"] == "learned" and result["timings"]["total"]["p50"] > 0
    kept = evaluation_row(store, result["evaluation"])
    assert kept["scores"]["mrr"] == result["mrr"] and kept["ended"]
    assert json.loads((tmp_path / "out" / "results.json").read_text())["mrr"] == result["mrr"]
    assert len((tmp_path / "out" / "questions.jsonl").read_text().splitlines()) == 6
    table = job("--k", "1,3").out.splitlines()
    assert table[0] == "collection docs, index 1 revision 1: 6 questions of six.jsonl"
    assert table[2].split()[:2] == ["1", "0.667"]


def test_evaluation_resumes_where_it_stopped(job: Job, store: Store, monkeypatch) -> None:
    record, calls = Store.record_evaluated_questions, count()

    def stopped(self: Store, evaluation: int, rows: Any) -> None:
        if next(calls) == 4:
            raise StoreUnavailable("the database can't be reached")
        record(self, evaluation, rows)

    monkeypatch.setattr(Store, "record_evaluated_questions", stopped)
    assert job("--k", "2").code == 1
    rest = job("--k", "2", "--json").result
    assert (rest["num_kept"], rest["num_questions"]) == (4, 6)
    again = job("--k", "1,2", "--json").result
    assert again["num_kept"] == 6 and again["evaluation"] == rest["evaluation"]
    fresh = job("--k", "2", "--fresh", "--json").result
    assert fresh["num_kept"] == 0 and fresh["evaluation"] != rest["evaluation"]
    scores = [{k: run[k] for k in ("mrr", "num_errors", "intervals")} for run in (rest, fresh)]
    assert scores[0] == scores[1]


def test_sample_is_drawn_by_seed_and_answers_are_scored(job: Job) -> None:
    done = job("--limit", "3", "--seed", "1", "--answers", "--json")
    assert done.code == 0, done.err
    result = done.result
    assert result["num_questions"] == 3 and result["num_scored"]["similarity"] == 3
    assert 0 < result["similarity"] <= 1 and 0 < result["token_f1"] <= 1 and 0 <= result["supported"] <= 1
    assert result["seed"] == 1 and "quality" not in result


def test_judge_scores_model_answers_and_is_called_once_per_answer(job, tmp_path, llm):
    def unsure(request: Request) -> bool:
        return "generated_answer" in request.text and examples()[5].question in request.text

    def judged() -> int:
        return sum("generated_answer" in request.text for request in llm.requests)

    llm.rules = [(unsure, "I can not say."), ("generated_answer", '{"reasoning": "as the reference", "score": 4}')]
    done = job("--answers", "--component", "--dimensions", "quality", "--k", "2", "--json")  # the first agent judges
    assert done.code == 0, done.err
    result = done.result
    assert result["quality"] == 4 and result["num_scored"]["quality"] == 5
    assert result["score_errors"]["quality"] == 1 and result["usage"]["calls"] == 6
    assert result["context_only_quality"] == 4 and result["num_scored"]["context_only_quality"] == 4
    assert result["judge"] == "llm"
    first = judged()
    (tmp_path / "own.txt").write_text("Rate this generated_answer: {answer}")
    own = job("--answers", "--k", "2", "--dimensions", f"brevity={tmp_path}/own.txt", "--json")
    assert own.result["brevity"] == 4 and "quality" not in own.result
    alone = job("--answers", "--k", "2", "--json").result
    assert alone["judge"] is None and not {"quality", "context_only_token_f1"} & set(alone)
    before = judged()
    fresh = job("--answers", "--component", "--judge", "llm", "--k", "2", "--json", "--fresh").result
    assert fresh["quality"] == 4 and 0 < judged() - before < first  # only the failed one is retried


EGG = Example("How long do I boil an egg so that the yolk stays soft?", ())


@pytest.fixture
def llm(monkeypatch) -> Iterator[ScriptedLLM]:
    """Run a scripted model as the agent "llm"."""
    with ScriptedLLM(default="It is so [1].") as llm:
        monkeypatch.setenv("RAYDEX_LLM_URL", llm.url)
        monkeypatch.setenv("RAYDEX_LLM_MODEL", "scripted")
        yield llm


MODEL_ANSWERS = ("--answers", "--k", "2")


def test_answers_are_measured_with_counts_and_exported_for_human_grading(job: Job, tmp_path: Path, llm) -> None:
    write_dataset(tmp_path / "other.jsonl", [EGG])
    llm.default = f"{examples()[0].question} [1]. Zebras drive red buses to school [1]."
    out = tmp_path / "out"
    done = job(*MODEL_ANSWERS, "--dataset", str(tmp_path / "other.jsonl"), "--json", "--out", str(out))
    assert done.code == 0, done.err
    result = done.result
    assert (result["dataset"], result["num_questions"], result["num_unanswerable"]) == ("six.jsonl + other.jsonl", 7, 1)
    assert result["refused"] == 1 and result["num_scored"]["refused"] == 1
    assert result["num_scored"]["similarity"] == 6 and result["mrr"] == pytest.approx(4 / 6, abs=0.1)
    assert (result["num_true"]["answered"], result["num_scored"]["answered"]) == (5, 5)
    assert result["usage"]["calls"] == len(llm.requests) == 6 and result["agents"] == {"llm": 6, "extractive": 1}
    assert result["extractive"] == {"not_asked": 1, "found_none": 0, "failed": 0}
    assert result["model"]["questions"] == 6 and set(result["model"]["timings"]) == {"total", "first_delta"}
    assert result["model"]["prompt_tokens"] == pytest.approx(result["usage"]["prompt_tokens"] / 6, abs=0.01)
    assert 0 < result["claims_supported"] < 1 and result["claims"]["total"] == 12
    assert "asking 7 questions (an answer): about 7 calls of language models" in done.err
    page = (out / "answers.md").read_text()
    assert page.startswith("# Answers: six.jsonl + other.jsonl") and page.count("\nGrade:") == 7
    assert " s for the 6 with a reply of a model" in page and "answered by  llm (scripted) 6, extractive 1" in page
    assert "## 7. How long do I boil an egg" in page and "*About other things:" in page
    assert "**not supported**" in page and ", the reference page" in page and "by llm; confidence" in page


def test_missed_floor_has_its_own_exit_code(job: Job, llm: ScriptedLLM) -> None:
    words = (*MODEL_ANSWERS, "--at-least", "answered=0.9", "--at-least", "mrr=0.1")
    good = job(*words, "--json")
    assert good.code == 0 and [verdict["passed"] for verdict in good.result["gate"]] == [True, True]
    bad = job(*words, "--at-least", "claims_supported=0.99", "--at-least", "refused=0.9")
    assert bad.code == 4
    assert "gate passed: six.jsonl: answered 1.0000 [1.0000, 1.0000]; it must be at least 0.9" in bad.out
    assert "gate FAILED: six.jsonl: claims_supported" in bad.out
    assert "refused could not be measured (no question or answer has this score)" in bad.out


def agent(monkeypatch, url: str) -> None:
    """Answer with the agent "small" from now on, without retries."""
    small = {"name": "small", "model": "scripted", "base_url": url, "retries": 0}
    monkeypatch.setenv("RAYDEX_AGENTS", json.dumps([small]))


def test_dead_endpoint_does_not_count_against_a_model(job: Job, monkeypatch) -> None:
    agent(monkeypatch, "http://127.0.0.1:9/v1")
    dead = job(*MODEL_ANSWERS, "--json")
    assert (dead.code, dead.out) == (1, "")
    assert "no language model answered: small failed for all 5 questions" in dead.err  # the sixth was not tried
    with ScriptedLLM(default="It is so [1].") as llm:
        agent(monkeypatch, llm.url)
        assert job(*MODEL_ANSWERS, "--json").result["agents"] == {"small": 6}


def test_questions_that_fail_in_the_model_are_retried_but_not_forever(job: Job, tmp_path: Path, monkeypatch) -> None:
    asked = [replace(example, question=f"{example.question} {n}?") for n, example in enumerate(examples())]
    write_dataset(tmp_path / "six.jsonl", asked)
    with ScriptedLLM([(asked[0].question, "It is so [1].")], default=Reply(status=500)) as llm:
        agent(monkeypatch, llm.url)
        for kept, questions in ((0, 6), (1, 5), (1, 5), (6, 0)):
            llm.requests.clear()
            done = job(*MODEL_ANSWERS, "--json")
            assert (done.code, done.result["num_kept"], done.result["num_stand_ins"]) == (0, kept, 5)
            assert len({request.prompt for request in llm.requests}) == questions
        assert "5 of them 3 times and never with all parts" in done.err
        said = job(*MODEL_ANSWERS).out
    assert "WARNING: a model failed: 5 of 6 answers come from another model, and count like the others" in said
    assert "answered by  extractive 5, small (scripted) 1 (5 as the model failed)" in said


def test_failed_questions_are_counted_and_fail_the_job_if_all_fail(job: Job, monkeypatch) -> None:
    async def broken(self: Any, question: str, **_: Any) -> Any:
        if question != examples()[0].question:
            raise RuntimeError("the model broke")
        return await asearch(self, question, **_)

    asearch = QueryEngine.asearch
    monkeypatch.setattr(QueryEngine, "asearch", broken)
    result = job("--k", "1", "--json").result
    assert (result["num_errors"], result["num_questions"], result["retrieval_score"]["1"]) == (5, 6, 1)
    mended = job("--k", "1", "--limit", "6", "--json").result
    assert mended["num_kept"] == 1 and mended["num_errors"] == 5

    async def always(self: Any, question: str, **_: Any) -> Any:
        raise RuntimeError("the model broke")

    monkeypatch.setattr(QueryEngine, "asearch", always)
    failed = job("--k", "2")
    assert failed.code == 1 and "every question failed" in failed.err and "the model broke" in failed.err


def test_judge_is_checked_for_biases_and_against_people(job, tmp_path, llm, monkeypatch):
    agents = [{"name": name, "model": name, "base_url": llm.url} for name in ("fond", "other")]
    monkeypatch.setenv("RAYDEX_AGENTS", json.dumps(agents))

    def grade(request: Request) -> str:
        answer = request.text.split("<generated_answer>")[1].split("</generated_answer>", maxsplit=1)[0]
        likes = "by fond" in answer and request.body["model"] == "fond"
        return json.dumps({"score": 1 if "wrong" in answer else 5 if "In summary" in answer or likes else 3})

    llm.rules = [("<answer_a>", '{"better": "A"}'), ("<generated_answer>", grade)]
    llm.default = lambda request: f"It says so, by {request.body['model']} [1]."
    grades = tmp_path / "grades.jsonl"
    rows = [
        {"question": "q", "answer": answer, "reference": "r", "grade": n} for n, answer in ((1, "wrong"), (3, "fair"))
    ]
    grades.write_text("".join(json.dumps(row) + "\n" for row in rows))
    words = ("--answers", "--check-judge", "--judge", "fond", "--k", "2")
    done = job(*words, "--grades", str(grades), "--json")
    assert done.code == 0, done.err
    found = {check["check"]: check for check in done.result["judge_check"]}
    assert (found["position"]["value"], found["position"]["passed"], found["position"]["judged"]) == (1, False, 6)
    assert (found["self-preference"]["value"], found["self-preference"]["passed"]) == (2, False)
    assert (found["agreement"]["value"], found["agreement"]["passed"], found["agreement"]["judged"]) == (1, True, 2)
    assert not found["verbosity"]["skipped"]
    asked = len(llm.requests)
    table = job(*words).out
    assert "swayed: the place decides" in table and "not measured: there are no grades of people" in table
    assert "<generated_answer>" not in "".join(request.text for request in llm.requests[asked:]), "judged once"


REFUSED = [
    (["--k", "1,x"], "'x' is not a number from 1 to 100"),
    (["--k", "0"], "'0' is not"),
    (["--k", ""], "'' is not"),
    (["--k", "101"], "'101' is not"),
    (["--collection", "dogs"], "no collection 'dogs'; there are: docs"),
    (["--limit", "0"], "--limit is 0"),
    (["--workers", "-1"], "--workers is -1"),
    (["--seed", "-1"], "--seed is -1"),
    (["--judge", "llm"], "needs --answers"),
    (["--component"], "--component needs --answers"),
    (["--answers", "--dimensions", "toxicity"], "there is no agent to judge"),
    (["--answers", "--check-judge"], "there is no agent to judge"),
    (["--check-judge"], "--check-judge needs --answers"),
    (["--grades", "grades.jsonl"], "--grades needs --check-judge"),
    (["--answers", "--check-judge", "--grades", "absent.jsonl"], "absent.jsonl"),
    (["--out", __file__], "can't be made a folder: File exists"),
    (["--answers", "--dimensions", "wit"], "no dimension is called 'wit'"),
    (["--answers", "--dimensions", "wit=absent.txt"], "absent.txt can't be read"),
    (["--at-least", "answered=1"], "--at-least answered: it is not measured here; there are: retrieval_score@1,"),
    (["--answers", "--at-least", "answered"], "--at-least is 'answered': write a score and a number"),
    (["--answers", "--at-least", "answered=nan"], "--at-least is 'answered=nan'"),
    (["--judge", "llm", "--answers"], "no agent 'llm' to judge; configured are: none"),
]


def test_unusable_input_is_rejected_by_name(job: Job) -> None:
    for words, said in REFUSED:
        refused = job(*words)
        assert (refused.code, refused.out) == (2, ""), words
        assert said in refused.err and "Traceback" not in refused.err


def test_off_topic_questions_alone_are_scored_by_their_answers(job: Job, tmp_path: Path) -> None:
    write_dataset(tmp_path / "other.jsonl", [EGG])
    refused = job(dataset="other.jsonl")
    assert refused.code == 2 and "only --answers measures them" in refused.err
    done = job("--answers", dataset="other.jsonl")
    assert done.code == 0 and "1 of 1 question about other things" in done.out and "retrieval" not in done.out


def test_missing_or_broken_file_is_named_with_its_line(job: Job, tmp_path: Path) -> None:
    missing = job(dataset="absent.jsonl")
    assert missing.code == 2 and "absent.jsonl" in missing.err
    (tmp_path / "bad.jsonl").write_text('{"question": "a", "source": "u"}\n{"question": "b"')
    broken = job(dataset="bad.jsonl")
    assert broken.code == 2 and "bad.jsonl:2: is not JSON" in broken.err


@pytest.mark.slow
@pytest.mark.exhaustive
def test_evaluation_over_ray_data_gives_the_same_scores(job: Job, tmp_path: Path, local_ray: None) -> None:
    write_dataset(tmp_path / "other.jsonl", [EGG] * 16)  # a batch in which no question has a source
    words = ("--answers", "--dataset", str(tmp_path / "other.jsonl"), "--json")
    here = job(*words).result
    over_ray = job(*words, "--workers", "1", "--fresh")
    assert over_ray.code == 0, over_ray.err
    assert over_ray.result["refused"] == here["refused"] == 1
    for name in ("retrieval_score", "section_score", "ndcg", "mrr", "intervals", "num_errors", "fingerprint"):
        assert over_ray.result[name] == here[name]
    assert over_ray.result["num_kept"] == 0
