"""ASGI middleware that checks the caller: with a secret key, with a session, or with neither.

Without a key only requests from this machine pass, unless keys are required. It runs inside the application, because a
replica's port can be reached without any proxy. Pure ASGI: streams are not buffered, and disconnects pass through.
"""

import re
import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

from starlette.datastructures import Headers
from starlette.routing import BaseRoute
from starlette.types import ASGIApp, Receive, Scope, Send

from pipelines.signing import SIGNATURE_HEADER
from pipelines.store import ASK, CHANGES, KEY_PREFIX, PUBLISHABLE_PREFIX, Key, Store, StoreUnavailable, key_hash
from serve.failure import MCP_PATH, RETRY_AFTER_S, Failure, not_served, path_of
from serve.guard.access import ANNOUNCING, SESSION_PATH, is_open, is_served, scope_of
from serve.guard.origin import bearer_token, is_foreign, is_local, is_of_page, origin_of
from serve.guard.sessions import NO_KEY, SESSION_PREFIX, Session, SessionTokens
from serve.threads import DatabaseThreads

# A revoked key still works for at most this long. Short, because a look-up costs less than a millisecond.
CACHE_S = 5.0
MOST_CACHED = 1_000
TOKEN = re.compile(rf"({KEY_PREFIX}|{PUBLISHABLE_PREFIX})[A-Za-z0-9_-]{{43}}")
# The key of requests without a key from this machine: they may do everything that needs no admin key.
ANONYMOUS = Key(name="", scopes=("query",))
# The key of readers without a key on a public service: they may ask, with no more options than the page.
READER = Key(name="", scopes=(ASK,))
# The key of signed requests. It sees no collection until the signature of the body has been checked.
SIGNED = Key(name="", scopes=(CHANGES,), collections=("",))
# Methods that change nothing, and so need no protection against CSRF.
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
CREATE_KEY = "create one with `raydex keys create NAME` and send it in the header `Authorization: Bearer rdx_…`"
UNKNOWN_KEY = "this API key is unknown, revoked or expired"
CREATE_PUBLISHABLE = "`raydex keys create NAME --publishable --origin {origin}`"
OPEN_SESSION = "ask POST /session for a session and send its token in the header `Authorization: Bearer rds_…`"


