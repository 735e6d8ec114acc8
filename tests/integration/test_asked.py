"""What was asked is kept as long as promised; a key opens until it is revoked; a rate holds over all replicas."""

import math
import threading
from datetime import UTC, datetime, timedelta

import numpy as np
import psycopg
import pytest
from starlette.responses import PlainTextResponse
from starlette.testclient import TestClient

from pipelines.records import Answer, Citation, Hit, Usage
from pipelines.store import BadKey, BadRating, KeyNameTaken, NoSuchKey, QuestionRow, Store, Turn, key_hash
from serve.guard.keys import RETRY_AFTER_S
from serve.guard.limits import Policy, protect
from serve.recorder import QuestionContext, Recorder

NOW = datetime.now(UTC)


def asked(id: str, days_ago: float = 0, **more: object) -> QuestionRow:
    return QuestionRow(id, f"question {id}", asked_at=NOW - timedelta(days=days_ago), **more)  # type: ignore[arg-type]


def test_a_question_comes_back_as_it_was_written(store: Store) -> None:
    row = asked(
        "a",
        collection="docs",
        answer="Yes [1].",
        citations=[{"n": 1, "source": "u#a", "chunk_id": "c1"}],
        hits=[{"chunk_id": "c1", "score": 0.5, "ranks": {"bm25": 1}}],
        queries=("one", "two"),
        degraded=("bm25",),
        cost=0.25,
        timings={"retrieve": 0.01},
        index=3,
    )
    store.record_questions([row])
    found = store.question("a")
    assert found is not None
    assert found["asked_at"] == row.asked_at and found["queries"] == ["one", "two"] and found["degraded"] == ["bm25"]
    assert (found["answer"], found["cost"], found["index"], found["revision"], found["error"]) == (
        "Yes [1].", 0.25, 3, None, None,
    )  # fmt: skip
    assert found["citations"] == [{"n": 1, "source": "u#a", "chunk_id": "c1"}]
    assert found["hits"][0]["ranks"] == {"bm25": 1} and found["timings"] == {"retrieve": 0.01}


def test_what_json_cannot_hold_loses_no_question(store: Store) -> None:
    store.record_questions([QuestionRow("a", "nul \0 and \ud800 half", hits=[{"score": math.nan, "x\0": "y\0"}])])
    found = store.question("a")
    assert found is not None and found["question"] == "nul  and  half" and found["hits"] == [{"score": None, "x": "y"}]


def test_a_batch_written_twice_is_there_once(store: Store) -> None:
    store.record_questions([asked("a", answer="first"), asked("b"), asked("a", answer="other")])
    store.record_questions([asked("a", answer="second"), asked("c")])
    assert [store.question(id)["answer"] for id in "abc"] == ["first", "", ""]  # type: ignore[index]
    assert store.question("d") is None


def test_a_conversation_is_its_last_answered_turns_and_its_keys_own(store: Store) -> None:
    cited = [{"n": 2, "chunk_id": "c2"}, {"n": 1, "chunk_id": "c1"}, {"n": 3}]
    store.record_questions(
        [
            *(asked(f"q{n}", days_ago=5 - n, conversation="x", answer=f"A{n}", citations=cited) for n in range(3)),
            asked("failed", conversation="x", error="LLM away"),
            asked("alien", conversation="x", key_name="other"),
            asked("alone"),
        ]
    )
    assert store.conversation("x", 2) == [Turn(f"question q{n}", f"A{n}", ("c2", "c1")) for n in (1, 2)]
    assert [turn.question for turn in store.conversation("x", key_name="other")] == ["question alien"]
    assert store.conversation("") == []


def test_feedback_may_come_before_its_question_and_a_later_word_replaces_it(store: Store) -> None:
    store.record_feedback("a", 1, "good\0")
    store.record_feedback("a", -1, "on second thought")
    store.record_feedback("a", 0, key_name="other")
    store.record_questions([asked("a")])
    said = [(row["rating"], row["comment"], row["key_name"]) for row in store.feedback("a")]
    assert sorted(said) == [(-1, "on second thought", ""), (0, "", "other")]
    with pytest.raises(BadRating, match="5"):
        store.record_feedback("a", 5)


def test_what_is_forgotten_takes_its_feedback_with_it(store: Store, database_url: str) -> None:
    store.record_questions([asked("old", days_ago=31), asked("new", days_ago=29)])
    for id in ("old", "new", "never-came", "to-come"):
        store.record_feedback(id, 1)
    with psycopg.connect(database_url) as connection:
        connection.execute("update feedback set created = now() - interval '40 days' where question_id <> 'to-come'")
    assert store.forget_questions(30) == 1
    assert store.question("old") is None and store.question("new") is not None
    assert {id: len(store.feedback(id)) for id in ("old", "new", "never-came", "to-come")} == {
        "old": 0, "new": 1, "never-came": 0, "to-come": 1,
    }  # fmt: skip


def test_an_answer_becomes_a_row_that_its_conversation_goes_on_from(store: Store) -> None:
    hit = Hit("c1", "https://d.test/p", ("a",), "T", (), "text", "h", np.float32(0.5), "rrf", {"bm25": 1})  # type: ignore[arg-type]
    answer = Answer(
        "How?", "So [1].", "extractive", (Citation(1, hit.source, "T", "text"),), (hit,), (), {"retrieve": 0.1},
        1, 2, id="a", queries=("How?",), usage=Usage(1, 2, 1, 0.5),
    )  # fmt: skip
    recorder = Recorder(store)
    recorder.record(answer, QuestionContext(conversation="x", key="ci"))
    recorder.close()
    assert recorder.dropped == 0
    assert store.conversation("x", key_name="ci") == [Turn("How?", "So [1].", ("c1",))]
    row = store.question("a")
    assert row is not None and row["hits"][0]["score"] == 0.5 and row["cost"] == 0.5


