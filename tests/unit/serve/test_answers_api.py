"""A recorded answer can be read again by its asker, and by others once it is shared."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from kit.api import FakeEngine, FakeStore, MemoryRecorder
from kit.guarded import with_key

from pipelines.records import Claims
from pipelines.store import Key, RecordedQuestion
from serve.guard.keys import READER
from serve.recorder import as_kept

ANN, BOB, ADMIN = Key("ann", ("query",)), Key("bob", ("query",)), Key("op", ("admin",))


@pytest.fixture
def client_of(app: FastAPI, engine: FakeEngine) -> Callable[[Key | None], TestClient]:
    return lambda key: TestClient(with_key(app, key))


@pytest.fixture
def asked_by(client_of, store: FakeStore, recorder: MemoryRecorder) -> Callable[[Key | None], dict[str, Any]]:
    """Return a function that asks a question as a key's holder and records the answer like a recorder."""

    def ask(key: Key | None) -> dict[str, Any]:
        reply = client_of(key).post("/query", json={"question": "How?", "conversation": "c1"}).json()
        (row,) = recorder.rows
        answer = replace(
            row["answer"], claims=Claims(2, 2, 1), confidence="some", notes=("A note.",), collection="docs"
        )
        recorded = RecordedQuestion(answer.id, answer.question, answer, "docs", "c1")
        store.answers[answer.id] = as_kept(replace(recorded, key_name=key.name if key else ""))
        return dict(reply)

    return ask


def test_answer_can_be_read_again_as_given(store, client_of, asked_by):
    reply = asked_by(ANN)
    store.answers[reply["id"]] = replace(store.answers[reply["id"]], rating=-1)
    again = client_of(ANN).get(f"/answers/{reply['id']}").json()
    assert again.keys() == reply.keys() | {"collection", "asked_at", "rating", "shared"}
    same = ("id", "question", "answer", "known", "citations", "agent", "usage", "queries", "conversation", "degraded")
    assert {name: again[name] for name in same} == {name: reply[name] for name in same}
    assert (again["claims"]["supported"], again["confidence"], again["notes"]) == (1, "some", ["A note."])
    assert (again["collection"], again["rating"], again["shared"]) == ("docs", -1, False)
    (hit,), (before,) = again["hits"], reply["hits"]
    assert hit == before
    assert client_of(ANN).get(f"/answers/chatcmpl-{reply['id']}").json() == again


def test_answer_belongs_to_its_asker_until_shared(client_of, asked_by):
    path = f"/answers/{asked_by(ANN)['id']}"
    ann, bob, admin = (client_of(key) for key in (ANN, BOB, ADMIN))
    unknown = bob.get("/answers/none")
    assert unknown.status_code == 404 and "retention" in unknown.json()["error"]
    assert bob.get(path).json() == bob.post(f"{path}/share").json() == unknown.json()
    assert admin.get(path).status_code == 200

    assert ann.post(f"{path}/share").json()["shared"] is True
    shared = bob.get(path).json()
    assert shared["answer"] and shared["shared"] is True
    assert (shared["conversation"], shared["route"]) == ("", None)
    assert ann.get(path).json()["conversation"] == "c1"
    assert bob.delete(f"{path}/share").status_code == 404

    assert ann.delete(f"{path}/share").json()["shared"] is False
    assert bob.get(path).status_code == 404


def test_key_of_other_collections_reads_no_shared_answer(client_of, asked_by):
    path = f"/answers/{asked_by(ANN)['id']}"
    assert client_of(ANN).post(f"{path}/share").status_code == 200
    page = Key("page", ("ask",), origins=("https://d.test",), collections=("other",), session="s1")
    assert client_of(page).get(path).status_code == 404
    assert client_of(replace(page, collections=("docs",))).get(path).status_code == 200


def test_session_reads_only_its_own_answers_and_no_routes(client_of, asked_by):
    one = Key("page", ("ask",), origins=("https://d.test",), session="s1")
    path = f"/answers/{asked_by(replace(one, name='page/s1', session=''))['id']}"
    again = client_of(one).get(path).json()
    assert (again["conversation"], again["route"]) == ("c1", None)
    assert client_of(replace(one, session="s2")).get(path).status_code == 404
    assert client_of(Key("page", ("query",))).get(path).status_code == 404


def test_readers_without_a_session_own_no_answer(client_of, asked_by):
    """They all have the same name: none."""
    path = f"/answers/{asked_by(None)['id']}"
    reader = client_of(READER)
    assert reader.get(path).status_code == reader.post(f"{path}/share").status_code == 404
    assert client_of(None).post(f"{path}/share").status_code == 200  # on this machine
    assert reader.get(path).status_code == 200


def test_answer_is_readable_as_soon_as_it_was_given(store, client_of, asked_by):
    reply = asked_by(ANN)
    store.late = 3
    assert client_of(ANN).post(f"/answers/{reply['id']}/share").status_code == 200
