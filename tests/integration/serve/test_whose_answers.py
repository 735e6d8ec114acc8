"""Two readers with one publishable key, over the real store: neither can read the other's questions."""

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
    """A page of the site in a separate browser."""

    def __init__(self, asking: TestClient, key: str) -> None:
        self._asking, self._key = asking, key
        self.token = open_session(asking, key, ORIGIN)

    def renew(self) -> None:
        self.token = open_session(self._asking, self._key, ORIGIN, self.token)

    def post(self, path: str, **body: object):  # type: ignore[no-untyped-def]
        return self._asking.post(path, json=body, headers=bearer(self.token, ORIGIN))

    def get(self, path: str):  # type: ignore[no-untyped-def]
        return self._asking.get(path, headers=bearer(self.token, ORIGIN))


def ask(reader: Reader, store: Store, **more: object) -> dict[str, str]:
    reply = reader.post("/query", **QUESTION, **more).json()
    wait_for(lambda: store.question(reply["id"]))
    return dict(reply)


def test_sessions_cannot_read_answers_ratings_or_chats_of_each_other(store: Store) -> None:
    engine, recorder = FakeEngine(FakeStore()), Recorder(store)
    app = create_app(engine, store, recorder=recorder)  # type: ignore[arg-type]
    asking = client(protect(app, store, Policy(host="0.0.0.0"), SilentMetrics()))
    key = store.create_key("site", origins=[ORIGIN])[1]
    mine, other = Reader(asking, key), Reader(asking, key)
    answer = ask(mine, store)
    mine.post("/feedback", id=answer["id"], rating="down", comment="mine")
    path = f"/answers/{answer['id']}"
    mine.renew()
    assert mine.get(path).json()["rating"] == -1
    assert other.get(path).status_code == 404 and other.get(path).text == other.get("/answers/nothing").text
    assert other.post("/feedback", id=answer["id"], rating="up").status_code == 404
    assert [given["rating"] for given in store.feedback(answer["id"])] == [-1]
    assert other.post(f"{path}/share").status_code == 404
    for reader, turns in ((other, 0), (mine, 2)):
        ask(reader, store, conversation=answer["conversation"])
        assert len(engine.asks[-1].history) == turns

    assert mine.post(f"{path}/share").json() == {"id": answer["id"], "shared": True}
    seen = other.get(path).json()
    assert seen["answer"] == answer["answer"] and seen["conversation"] == "" and seen["rating"] is None
    recorder.close()
