"""Two readers of one publishable key, over the real store: neither gets at what the other asked."""

from collections.abc import Iterator

import pytest
from kit.api import FakeEngine, FakeStore, wait_for
from kit.guarded import SilentMetrics, bearer, client, open_session
from starlette.testclient import TestClient

from pipelines.store import Store
from serve.guard.policy import Policy, protect
from serve.recorder import Recorder
from serve.routes import create_app

ORIGIN = "https://docs.test"
QUESTION = {"question": "How do I load csv files?", "collection": "docs"}


class Reader:
    """A page of the site in a browser of its own."""

    def __init__(self, asking: TestClient, key: str) -> None:
        self._asking, self._key = asking, key
        self.token = open_session(asking, key, ORIGIN)

    def renew(self) -> None:
        self.token = open_session(self._asking, self._key, ORIGIN, self.token)

    def post(self, path: str, **body: object):  # type: ignore[no-untyped-def]
        return self._asking.post(path, json=body, headers=bearer(self.token, ORIGIN))

    def get(self, path: str):  # type: ignore[no-untyped-def]
        return self._asking.get(path, headers=bearer(self.token, ORIGIN))


@pytest.fixture
def engine() -> FakeEngine:
    return FakeEngine(FakeStore())


@pytest.fixture
def asking(engine: FakeEngine, store: Store) -> Iterator[TestClient]:
    recorder = Recorder(store)
    app = create_app(engine, store, recorder=recorder)  # type: ignore[arg-type]
    yield client(protect(app, store, Policy(host="0.0.0.0"), SilentMetrics()))
    recorder.close()


@pytest.fixture
def key(store: Store) -> str:
    return store.create_key("site", origins=[ORIGIN])[1]


def ask(reader: Reader, store: Store, **more: object) -> dict[str, str]:
    reply = reader.post("/query", **QUESTION, **more).json()
    wait_for(lambda: store.question(reply["id"]))
    return dict(reply)


def test_neither_reads_the_others_answer_rating_or_conversation(asking, engine, store, key):
    mine, other = Reader(asking, key), Reader(asking, key)
    answer = ask(mine, store)
    mine.post("/feedback", id=answer["id"], rating="down", comment="mine")
    path = f"/answers/{answer['id']}"
    assert mine.get(path).json()["rating"] == -1
    assert other.get(path).status_code == 404 and other.get(path).text == other.get("/answers/nothing").text
    assert other.post("/feedback", id=answer["id"], rating="up").status_code == 404
    assert [given["rating"] for given in store.feedback(answer["id"])] == [-1]
    assert other.post(f"{path}/share").status_code == 404
    for reader, turns in ((other, 0), (mine, 2)):
        ask(reader, store, conversation=answer["conversation"])
        assert len(engine.asks[-1].history) == turns


def test_a_shared_answer_is_read_without_its_conversation_and_with_ones_own_rating(asking, store, key):
    mine, other = Reader(asking, key), Reader(asking, key)
    answer = ask(mine, store)
    mine.post("/feedback", id=answer["id"], rating="down")
    assert mine.post(f"/answers/{answer['id']}/share").json() == {"id": answer["id"], "shared": True}
    seen = other.get(f"/answers/{answer['id']}").json()
    assert seen["answer"] == answer["answer"] and seen["conversation"] == "" and seen["rating"] is None


def test_a_shared_answer_of_a_collection_that_a_key_may_not_ask_is_none_of_its_own(asking, store, key):
    answer = ask(mine := Reader(asking, key), store)
    mine.post(f"/answers/{answer['id']}/share")
    narrow = Reader(asking, store.create_key("narrow", origins=[ORIGIN], collections=["other"])[1])
    assert narrow.get(f"/answers/{answer['id']}").status_code == 404


def test_a_renewed_session_still_has_its_answers_and_a_key_none_of_its_sessions(asking, store, key):
    mine = Reader(asking, key)
    answer = ask(mine, store)
    mine.renew()
    assert mine.get(f"/answers/{answer['id']}").status_code == 200
    other_site = Reader(asking, store.create_key("other", origins=[ORIGIN])[1])
    secret = store.create_key("ci")[1]
    assert other_site.get(f"/answers/{answer['id']}").status_code == 404
    assert asking.get(f"/answers/{answer['id']}", headers=bearer(secret)).status_code == 404
