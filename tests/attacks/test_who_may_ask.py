"""Every route with every kind of credential, as a table. A route without a decision here fails the test.

Covers foreign pages, copied keys and old tokens in all modes of the service.
"""

import asyncio
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from kit.api import FakeEngine
from kit.guarded import (
    ADMIN,
    BLOG,
    CHANGING,
    DOCS,
    EVIL,
    LOCAL_PAGE,
    OTHER_SITE,
    OWN,
    SECRET,
    SITE,
    GuardedStore,
    bearer,
    client,
    guarded,
    of_page,
)
from kit.reporting import leave_table
from starlette.testclient import TestClient

from pipelines.signing import sign
from pipelines.store import key_hash
from serve.guard.sessions import NO_KEY, SESSION_S, ServiceSecret, SessionTokens
from serve.routes import create_app
from serve.threads import DatabaseThreads

# The access level of each route: open to all; readable by readers, usable by readers; usable by readers' programs;
# readable by keys, usable by keys; for announcers of changes; for operators; and closed to everybody.
OPEN, SESSION, READ, ASK, AGENT, SEE, DO, ANNOUNCE, OPERATE = KINDS = (
    "open", "session", "read", "ask", "agent", "see", "do", "announce", "operate",
)  # fmt: skip
NOTHING = "nothing"
DECISIONS = {
    "GET /": OPEN,
    "GET /a/{id}": OPEN,
    "GET /web/{path}": OPEN,
    "GET /widget.js": OPEN,
    "GET /insights": OPEN,  # only the page: it requests /admin/insights with a key
    "GET /health": OPEN,
    "GET /health/ready": OPEN,
    "POST /session": SESSION,
    "GET /collections": READ,
    "GET /collections/{name}": READ,
    "GET /collections/{collection}/llms.txt": READ,
    "GET /collections/{collection}/llms-full.txt": READ,
    "GET /llms.txt": READ,
    "GET /llms-full.txt": READ,
    "GET /answers/{id}": READ,
    "POST /answers/{id}/share": ASK,
    "DELETE /answers/{id}/share": ASK,
    "POST /query": ASK,
    "POST /query/stream": ASK,
    "POST /stream": ASK,
    "POST /search": ASK,
    "POST /feedback": ASK,
    "POST /clicks": ASK,
    "POST /mcp": AGENT,
    "GET /mcp": NOTHING,
    "DELETE /mcp": NOTHING,
    "GET /docs": SEE,
    "GET /docs/{name}": SEE,
    "GET /openapi.json": SEE,
    "GET /v1/models": SEE,
    "GET /v1/models/{model}": SEE,
    "POST /v1/chat/completions": DO,
    "POST /v1/embeddings": DO,
    "POST /v1/collections/{name}/changes": ANNOUNCE,
    "GET /v1/collections/{name}/changes/{id}": ANNOUNCE,
    "GET /admin/insights": OPERATE,
    "GET /admin/questions": OPERATE,
    "GET /admin/status": OPERATE,
}
READERS = {OPEN, READ, ASK}
HOLDERS = {*READERS, AGENT, SEE, DO}
# Replies without a CORS header for pages of other origins: these can send the requests but read nothing.
UNREADABLE = {OPEN, READ, SEE}
PUBLIC, LOCAL, NAMED = {"public": True}, {"host": "127.0.0.1"}, {"cors_origins": [EVIL]}
HERE = {"came_from": "127.0.0.1", "host": "127.0.0.1:8000"}


@dataclass(frozen=True)
class Sender:
    """A sender: the headers, the service's policy, the client's place, and the access levels that are answered."""

    name: str
    answered: set[str]
    headers: dict[str, str] = field(default_factory=dict)
    policy: dict[str, Any] = field(default_factory=dict)
    place: dict[str, str] = field(default_factory=dict)


def token(key: str = "", origin: str = "", age_s: float = 0.0, secret: bytes = b"s" * 32) -> str:
    """Return a session token opened `age_s` seconds ago, signed with `secret`."""
    store = GuardedStore()
    store.secret = secret
    tokens = SessionTokens(ServiceSecret(store, DatabaseThreads(1)), lambda: time.time() - age_s)
    return asyncio.run(tokens.open(key_hash(key) if key else NO_KEY, origin))


