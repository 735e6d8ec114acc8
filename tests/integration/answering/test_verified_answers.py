"""Human answers in a real database wait for review when a publish changes their section."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from kit.recorded import recorded
from kit.reindexing import Jobs
from kit.workshop import SMALL_BUILD, Workshop

from pipelines.answering.verified.writing import NoSuchSection, UnusableAnswer, review_answers, write_answer
from pipelines.store import NoSuchAnswer, RunLock, Store, copy_name, dump, promote_index, restore

SITE = {
    "io.html": {"reading": "Call read_csv with the path of a file.", "writing": "Call write_csv with a folder."},
    "scale.html": {"scaling": "Set num_replicas to the copies that run at once."},
}
READING, SCALING = "https://docs.test/io.html#reading", "https://docs.test/scale.html#scaling"
ASKED = "How do I read a CSV file?"

Job = Callable[..., tuple[int, Any]]


@pytest.fixture
def docs(store: Store) -> Workshop:
    workshop = Workshop(store)
    workshop.reindex(SITE)
    return workshop


@pytest.fixture
def job(jobs: Jobs, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, docs: Workshop) -> Job:
    """Return a runner of `raydex answers …`, which returns its exit code and its result or message."""
    monkeypatch.setenv("RAYDEX_HOME", str(tmp_path / "home"))

    def run(*words: object, of: str = "answers") -> tuple[int, Any]:
        done = jobs.run(of, *words)
        return done.code, done.summary or done.messages

    return run


def states(store: Store, collection: str = "docs") -> list[str]:
    return [one.state for one in review_answers(store, collection)]


def test_person_writes_reviews_and_retires_an_answer(job: Job, docs: Workshop, store: Store, tmp_path: Path) -> None:
    (tmp_path / "answer.md").write_text("Use `read_csv` [1].")
    code, added = job("add", "--question", ASKED, "--source", READING, "--file", tmp_path / "answer.md")
    assert (code, added["id"], added["state"], added["sources"]) == (0, 1, "given", [READING])
    docs.reindex(SITE | {"io.html": {"reading": "Call load_csv instead.", "writing": "Call write_csv with a folder."}})
    _, waiting = job("review")
    [change] = waiting["answers"][0]["changes"]
    assert (change["source"], change["before"], change["now"]) == (
        READING, "Call read_csv with the path of a file.", "Call load_csv instead.",
    )  # fmt: skip
    assert job("docs", of="status")[1]["collections"]["docs"]["verified"] == {"review": 1}
    code, accepted = job("accept", 1, "--text", "Use `load_csv` [1].", "--question", "Reading CSV?")
    assert (code, accepted["state"], accepted["answer"]) == (0, "given", "Use `load_csv` [1].")
    assert accepted["questions"] == [ASKED, "Reading CSV?"]
    assert job("retire", 1)[1]["state"] == "retired" and states(store) == ["retired"]
    assert job("accept", 1)[1]["state"] == "given"


def test_answer_text_is_required_only_once_its_section_is_named(job: Job, store: Store) -> None:
    code, said = job("add", "--question", ASKED, "--source", READING)
    assert code == 2 and "--file" in said and "--text" in said
    code, said = job("add", "--question", ASKED)
    assert code == 2 and "--source" in said and READING in said
    assert store.verified_answers("docs") == []


def test_one_answer_covers_a_cluster_of_questions(job: Job, store: Store) -> None:
    rows = [recorded("a", "reading csv", "docs"), recorded("b", "and it?", "docs", standalone="How is CSV read?")]
    store.record_questions(rows)
    _, added = job("add", "--asked", "a", "--asked", "b", "--source", READING, "--text", "Use `read_csv` [1].")
    assert added["questions"] == ["reading csv", "How is CSV read?"]
    assert job("add", "--asked", "c", "--source", READING, "--text", "x")[0] == 2


def test_unusable_answer_is_refused_with_the_reason(store: Store, docs: Workshop) -> None:
    with pytest.raises(NoSuchSection, match=r"#nothing; the page has: .*#reading, .*#writing"):
        write_answer(store, "docs", [ASKED], "x", ["https://docs.test/io.html#nothing"])
    with pytest.raises(UnusableAnswer, match=r"cites \[2\] and 1 section is named"):
        write_answer(store, "docs", [ASKED], "x [2]", [READING])
    with pytest.raises(UnusableAnswer, match="empty"):
        write_answer(store, "docs", [ASKED], " ", [READING])
    store.add_verified_answer(write_answer(store, "docs", [ASKED], "x", [READING]))
    with pytest.raises(UnusableAnswer, match="has the verified answer 1"):
        write_answer(store, "docs", ["how do I read a CSV  file"], "y", [READING])
    with pytest.raises(NoSuchAnswer):
        store.retire_verified_answer(7)
    assert states(store) == ["given"]


def test_answer_whose_section_is_gone_waits_for_review(store: Store, docs: Workshop) -> None:
    store.add_verified_answer(write_answer(store, "docs", [ASKED], "x", [READING, SCALING]))
    docs.reindex(SITE | {"scale.html": {"autoscaling": "Set min_replicas."}})
    [one] = review_answers(store, "docs")
    assert one.state == "review" and [(c.source, c.now) for c in one.changes] == [(SCALING, None)]


def test_copy_keeps_verified_answers_and_dropped_collection_loses_them(store: Store, docs: Workshop) -> None:
    store.add_verified_answer(write_answer(store, "docs", [ASKED], "x", [READING]))
    copy = copy_name("docs", "a" * 32)
    Workshop(store, copy, chunk_size=32).reindex(SITE)
    assert states(store, copy) == ["given"], "cut otherwise, the section is the same"
    assert store.contents(["docs"])["verified_answers"] == 1
    store.drop(["docs"])
    assert store.verified_answers("docs") == []


def test_dump_includes_verified_answers(store: Store, docs: Workshop, tmp_path: Path) -> None:
    store.add_verified_answer(write_answer(store, "docs", [ASKED], "x [1]", [READING]))
    dump(store, store.live_index("docs"), tmp_path / "docs.dump")
    for _ in range(2):  # existing answers stay unchanged
        lock = RunLock(store, "other")
        assert lock.try_acquire()
        run = lock.begin("restore", None)
        promote_index(lock, run, restore(lock, run, tmp_path / "docs.dump", SMALL_BUILD)[0])
        lock.finish(run, "done", {}, None)
        lock.release()
        [one] = review_answers(store, "other")
        assert (one.state, one.answer.answer, one.answer.questions) == ("given", "x [1]", (ASKED,))


def test_evaluation_counts_verified_answers_and_can_run_without_them(job: Job, store: Store, tmp_path: Path) -> None:
    store.add_verified_answer(write_answer(store, "docs", ["What is num_replicas for?"], "Copies [1].", [SCALING]))
    asked = [{"question": "What is num_replicas for?", "source": SCALING}, {"question": ASKED, "source": READING}]
    (tmp_path / "set.jsonl").write_text("\n".join(map(json.dumps, asked)))
    flags = ("--collection", "docs", "--dataset", tmp_path / "set.jsonl", "--answers")
    _, result = job(*flags, of="evaluate")
    assert result["num_verified"] == 1 and result["agents"]["verified"] == 1
    _, without = job(*flags, "--without-verified", of="evaluate")
    assert without["num_verified"] == 0 and without["fingerprint"] != result["fingerprint"]
    store.retire_verified_answer(1)
    assert job(*flags, of="evaluate")[1]["num_verified"] == 0, "rows of before are not kept"
