"""Sweep files, the comparison of their runs, and the gate."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from jobs.cli import BadInput, describe_error
from jobs.experiment import app, how_far
from jobs.flags import read_words
from pipelines.cluster import own_error
from pipelines.evaluation.dataset import Example
from pipelines.evaluation.evaluator import EvaluationPlan
from pipelines.evaluation.experiments.comparison import UnknownRun, best_run, check_names, compare_runs, main_metric
from pipelines.evaluation.experiments.effects import effects, label_runs
from pipelines.evaluation.experiments.gate import BadFloor, NotComparable, gate, judge_floors, read_floors, read_results
from pipelines.evaluation.experiments.prices import Price
from pipelines.evaluation.experiments.record import failed_record, measured_record
from pipelines.evaluation.experiments.sweep import BadSweep, Cell, Sweep, read_sweep
from pipelines.evaluation.fingerprint import public_settings
from pipelines.evaluation.metrics import score_names
from pipelines.store import EvaluatedQuestion

ROOT = Path(__file__).parents[3]
# More combinations than any machine's memory.
HUGE = (
    f"grid: {{retrieval.k: &many {list(range(1, 101))}, retrieval.leg_depth: *many, reranker.depth: *many, "
    "retrieval.max_per_page: *many, retrieval.rrf_k: *many}\n"
)
HEAD = "collection: docs\ndataset: questions.jsonl\n"
EXAMPLES = [Example(f"What is {n}?", (f"https://d.test/{n}#a",)) for n in range(8)]
PLAN = EvaluationPlan("docs", (1, 3))


def sweep_of(tmp_path: Path, text: str) -> Sweep:
    path = tmp_path / "sweep.yaml"
    path.write_text(HEAD + text)
    return read_sweep(path)


def row(example: Example, place: int | None, cost: float | None = None, error: str | None = None) -> EvaluatedQuestion:
    """A row whose reference is the hit at `place`."""
    urls = [f"https://d.test/other{n}" for n in range(3)]
    if place:
        urls[place - 1] = example.sources[0]
    hits = [{"sources": [url], "anchors": [url], "title": "T", "score": 1.0} for url in urls]
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "calls": 1}
    answer = None if cost is None else {"text": "It is.", "known": True, "cost": cost, **usage}
    return EvaluatedQuestion(example.id, example.question, example.sources, hits if not error else [],
                             timings={"total": 0.01}, answer=answer, error=error)  # fmt: skip


def record(name: str, places: list[int | None], varied: dict[str, object] | None = None, **more: float) -> dict:
    rows = {e.id: row(e, place, **more) for e, place in zip(EXAMPLES, places, strict=True)}
    varied, plan = varied or {}, replace(PLAN, answers=bool(more))
    return measured_record(Cell(name, varied, varied), varied, {"id": 1}, EXAMPLES, rows, plan)


SWEEP = Sweep("s", "docs", (Path("q.jsonl"),), (1, 3), False, ())


def compared(*records: dict, parameters=(), baseline="", metric="retrieval_score@3") -> dict:
    varied = dict.fromkeys(parameters)
    sweep = replace(SWEEP, cells=(Cell("x", varied, varied),))
    return compare_runs(sweep, EXAMPLES, records, "fingerprint", metric, baseline)


# ---------------------------------------------------------------------------------------------- the file


def test_grid_is_every_combination_on_top_of_the_base(tmp_path):
    grid = "{retrieval.bm25_weight: [0.5, 1], chunk_size: [100, 200, 300]}"
    sweep = sweep_of(tmp_path, f"base: {{retrieval.k: 9}}\ngrid: {grid}\n")
    assert [cell.name for cell in sweep.cells][:2] == [
        "retrieval.bm25_weight=0.5, chunk_size=100",
        "retrieval.bm25_weight=0.5, chunk_size=200",
    ]
    assert len(sweep.cells) == 6
    last = sweep.cells[-1]
    assert last.settings == {"retrieval.k": 9, "retrieval.bm25_weight": 1, "chunk_size": 300}
    assert last.index == {"chunk_size": 300}
    assert (last.configuration({}).retrieval.k, last.configuration({}).retrieval.bm25_weight) == (9, 1)
    assert sweep.parameters == ("retrieval.bm25_weight", "chunk_size")
    assert sweep.datasets == (tmp_path / "questions.jsonl",)


def test_several_data_sets_are_asked_together(tmp_path):
    text = "collection: docs\ndataset: [a.jsonl, more/b.jsonl]\nruns: [{}]\n"
    (tmp_path / "several.yaml").write_text(text)
    assert read_sweep(tmp_path / "several.yaml").datasets == (tmp_path / "a.jsonl", tmp_path / "more" / "b.jsonl")
    for wrong in ("[]", "[a.jsonl, 3]", "''", "{a: b}"):
        (tmp_path / "several.yaml").write_text(f"collection: docs\ndataset: {wrong}\nruns: [{{}}]\n")
        with pytest.raises(BadSweep, match="dataset"):
            read_sweep(tmp_path / "several.yaml")


def test_single_runs_and_grids_combine_without_duplicates(tmp_path):
    grids = "- {retrieval.k: [3, 5]}\n- {retrieval.k: [5], retrieval.neighbours: [0, 1]}\n"
    text = f"grid:\n{grids}runs:\n- {{name: five, retrieval.k: 5}}\n- {{name: plain}}\n"
    sweep = sweep_of(tmp_path, text)
    assert [cell.name for cell in sweep.cells] == [
        "retrieval.k=3", "five", "retrieval.k=5, retrieval.neighbours=0", "retrieval.k=5, retrieval.neighbours=1",
        "plain"
    ]  # fmt: skip


def test_values_can_have_names(tmp_path):
    sweep = sweep_of(
        tmp_path, "grid: {prompts.templates: {plain: {}, terse: {qa: 'In a word: {question} {context}'}}}\n"
    )
    assert [cell.name for cell in sweep.cells] == ["prompts.templates=plain", "prompts.templates=terse"]
    assert sweep.cells[1].settings["prompts.templates"] == {"qa": "In a word: {question} {context}"}


def test_settings_missing_in_a_cell_come_from_the_environment(tmp_path):
    cell = sweep_of(tmp_path, "runs: [{retrieval.k: 7}]\n").cells[0]
    configuration = cell.configuration({"retrieval.k": 2, "llm_model": "m", "llm_key": "secret"})
    assert (configuration.retrieval.k, configuration.llm.model) == (7, "m")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("grid: {}\n", "grid.0 is a table: it must have at least 1, and has 0"),
        ("grid: {retrieval.k: []}\n", "grid.retrieval.k is []"),
        ("grid: {retrieval.k: 5}\n", "grid.retrieval.k is 5: it must be a list"),
        ("", "nothing to compare"),
        ("grid: {zz: [1]}\n", "grid.zz is unknown: there are: model,"),
        ("grid: {bm25_weight: [1]}\n", "grid.bm25_weight is unknown: did you mean retrieval.bm25_weight?"),
        ("runs: [{mode: qa}]\n", "mode is unknown: did you mean synthesis.mode?"),
        ("grid: {chunk_sise: [1]}\n", "grid.chunk_sise is unknown: did you mean chunk_size?"),
        ("grid: {k: [1],\n  k: [2]}\n", "line 4, column 3: the key k is repeated"),
        (HUGE, "configurations are more than 1,000: make the grid smaller"),
        ("runs: [{prompts.templates: {question: x}}]\n", "prompts: no prompt is called question"),
        ("answers: true\njudge: me\nruns: [{llm_model: m}]\n", "there is no agent 'me' to judge; there are: llm"),
        ("answers: true\njudge: llm\ndimensions: [beauty]\nruns: [{llm_model: m}]\n", "dimensions.0: "),
        ("colour: red\nruns: [{}]\n", "colour is unknown: there are: name, collection"),
        ("runs: [{retrieval.k: 0}]\n", "retrieval.k=0: retrieval.k is 0: it must be at least 1"),
        ("runs: [{reranker.kind: magic}]\n", "reranker.kind=magic: reranker.kind: 'magic' is not one of"),
        ("runs: [{fusion.kind: mean}]\n", "'mean' is not one of the choices: rrf, relative_score, insert"),
        ("runs: [{chunk_size: -1}]\n", "chunk_size=-1: chunk_size is -1: it must be at least 0"),
        ("base: {reranker.kind: cross-encoder}\nruns: [{}]\n", "needs reranker.model"),
        ("base: {llm_key: abc}\nruns: [{}]\n", "base.llm.key: keys do not belong in a file: set RAYDEX_LLM__KEY"),
        ("runs: [{name: a, retrieval.k: 1}, {name: a, retrieval.k: 2}]\n", "two runs are called 'a'"),
        ("runs: [{name: a, retrieval.k: 1}, {name: b, retrieval.k: 1}]\n", "have the same settings"),
        ("name: 3\nruns: [{}]\n", "name is 3: it must be text"),
        ("ks: [0]\nruns: [{}]\n", "ks.0 is 0: it must be at least 1"),
        ("answers: perhaps\nruns: [{}]\n", "answers is 'perhaps': it must be true or false"),
        ("judge: strong\nruns: [{}]\n", "needs answers: true"),
        ("runs: 3\n", "runs is 3: it must be a list"),
        ("[", "is not valid YAML"),
    ],
)
def test_unusable_file_is_refused_with_the_reason(tmp_path, text, said):
    with pytest.raises(BadSweep) as error:
        sweep_of(tmp_path, text)
    assert said in str(error.value)
    assert str(tmp_path / "sweep.yaml") in str(error.value)


@pytest.mark.parametrize("path", sorted((ROOT / "benchmarks" / "sweeps").glob("*.yaml")), ids=lambda path: path.name)
def test_sweeps_of_this_repository_are_valid(path):
    assert len(read_sweep(path).cells) > 1


# ---------------------------------------------------------------------------------------------- side by side


def test_record_has_means_with_intervals_and_values_per_question():
    one = record("one", [1, 2, None, 1, 1, None, 3, 1])
    assert one["scores"]["retrieval_score@1"][0] == pytest.approx(4 / 8)
    assert one["scores"]["retrieval_score@3"][0] == pytest.approx(6 / 8)
    assert one["values"]["retrieval_score@3"] == [1, 1, 0, 1, 1, 0, 1, 1]
    low, high = one["scores"]["retrieval_score@3"][1:]
    assert low < 6 / 8 < high
    assert [found["rank"] for found in one["found"]] == [1, 2, None, 1, 1, None, 3, 1]
    assert [right for _, _, right in one["found"][1]["hits"]] == [0, 2, 0]


def test_cost_is_per_thousand_answered_questions():
    assert record("paid", [1] * 8, cost=0.002)["cost_per_1000"] == pytest.approx(2.0)
    assert record("free", [1] * 8)["cost_per_1000"] is None


def test_cost_of_embedding_a_question_depends_on_its_model():
    rows = {e.id: row(e, 1) for e in EXAMPLES}
    free = measured_record(Cell("a", {}), {}, {"id": 1}, EXAMPLES, rows, PLAN)
    paid = measured_record(Cell("a", {}), {}, {"id": 1}, EXAMPLES, rows, PLAN, Price(embedding=1.0))
    assert free["cost_per_question"] is None
    tokens = paid["cost_per_question"] * 1_000_000
    assert 3 <= tokens <= 8  # "What is 1?"
    assert paid["cost_per_1000"] == pytest.approx(1000 * paid["cost_per_question"])


def routed_record(name: str, agents: list[str], **settings: object) -> dict:
    """Return a run in which the hard agent is always right, and the cheap, easy one in the first half only."""
    rows = {}
    for number, (example, agent) in enumerate(zip(EXAMPLES, agents, strict=True)):
        one = row(example, 1, cost=0.001 if agent == "easy" else 0.01)
        scores = {"quality": 5.0 if agent == "hard" or number < 4 else 1.0}
        rows[example.id] = replace(one, answer={**one.answer, "agent": agent}, scores=scores)
    settings = {"router.kind": "fixed", "retrieval.k": 5, **settings}
    return measured_record(Cell(name, settings), settings, {"id": 1}, EXAMPLES, rows, replace(PLAN, answers=True))


def test_unusable_experiment_name_is_refused_before_it_runs():
    varied = {"k": 1}
    sweep = replace(SWEEP, answers=True, cells=(Cell("one", varied, varied),))
    check_names(sweep, "ndcg@3", "one", "")
    check_names(sweep, "quality")
    with pytest.raises(UnknownRun, match="there is no run 'two'; there are: one"):
        check_names(sweep, "mrr", "two")
    with pytest.raises(UnknownRun, match="'recall@3' is not measured; there are: retrieval_score@1"):
        check_names(sweep, "recall@3")


def test_differences_are_paired_over_questions_answered_by_both():
    baseline = record("a", [None] * 4 + [1] * 4)
    rows = {e.id: row(e, 1, error="down" if n == 7 else None) for n, e in enumerate(EXAMPLES)}
    better = measured_record(Cell("b", {}), {}, {"id": 1}, EXAMPLES, rows, PLAN)
    found = compared(baseline, better)
    assert found["baseline"] == "a"
    difference, low, high, p = found["runs"][1]["against"]["retrieval_score@3"]
    assert difference == pytest.approx(4 / 7, abs=1e-4)
    assert 0 < low < difference < high
    assert p == pytest.approx(2 / 2**4)
    assert found["runs"][1]["errors"] == 1
    assert "against" not in found["runs"][0]


def test_failed_cell_is_listed_with_its_error():
    found = compared(failed_record(Cell("broken", {}), {}, RuntimeError("no model")), record("fine", [1] * 8))
    assert found["baseline"] == "fine"
    assert found["runs"][0]["error"] == "RuntimeError: no model"
    assert best_run(found["runs"], "retrieval_score@3")["name"] == "fine"
    json.dumps(found)


def test_allowed_drop_is_a_number_with_or_without_sign():
    for said in ("0.02", "-0.02"):
        given = read_words(app, ["s.yaml", "--baseline", "a", "--fail-below", said])[1].arguments
        assert how_far(given["fail_below"]) == 0.02
    with pytest.raises(BadInput, match="--fail-below is nan"):
        how_far(float("nan"))


def test_failed_cell_shows_the_reason_without_a_ray_traceback():
    ray_error = type("RayTaskError", (Exception,), {"__module__": "ray.exceptions"})
    trace = "ray::MapWorker() (pid=1)\n  File build.py\npipelines.embed.EmbeddingFailed: no key: set one\nTo retry …"
    why, ours = describe_error(own_error(ray_error(trace)))
    assert (why, ours) == ("no key: set one", True)
    told = OSError("the disk is full\nFailed to apply UDF transform after 1/1 attempts.\nTo change …")
    error = ray_error(trace)
    error.cause = told
    assert own_error(error) is told and str(told) == "the disk is full"
    assert failed_record(Cell("broken", {}), {}, ray_error(trace), why)["error"] == "no key: set one"


def test_effect_compares_only_runs_that_differ_in_nothing_else():
    cells = {
        "a": ({"x": 1, "y": 1}, [1] * 4 + [None] * 4),
        "b": ({"x": 2, "y": 1}, [1] * 6 + [None] * 2),
        "c": ({"x": 1, "y": 2}, [1] * 2 + [None] * 6),
        "d": ({"x": 2, "y": 2}, [1] * 4 + [None] * 4),
        "e": ({"x": 3, "y": 3}, [1] * 8),
    }
    runs = [record(name, places, varied) for name, (varied, places) in cells.items()]
    found = compared(*runs, parameters=("x", "y"))
    of_x, of_y = found["effects"]
    assert (of_x["parameter"], of_x["values"], of_x["lines"]) == ("x", ["1", "2"], [[0, 1], [2, 3]])
    assert (of_y["values"], of_y["lines"]) == (["1", "2"], [[0, 2], [1, 3]])
    means = [mean[0] for mean in of_x["means"]["retrieval_score@3"]]
    assert means == pytest.approx([(0.5 + 0.25) / 2, (0.75 + 0.5) / 2])


def test_value_keeps_its_label_from_the_file(tmp_path):
    agent = "[{name: a, base_url: 'http://a.test/v1', model: %s}]"
    text = f"answers: true\ngrid: {{agents: {{small: {agent % 'm1'}, large: {agent % 'm2'}}}}}\n"
    cells = sweep_of(tmp_path, text).cells
    runs = [{"settings": public_settings(cell.configuration({}))} for cell in cells]
    label_runs(replace(SWEEP, cells=cells), runs)
    assert [run["varied"] for run in runs] == [{"agents": "small"}, {"agents": "large"}]


def test_effect_with_gaps_has_no_mean():
    varied = [{"x": "1", "y": "1"}, {"x": "2", "y": "1"}, {"x": "2", "y": "2"}, {"x": "10", "y": "2"}]
    runs = [{**record(str(n), [1] * 8), "varied": each} for n, each in enumerate(varied)]
    of_x = effects(runs, ("x",))[0]
    assert of_x["values"] == ["1", "2", "10"]
    assert of_x["lines"] == [[0, 1, None], [None, 2, 3]]
    assert of_x["means"] == {}


def test_main_metric_is_at_k_9_or_the_next_smaller_k():
    assert main_metric((1, 3, 5, 9, 13)) == "retrieval_score@9"
    assert main_metric((1, 5, 13)) == "retrieval_score@5"
    assert main_metric((18,)) == "retrieval_score@18"


# ---------------------------------------------------------------------------------------------- the gate

GOOD, WORSE = [1] * 8, [1] * 6 + [None] * 2


def test_gate_passes_equal_or_slightly_worse_runs_and_fails_worse_ones():
    found = compared(record("main", GOOD), record("same", GOOD), record("change", WORSE), baseline="main")
    assert [verdict.passed for verdict in gate(found, None, "retrieval_score@3", 0.25)] == [True, True]
    same, change = gate(found, None, "retrieval_score@3", 0.2)
    assert same.passed and not change.passed and change.difference[0] == pytest.approx(-0.25)
    assert "FAILED: change against main: retrieval_score@3 -0.2500" in str(change)
    assert [verdict.run for verdict in gate(found, None, "retrieval_score@3", 0.2, "same")] == ["same"]


def test_gate_fails_unmeasured_runs():
    found = compared(record("main", GOOD), failed_record(Cell("change", {}), {}, RuntimeError("down")), baseline="main")
    (verdict,) = gate(found, None, "retrieval_score@3", 1.0)
    assert not verdict.passed
    assert "down" in str(verdict)
    found = compared(record("main", GOOD), record("change", GOOD), baseline="main")
    assert not gate(found, None, "quality", 1.0)[0].passed


def test_gate_compares_with_the_same_run_of_an_earlier_day(tmp_path):
    earlier = compared(record("main", GOOD), record("other", [None] * 8))
    (tmp_path / "results.json").write_text(json.dumps(earlier))
    read = read_results(tmp_path / "results.json")
    (verdict,) = gate(compared(record("main", WORSE)), read, "retrieval_score@3", 0.0)
    assert (verdict.run, verdict.passed) == ("main", False)
    with pytest.raises(UnknownRun, match="there are: main; other"):
        gate(compared(record("new", GOOD)), read, "retrieval_score@3", 0.0)


def test_gate_refuses_other_questions_and_invalid_result_files(tmp_path):
    other = {**compared(record("main", GOOD)), "dataset": {"name": "x", "fingerprint": "y", "questions": 1}}
    with pytest.raises(NotComparable, match="must be the same"):
        gate(compared(record("main", GOOD)), other, "retrieval_score@3", 0.0)
    (tmp_path / "x.json").write_text("{}")
    with pytest.raises(NotComparable, match=r"not the results\.json"):
        read_results(tmp_path / "x.json")
    with pytest.raises(UnknownRun, match="nothing to judge"):
        gate(compared(record("main", GOOD)), None, "retrieval_score@3", 0.0)


def answered_record(name: str, supported: list[float | None]) -> dict:
    """Return a run whose answers have these shares of supported claims. None is an answer without claims."""
    rows = {}
    for example, share in zip(EXAMPLES, supported, strict=True):
        scores = {"cited": 1.0} | ({} if share is None else {"claims_supported": share})
        rows[example.id] = replace(row(example, 1, cost=0.001), scores=scores)
    return measured_record(Cell(name, {}), {}, {"id": 1}, EXAMPLES, rows, replace(PLAN, answers=True))


def test_gate_can_use_a_measure_of_the_answers():
    runs = [answered_record("main", [1.0] * 8), answered_record("change", [1.0] * 5 + [0.5, None, 0.5])]
    found = compared(*runs, baseline="main", metric="claims_supported")
    (verdict,) = gate(found, None, "claims_supported", 0.02)
    assert not verdict.passed and verdict.difference[0] == pytest.approx(-1 / 7, abs=1e-3)
    assert gate(found, None, "claims_supported", 0.2)[0].passed


def test_floors_apply_to_each_run_and_a_missing_score_fails():
    names = score_names((1, 3), answers=True)
    floors = read_floors(["claims_supported=0.85", "mrr=1", "recall@3 = 0.5"], names)
    broken = failed_record(Cell("broken", {}), {}, RuntimeError("down"))
    runs = [answered_record("good", [1.0] * 8), answered_record("bad", [0.5] * 8), broken]
    verdicts = judge_floors(runs, floors)
    passed = {(verdict.run, verdict.metric): verdict.passed for verdict in verdicts}
    assert passed == {
        **{("good", floor.metric): True for floor in floors},
        **{("bad", floor.metric): floor.metric != "claims_supported" for floor in floors},
        **{("broken", floor.metric): False for floor in floors},
    }
    said = [str(verdict) for verdict in verdicts]
    assert "FAILED: bad: claims_supported 0.5000 [0.5000, 0.5000]; it must be at least 0.85" in said
    assert "FAILED: broken: mrr could not be measured (RuntimeError: down); it must be at least 1" in said
    (unmeasured,) = judge_floors([answered_record("none", [None] * 8)], floors[:1])
    assert not unmeasured.passed and "no question or answer has this score" in str(unmeasured)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        *((text, "write a score and a number") for text in ("", "mrr", "mrr=", "mrr=x", "=0.5", "mrr=nan", "mrr=inf")),
        ("cited=1", "cited: it is not measured here; there are: retrieval_score@1"),
    ],
)
def test_unreadable_or_unmeasured_floor_is_refused(text, said):
    with pytest.raises(BadFloor, match=said):
        read_floors([text], score_names((1,)))


def test_floor_can_use_any_measured_score():
    assert read_floors(["quality=4"], score_names((1,), answers=True, judged=["quality"]))[0].least == 4
    names = score_names((1,), answers=True, component=True)
    assert read_floors(["context_only_cited=1"], names)[0].metric == "context_only_cited"