# ------------------------------------------------------------------------------------------------ keys


def test_a_key_opens_until_it_is_revoked(store: Store) -> None:
    key, token = store.create_key("ci", ["admin", "query"], rate_per_minute=60)
    assert token.startswith("rdx_") and len(token) == 47
    assert key.scopes == ("admin", "query") and key.may("query") and key.rate_per_minute == 60
    found = store.find_key(key_hash(token))
    assert found is not None and found.name == "ci"
    assert store.find_key(key_hash(token + "x")) is None
    assert store.list_keys()[0].last_used is not None
    assert store.revoke_key("ci").revoked_at is not None
    assert store.find_key(key_hash(token)) is None
    assert store.revoke_key("ci").revoked_at == store.list_keys()[0].revoked_at


def test_a_key_opens_until_it_expires(store: Store, database_url: str) -> None:
    _, token = store.create_key("trial", expires_days=1)
    assert store.find_key(key_hash(token)) is not None
    with psycopg.connect(database_url) as connection:
        connection.execute("update api_key set expires = now() - interval '1 second'")
    assert store.find_key(key_hash(token)) is None


def test_the_secret_is_kept_nowhere(store: Store, database_url: str) -> None:
    _, token = store.create_key("ci")
    with psycopg.connect(database_url) as connection:
        row = str(connection.execute("select k::text, encode(hash, 'escape') from api_key k").fetchall())
    assert token not in row and token.removeprefix("rdx_") not in row


def test_a_name_is_used_once_even_after_revoking(store: Store) -> None:
    store.create_key("ci")
    store.revoke_key("ci")
    with pytest.raises(KeyNameTaken, match="'ci'"):
        store.create_key("ci")
    with pytest.raises(NoSuchKey, match="'nobody'"):
        store.revoke_key("nobody")


@pytest.mark.parametrize(
    ("name", "more", "words"),
    [
        (" ", {}, "name"),
        ("a", {"scopes": ["root"]}, "root"),
        ("a", {"scopes": []}, "scopes"),
        ("a", {"rate_per_minute": -1}, "-1"),
        ("a", {"expires_days": 0}, "0 days"),
        ("a", {"expires_days": math.nan}, "nan"),
    ],
)
def test_a_key_that_can_not_be_made_is_named(store: Store, name: str, more: dict[str, object], words: str) -> None:
    with pytest.raises(BadKey, match=words):
        store.create_key(name, **more)  # type: ignore[arg-type]
    assert store.list_keys() == []


# ------------------------------------------------------------------------------------------------ rate


def test_one_bucket_is_shared_by_all_replicas(database_url: str) -> None:
    taken: list[bool] = []

    def replica() -> None:
        with Store(database_url) as own:
            taken.extend(own.take_token("k", 6, 10).allowed for _ in range(20))

    threads = [threading.Thread(target=replica) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(taken) == 60 and 10 <= sum(taken) <= 12  # a token more every 10 s


def test_a_bucket_refills_with_time_and_never_beyond_its_depth(store: Store, database_url: str) -> None:
    assert [store.take_token("k", 60, 2).allowed for _ in range(3)] == [True, True, False]
    refused = store.take_token("k", 60, 2)
    assert not refused.allowed and 0 < refused.retry_after_s <= 1 and 0 <= refused.remaining < 1
    assert store.take_token("other", 60, 2) == (True, 0.0, 1.0)
    with psycopg.connect(database_url) as connection:
        connection.execute("update rate_bucket set updated = updated - interval '1 hour'")
    assert [store.take_token("k", 60, 2).allowed for _ in range(3)] == [True, True, False]


def test_a_clock_that_goes_back_takes_nothing_away(store: Store, database_url: str) -> None:
    store.take_token("k", 60, 5)
    with psycopg.connect(database_url) as connection:
        connection.execute("update rate_bucket set updated = updated + interval '1 hour'")
    assert store.take_token("k", 60, 5) == (True, 0.0, 3.0)


# ------------------------------------------------------------------------------------------------ the door


def test_a_key_holds_its_rate_over_replicas_and_a_database_that_is_away_is_503(database_url: str) -> None:
    with Store(database_url) as one, Store(database_url) as other:
        _, token = one.create_key("ci", rate_per_minute=10)
        policy = Policy(host="0.0.0.0")
        replicas = [TestClient(protect(PlainTextResponse("ok"), own, policy)) for own in (one, other)]
        headers = {"Authorization": f"Bearer {token}"}
        found = [replicas[n % 2].get("/query", headers=headers).status_code for n in range(100)]
        assert set(found) == {200, 429} and 10 <= found.count(200) <= 11
    gone = database_url.replace(database_url.rpartition("/")[2].partition("?")[0], "not_there")
    with Store(gone, timeout_s=0.5) as away:
        refused = TestClient(protect(PlainTextResponse("ok"), away, policy)).get("/query", headers=headers)
        assert refused.status_code == 503 and refused.headers["Retry-After"] == str(RETRY_AFTER_S)
