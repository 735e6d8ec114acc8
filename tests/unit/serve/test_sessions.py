"""Page sessions: opening, renewal, end, allowed questions, and ownership of answers."""

import asyncio
import time
from dataclasses import replace

import jwt
import pytest
from kit.api import FakeEngine
from kit.guarded import (
    BLOG,
    DOCS,
    EVIL,
    OTHER_SITE,
    OWN,
    SECRET,
    SITE,
    GuardedStore,
    bearer,
    client,
    guarded,
    open_session,
)
from starlette.testclient import TestClient

from pipelines.store import key_hash
from serve.guard.sessions import NO_KEY, RENEW_S, SECRET_S, SESSION_S, ServiceSecret, Session, SessionTokens
from serve.routes import create_app
from serve.threads import DatabaseThreads

QUESTION = {"question": "How do I load csv files?"}
KEY = key_hash(SITE)


@pytest.fixture
def asking(store: GuardedStore) -> TestClient:
    return client(guarded(store))


def replica(secret: bytes = b"s" * 32, age_s: float = 0) -> SessionTokens:
    """Return one replica's maker and reader of tokens; it makes them as of `age_s` seconds ago."""
    store = GuardedStore()
    store.secret = secret
    return SessionTokens(ServiceSecret(store, DatabaseThreads(1)), lambda: time.time() - age_s)


def read(tokens: SessionTokens, token: str) -> Session:
    session = asyncio.run(tokens.read(token))
    assert session is not None
    return session


# ---------------------------------------------------------------------------------------------- tokens


def test_token_is_valid_on_all_replicas_and_expires_after_an_hour() -> None:
    young, old = (asyncio.run(replica(age_s=age_s).open(KEY, DOCS)) for age_s in (SESSION_S / 2, SESSION_S + 1))
    session = read(replica(), young)
    assert session == read(replica(), young)
    assert session.key == KEY and session.is_of(DOCS) and not session.is_of(BLOG)
    assert asyncio.run(replica().read(old)) is None


def test_renewed_session_keeps_its_id_for_at_most_a_month() -> None:
    for age_s, kept in ((SESSION_S / 2, True), (RENEW_S, True), (SESSION_S + RENEW_S + 1, False)):
        first = asyncio.run(replica(age_s=age_s).open(KEY, DOCS))
        second = asyncio.run(replica().open(KEY, DOCS, first))
        assert second != first
        id = jwt.decode(first.removeprefix("rds_"), options={"verify_signature": False})["jti"]
        assert (read(replica(), second).id == id) is kept, age_s


@pytest.mark.parametrize(("key", "origin"), [(key_hash(OTHER_SITE), DOCS), (NO_KEY, DOCS), (KEY, BLOG), (KEY, "")])
def test_only_its_own_token_renews_a_session(key: bytes, origin: str) -> None:
    tokens = replica()
    token = asyncio.run(tokens.open(KEY, DOCS))
    assert read(tokens, asyncio.run(tokens.open(key, origin, token))).id != read(tokens, token).id


def test_session_ids_are_unique() -> None:
    tokens = replica()
    opened = [asyncio.run(tokens.open(KEY, DOCS)) for _ in range(100)]
    assert len({read(tokens, token).id for token in opened}) == 100


def test_foreign_signature_is_no_session() -> None:
    tokens, token = replica(), asyncio.run(replica().open(KEY, DOCS))
    places = [n for n in range(4, len(token) - 1) if token[n] != "."]
    changed = [token[:n] + ("A" if token[n] != "A" else "B") + token[n + 1 :] for n in places]
    other = asyncio.run(replica(b"t" * 32).open(KEY, DOCS))
    for forged in (*changed, other, token + "A", token[:-1], "rds_", "rds_" + "ü" * 139, token.replace("rds_", "rdx_")):
        assert asyncio.run(tokens.read(forged)) is None, forged


