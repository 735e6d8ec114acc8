"""How much may be asked: ASGI middleware for the size of a request, a key's rate, and questions at once; CORS.

`protect` puts all protection around an application. Pure ASGI, as in keys.py. Knows no Ray and no environment.
"""

import asyncio
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from starlette.datastructures import Headers, MutableHeaders
from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pipelines.store import Key, StoreUnavailable, TokenGrant
from serve.guard.keys import ANONYMOUS, RETRY_AFTER_S, Aside, KeyCheck, KnownKeys, is_loopback, key_of, path_of, refuse
from serve.telemetry import REQUEST_ID, Metrics, Telemetry

# A question of 100,000 characters of four bytes, with its conversation.
MOST_BYTES = 1_000_000
# Longer than a slow line needs for that; who sends a byte a minute holds a connection and nothing else.
BODY_TIMEOUT_S = 30.0


class Guarded(Protocol):
    """What is needed of a store."""

    def find_key(self, hash: bytes) -> Key | None: ...

    def take_token(self, key: str, rate_per_minute: float, burst: float) -> TokenGrant: ...


class OpenToAll(ValueError):
    """The policy would let any page of the web, or any machine, ask without a key."""


@dataclass(frozen=True, slots=True)
class Policy:
    """Who may ask how much.

    `host` is what the service listens on. `keys_required` None: unless that is this machine alone. `rate` is that of
    keys without their own and `anonymous_rate` that of all who ask without one together, in requests a minute
    (0: any number). `at_once` is questions under way in one replica. `origins` are the pages (scheme://host:port)
    whose scripts may ask. `reply_id` False: the proxy before us puts the request's id on the reply (see Telemetry).
    """

    host: str = "127.0.0.1"
    keys_required: bool | None = None
    rate: int = 0
    anonymous_rate: int = 0
    at_once: int = 64
    most_bytes: int = MOST_BYTES
    origins: Sequence[str] = ()
    reply_id: bool = True

    @property
    def required(self) -> bool:
        """Whether every request needs a key."""
        return not is_loopback(self.host) if self.keys_required is None else self.keys_required


def protect(app: ASGIApp, store: Guarded, policy: Policy, metrics: Metrics | None = None) -> ASGIApp:
    """`app` behind all of it. Raises OpenToAll.

    From outside in: CORS, so that refusals carry its headers too; the request's id, log and count; the key; its rate;
    the body, read whole before a place is taken, so that a slow sender holds none; the place.
    """
    if "*" in policy.origins and not policy.required:
        raise OpenToAll("cors_origins has «*» while keys are not required: name the origins, or require keys")
    aside = Aside()
    app = AtOnce(app, policy.at_once)
    app = BodyLimit(app, policy.most_bytes)
    app = RateLimit(app, store, aside, policy.rate, policy.anonymous_rate)
    app = KeyCheck(app, KnownKeys(store, aside), policy.required, bound=policy.host)
    app = Telemetry(app, metrics, policy.reply_id)
    if not policy.origins:
        return app
    return CORSMiddleware(
        app,
        allow_origins=list(policy.origins),
        allow_methods=["GET", "POST"],
        allow_headers=["Authorization", "Content-Type", REQUEST_ID],
        allow_credentials=False,  # keys ride in a header that a page must know: no cookie is ever sent
        expose_headers=[REQUEST_ID, "Retry-After", "RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset"],
    )