def forged() -> dict[str, str]:
    """Return the headers of a request signed with a secret that the service does not know."""
    now = int(time.time())
    return {"X-Raydex-Timestamp": str(now), "X-Raydex-Signature": sign("rdw_forged", now, b"{}")}


GONE, WRONG = "pk_" + "g" * 43, "rdx_" + "c" * 43  # revoked, and never issued: no store has them
OF_SITE, OF_READER = token(SITE, DOCS), token()
SENDERS = [
    Sender("nobody", {OPEN}),
    Sender("wrong key", {OPEN}, bearer(WRONG)),
    Sender("public: wrong key", {OPEN}, bearer(WRONG), PUBLIC),
    Sender("public: token of another service", {*READERS, AGENT, SESSION}, bearer("sk-other"), PUBLIC),
    Sender("no keys required, another machine", {OPEN}, {}, {"keys_required": False}),
    Sender("this machine, keys required", {OPEN}, {}, {**LOCAL, "keys_required": True}, HERE),
    Sender("public: reader, no page", {*READERS, AGENT, SESSION}, {}, PUBLIC),
    Sender("public: own page", {OPEN, READ, SESSION}, of_page(OWN), PUBLIC),
    Sender("public: own page, reader's session", READERS, bearer(OF_READER, OWN), PUBLIC),
    Sender("public: another page", {OPEN, READ}, of_page(EVIL), PUBLIC),
    Sender("public: another page, reader's session", {OPEN}, bearer(OF_READER, EVIL), PUBLIC),
    Sender("public: expired session", {OPEN}, bearer(token(age_s=SESSION_S + 1), OWN), PUBLIC),
    Sender("reader's session, not public any more", {OPEN}, bearer(OF_READER, OWN)),
    Sender("publishable key, its page", {OPEN, SESSION}, bearer(SITE, DOCS)),
    Sender("publishable key, another page", {OPEN}, bearer(SITE, EVIL)),
    Sender("publishable key, page of another key", {OPEN}, bearer(OTHER_SITE, DOCS)),
    Sender("publishable key, sandboxed page", {OPEN}, bearer(SITE, "null")),
    Sender("publishable key, own page", {OPEN}, bearer(SITE, OWN)),
    Sender("publishable key, no page", {OPEN, SESSION}, bearer(SITE)),
    Sender("publishable key, revoked", {OPEN}, bearer(GONE, DOCS)),
    Sender("publishable key's session, its page", READERS, bearer(OF_SITE, DOCS)),
    Sender("publishable key's session, its key's other page", {OPEN}, bearer(OF_SITE, BLOG)),
    Sender("publishable key's session, another page", {OPEN}, bearer(OF_SITE, EVIL)),
    Sender(
        "publishable key's session, page without its name", {OPEN}, {**bearer(OF_SITE), "Sec-Fetch-Site": "cross-site"}
    ),
    Sender("publishable key's session, no page", READERS, bearer(OF_SITE)),
    Sender("publishable key's session, opened by no page", {OPEN}, bearer(token(SITE), DOCS)),
    Sender("publishable key's session, expired", {OPEN}, bearer(token(SITE, DOCS, SESSION_S + 1), DOCS)),
    Sender("publishable key's session, key revoked", {OPEN}, bearer(token(GONE, DOCS), DOCS)),
    Sender("publishable key's session, public", READERS, bearer(OF_SITE, DOCS), PUBLIC),
    Sender("publishable key's session, this machine", READERS, bearer(OF_SITE, DOCS), LOCAL, HERE),
    Sender("session signed by another service", {OPEN}, bearer(token(SITE, DOCS, secret=b"t" * 32), DOCS)),
    Sender("session of which a bit was changed", {OPEN}, bearer("rds_B" + OF_SITE[5:], DOCS)),
    Sender("secret key, no page", HOLDERS, bearer(SECRET)),
    Sender("secret key, own page", HOLDERS, bearer(SECRET, OWN)),
    Sender("secret key, another page", {OPEN}, bearer(SECRET, EVIL)),
    Sender("secret key, page of a publishable one", {OPEN}, bearer(SECRET, DOCS)),
    Sender("secret key, page without its name", {OPEN}, {**bearer(SECRET), "Sec-Fetch-Site": "same-site"}),
    Sender("secret key, page in cors_origins", HOLDERS, bearer(SECRET, EVIL), NAMED),
    Sender("admin key, no page", {*HOLDERS, ANNOUNCE, OPERATE}, bearer(ADMIN)),
    Sender("key of changes, no page", {OPEN, ANNOUNCE}, bearer(CHANGING)),
    Sender("key of changes, another page", {OPEN}, bearer(CHANGING, EVIL)),
    Sender("signed with another secret", {OPEN}, forged()),
    Sender("signed with another secret, this machine", {*HOLDERS, SESSION}, forged(), LOCAL, HERE),
    Sender("admin key, another page", {OPEN}, bearer(ADMIN, EVIL)),
    Sender("this machine, no page", {*HOLDERS, SESSION}, {}, LOCAL, HERE),
    Sender("this machine, own page", {OPEN, READ, SEE, SESSION}, of_page(LOCAL_PAGE), LOCAL, HERE),
    Sender("this machine, own page, session", HOLDERS - {AGENT}, bearer(OF_READER, LOCAL_PAGE), LOCAL, HERE),
    Sender("this machine, another page", UNREADABLE, of_page(EVIL), LOCAL, HERE),
    Sender("this machine, another page, session", {OPEN}, bearer(OF_READER, EVIL), LOCAL, HERE),
    Sender("this machine, a name that was pointed here", {OPEN}, of_page(EVIL), LOCAL, {**HERE, "host": "evil.test"}),
]