def test_changed_secret_ends_all_sessions_within_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    store = GuardedStore()
    tokens = SessionTokens(ServiceSecret(store, DatabaseThreads(1)))
    token = asyncio.run(tokens.open(KEY, DOCS))
    store.secret, began = b"t" * 32, time.monotonic()
    assert asyncio.run(tokens.read(token)) is not None
    monkeypatch.setattr("serve.guard.sessions.time.monotonic", lambda: began + SECRET_S)
    assert asyncio.run(tokens.read(token)) is None


# ---------------------------------------------------------------------------------------------- the route


def test_page_opens_a_session_and_queries_with_it(asking: TestClient) -> None:
    reply = asking.post("/session", headers=bearer(SITE, DOCS))
    assert reply.json().keys() == {"token", "expires_in"} and reply.json()["expires_in"] == SESSION_S
    assert reply.headers["Cache-Control"] == "no-store" and "Set-Cookie" not in reply.headers
    page = bearer(reply.json()["token"], DOCS)
    assert asking.post("/query", json={**QUESTION, "channel": "widget", "page": DOCS}, headers=page).json()["answer"]
    assert "event: answer" in asking.post("/query/stream", json=QUESTION, headers=page).text
    assert asking.post("/search", json=QUESTION, headers=page).json()["hits"]


def test_session_is_renewed_through_its_route(asking: TestClient) -> None:
    tokens = [open_session(asking, SITE, DOCS)]
    tokens.append(open_session(asking, SITE, DOCS, tokens[0]))
    tokens.append(open_session(asking, SITE, DOCS, "rds_nonsense"))
    ids = [read(SessionTokens(ServiceSecret(GuardedStore(), DatabaseThreads(1))), token).id for token in tokens]
    assert ids[0] == ids[1] != ids[2]


def test_session_has_only_the_rights_of_readers(asking: TestClient) -> None:
    page = bearer(open_session(asking, SITE, DOCS), DOCS)
    for field in ({"k": 3}, {"mode": "compact"}, {"prompts": True}, {"history": []}, {"context": ["x"]}):
        assert asking.post("/query", json={**QUESTION, **field}, headers=page).status_code == 403, field


def test_local_session_has_the_limits_of_a_command() -> None:
    here = client(guarded(GuardedStore(), host="127.0.0.1"), "127.0.0.1", "127.0.0.1:8000")
    page = bearer(open_session(here, origin="https://127.0.0.1:8000"), "https://127.0.0.1:8000")
    assert here.post("/query", json={"question": "x " * 5_000, "k": 3}, headers=page).status_code == 200


def test_every_refusal_has_a_reason_and_a_remedy(asking: TestClient) -> None:
    token = open_session(asking, SITE, DOCS)
    told = {
        ("secret API key", "keys revoke NAME", f"--publishable --origin {DOCS}", "bad_key"): bearer(SECRET, DOCS),
        (EVIL, f"--publishable --origin {EVIL}", "forbidden"): bearer(SITE, EVIL),
        ("POST /session", "forbidden"): bearer(SITE, DOCS),
        ("another origin", "POST /session", "session"): bearer(token, BLOG),
        ("expired", "POST /session", "session"): bearer("rds_B" + token[5:], DOCS),
        ("unknown, revoked or expired", f"--publishable --origin {DOCS}", "bad_key"): bearer("pk_" + "z" * 43, DOCS),
    }
    for words, headers in told.items():
        path = "/session" if "pk_z" in headers["Authorization"] or "evil" in words[0] else "/search"
        reply = asking.post(path, json=QUESTION, headers=headers)
        assert reply.status_code in (401, 403) and [word for word in words if word not in reply.text] == [], reply.text
    page = client(guarded(GuardedStore(), public=True)).post("/search", json=QUESTION, headers=bearer("", OWN))
    assert page.json()["kind"] == "session" and "POST /session" in page.json()["error"]


