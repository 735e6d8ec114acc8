"""`python -m jobs.questions` generates a data set from an index, with a model over HTTP and without one."""

import json
import subprocess
import sys

import pytest
from kit.recorded import recorded
from kit.scripted_llm import Reply, ScriptedLLM, in_turn
from kit.workshop import Workshop

from pipelines.evaluation.dataset import BadDataset, Example, as_row, read_dataset, read_rows, write_rows

FACTS = {
    "scale.html": {"scaling": "To scale a running deployment, set num_replicas to the copies that run at once. " * 3},
    "logs.html": {"logging": "A log rotation is a way to keep old files small. Set max_bytes to rotate earlier. " * 3},
}


@pytest.fixture
def job(jobs, store, monkeypatch, tmp_path):
    """Return a runner of `raydex questions ACTION …` on a small index.

    It returns the exit code and the result or the message.
    """
    Workshop(store).reindex(FACTS)
    monkeypatch.setenv("RAYDEX_HOME", str(tmp_path / "home"))

    def run(action: str, *words: str, out: str = "made.jsonl"):
        done = jobs.run("questions", action, "--collection", "docs", "--out", tmp_path / out, *words)
        return done.code, done.summary or done.messages

    return run


@pytest.fixture
def model(monkeypatch):
    """Answer with a scripted model from now on."""

    def use(server: ScriptedLLM) -> None:
        monkeypatch.setenv("RAYDEX_LLM_MODEL", "scripted")
        monkeypatch.setenv("RAYDEX_LLM_URL", server.url)

    return use


@pytest.fixture
def review(jobs, tmp_path):
    """Return a runner of `raydex questions review made.jsonl …`, which returns its rows."""

    def run(*words: str):
        done = jobs.run("questions", "review", tmp_path / "made.jsonl", *words)
        assert done.code == 0
        return done.summary["rows"]

    return run


def test_questions_are_written_filtered_and_then_answered(job, model, tmp_path):
    made = {"questions": ["How do I scale a deployment with num_replicas?", "How do I scale the deployment?"]}
    rules = [
        ("Answer the question from the passage", "Set num_replicas."),
        ("num_replicas", json.dumps(made)),
        ("max_bytes", "No questions come to mind."),
    ]
    with ScriptedLLM(rules) as server:
        model(server)
        code, summary = job("make", "--find-in", "1")
        assert code == 0 and summary["model"] == "scripted" and summary["chunks"] == 2 and summary["made"] == 2
        assert summary["failed"] == 1 and summary["usage"]["calls"] == 3
        examples = read_dataset(tmp_path / "made.jsonl")
        assert len(examples) == summary["written"] >= 1
        assert {e.sources for e in examples} == {("https://docs.test/scale.html#scaling",)}
        draft = {"question": "And so?", "source": "https://docs.test/scale.html", "review": "draft"}
        write_rows(tmp_path / "made.jsonl", [draft, *({**as_row(e), "asked": "id"} for e in examples)])
        code, summary = job("answer", str(tmp_path / "made.jsonl"))
    answered = read_dataset(tmp_path / "made.jsonl")
    assert code == 0 and summary["answered"] == len(examples)
    assert {e.answer for e in answered} == {"Set num_replicas."}
    kept, *others = read_rows(tmp_path / "made.jsonl")
    assert kept == draft and {row["asked"] for row in others} == {"id"}  # written by a person and by `correct`


@pytest.mark.slow
def test_killed_job_resumes_and_pays_for_no_reply_twice(job, model, tmp_path):
    made = [json.dumps({"questions": [q]}) for q in ("How do I scale a deployment?", "How do I rotate a log?")]
    with ScriptedLLM(default=in_turn(made[0], Reply(hang=True), made[1])) as server:
        model(server)
        flags = ("make", "--find-in", "0", "--at-once", "1")
        named = ("--collection", "docs", "--out", tmp_path / "made.jsonl")
        command = [sys.executable, "-m", "jobs.questions", *flags, *named]
        with subprocess.Popen(command, stderr=subprocess.DEVNULL) as killed:
            assert server.wait_for(lambda llm: len(llm.asked) == 2, 60)
            killed.kill()
        assert not (tmp_path / "made.jsonl").exists()
        code, summary = job(*flags)
        assert code == 0 and summary["written"] == 2 and summary["reused"] == 1 and summary["usage"]["calls"] == 1
        assert len(server.asked) == 3 and server.asked[1].prompt == server.asked[2].prompt
        assert job(*flags)[1]["usage"]["calls"] == 0 and len(server.asked) == 3
        assert job(*flags, "--fresh")[1]["usage"]["calls"] == 2


def test_filter_calls_no_model(job, model, monkeypatch):
    monkeypatch.setenv("RAYDEX_REWRITING_HYDE", "true")
    with ScriptedLLM(default=json.dumps({"questions": ["How do I scale a deployment?"]})) as server:
        model(server)
        code, summary = job("make", "--limit", "1")
    assert code == 0 and summary["not_found"] == 0 and len(server.asked) == 1


