"""ASGI middleware that checks API keys.

Without a key only requests from this machine pass, unless keys are required. It stands inside the application, since a
replica's port can be reached past any proxy. Pure ASGI: streams are not buffered and disconnects pass through.
"""

import re
import time
from collections import OrderedDict
from collections.abc import Callable, Collection
from typing import Protocol

from starlette.types import ASGIApp, Receive, Scope, Send

from pipelines.store import Key, StoreUnavailable, key_hash
from serve.failure import RETRY_AFTER_S, Failure, path_of
from serve.guard.origin import bearer_token, is_local
from serve.threads import DatabaseThreads

OPEN_PATHS = frozenset({"/", "/health", "/health/ready"})
# A revoked key still opens for at most this long. Short, since a look-up costs less than a millisecond.
CACHE_S = 5.0
MOST_CACHED = 1_000
TOKEN = re.compile(r"rdx_[A-Za-z0-9_-]{43}")
# The key of requests without a key from this machine: they may do what needs no admin.
ANONYMOUS = Key(name="", scopes=("query",))
# The key of readers without a key, where the service is public: they may ask, and no more than the page does.
READER = Key(name="", scopes=("query",))
READER_PATHS = frozenset({"/query", "/query/stream", "/search", "/feedback", "/collections"})
CREATE_KEY = "create one with `raydex keys create NAME` and send it in the header `Authorization: Bearer rdx_…`"


class KeyStore(Protocol):
    """The part of the store that looks up keys."""

    def find_key(self, hash: bytes) -> Key | None: ...


class KeyCache:
    """Caches keys by their hash for `keep_s` seconds, unknown ones too.

    Looking keys up by hash leaks nothing through timing: the sender of a key can't choose the hash that is compared.
    """

    def __init__(
        self,
        store: KeyStore,
        threads: DatabaseThreads,
        keep_s: float = CACHE_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store, self._threads, self._keep_s, self._clock = store, threads, keep_s, clock
        self._keys: OrderedDict[bytes, tuple[Key | None, float]] = OrderedDict()

    async def find(self, token: str) -> Key | None:
        """Return the key whose secret is `token`, None if unknown, revoked or expired. Raises StoreUnavailable."""
        if not TOKEN.fullmatch(token):
            return None
        hash, now = key_hash(token), self._clock()
        key, until = self._keys.get(hash, (None, now))
        if until > now:
            return key
        key = await self._threads.run(self._store.find_key, hash)
        self._keep(hash, key, now + self._keep_s)
        return key

    def _keep(self, hash: bytes, key: Key | None, until: float) -> None:
        self._keys[hash] = key, until
        self._keys.move_to_end(hash)
        while len(self._keys) > MOST_CACHED:
            self._keys.popitem(last=False)


class KeyCheck:
    """Lets a request through with its Key in `scope["state"]["key"]`, or answers 401, 403 or 503.

    Where keys are not `required`, requests from this machine need none; where the service is `public`, nobody needs one
    for READER_PATHS. A Bearer token that is no Raydex key is then ignored, since some clients always send one. Paths
    under the prefixes `admin_paths` need the scope admin. `bound` is the host that the service listens on.
    """

    def __init__(
        self,
        app: ASGIApp,
        keys: KeyCache,
        required: bool,
        *,
        public: bool = False,
        bound: str = "127.0.0.1",
        open_paths: Collection[str] = OPEN_PATHS,
        admin_paths: Collection[str] = ("/admin",),
    ) -> None:
        self._app, self._keys, self._required, self._bound, self._public = app, keys, required, bound, public
        self._open, self._admin = frozenset(open_paths), tuple(admin_paths)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan" or (scope["type"] == "http" and path_of(scope) in self._open):
            await self._app(scope, receive, send)
        elif scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
        elif refusal := await self._check(scope):
            await refusal.response(scope)(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    async def _check(self, scope: Scope) -> Failure | None:
        """Return why the request is refused; None if it may pass, its key then stands in the scope's state."""
        try:
            key, why = await self._find(scope)
        except StoreUnavailable as error:
            return Failure(503, f"the API key can't be checked, try again: {error}", retry_after=RETRY_AFTER_S)
        if key is None:
            kind = "bad_key" if bearer_token(scope) else "no_key"
            return Failure(401, why, headers={"WWW-Authenticate": 'Bearer realm="raydex"'}, kind=kind)
        needed = "admin" if self._is_admin(path_of(scope)) else "query"
        if not key.may(needed):
            create = f"`raydex keys create NAME --scope {needed}`"
            return Failure(403, f"this needs a key with the scope {needed}: create one with {create}")
        scope["state"] = {**(scope.get("state") or {}), "key": key}
        return None

    async def _find(self, scope: Scope) -> tuple[Key | None, str]:
        """Return the request's key, or None and why it has none."""
        token, reading = bearer_token(scope), self._public and path_of(scope) in READER_PATHS
        if token.startswith("rdx_") or (token and self._required and not reading):
            return await self._keys.find(token), f"this API key is unknown, revoked or expired: {CREATE_KEY}"
        if not self._required and is_local(scope, self._bound):
            return ANONYMOUS, ""
        if reading:
            return READER, ""
        if self._required:
            return None, f"an API key is required: {CREATE_KEY}"
        return None, f"without an API key only requests from this machine are allowed: {CREATE_KEY}"

    def _is_admin(self, path: str) -> bool:
        return any(path == prefix or path.startswith(prefix + "/") for prefix in self._admin)


def key_of(scope: Scope) -> Key | None:
    """Return the key of a request (ANONYMOUS or READER if it came without one), None on an open path."""
    return (scope.get("state") or {}).get("key")
