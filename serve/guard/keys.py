"""Who may ask: ASGI middleware that lets a request through with a Bearer key, or without one from this machine alone.

It stands inside the application, since a replica's port can be reached past any proxy. Pure ASGI: streams are not
buffered and disconnects pass. Knows no Ray, no environment and nothing of what is asked.
"""

import asyncio
import ipaddress
import re
import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol, TypeVar

from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from pipelines.store import Key, StoreUnavailable, key_hash

T = TypeVar("T")

OPEN_PATHS = frozenset({"/", "/health", "/health/ready"})
# The longest that a revoked key still opens. Short, since a look-up costs less than a millisecond.
CACHE_S = 5.0
MOST_CACHED = 1_000
# An embedded Postgres that was killed is back within a second or two.
RETRY_AFTER_S = 2
TOKEN = re.compile(r"rdx_[A-Za-z0-9_-]{43}")
OPENAI_CODES = {401: "invalid_api_key", 429: "rate_limit_exceeded", 503: "unavailable"}
# What requests without a key are: they may ask, and nothing else.
ANONYMOUS = Key(name="", scopes=("query",))
HOW = "create one with «python -m jobs.keys create NAME» and send it as «Authorization: Bearer rdx_…»"


class KeyStore(Protocol):
    """What is needed of a store."""

    def find_key(self, hash: bytes) -> Key | None: ...


class Aside:
    """Short database calls beside the event loop, in a few threads of their own.

    Not in the loop's: while the database is away those who wait for it must not keep others from answering. Every
    call ends within `timeout_s`, waiting for a thread included; then it raises StoreUnavailable.
    """

    def __init__(self, threads: int = 4, timeout_s: float = 5.0) -> None:
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="aside")
        self._timeout_s = timeout_s

    async def __call__(self, work: Callable[..., T], *arguments: object) -> T:
        try:
            async with asyncio.timeout(self._timeout_s):
                return await asyncio.get_running_loop().run_in_executor(self._threads, work, *arguments)
        except TimeoutError as error:
            raise StoreUnavailable(f"the database did not answer in {self._timeout_s:g} s") from error