def test_highly_rated_questions_become_draft_rows(job, review, store, tmp_path):
    source = "https://docs.test/scale.html#scaling"
    store.record_questions([recorded(id, f"{id}?", "docs", text="So.", cited=[source]) for id in ("good", "bad")])
    store.record_feedback("bad", -1)
    code, summary = job("make", "--feedback")
    assert (code, summary["written"], summary["new"]) == (0, 0, 0)
    assert not (tmp_path / "made.jsonl").exists()
    store.record_feedback("good", 1)
    code, summary = job("make", "--feedback")
    assert code == 0 and summary["written"] == summary["new"] == 1
    with pytest.raises(BadDataset, match="no question of 1 is accepted"):
        read_dataset(tmp_path / "made.jsonl")
    assert review("--accept", "1")[0]["review"] == "accepted"
    assert read_dataset(tmp_path / "made.jsonl") == [Example("good?", (source,), "So.")]


def test_human_edits_of_a_draft_are_kept(job, jobs, review, store, tmp_path):
    source, other = "https://docs.test/scale.html#scaling", "https://docs.test/logs.html#logging"

    def like(*ids: str) -> None:
        store.record_questions([recorded(id, f"{id}?", "docs", cited=[source]) for id in ids])
        for id in ids:
            store.record_feedback(id, 1)

    like("one", "two", "three")
    assert job("make", "--feedback")[1]["new"] == 3
    review("--reject", "1")
    review("--accept", "2", "--source", other)
    like("four")
    code, summary = job("make", "--feedback")
    assert (code, summary["new"], summary["kept"]) == (0, 1, 3)
    listed = tmp_path / "listed.jsonl"
    write_rows(listed, [{"question": "Where?", "source": [source, other]}])
    shown = jobs.text("questions", "review", listed).splitlines()
    assert [line.strip() for line in shown[2:]] == [source, other]
    wrong = jobs.run("questions", "review", tmp_path / "made.jsonl", "--accept", "all", "--source", other)
    assert wrong.code == 2 and "--source corrects one row" in wrong.messages
    rows = review("--accept", "all")
    assert [(row["question"], row["review"], row["source"]) for row in rows] == [
        ("one?", "rejected", source), ("two?", "accepted", other), ("three?", "accepted", source),
        ("four?", "accepted", source),
    ]  # fmt: skip
    assert [example.question for example in read_dataset(tmp_path / "made.jsonl")] == ["two?", "three?", "four?"]


def test_wrong_answer_becomes_an_evaluation_row_and_a_training_pair(job, store, tmp_path):
    right, wrong = "https://docs.test/scale.html#scaling", "https://docs.test/logs.html#logging"
    bad = recorded("bad", "and that?", "docs", standalone="How many copies run?", cited=[wrong, right])
    store.record_questions([bad, recorded("off", "Who won?", "docs", text="Me.", cited=[wrong, right])])
    code, made = job("correct", "bad", "--source", right, out="regressions.jsonl")
    assert (code, made["row"]["question"], made["row"]["source"]) == (0, "How many copies run?", right)
    assert job("correct", "off", "--unknown", out="regressions.jsonl")[0] == 0
    assert job("correct", "  how many Copies run?", "--source", right, out="regressions.jsonl")[0] == 0
    examples = read_dataset(tmp_path / "regressions.jsonl")
    assert examples == [Example("How many copies run?", (right,)), Example("Who won?", ())]
    assert job("correct", "bad", "--pair", "--source", right, out="pairs.jsonl")[0] == 0
    assert read_dataset(tmp_path / "pairs.jsonl") == [Example("How many copies run?", (right,), None, (wrong,))]
    for words, message in [
        (("correct", "gone", "--source", right), "no recorded question has the id or wording 'gone'"),
        (("correct", "bad"), "name the source"),
        (("correct", "bad", "--source", f"{right}x"), "has no section"),
        (("correct", "bad", "--pair", "--source", right, "--source", wrong), "cites no other source"),
        (("correct", "bad", "--pair", "--unknown"), "--unknown can't be combined"),
    ]:
        code, said = job(*words, out="regressions.jsonl")
        assert code == 2 and message in said
    assert read_dataset(tmp_path / "regressions.jsonl") == examples


def test_headings_become_questions_without_a_model(job, store, tmp_path):
    Workshop(store).reindex(FACTS | {"new.html": {"Adding a node": "A node joins by its address. " * 9}})
    code, summary = job("make", "--without-llm")
    assert code == 0 and summary["model"] is None and summary["usage"]["calls"] == 0
    assert [example.question for example in read_dataset(tmp_path / "made.jsonl")] == ["Adding a node"]


def test_impossible_request_is_reported_before_any_work(job, monkeypatch):
    assert job("make")[0] == 2
    monkeypatch.setenv("RAYDEX_LLM_MODEL", "scripted")
    for words, message in [
        (("make", "--agent", "nobody"), "there are: llm"),
        (("make", "--per-chunk", "0"), "--per-chunk is '0'"),
        (("make", "--out", f"{__file__}/made.jsonl"), "can't be made a folder: "),
        (("make", "--out", "made.csv"), "made.csv is CSV, and questions are written as JSONL"),
        (("answer", "gone.jsonl"), "gone.jsonl"),
        (("answer", "gone.jsonl", "--at-once", "0"), "--at-once is 0"),
        (("make", "--feedback", "--collection", "dosc"), "no collection 'dosc'; there are: docs"),
    ]:
        code, said = job(*words)
        assert code == 2 and message in said