def test_revoked_key_ends_its_sessions_once_no_replica_caches_it(asking: TestClient, store: GuardedStore) -> None:
    page = bearer(open_session(asking, SITE, DOCS), DOCS)
    del store.keys[SITE]
    assert asking.post("/search", json=QUESTION, headers=page).status_code == 200  # for CACHE_S: see test_keys.py
    refused = client(guarded(store)).post("/search", json=QUESTION, headers=page)
    assert refused.status_code == 401 and refused.json()["kind"] == "bad_key"


def test_unreachable_database_opens_nothing(store: GuardedStore) -> None:
    token = open_session(client(guarded(store)), SITE, DOCS)
    store.away = True
    asking = client(guarded(store))
    for path, headers in (("/session", bearer(SITE, DOCS)), ("/search", bearer(token, DOCS))):
        refused = asking.post(path, json=QUESTION, headers=headers)
        assert refused.status_code == 503 and refused.json()["kind"] == "unavailable" and refused.headers["Retry-After"]


# ---------------------------------------------------------------------------------------------- ownership


def test_recorded_question_belongs_to_the_session(asking: TestClient, store: GuardedStore) -> None:
    store.hold_shared_answer("q")
    pages = [bearer(open_session(asking, SITE, DOCS), DOCS) for _ in range(2)]
    for page in (*pages, bearer(SECRET)):
        asking.post("/feedback", json={"id": "q", "rating": "up"}, headers=page)
    owners = [key_name for _, _, _, key_name in store.given]
    assert len(set(owners)) == 3 and owners[2] == "ci"
    assert all(owner.startswith("site/") and len(owner) > 20 for owner in owners[:2])


def test_session_of_a_reader_is_identified_only_by_its_id(store: GuardedStore) -> None:
    asking = client(guarded(store, public=True))
    store.hold_shared_answer("q")
    asking.post("/feedback", json={"id": "q", "rating": "up"}, headers=bearer(open_session(asking, origin=OWN), OWN))
    assert store.given[0][3].startswith("/") and len(store.given[0][3]) > 20


# ---------------------------------------------------------------------------------------------- collections


@pytest.fixture
def page_of_docs(store: GuardedStore, asking: TestClient) -> dict[str, str]:
    """Return the headers of a page whose key allows only `docs`, of two collections."""
    store.publish("inside")
    store.keys[SITE] = replace(store.keys[SITE], collections=("docs",))
    return bearer(open_session(asking, SITE, DOCS), DOCS)


def test_key_queries_its_own_collections_and_learns_of_no_other(
    asking: TestClient, page_of_docs: dict[str, str]
) -> None:
    assert [row["name"] for row in asking.get("/collections", headers=page_of_docs).json()] == ["docs"]
    for path in ("/query", "/query/stream", "/search"):
        assert asking.post(path, json={**QUESTION, "collection": "docs"}, headers=page_of_docs).status_code == 200
        refused = [
            asking.post(path, json={**QUESTION, "collection": name}, headers=page_of_docs)
            for name in ("inside", "unpublished", "nowhere")
        ]
        assert [reply.status_code for reply in refused] == [404, 404, 404]
        assert {reply.text.replace("unpublished", "inside").replace("nowhere", "inside") for reply in refused} == {
            refused[0].text
        }


def test_unnamed_collection_means_the_collection_of_the_key(asking, store, page_of_docs):
    store.default = "inside"
    for own in ("", "inside"):
        service = client(guarded(store, create_app(FakeEngine(store), store, collection=own)))
        reply = service.post("/search", json=QUESTION, headers=page_of_docs)
        assert reply.status_code == 200 and reply.json()["index"] == store.live["docs"].id
        assert service.get("/collections", headers=page_of_docs).json()[0]["default"]
        assert "The docs" in service.get("/llms.txt", headers=page_of_docs).text


def test_only_collections_of_the_key_are_offered(asking, store, page_of_docs):
    store.publish("more")
    store.keys[SITE] = replace(store.keys[SITE], collections=("docs", "more"))
    own = client(guarded(store))
    refused = own.post("/search", json=QUESTION, headers=page_of_docs)
    assert refused.status_code == 422 and refused.json()["choices"] == ["docs", "more"]
