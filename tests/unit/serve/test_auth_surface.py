"""No spelling of a path, no method and no header opens protected paths without a key.

tests/attacks/test_who_may_ask.py lists who may use which route.
"""

import asyncio

import pytest
from kit.guarded import SECRET, GuardedStore, bearer, client, guarded
from starlette.testclient import TestClient
from starlette.types import ASGIApp, Message

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE")
# Protected paths, also with a trailing slash.
CLOSED = (
    "/docs", "/docs/swagger-ui.css", "/openapi.json", "/v1/models/docs", "/v1/embeddings", "/admin/status",
    "", "/query//", "/docs/", "/docs/../", "/admin/status/", "/docs/oauth2-redirect",
)  # fmt: skip
# Other spellings of paths, and unknown paths: no key opens them.
NOWHERE = (
    "//query", "/./query", "/health/../query", "/query\0", "/query;/health", "/health\\..\\query",
    "query", "/health//ready", "/Health", "/admin", "/admin/", "/admin/keys", "//admin/status", "/metrics",
    "/-/routes", "/-/healthz", "/api", "/.env", "/static/index.html", "/web", "/webs/page.js", "/a", "/redoc",
)  # fmt: skip
WRONG = "rdx_" + "c" * 43
ELSEWHERE = "203.0.113.9"
PUBLIC = {"public": True}


def asking(**policy: bool) -> TestClient:
    return client(guarded(GuardedStore(), **policy))


@pytest.mark.parametrize(
    ("policy", "token", "came_from"),
    [
        ({}, "", ELSEWHERE),
        ({}, WRONG, ELSEWHERE),
        (PUBLIC, "", ELSEWHERE),
        (PUBLIC, WRONG, ELSEWHERE),
        (PUBLIC, "sk-other", ELSEWHERE),
        ({"keys_required": False}, "", ELSEWHERE),
        ({"keys_required": True}, "", "127.0.0.1"),
    ],
)
def test_no_spelling_or_method_opens_a_protected_path(policy: dict[str, bool], token: str, came_from: str) -> None:
    app = guarded(GuardedStore(), **policy)
    headers = {"Content-Type": "application/json", **bearer(token)}
    tried = {
        (method, path): asyncio.run(status_of(app, method, path, headers, came_from))
        for path in (*CLOSED, *NOWHERE)
        for method in METHODS
    }
    expected = {(method, path): 401 if path in CLOSED else 404 for method, path in tried}
    assert {call: status for call, status in tried.items() if status != expected[call]} == {}


async def status_of(app: ASGIApp, method: str, path: str, headers: dict[str, str], came_from: str) -> int:
    """Send a path verbatim, because a client would normalize it first."""
    started: list[int] = []

    async def receive() -> Message:
        return {"type": "http.request", "body": b"{}", "more_body": False}

    async def send(message: Message) -> None:
        started.extend([message["status"]] if message["type"] == "http.response.start" else [])

    sent = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
    scope = {"type": "http", "method": method, "path": path, "headers": sent, "client": (came_from, 5)}
    await app({**scope, "query_string": b"", "root_path": "", "scheme": "http", "http_version": "1.1"}, receive, send)
    return started[0]


@pytest.mark.parametrize("path", ["/query", "/docs", "/admin/status"])
def test_no_header_opens_a_protected_path(path: str) -> None:
    claims = {
        "X-Forwarded-For": "127.0.0.1", "Forwarded": "for=127.0.0.1", "X-Real-IP": "127.0.0.1", "Host": "127.0.0.1",
        "X-Original-URL": "/health", "X-Rewrite-URL": "/health", "X-HTTP-Method-Override": "GET", "X-API-Key": SECRET,
        "Cookie": f"key={SECRET}", "Authorization": f"Basic {SECRET}", "X-Forwarded-Host": "localhost",
    }  # fmt: skip
    required, not_required = asking(), asking(keys_required=False)
    for name, value in claims.items():
        assert required.get(path, headers={name: value}).status_code == 401, name
        assert not_required.get(path, headers={name: value}).status_code == 401, name


def test_readiness_of_a_collection_requires_the_right_to_query_it() -> None:
    asked = "/health/ready?collection=docs"
    closed, public = asking(), asking(public=True)
    assert closed.get("/health/ready").status_code == public.get(asked).status_code == 200
    assert closed.get(asked).status_code == closed.get("/health/ready?c%6Fllection=docs").status_code == 401
    assert closed.get(asked, headers=bearer(SECRET)).status_code == 200
