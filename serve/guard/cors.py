"""ASGI middleware that lets pages of allowed origins read replies (CORS).

Origins in the setting `cors_origins` are allowed everywhere; origins that a publishable key is bound to, on the paths
for readers. A browser's preflight carries no key, so the origins of all valid keys count; the key itself is checked
with the request.
"""

import math
import re
import time
from collections.abc import Collection

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from pipelines.store import ASK, Store, StoreUnavailable
from serve.failure import path_of
from serve.guard.access import scope_of
from serve.guard.headers import with_headers
from serve.guard.origin import origin_of
from serve.telemetry import REQUEST_ID, TRACE_ID
from serve.threads import DatabaseThreads

# Same as the cache time of keys (see keys.py).
CACHE_S = 5.0
RENEW = "X-Raydex-Renew"
# Lists ignored options of a request to /v1 (see api/openai).
IGNORED = "X-Raydex-Ignored"
SENT = ("Authorization", "Content-Type", "traceparent", REQUEST_ID, RENEW)
PREFLIGHT = {"Access-Control-Allow-Methods": "GET, POST, DELETE", "Access-Control-Max-Age": "600"}
READABLE = f"{REQUEST_ID}, {TRACE_ID}, Retry-After, RateLimit-Limit, RateLimit-Remaining, RateLimit-Reset, {IGNORED}"
# Under this path, third-party clients send their own headers, such as x-stainless-os. All are allowed, because only the
# key's header has a meaning there. A page may not send proxy headers about an address.
CLIENTS_PATH = "/v1/"
HEADER_NAME = re.compile(r"[a-z0-9!#$%&'+.^_`|~-]{1,100}")
OF_PROXIES = re.compile(r"x-forwarded-.*|forwarded|proxy-.*|sec-.*|x-real-ip|.*-client-ip|cf-connecting-ip|cookie|host")
MOST_HEADERS = 50


class BoundOrigins:
    """The origins of all valid publishable keys, reloaded from the store every few seconds."""

    def __init__(self, store: Store, threads: DatabaseThreads) -> None:
        self._store, self._threads = store, threads
        self._origins: Collection[str] = ()
        self._until = -math.inf

    async def contain(self, origin: str) -> bool:
        """Return whether a key is bound to `origin`; uses the last known origins while the database is unavailable."""
        if time.monotonic() >= self._until:
            try:
                self._origins = await self._threads.run(self._store.bound_origins)
            except StoreUnavailable:
                return origin in self._origins
            self._until = time.monotonic() + CACHE_S
        return origin in self._origins


class CrossOrigin:
    """Answers preflights, and adds CORS headers to replies for pages of `named` and `bound` origins.

    Refusals get them too. No reply allows every origin (`*`), and none allows credentials: a key is in a header that
    the page must know.
    """

    def __init__(self, app: ASGIApp, bound: BoundOrigins | None = None, named: Collection[str] = ()) -> None:
        self._app, self._bound, self._named = app, bound, frozenset(named)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        origin = origin_of(scope)
        allow = {"Access-Control-Allow-Origin": origin} if origin and await self._may_read(origin, scope) else {}
        if allow and scope["method"] == "OPTIONS" and "access-control-request-method" in Headers(scope=scope):
            await Response(status_code=204, headers={**allow, **_preflight(scope)})(scope, receive, send)
            return

        def complete(headers: MutableHeaders) -> None:
            headers.add_vary_header("Origin")
            headers.update({**allow, "Access-Control-Expose-Headers": READABLE} if allow else {})

        await self._app(scope, receive, with_headers(send, complete))

    async def _may_read(self, origin: str, scope: Scope) -> bool:
        if origin in self._named or self._bound is None:
            return origin in self._named
        return scope_of(path_of(scope)) == ASK and await self._bound.contain(origin)


def _preflight(scope: Scope) -> dict[str, str]:
    """Return the headers that allow a page's request, for the reply to its preflight."""
    if not path_of(scope).startswith(CLIENTS_PATH):
        return {**PREFLIGHT, "Access-Control-Allow-Headers": ", ".join(SENT), "Vary": "Origin"}
    asked = Headers(scope=scope).get("access-control-request-headers", "").lower().split(",")
    theirs = [name for name in map(str.strip, asked[:MOST_HEADERS]) if _is_clients(name)]
    allowed = [*SENT, *(name for name in theirs if name not in map(str.lower, SENT))]
    vary = "Origin, Access-Control-Request-Headers"
    return {**PREFLIGHT, "Access-Control-Allow-Headers": ", ".join(allowed), "Vary": vary}


def _is_clients(name: str) -> bool:
    return bool(HEADER_NAME.fullmatch(name)) and not OF_PROXIES.fullmatch(name)
