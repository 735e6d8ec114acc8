"""Questions, conversations and feedback in the database are stored unchanged, for as long as promised."""

import math
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import psycopg
import pytest
from kit.recorded import hit_at, recorded

from jobs.insights import _shown
from pipelines.insights.masking import mask
from pipelines.records import Answer, Citation, Claims, Hit, Route, Usage
from pipelines.store import BadRating, NoSuchQuestion, RecordedQuestion, Store, Turn
from serve.recorder import Recorder

NOW = datetime.now(UTC)


def question(id: str, days_ago: float = 0, **more: Any) -> RecordedQuestion:
    return recorded(id, f"question {id}", asked_at=NOW - timedelta(days=days_ago), **more)


def test_question_reads_back_as_written(store: Store) -> None:
    hit = Hit("c1", "https://d.test/p", ("top", "a"), "T", ("H",), "text", "h", 0.5, "rrf", {"bm25": 1}, {"bm25": 7.0})
    answer = Answer(
        "question a", "Yes [1].", "llm", (Citation(1, hit.source, "T", "text", supported=False, by="attributed"),),
        (hit,), ("bm25",), {"retrieve": 0.01}, 3, 4, "a", False, Route("llm", "asked"), ("one", "two"), ("A note.",),
        Usage(1, 2, 3, 0.25), (), "length", Claims(2, 1, 1, ("It is so.",)), "some", "docs",
    )  # fmt: skip
    asked = question("a", collection="docs", channel="widget", page="https://d.test/a", language="de", mode="compact")
    store.record_questions([replace(asked, answer=answer, conversation="x", key_name="ann")])
    found = store.question("a")
    assert found == replace(asked, answer=answer, conversation="x", key_name="ann")
    assert found.standalone == found.alone == "one"


def test_latest_questions_come_with_their_ratings(store: Store) -> None:
    store.record_questions(
        [question("a", 3, collection="docs"), question("b", 2, collection="docs", known=False, error="no model"),
         question("c", 1, collection="other"), question("d", 0, collection="docs")]
    )  # fmt: skip
    for rating, comment, key in ((1, "Right.", "one"), (-1, "", "two"), (1, "Yes.", "three")):
        store.record_feedback("d", rating, comment, key)
    rows = store.recent_questions()
    first, second = [(row["id"], row["rating"], row["comments"]) for row in rows][:2]
    assert (first, second) == (("d", 1, ["Right.", "Yes."]), ("c", None, []))
    assert [row["id"] for row in rows] == ["d", "c", "b", "a"]
    assert [row["id"] for row in store.recent_questions("docs", before=NOW - timedelta(hours=1))] == ["b", "a"]
    assert [(row["id"], row["error"]) for row in store.recent_questions(unknown=True)] == [("b", "no model")]
    assert [row["id"] for row in store.recent_questions(most=1)] == ["d"]


def test_answer_is_readable_by_its_asker_and_by_everybody_once_shared(store: Store) -> None:
    store.record_questions([question("a", key_name="ann", text="So."), question("b", key_name="ann", error="no model")])
    store.record_feedback("a", -1, key_name="ann")
    read = store.readable_answer("a", "ann")
    assert read and read.answer and (read.answer.text, read.rating, read.shared_at) == ("So.", -1, None)
    assert store.readable_answer("a", "bob") is None and store.readable_answer("a", None) is None
    assert store.readable_answer("b", "ann") is None and store.readable_answer("no", "ann", all=True) is None
    assert store.readable_answer("a", "bob", all=True) is not None

    assert not any(store.share_answer(id, who) for id, who in (("a", "bob"), ("b", "ann"), ("a", None)))
    assert store.share_answer("a", "ann")
    read = store.readable_answer("a", "bob")
    assert read is not None and read.shared_at is not None and read.rating is None
    assert store.share_answer("a", "ann")
    again = store.readable_answer("a", None)
    assert again is not None and again.shared_at == read.shared_at
    assert store.share_answer("a", "ann", False) and store.readable_answer("a", "bob") is None


def test_values_invalid_in_json_lose_no_question(store: Store) -> None:
    hit = Hit("c", "u\0", score=math.nan, ranks={"x\0": 1})
    store.record_questions([recorded("a", "nul \0 and \ud800 half", found=[hit])])
    found = store.question("a")
    assert found and found.question == "nul  and  half" and found.answer
    assert found.answer.hits == (Hit("c", "u", score=0.0, ranks={"x": 1}),)


def test_batch_written_twice_is_stored_once(store: Store) -> None:
    store.record_questions([question("a", text="first"), question("b"), question("a", text="other")])
    store.record_questions([question("a", text="second"), question("c")])
    assert [store.question(id).answer.text for id in "abc"] == ["first", "", ""]  # type: ignore[union-attr]
    assert store.question("d") is None


