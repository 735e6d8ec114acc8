"""A whole sweep as a user runs it: indexes next to the live one, failing runs, resuming, the gate."""

import json
from pathlib import Path

import pytest
import yaml
from kit.reindexing import Jobs, html_page, site_sections, write_site
from kit.scripted_llm import ScriptedLLM
from kit.workshop import BASE

from pipelines.store import Store

pytestmark = pytest.mark.slow
MODEL = ("--no-ray", "--model", "hash:64", "--parallel-workers", 0, "--maintenance-work-mem", "64MB")
PAGES = 6


@pytest.fixture
def jobs(jobs: Jobs, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Jobs:
    """Index a small live collection, and write a question for every page in its own words."""
    monkeypatch.setenv("RAYDEX_HOME", str(tmp_path / "home"))
    site = site_sections(PAGES)
    write_site(tmp_path / "site", site)
    (tmp_path / "site" / "zebra.html").write_text(html_page("Odd", {"stripes": "It is black and white."}))
    assert jobs.reindex("--path", tmp_path / "site", "--base-url", BASE, *MODEL).code == 0
    asked = [{"question": site[f"p{n:02}"]["usage"], "source": f"{BASE}p{n:02}.html"} for n in range(PAGES)]
    asked.append({"question": "zebra", "source": f"{BASE}zebra.html"})
    (tmp_path / "questions.jsonl").write_text("\n".join(map(json.dumps, asked)))
    return jobs


def sweep(folder: Path, **data: object) -> Path:
    path = folder / "sweep.yaml"
    wanted = {"collection": "docs", "dataset": "questions.jsonl", "ks": [1], **data}
    path.write_text(yaml.safe_dump(wanted, sort_keys=False))
    return path


def test_sweep_builds_each_index_once_and_survives_a_failing_run(jobs, tmp_path):
    before, live = jobs.rows(), Store(jobs.url).live_index("docs")
    path = sweep(
        tmp_path,
        grid={"chunk_size": [32], "retrieval.bm25_weight": [0.5, 1]},
        runs=[{"name": "live"}, {"name": "broken", "model": "/no/such/model"}],
    )
    first = jobs.run("experiment", path, "--out", tmp_path / "out", "--baseline", "live")
    assert first.code == 0
    states = {run["name"]: run["state"] for run in first.summary["runs"]}
    assert states == {
        "chunk_size=32, retrieval.bm25_weight=0.5": "done", "chunk_size=32, retrieval.bm25_weight=1": "done",
        "live": "done", "broken": "failed"
    }  # fmt: skip
    results = json.loads((tmp_path / "out" / "results.json").read_text())
    indexes = {run["name"]: run["index"]["collection"] for run in results["runs"] if run["state"] == "done"}
    with Store(jobs.url) as store:
        (copy,) = store.copies("docs")
        assert set(indexes.values()) == {"docs", copy} and indexes["live"] == "docs"
        assert store.live_index("docs") == live and jobs.rows() == before
        built = store.live_index(copy)
        assert built.settings.chunk_size == 32
    assert (tmp_path / "out" / "report.html").stat().st_size > 10_000

    again = jobs.run("experiment", path, "--out", tmp_path / "out", "--drop-indexes").summary
    assert [run.get("num_kept") for run in again["runs"]] == [PAGES + 1] * 3 + [None]
    with Store(jobs.url) as store:
        assert store.copies("docs") == [] and store.live_index("docs") == live


def test_experiment_reuses_the_rows_of_an_evaluation(jobs, tmp_path, monkeypatch):
    asking = ("evaluate", "--collection", "docs", "--dataset", tmp_path / "questions.jsonl", "--k", 1, "--answers")
    path = sweep(tmp_path, answers=True, runs=[{"name": "live"}, {"name": "vectors", "retrieval.bm25_weight": 0}])
    with ScriptedLLM(default="Page 1 shows usage. Usage of page 1 [1].") as llm:
        monkeypatch.setenv("RAYDEX_LLM_URL", llm.url)
        monkeypatch.setenv("RAYDEX_LLM_MODEL", "scripted")
        evaluated = jobs.run(*asking).summary
        assert jobs.run("experiment", path, "--out", tmp_path / "out").code == 0
    live, vectors = json.loads((tmp_path / "out" / "results.json").read_text())["runs"]
    assert (live["num_kept"], live["evaluation"]) == (PAGES + 1, evaluated["evaluation"])
    assert vectors["num_kept"] == 0 and vectors["evaluation"] != live["evaluation"]


def test_gate_has_its_own_exit_code(jobs, tmp_path):
    """Words find a page that is named only in its URL; vectors do not."""
    words, vectors = {"retrieval.vector_weight": 0}, {"retrieval.bm25_weight": 0}
    path = sweep(tmp_path, runs=[{"name": "words", **words}, {"name": "vectors", **vectors}])
    gate = ("--out", tmp_path / "out", "--baseline", "words", "--fail-below")
    dropped = jobs.run("experiment", path, *gate, 0.1)
    assert dropped.code == 4
    (verdict,) = dropped.summary["gate"]
    assert (verdict["run"], verdict["passed"]) == ("vectors", False)
    assert verdict["difference"][0] <= -1 / (PAGES + 1) + 1e-4
    assert "FAILED: vectors against words" in dropped.messages
    assert jobs.run("experiment", path, *gate, 1).code == 0

    earlier = tmp_path / "out" / "results.json"
    path = sweep(tmp_path, runs=[{"name": "words", "retrieval.bm25_weight": 0}])
    flags = ("--out", tmp_path / "today", "--baseline", earlier, "--fail-below", 0)
    assert jobs.run("experiment", path, *flags, "--write", tmp_path / "quality.md").code == 4
    assert "| words |" in (tmp_path / "quality.md").read_text()


def test_unusable_input_is_reported_before_any_question(jobs, tmp_path):
    path = sweep(tmp_path, runs=[{"name": "one"}])
    (tmp_path / "page.md").write_text("A page without marks.\n")
    for flags, said in {
        ("--fail-below", "0.1"): "needs --baseline",
        ("--baseline", "other"): "neither a file nor a run; runs are: one",
        ("--baseline", "one", "--fail-below", "0.1", "--candidate", "two"): "there is no run 'two'",
        ("--metric", "retrieval_score@7"): "there are: retrieval_score@1",
        ("--write", tmp_path / "page.md"): "has no place for the table",
        ("--out", tmp_path / "page.md"): "can't be made a folder: File exists",
        ("--write", tmp_path / "page.md" / "new.md"): "can't be made a folder: ",
    }.items():
        done = jobs.run("experiment", path, *flags)
        assert done.code == 2
        assert said in done.messages
    dry = jobs.run("experiment", sweep(tmp_path, grid={"chunk_size": [32, 64]}), "--dry-run").summary
    assert len(dry["to_build"]) == 2


def test_gate_covers_measures_of_model_answers(jobs, tmp_path, monkeypatch):
    """The second model's answers contain a claim that no passage supports."""
    (tmp_path / "other.jsonl").write_text('{"question": "How long do I boil an egg?", "answerable": false}')
    text = "Page 1 shows usage. Usage of page 1 [1]."
    with ScriptedLLM(default=text) as good, ScriptedLLM(default=f"{text} Zebras drive red buses to school.") as bad:
        monkeypatch.setenv("RAYDEX_LLM_MODEL", "scripted")
        path = sweep(
            tmp_path,
            dataset=["questions.jsonl", "other.jsonl"],
            answers=True,
            runs=[{"name": "good", "llm_url": good.url}, {"name": "bad", "llm_url": bad.url}],
        )
        words = ("--out", tmp_path / "out", "--metric", "claims_supported", "--baseline", "good", "--fail-below")
        failed = jobs.run("experiment", path, *words, 0.02, "--at-least", "refused=1", "--write", tmp_path / "page.md")
        assert failed.code == 4
        verdicts = {(one["run"], one["metric"]): one["passed"] for one in failed.summary["gate"]}
        assert verdicts == {
            ("bad", "claims_supported"): False, ("good", "refused"): True, ("bad", "refused"): True,
        }  # fmt: skip
        assert jobs.run("experiment", path, *words, 1.0).code == 0
        assert jobs.run("experiment", path, "--at-least", "mrr@3=1").code == 2
    page = (tmp_path / "page.md").read_text()
    assert f"{PAGES + 2} questions (1 about other things) of `questions.jsonl + other.jsonl`" in page
    assert page.count("| run |") == 1 and "claims supported to good | seconds | first word | tokens read" in page