class KnownKeys:
    """Keys by their hash, as the database said at most `keep_s` ago; unknown ones too. Raises StoreUnavailable.

    Looking up by hash says nothing by the time it takes: who sends a key can't choose the hash it is compared by.
    """

    def __init__(
        self, store: KeyStore, aside: Aside, keep_s: float = CACHE_S, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._store, self._aside, self._keep_s, self._clock = store, aside, keep_s, clock
        self._known: OrderedDict[bytes, tuple[Key | None, float]] = OrderedDict()

    async def find(self, token: str) -> Key | None:
        """The key whose secret is `token`, None where there is none or it opens nothing any more."""
        if not TOKEN.fullmatch(token):
            return None
        hash, now = key_hash(token), self._clock()
        key, until = self._known.get(hash, (None, now))
        if until > now:
            return key
        key = await self._aside(self._store.find_key, hash)
        self._keep(hash, key, now + self._keep_s)
        return key

    def _keep(self, hash: bytes, key: Key | None, until: float) -> None:
        self._known[hash] = key, until
        self._known.move_to_end(hash)
        while len(self._known) > MOST_CACHED:
            self._known.popitem(last=False)


class KeyCheck:
    """Lets a request through, its Key in `scope["state"]["key"]`, or answers 401, 403 or 503.

    Where keys are not `required`, requests from this machine may come without one; a Bearer value that is no Raydex
    key is then passed over, since some clients can't send none. `admin_paths` are the prefixes of paths that need the
    scope admin, `bound` the host that the service listens on.
    """

    def __init__(
        self,
        app: ASGIApp,
        known: KnownKeys,
        required: bool,
        *,
        bound: str = "127.0.0.1",
        open_paths: Collection[str] = OPEN_PATHS,
        admin_paths: Collection[str] = ("/admin",),
    ) -> None:
        self._app, self._known, self._required, self._bound = app, known, required, bound
        self._open, self._admin = frozenset(open_paths), tuple(admin_paths)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan" or (scope["type"] == "http" and path_of(scope) in self._open):
            await self._app(scope, receive, send)
        elif scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
        elif refusal := await self._refusal(scope):
            await refusal(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    async def _refusal(self, scope: Scope) -> JSONResponse | None:
        """What to answer instead, None with the key in the scope's state."""
        try:
            key, why = await self._key(scope)
        except StoreUnavailable as error:
            return refuse(scope, 503, f"keys can't be checked, try again: {error}", {"Retry-After": str(RETRY_AFTER_S)})
        if key is None:
            return refuse(scope, 401, why, {"WWW-Authenticate": 'Bearer realm="raydex"'})
        needed = "admin" if self._is_admin(path_of(scope)) else "query"
        if not key.may(needed):
            return refuse(
                scope,
                403,
                f"this needs a key with the scope {needed}: «python -m jobs.keys create NAME --scope {needed}»",
            )
        scope["state"] = {**(scope.get("state") or {}), "key": key}
        return None

    async def _key(self, scope: Scope) -> tuple[Key | None, str]:
        token = bearer(scope)
        if token and (self._required or token.startswith("rdx_")):
            return await self._known.find(token), f"this key is unknown, revoked or expired: {HOW}"
        if self._required:
            return None, f"a key is needed: {HOW}"
        if not is_local(scope, self._bound):
            return None, f"without a key only this machine may ask: {HOW}"
        return ANONYMOUS, ""

    def _is_admin(self, path: str) -> bool:
        return any(path == prefix or path.startswith(prefix + "/") for prefix in self._admin)


def key_of(scope: Scope) -> Key | None:
    """The key that a request came with (ANONYMOUS: without one), None on an open path."""
    return (scope.get("state") or {}).get("key")


def path_of(scope: Scope) -> str:
    """The path below the application's root."""
    path, root = str(scope["path"]), str(scope.get("root_path", ""))
    return path[len(root) :] if root and path.startswith(root + "/") else path


def bearer(scope: Scope) -> str:
    """The token of the Authorization header, "" if it has none."""
    scheme, _, token = Headers(scope=scope).get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


def is_loopback(host: str) -> bool:
    """Whether `host`, a name or an address, is this machine and no other's way in."""
    try:
        address = ipaddress.ip_address(host.strip("[]").partition("%")[0])
    except ValueError:
        return host.lower() == "localhost"
    mapped = getattr(address, "ipv4_mapped", None)
    return (mapped or address).is_loopback


def is_local(scope: Scope, bound: str = "127.0.0.1") -> bool:
    """Whether a request comes from this machine and was meant for it.

    Not if a proxy handed it on for someone else; and not if it names another host: a page of that name, pointed at
    127.0.0.1 by its owner's DNS, would ask through the reader's browser (DNS rebinding).
    """
    headers = Headers(scope=scope)
    forwarded = [part.strip() for line in headers.getlist("x-forwarded-for") for part in line.split(",")]
    client = scope.get("client") or ("",)
    name = re.sub(r":\d+$", "", headers.get("host", bound))
    return (
        all(map(is_loopback, [client[0], *forwarded]))
        and "forwarded" not in headers
        and (is_loopback(name) or name == bound)
    )


def refuse(scope: Scope, status: int, message: str, headers: Mapping[str, str] | None = None) -> JSONResponse:
    """An error in the shape that all errors of the API have: OpenAI's under /v1/, the service's own elsewhere."""
    error: object = message
    if path_of(scope).startswith("/v1/"):
        kind = "server_error" if status >= 500 else "invalid_request_error"
        error = {"message": message, "type": kind, "code": OPENAI_CODES.get(status), "param": None}
    return JSONResponse({"error": error}, status, headers)
