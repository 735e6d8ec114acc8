"""A reader's click on a source counts once, and only if that source was shown."""

import asyncio
import base64

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from kit.api import CSV, FakeEngine, FakeStore, MemoryRecorder
from kit.guarded import with_key

from pipelines.answering import Question
from pipelines.store import Key
from serve.api.clicks import SEARCH_PREFIX, VALID_S, SearchIds
from serve.guard.access import ANSWERING, QUICK, scope_of
from serve.guard.sessions import ServiceSecret
from serve.routes import create_app
from serve.threads import DatabaseThreads

SHOWN = CSV.source


@pytest.fixture
def client(app: FastAPI) -> TestClient:
    return TestClient(app)


def click(client: TestClient, id: str, source: str = SHOWN) -> bool:
    reply = client.post("/clicks", json={"id": id, "source": source})
    assert reply.status_code == 200, reply.text
    return bool(reply.json()["recorded"])


def test_search_click_is_recorded_once_with_the_searched_text(client: TestClient, store: FakeStore) -> None:
    id = client.post("/search", json={"question": "How do I read CSV?"}).json()["id"]
    assert id.startswith(SEARCH_PREFIX)
    assert [click(client, id), click(client, id), click(client, id)] == [True, False, False]
    assert store.clicks == {("How do I read CSV?", SHOWN)}


def test_click_on_an_unshown_or_forged_source_changes_nothing(client: TestClient, store: FakeStore) -> None:
    id = client.post("/search", json={"question": "How do I read CSV?"}).json()["id"]
    whole = base64.urlsafe_b64decode(id.removeprefix(SEARCH_PREFIX) + "==")
    changed = SEARCH_PREFIX + base64.urlsafe_b64encode(whole.replace(b"CSV", b"SQL")).decode().rstrip("=")
    hostile = [
        (id, "https://evil.example/"), (id, f"{SHOWN}x"),
        (id, "javascript:alert(1)"), (id[:-4], SHOWN), (changed, SHOWN),
        (SEARCH_PREFIX, SHOWN), (f"{SEARCH_PREFIX}%%%", SHOWN), (f"{SEARCH_PREFIX}{'A' * 7_000}", SHOWN),
        (f"{SEARCH_PREFIX}ü", SHOWN), ("made-up", SHOWN),
    ]  # fmt: skip
    assert [click(client, *one) for one in hostile] == [False] * len(hostile)
    assert store.clicks == set()


@pytest.mark.parametrize(
    "body",
    [{}, {"id": "x"}, {"id": "", "source": "u"}, {"id": "x", "source": "u" * 9_000}, {"id": "x\0", "source": "u"}],
)
def test_invalid_click_is_refused(client: TestClient, body: dict[str, str]) -> None:
    assert client.post("/clicks", json=body).status_code == 422


def test_search_id_expires_after_a_day(engine: FakeEngine, store: FakeStore) -> None:
    now = [1_000_000.0]
    ids = SearchIds(ServiceSecret(store, DatabaseThreads()), clock=lambda: now[0])  # type: ignore[arg-type]

    async def ages() -> list[bool]:
        retrieval = await engine.asearch(Question("q", collection="docs"))
        id = await ids.make("q", retrieval)
        found = []
        for age in (0, VALID_S, VALID_S + 1):
            now[0] = 1_000_000.0 + age
            found.append(await ids.read(id) is not None)
        return found

    assert asyncio.run(ages()) == [True, True, False]


def test_key_counts_no_click_in_a_forbidden_collection(app: FastAPI, client, store: FakeStore) -> None:
    id = client.post("/search", json={"question": "How?"}).json()["id"]
    other = TestClient(with_key(app, Key("other", ("ask",), collections=("elsewhere",))))
    assert not click(other, id)
    assert store.clicks == set()


def test_nothing_is_recorded_if_recording_is_off(engine: FakeEngine, store: FakeStore) -> None:
    client = TestClient(create_app(engine, store, recorder=MemoryRecorder(enabled=False)))  # type: ignore[arg-type]
    assert client.post("/search", json={"question": "How?"}).json()["id"] == ""
    store.hold_shared_answer("a")
    assert not click(client, "a")
    assert store.clicks == set()


def test_search_works_while_the_database_is_unreachable(engine: FakeEngine, store: FakeStore) -> None:
    async def make() -> str:
        found = await engine.asearch(Question("q", collection="docs"))
        store.away = True
        return await SearchIds(ServiceSecret(store, DatabaseThreads())).make("q", found)  # type: ignore[arg-type]

    assert asyncio.run(make()) == ""


def test_readers_can_report_clicks_at_the_cost_of_a_rating() -> None:
    assert scope_of("/clicks") == scope_of("/feedback") == "ask"
    assert QUICK.fullmatch("/clicks")
    assert not ANSWERING.fullmatch("/clicks")