class RateLimit:
    """Lets each key ask at its rate, over all replicas; beyond it answers 429 with Retry-After.

    A minute's worth of requests may come at once; after that one passes each time a token has come (see
    Store.take_token). Replies carry RateLimit-Limit, -Remaining and -Reset (IETF httpapi draft 06). Where the
    database is away the answer is 503: a limit that can't be checked lets nothing through.
    """

    def __init__(self, app: ASGIApp, store: Guarded, aside: Aside, rate: int = 0, anonymous_rate: int = 0) -> None:
        self._app, self._store, self._aside = app, store, aside
        self._rate, self._anonymous_rate = rate, anonymous_rate

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        key = key_of(scope) if scope["type"] == "http" else None
        rate = self._rate_of(key) if key else 0
        if key is None or not rate:
            await self._app(scope, receive, send)
            return
        try:
            taken = await self._aside(self._store.take_token, key.name, rate, rate)
        except StoreUnavailable as error:
            message = f"the rate can't be checked, try again: {error}"
            await refuse(scope, 503, message, {"Retry-After": str(RETRY_AFTER_S)})(scope, receive, send)
            return
        state = _rate_headers(rate, taken)
        if taken.allowed:
            await self._app(scope, receive, _with_headers(send, state))
            return
        wait = math.ceil(taken.retry_after_s)
        message = f"too many requests: this key may send {rate} a minute; the next one passes in {wait} s"
        await refuse(scope, 429, message, {**state, "Retry-After": str(wait)})(scope, receive, send)

    def _rate_of(self, key: Key) -> int:
        if key is ANONYMOUS:
            return self._anonymous_rate
        return self._rate if key.rate_per_minute is None else key.rate_per_minute


class BodyLimit:
    """Reads a request's body up to `most` bytes before the application does; a larger one is answered with 413.

    Counted as it comes: Content-Length is believed only where it says that there is too much.
    """

    def __init__(self, app: ASGIApp, most: int = MOST_BYTES, timeout_s: float = BODY_TIMEOUT_S) -> None:
        self._app, self._most, self._timeout_s = app, most, timeout_s

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        try:
            async with asyncio.timeout(self._timeout_s):
                body = None if self._announced(scope) > self._most else await self._read(receive)
        except TimeoutError:
            message = f"the request did not come whole within {self._timeout_s:g} s"
            await refuse(scope, 408, message, {"Connection": "close"})(scope, receive, send)
        except _Gone:
            return
        else:
            if body is None:
                message = f"the request is larger than {self._most} bytes: send less"
                await refuse(scope, 413, message, {"Connection": "close"})(scope, receive, send)
            else:
                await self._app(scope, _replayed(body, receive), send)

    async def _read(self, receive: Receive) -> bytes | None:
        """The whole body, None if it is too large."""
        parts, size, more = [], 0, True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise _Gone
            parts.append(message.get("body", b""))
            size += len(parts[-1])
            if size > self._most:
                return None
            more = message.get("more_body", False)
        return b"".join(parts)

    @staticmethod
    def _announced(scope: Scope) -> int:
        value = Headers(scope=scope).get("content-length", "")
        return int(value) if value.isascii() and value.isdigit() and len(value) < 20 else 0


class AtOnce:
    """Lets at most `most` questions (POST requests) be under way; beyond that answers 503 with Retry-After.

    A place is free again when the application is done with the request: its reply has ended or its client is gone.
    """

    def __init__(self, app: ASGIApp, most: int) -> None:
        self._app, self._most = app, most
        self.under_way = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "POST" or path_of(scope) == "/feedback":
            await self._app(scope, receive, send)
        elif self.under_way >= self._most:
            message = f"{self._most} questions are being answered, which is all this server takes: try again"
            await refuse(scope, 503, message, {"Retry-After": str(RETRY_AFTER_S)})(scope, receive, send)
        else:
            self.under_way += 1
            try:
                await self._app(scope, receive, send)
            finally:
                self.under_way -= 1


class _Gone(Exception):
    """The client went away before its request was whole."""


def _replayed(body: bytes, receive: Receive) -> Receive:
    """What the application receives: the body that was read, then what the client does next (disconnect)."""
    given = False

    async def replay() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replay


def _rate_headers(rate: int, taken: TokenGrant) -> dict[str, str]:
    full_s = math.ceil((rate - taken.remaining) * 60 / rate)
    return {
        "RateLimit-Limit": str(rate),
        "RateLimit-Remaining": str(int(taken.remaining)),
        "RateLimit-Reset": str(max(0, full_s)),
    }


def _with_headers(send: Send, more: dict[str, str]) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            MutableHeaders(scope=message).update(more)
        await send(message)

    return sending