def test_conversation_has_its_last_answered_turns_and_belongs_to_its_key(store: Store) -> None:
    found = (hit_at("u#1", chunk_id="c1"), hit_at("u#2", chunk_id="c2"))
    cited = (Citation(2, "u#2"), Citation(1, "u#1"), Citation(3, "gone"))
    for n in range(3):
        turn = question(f"q{n}", days_ago=5 - n, conversation="x", text=f"A{n}", found=found, citations=cited)
        store.record_questions([turn])
    failed = question("failed", conversation="x", error="LLM away")
    store.record_questions([failed, question("alien", conversation="x", key_name="other"), question("alone")])
    assert store.conversation("x", 2) == [Turn(f"question q{n}", f"A{n}", ("c2", "c1")) for n in (1, 2)]
    assert [turn.question for turn in store.conversation("x", key_name="other")] == ["question alien"]
    assert store.conversation("") == []
    among = store.conversation("x", among=["q0", "q2", "alien"])
    assert [turn.question for turn in among] == ["question q0", "question q2"]
    assert store.conversation("x", among=[]) == []


def test_follow_up_ignores_the_closest_passages_of_an_unknown_answer(store: Store) -> None:
    known = {"known": False, "found": [hit_at("u", chunk_id="c1")], "cited": ["u"]}
    store.record_questions([question("q", conversation="x", text="I do not know", **known)])
    assert store.conversation("x") == [Turn("question q", "I do not know", ())]


def test_feedback_can_precede_its_question_and_later_feedback_replaces_it(store: Store) -> None:
    store.record_feedback("a", 1, "good\0")
    store.record_feedback("a", -1, "on second thought", reasons=["outdated", "wrong", "outdated"])
    store.record_feedback("a", 0, key_name="other")
    store.record_questions([question("a")])
    feedback = [(row["rating"], row["comment"], row["key_name"], row["reasons"]) for row in store.feedback("a")]
    assert sorted(feedback) == [(-1, "on second thought", "", ["outdated", "wrong"]), (0, "", "other", [])]
    with pytest.raises(BadRating, match="5"):
        store.record_feedback("a", 5)


def test_forgotten_question_takes_its_feedback_and_share_link_with_it(store: Store, database_url: str) -> None:
    store.record_questions([question(id, days, key_name="ann") for id, days in (("old", 31), ("new", 29))])
    assert store.share_answer("old", "ann") and store.share_answer("new", "ann"), "it lives no longer than others"
    for id in ("old", "new", "never-came", "to-come"):
        store.record_feedback(id, 1)
    with psycopg.connect(database_url) as connection:
        connection.execute("update feedback set created = now() - interval '40 days' where question_id <> 'to-come'")
    assert store.forget_questions(30) == 1
    assert store.question("old") is None and store.readable_answer("old", "ann") is None
    assert store.question("new") is not None and store.readable_answer("new", "bob") is not None
    assert {id: len(store.feedback(id)) for id in ("old", "new", "never-came", "to-come")} == {
        "old": 0, "new": 1, "never-came": 0, "to-come": 1,
    }  # fmt: skip


def test_answer_becomes_a_row_that_its_conversation_continues_from(store: Store) -> None:
    hit = Hit("c1", "https://d.test/p", ("a",), "T", (), "text", "h", np.float32(0.5), "rrf", {"bm25": 1})  # type: ignore[arg-type]
    answer = Answer(
        "How?", "So [1].", "extractive", (Citation(1, hit.source, "T", "text"),), (hit,), (), {"retrieve": 0.1},
        1, 2, id="a", queries=("How?",), usage=Usage(1, 2, 1, 0.5),
    )  # fmt: skip
    recorder = Recorder(store)
    recorder.record(RecordedQuestion("a", answer.question, answer, conversation="x", key_name="ci"))
    recorder.close()
    assert recorder.dropped == 0
    assert store.conversation("x", key_name="ci") == [Turn("How?", "So [1].", ("c1",))]
    found = store.question("a")
    assert found and found.answer and found.answer.hits[0].score == 0.5 and found.answer.usage.cost == 0.5


@pytest.mark.parametrize("question", [
    "How do I reset the password of ann@example.com\n  on 203.0.113.9, token=abcdef123456?",
    "如何\u3000删除\u00a0表？",
    "How do I set the Straße İstanbul flag to 100%_\\?",
    f"Which of {'very ' * 30}many ways?",
    "И ЧТО дальше?",
])  # fmt: skip
def test_question_is_found_by_its_text_in_insights(store, question):
    store.record_questions([recorded("other", "How do I set one?", "docs"), recorded("this", question, "docs")])
    shown = _shown({"question": mask(question)})
    assert store.named_question(shown).id == "this"
    assert store.named_question(f" {mask(question)} ").id == "this"


def test_question_asked_of_several_collections_means_the_named_one(store):
    for id in ("one", "two", "three"):
        store.record_questions([recorded(id, "How?", id)])
    store.record_feedback("three", -1)
    assert [store.named_question("how?", name).id for name in ("one", "two", "gone", None)] == [
        "one", "two", "three", "three",
    ]  # fmt: skip
    for pattern in ("how_", "h%"):
        with pytest.raises(NoSuchQuestion):
            store.named_question(pattern)


def test_failed_question_can_be_named_too(store):
    store.record_questions([question("failed", error="the model is away"), recorded("other", "How?")])
    assert store.named_question("question failed").id == "failed"
    store.record_questions([recorded("answered", "question failed", asked_at=NOW - timedelta(days=9))])
    assert store.named_question("question failed").id == "answered"