class KeyCache:
    """Caches keys by their hash for `keep_s` seconds, including unknown ones.

    Looking up keys by hash leaks nothing through timing: the sender of a key can't choose the hash that is compared.
    """

    def __init__(
        self,
        store: Store,
        threads: DatabaseThreads,
        keep_s: float = CACHE_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store, self._threads, self._keep_s, self._clock = store, threads, keep_s, clock
        self._keys: OrderedDict[bytes, tuple[Key | None, float]] = OrderedDict()

    async def find(self, token: str) -> Key | None:
        """Return the key whose secret is `token`, None if unknown, revoked or expired. Raises StoreUnavailable."""
        return await self.get(key_hash(token)) if TOKEN.fullmatch(token) else None

    async def get(self, hash: bytes) -> Key | None:
        """Return the key with this hash, like `find`."""
        now = self._clock()
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


class Refused(Exception):
    """A request is not allowed; `failure` says why."""

    def __init__(self, status: int, why: str, kind: str = "") -> None:
        super().__init__(why)
        headers = {"WWW-Authenticate": _challenge(why, kind)} if status == 401 else {}
        self.failure = Failure(status, why, headers=headers, kind=kind)


def _challenge(why: str, kind: str) -> str:
    """Return the challenge of a 401 (RFC 6750), whose description clients show even if they don't show the body."""
    error = 'error="invalid_token", ' if kind == "bad_key" else ""
    described = why.replace("…", "...").replace('"', "'").encode("ascii", "ignore").decode()
    return f'Bearer realm="raydex", {error}error_description="{described}"'


class KeyCheck:
    """Lets a request through with its Key in `scope["state"]["key"]`, or answers 401, 403 or 503.

    Unless keys are `required`, requests from this machine need none. If the service is `public`, nobody needs one to
    ask; a foreign Bearer token is then ignored, because some clients always send one. A page must send a key or a
    session to change something, so that another page can't make it do so (CSRF). `trusted` are origins whose pages have
    the same rights as the service's own. `bound` is the host that the service listens on. A refused request for a path
    without a route in `routes` gets only that information.
    """

    def __init__(
        self,
        app: ASGIApp,
        keys: KeyCache,
        required: bool,
        *,
        sessions: SessionTokens | None = None,
        public: bool = False,
        bound: str = "127.0.0.1",
        trusted: Collection[str] = (),
        routes: Sequence[BaseRoute] = (),
    ) -> None:
        self._app, self._keys, self._required, self._bound, self._public = app, keys, required, bound, public
        self._sessions, self._trusted, self._routes = sessions, frozenset(trusted), routes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan" or (scope["type"] == "http" and is_open(path_of(scope), scope["query_string"])):
            await self._app(scope, receive, send)
        elif scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
        elif refusal := await self._check(scope):
            if self._routes and not is_served(self._routes, scope):  # not a secret: every service has the same routes
                refusal = not_served(scope["method"], path_of(scope))
            await refusal.response(scope)(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    async def _check(self, scope: Scope) -> Failure | None:
        """Return why the request is refused; None if it is allowed, with its key in the scope's state."""
        try:
            key = await self._find(scope)
            _check_scope(key, path_of(scope))
        except StoreUnavailable as error:
            return Failure(503, f"the API key can't be checked, try again: {error}", retry_after=RETRY_AFTER_S)
        except Refused as refused:
            return refused.failure
        scope["state"] = {**(scope.get("state") or {}), "key": key}
        return None

    async def _find(self, scope: Scope) -> Key:
        """Return the key of the request. Raises Refused, StoreUnavailable."""
        token = bearer_token(scope)
        if token.startswith(KEY_PREFIX):
            return await self._secret_key(token, scope)
        if token.startswith(PUBLISHABLE_PREFIX):
            if path_of(scope) != SESSION_PATH:
                raise Refused(403, f"a publishable API key (pk_…) opens sessions, and nothing else: {OPEN_SESSION}")
            return self._publishable_key(await self._keys.find(token), scope)
        if token.startswith(SESSION_PREFIX) and self._sessions:
            return await self._key_of_session(await self._sessions.read(token), scope)
        if not token and ANNOUNCING.fullmatch(path_of(scope)) and SIGNATURE_HEADER in Headers(scope=scope):
            return SIGNED
        key = self._key_of_none(token, scope)
        if is_of_page(scope) and scope["method"] not in SAFE_METHODS:
            self._check_page(scope)
            if path_of(scope) != SESSION_PATH:
                raise Refused(403, f"a page needs a session for this: {OPEN_SESSION}", "session")
        return key

    async def _secret_key(self, token: str, scope: Scope) -> Key:
        if is_foreign(scope, self._trusted):
            page, publishable = _page_of(scope)
            raise Refused(
                403,
                f"{page} sent a secret API key (rdx_…): everyone who opens that page can read the key and use it. "
                f"Revoke it with `raydex keys revoke NAME`, and give the page a publishable one: {publishable}",
                "bad_key",
            )
        if path_of(scope) == SESSION_PATH:
            raise Refused(403, "a secret API key (rdx_…) needs no session: send it with each request")
        key = await self._keys.find(token)
        if key is None:
            raise Refused(401, f"{UNKNOWN_KEY}: {CREATE_KEY}", "bad_key")
        return key

    def _publishable_key(self, key: Key | None, scope: Scope) -> Key:
        """Return `key` unless it was sent by a page of a foreign origin.

        Callers that send no origin are limited only by its rate.
        """
        if key is None:
            raise Refused(401, f"{UNKNOWN_KEY}: create one with {_page_of(scope)[1]}", "bad_key")
        origin = origin_of(scope)
        # Requests from a page of our own origin have no Origin header if they change nothing.
        if origin not in key.origins if origin else is_foreign(scope):
            page, publishable = _page_of(scope)
            raise Refused(403, f"{page} may not use this publishable API key: create one for it with {publishable}")
        return key

    async def _key_of_session(self, session: Session | None, scope: Scope) -> Key:
        if path_of(scope) == MCP_PATH:  # its clients are not pages
            raise Refused(403, f"a session is for pages, {MCP_PATH} takes a secret API key: {CREATE_KEY}", "bad_key")
        if path_of(scope) == SESSION_PATH:
            raise Refused(403, "a session opens no other: send its token in the header X-Raydex-Renew to renew it")
        if session is None:
            raise Refused(401, f"this session is unknown or has expired: {OPEN_SESSION}", "session")
        if session.key == NO_KEY:
            key = self._key_of_none("", scope)
            self._check_page(scope)
        else:
            key = self._publishable_key(await self._keys.get(session.key), scope)
            if origin_of(scope) and not session.is_of(origin_of(scope)):
                raise Refused(403, f"this session was opened by a page of another origin: {OPEN_SESSION}", "session")
        return replace(key, session=session.id)

    def _key_of_none(self, token: str, scope: Scope) -> Key:
        """Return the key for a request without one of Raydex's tokens; `token` is foreign or ""."""
        reading = self._public and scope_of(path_of(scope)) == ASK
        if not self._required and is_local(scope, self._bound):
            return ANONYMOUS
        if reading:
            return READER
        if token and self._required:
            raise Refused(401, f"{UNKNOWN_KEY}: {CREATE_KEY}", "bad_key")
        if self._required:
            raise Refused(401, f"an API key is required: {CREATE_KEY}")
        raise Refused(401, f"without an API key only requests from this machine are allowed: {CREATE_KEY}")

    def _check_page(self, scope: Scope) -> None:
        """Raise Refused for a page of another origin."""
        if is_foreign(scope, self._trusted):
            page, publishable = _page_of(scope)
            raise Refused(403, f"{page} may not ask without a key: give it a publishable one, {publishable}")


def _page_of(scope: Scope) -> tuple[str, str]:
    """Return how messages name the page that sent a request, and the command to create a key for it."""
    origin = origin_of(scope)[:100]
    return f"a page of {origin or 'another site'}", CREATE_PUBLISHABLE.format(origin=origin or "https://…")


def _check_scope(key: Key, path: str) -> None:
    needed = scope_of(path)
    if key.may(needed):
        return
    if key.publishable:
        raise Refused(403, f"a publishable API key can only ask: {path[:100]} needs one with the scope {needed}")
    create = f"`raydex keys create NAME --scope {needed}`"
    raise Refused(403, f"this needs a key with the scope {needed}: create one with {create}")


def key_of(scope: Scope) -> Key | None:
    """Return the key of a request (ANONYMOUS or READER if it came without one), None on an open path."""
    return (scope.get("state") or {}).get("key")
