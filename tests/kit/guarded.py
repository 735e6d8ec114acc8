"""Provides a store with keys and a client of the whole protected service, for tests of access."""

from typing import Any

from kit.api import FakeEngine, FakeStore
from starlette.testclient import TestClient
from starlette.types import ASGIApp, Receive, Scope, Send

from pipelines.store import Key, TokenGrant, key_hash
from serve.guard.policy import LimitSettings, Policy, protect
from serve.routes import create_app
from serve.telemetry import Metrics

SECRET, ADMIN, SITE, OTHER_SITE = ("rdx_" + "a" * 43, "rdx_" + "b" * 43, "pk_" + "a" * 43, "pk_" + "b" * 43)
CHANGING = "rdx_" + "d" * 43
DOCS, BLOG, EVIL = "https://docs.test", "https://blog.test", "https://evil.test"
HOST = "ask.test"
OWN, LOCAL_PAGE = f"https://{HOST}", "https://127.0.0.1:8000"


class SilentMetrics(Metrics):
    """Metrics that record nothing."""

    def __init__(self) -> None: ...

    def count_request(self, route: str, status: int) -> None: ...


class GuardedStore(FakeStore):
    """Has one key of each kind, and rate limit buckets that never refill."""

    def __init__(self) -> None:
        super().__init__()
        self.keys = {
            SECRET: Key("ci", ("query",)),
            ADMIN: Key("boss", ("admin",)),
            CHANGING: Key("merges", ("changes",), collections=("docs",)),
            SITE: Key("site", ("ask",), origins=(DOCS, BLOG)),
            OTHER_SITE: Key("other", ("ask",), origins=(BLOG,)),
        }
        self.secret = b"s" * 32
        self.left: dict[str, float] = {}

    def find_key(self, hash: bytes) -> Key | None:
        self._reach()
        return next((key for token, key in self.keys.items() if key_hash(token) == hash), None)

    def bound_origins(self) -> frozenset[str]:
        self._reach()
        return frozenset(origin for key in self.keys.values() for origin in key.origins)

    def service_secret(self) -> bytes:
        self._reach()
        return self.secret

    def take_token(self, key: str, rate_per_minute: float, burst: float) -> TokenGrant:
        left = self.left.setdefault(key, burst)
        self.left[key] = left - (left >= 1)
        return TokenGrant(left >= 1, 0.0 if left >= 1 else 12.0, max(0.0, left - 1))

    def forget_buckets(self) -> None: ...

    def announcing_secret(self, collection: str) -> str | None:
        return "rdw_secret"


def guarded(store: FakeStore, app: ASGIApp | None = None, **policy: Any) -> ASGIApp:
    """Wrap the whole service, or `app` if given, in its protection. By default every request needs a key."""
    app = app or create_app(FakeEngine(store), store)  # type: ignore[arg-type]
    limits = {name: policy.pop(name) for name in LimitSettings.model_fields if name in policy}
    wanted = Policy(**{"host": "0.0.0.0", "limits": limits, **policy})
    return protect(app, store, wanted, SilentMetrics())  # type: ignore[arg-type]


def with_key(app: ASGIApp, key: Key | None) -> ASGIApp:
    """Return `app` as the holder of `key` sees it."""

    async def keyed(scope: Scope, receive: Receive, send: Send) -> None:
        if key:
            scope.setdefault("state", {})["key"] = key
        await app(scope, receive, send)

    return keyed


def client(app: ASGIApp, came_from: str = "203.0.113.9", host: str = HOST) -> TestClient:
    return TestClient(
        app, base_url=f"https://{host}", client=(came_from, 5), follow_redirects=False, raise_server_exceptions=False
    )


def bearer(token: str, origin: str = "") -> dict[str, str]:
    """Return the headers of a request with `token`, from a page of `origin` if given."""
    return {**({"Authorization": f"Bearer {token}"} if token else {}), **of_page(origin)}


def of_page(origin: str) -> dict[str, str]:
    """Return the headers that a browser sends for a page of `origin`."""
    site = "same-origin" if origin in (OWN, LOCAL_PAGE) else "cross-site"
    return {"Origin": origin, "Sec-Fetch-Site": site, "Sec-Fetch-Mode": "cors"} if origin else {}


def open_session(asking: TestClient, key: str = "", origin: str = "", renewed: str = "") -> str:
    """Open a session and return its token."""
    headers = {**bearer(key, origin), **({"X-Raydex-Renew": renewed} if renewed else {})}
    reply = asking.post("/session", headers=headers)
    assert reply.status_code == 200, reply.text
    return str(reply.json()["token"])