STORE = GuardedStore()
APP = create_app(FakeEngine(STORE), STORE)  # type: ignore[arg-type]


def routes() -> list[str]:
    """Return every route of the application, including hidden ones, as `METHOD /path/{parameter}`."""
    return sorted(f"{method} {path}" for path, methods in _all(APP.routes) for method in methods)


def _all(routes: Any) -> Iterator[tuple[str, set[str]]]:
    for route in routes:
        if getattr(route, "routes", None):
            yield from _all(route.routes)
        else:
            yield re.sub(r"{(\w+):\w+}", r"{\1}", route.path), set(route.methods) - {"HEAD"}


ROUTES = [route for route in routes() if route in DECISIONS]


def send(asking: TestClient, route: str, headers: dict[str, str]) -> Any:
    method, path = route.split()
    path = re.sub(r"{\w+}", "docs", path)
    return asking.request(method, path, headers=headers, json={} if method == "POST" else None)


def test_every_route_has_a_decision() -> None:
    missing = set(routes()) - set(DECISIONS)
    assert not missing, f"decide who may use these, in serve/guard/access.py and in DECISIONS: {sorted(missing)}"
    assert set(DECISIONS) <= set(routes()), "these are gone: take them out of DECISIONS"


@pytest.fixture(autouse=True)
def _no_wait_for_the_record(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("serve.api.answers.PAUSES_S", ())


@pytest.mark.parametrize("sender", SENDERS, ids=lambda sender: sender.name)
def test_sender_gets_answers_only_from_the_allowed_routes(sender: Sender) -> None:
    STORE.left.clear()
    with client(guarded(STORE, APP, **sender.policy), **sender.place) as asking:  # one event loop for all requests
        replies = {route: send(asking, route, sender.headers) for route in ROUTES}
    answered = {route for route, reply in replies.items() if reply.status_code not in (401, 403, 405)}
    assert answered == {route for route in ROUTES if DECISIONS[route] in sender.answered}
    for route, reply in replies.items():
        readable = reply.headers.get("Access-Control-Allow-Origin")
        if DECISIONS[route] != OPEN:  # every site may load the pages' files
            assert readable != "*" and "Origin" in reply.headers["Vary"], route
            origin = sender.headers.get("Origin")
            bound = DECISIONS[route] in (SESSION, READ, ASK, AGENT, NOTHING) and origin in (DOCS, BLOG)
            named = origin in sender.policy.get("cors_origins", ())
            assert readable == (origin if bound or named else None), route
        assert reply.headers["X-Content-Type-Options"] == "nosniff", route
        assert "frame-ancestors 'none'" in reply.headers["Content-Security-Policy"], route


def test_open_routes_answer_all_senders_and_no_others_do(request: pytest.FixtureRequest) -> None:
    rows = [(one.name, *("yes" if kind in one.answered else "-" for kind in KINDS)) for one in SENDERS]
    leave_table(
        request.config, f"who may ask: {len(SENDERS)} senders, {len(ROUTES)} routes", ("who sends", *KINDS), rows
    )
    assert {OPEN} == set.intersection(*(one.answered for one in SENDERS))
