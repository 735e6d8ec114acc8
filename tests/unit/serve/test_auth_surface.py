"""Auth suite: every route that the application has, without a key, with each kind of key, and in the public mode."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from kit.api import FakeEngine, FakeStore
from kit.guarded import SilentMetrics
from kit.reporting import leave_table
from starlette.testclient import TestClient
from starlette.types import ASGIApp, Message

from pipelines.store import Key, TokenGrant, key_hash
from serve.guard.access import is_open, scope_of
from serve.guard.policy import Policy, protect
from serve.routes import create_app

QUERY, ADMIN = "rdx_" + "a" * 43, "rdx_" + "b" * 43
KEYS = {key_hash(QUERY): Key("ci", ("query",)), key_hash(ADMIN): Key("boss", ("admin",))}
REFUSED = {401, 403}
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE")
# Other spellings of paths, and paths that nothing answers.
SPELLINGS = (
    "//query", "/query/", "/./query", "/health/../query", "/query\0", "/query;/health", "/health\\..\\query",
    "query", "", "/health/", "/health//ready", "/Health", "/docs/", "/docs/../", "/admin", "/admin/",
    "/admin/keys", "//admin/status", "/metrics", "/-/routes", "/-/healthz", "/api", "/.env",
    "/static/index.html", "/web", "/webs/page.js", "/a", "/redoc", "/docs/oauth2-redirect",
)  # fmt: skip


class Guarded(FakeStore):
    def find_key(self, hash: bytes) -> Key | None:
        return KEYS.get(hash)

    def take_token(self, key: str, rate_per_minute: float, burst: float) -> TokenGrant:
        return TokenGrant(True, 0.0, burst)

    def forget_buckets(self) -> None: ...


STORE = Guarded()
APP = create_app(FakeEngine(STORE), STORE)  # type: ignore[arg-type]


def routes() -> list[tuple[str, str]]:
    """Every method and path of the application, the hidden ones too."""
    return sorted((method, _path(route.path)) for route in _all(APP.routes) for method in route.methods)


def _all(routes: Any) -> Iterator[Any]:
    for route in routes:
        yield from _all(route.routes) if getattr(route, "routes", None) else [route]


def _path(template: str) -> str:
    return template.replace(":path", "").format(name="swagger-ui.css", model="docs", id="x", path="page.js")


def guarded(**policy: Any) -> ASGIApp:
    return protect(APP, STORE, Policy(**{"host": "0.0.0.0", **policy}), SilentMetrics())


def client(came_from: str = "203.0.113.9", **policy: Any) -> TestClient:
    return TestClient(
        guarded(**policy), base_url="http://docs.test", client=(came_from, 5), follow_redirects=False,
        raise_server_exceptions=False
    )  # fmt: skip


def answered(asking: TestClient, token: str = "") -> set[tuple[str, str]]:
    """The routes that answer, whatever they answer."""
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    return {
        (method, path)
        for method, path in routes()
        if asking.request(method, path, headers=headers, json={} if method == "POST" else None).status_code
        not in REFUSED
    }


OPEN_PATHS = {path for _, path in routes() if is_open(path)}
READER_PATHS = {path for _, path in routes() if scope_of(path) == "ask"}


def paths(found: set[tuple[str, str]]) -> set[str]:
    return {path for _, path in found}


def test_the_suite_sees_every_route() -> None:
    assert len(routes()) >= 17
    assert {"/", "/docs", "/docs/swagger-ui.css", "/openapi.json", "/v1/models/docs", "/admin/status"} <= paths(
        set(routes())
    )


def test_without_a_key_only_health_and_the_page_answer(request: pytest.FixtureRequest) -> None:
    modes = {
        "keys required, no key": (answered(client()), OPEN_PATHS),
        "keys required on loopback, no key": (answered(client("127.0.0.1", keys_required=True)), OPEN_PATHS),
        "no keys required, another machine": (answered(client(keys_required=False)), OPEN_PATHS),
        "public, no key": (answered(client(public=True)), OPEN_PATHS | READER_PATHS),
        "a wrong key": (answered(client(), "rdx_" + "c" * 43), OPEN_PATHS),
        "public, a wrong key": (answered(client(public=True), "rdx_" + "c" * 43), OPEN_PATHS),
        "public, another service's token": (answered(client(public=True), "sk-other"), OPEN_PATHS | READER_PATHS),
        "a key": (
            answered(client(), QUERY),
            {path for path in paths(set(routes())) - {"/session"} if scope_of(path) not in ("admin", "changes")},
        ),
        "a key with the scope admin": (answered(client(), ADMIN), paths(set(routes())) - {"/session"}),
    }
    rows = [(mode, str(len(routes())), ", ".join(sorted(paths(found)))) for mode, (found, _) in modes.items()]
    leave_table(request.config, "auth suite", ("who asks", "routes tried", "that answered"), rows)
    assert {mode: paths(found) for mode, (found, _) in modes.items()} == {
        mode: set(open) for mode, (_, open) in modes.items()
    }


def test_whether_a_collection_is_ready_is_for_who_may_ask_it() -> None:
    asked = "/health/ready?collection=docs"
    closed, public = client(), client(public=True)
    assert closed.get("/health/ready").status_code == public.get(asked).status_code == 200
    assert closed.get(asked).status_code == closed.get("/health/ready?c%6Fllection=docs").status_code == 401
    assert closed.get(asked, headers={"Authorization": f"Bearer {QUERY}"}).status_code == 200


@pytest.mark.parametrize("public", [False, True])
def test_no_spelling_and_no_method_opens_what_is_closed(public: bool) -> None:
    app = guarded(public=public)
    tried = {(method, path): asyncio.run(status_of(app, method, path)) for path in SPELLINGS for method in METHODS}
    assert {call: status for call, status in tried.items() if status != 401} == {}


async def status_of(app: ASGIApp, method: str, path: str) -> int:
    """Send a path as it is: a client would tidy it first."""
    started: list[int] = []

    async def receive() -> Message:
        return {"type": "http.request", "body": b"{}", "more_body": False}

    async def send(message: Message) -> None:
        started.extend([message["status"]] if message["type"] == "http.response.start" else [])

    headers = [(b"content-type", b"application/json")]
    scope = {"type": "http", "method": method, "path": path, "headers": headers, "client": ("203.0.113.9", 5)}
    await app({**scope, "query_string": b"", "root_path": "", "scheme": "http", "http_version": "1.1"}, receive, send)
    return started[0]


@pytest.mark.parametrize("path", ["/query", "/docs", "/admin/status"])
def test_no_header_opens_what_is_closed(path: str) -> None:
    claims = {
        "X-Forwarded-For": "127.0.0.1", "Forwarded": "for=127.0.0.1", "X-Real-IP": "127.0.0.1", "Host": "127.0.0.1",
        "X-Original-URL": "/health", "X-Rewrite-URL": "/health", "X-HTTP-Method-Override": "GET", "X-API-Key": QUERY,
        "Cookie": f"key={QUERY}", "Authorization": f"Basic {QUERY}", "X-Forwarded-Host": "localhost",
    }  # fmt: skip
    for name, value in claims.items():
        assert client().get(path, headers={name: value}).status_code == 401, name
        assert client(keys_required=False).get(path, headers={name: value}).status_code == 401, name
