"""ASGI middleware that limits the request rate of a key or address, and concurrency.

Pure ASGI, like keys.py.
"""

import contextlib
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Receive, Scope, Send

from pipelines.store import CHANGES, Key, Store, StoreUnavailable, TokenGrant
from pipelines.text.counts import counted
from serve.failure import RETRY_AFTER_S, Failure, path_of
from serve.guard.access import ANSWERING, is_question
from serve.guard.headers import with_headers
from serve.guard.keys import key_of
from serve.guard.origin import Network, network_of
from serve.guard.sessions import ServiceSecret
from serve.threads import DatabaseThreads

# For privacy, addresses are kept only as long as their limit needs: the store deletes older buckets.
FORGET_EVERY_S = 600.0


# Other requests allowed per answer: searches while typing, lists, ratings. A search costs a hundredth of an answer from
# a language model. A person who is typing sends about two per second for a few seconds.
LIGHT_PER_ANSWER = 6


@dataclass(frozen=True, slots=True)
class Rates:
    """Requests per minute, 0 for no limit.

    `key` and `publishable` apply to secret and publishable keys without their own rate, `anonymous` to all requests
    without a key together, `address` to a reader's address. Readers' limits count answers; they may send
    LIGHT_PER_ANSWER times as many other requests. `trusted` are the proxies whose X-Forwarded-For is believed.
    """

    key: int = 0
    publishable: int = 0
    anonymous: int = 0
    address: int = 0
    trusted: Sequence[Network] = ()


class Bucket(NamedTuple):
    """A token bucket: its owner, for the store and for messages, and its tokens per minute."""

    name: str
    whose: str
    rate: int


class RateLimit:
    """Limits the requests per minute of each key or address, over all replicas; above it, answers 429 with Retry-After.

    A minute's worth of requests may come at once; after that each request needs a new token (see Store.take_token).
    Replies have the headers RateLimit-Limit, -Remaining and -Reset (IETF httpapi draft 06). While the database is
    unavailable the answer is 503, because a limit that can't be checked must not be exceeded.
    """

    def __init__(self, app: ASGIApp, store: Store, threads: DatabaseThreads, rates: Rates = Rates()) -> None:
        self._app, self._store, self._threads, self._rates = app, store, threads, rates
        self._secret = ServiceSecret(store, threads)
        self._forget_at = time.monotonic() + FORGET_EVERY_S

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        key = key_of(scope) if scope["type"] == "http" else None
        try:
            buckets = await self._buckets(key, scope) if key else []
        except StoreUnavailable as error:
            await _unchecked(error).response(scope)(scope, receive, send)
            return
        for bucket in buckets:
            failure, headers = await self._take(bucket)
            if failure:
                await failure.response(scope)(scope, receive, send)
                return
            send = with_headers(send, partial(_put, headers))
        await self._app(scope, receive, send)

    async def _buckets(self, key: Key, scope: Scope) -> list[Bucket]:
        """Return the buckets that a request takes a token from, in order; an empty one stops at that point."""
        rates = self._rates
        if key.may("query") or (key.name and key.may(CHANGES)):
            own = rates.key if key.rate_per_minute is None else key.rate_per_minute
            all = Bucket("", "all requests without an API key together", rates.anonymous)
            buckets = [Bucket(key.name, "this key", own) if key.name else all]
        else:
            times, kind = (1, "") if ANSWERING.fullmatch(path_of(scope)) else (LIGHT_PER_ANSWER, " light")
            together = key.rate_per_minute if key.rate_per_minute is not None else rates.publishable
            buckets = [
                await self._of_address(scope, kind, times),
                Bucket(f"publishable{kind} {key.name}", "this publishable key", times * together)
                if key.name
                else Bucket(kind, "all readers without an API key together", times * rates.anonymous),
            ]
        return [bucket for bucket in buckets if bucket.rate]

    async def _of_address(self, scope: Scope, kind: str, times: int) -> Bucket:
        network = network_of(scope, self._rates.trusted) if self._rates.address else ""
        hidden = await self._secret.hide_address(network) if self._rates.address else ""
        return Bucket(f"address{kind} {hidden}", "your address", times * self._rates.address)

    async def _take(self, bucket: Bucket) -> tuple[Failure | None, dict[str, str]]:
        """Take a token; return why the request is refused, and the headers of its reply."""
        try:
            taken = await self._threads.run(self._store.take_token, bucket.name, bucket.rate, bucket.rate)
        except StoreUnavailable as error:
            return _unchecked(error), {}
        await self._forget_if_due()
        headers = _rate_headers(bucket.rate, taken)
        if taken.allowed:
            return None, headers
        wait = math.ceil(taken.retry_after_s)
        message = f"too many requests: the limit of {bucket.whose} is {bucket.rate} a minute, try again in {wait} s"
        return Failure(429, message, retry_after=wait, headers=headers), headers

    async def _forget_if_due(self) -> None:
        """Delete from time to time the buckets of addresses that have not asked for a while.

        A full bucket has no information.
        """
        if time.monotonic() >= self._forget_at:
            self._forget_at = time.monotonic() + FORGET_EVERY_S
            with contextlib.suppress(StoreUnavailable):
                await self._threads.run(self._store.forget_buckets)


class QuestionLimit:
    """Allows at most `most` concurrent questions (POST requests); above that, answers 503 with Retry-After.

    A slot is released when the application is done with the request: its reply has ended or its client has
    disconnected.
    """

    def __init__(self, app: ASGIApp, most: int) -> None:
        self._app, self._most = app, most
        self.in_progress = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not is_question(scope["method"], path_of(scope)):
            await self._app(scope, receive, send)
        elif self.in_progress >= self._most:
            message = f"the service is busy with {counted(self._most, 'question')}, its limit: try again"
            await Failure(503, message, retry_after=RETRY_AFTER_S).response(scope)(scope, receive, send)
        else:
            self.in_progress += 1
            try:
                await self._app(scope, receive, send)
            finally:
                self.in_progress -= 1


def _unchecked(error: StoreUnavailable) -> Failure:
    return Failure(503, f"the rate limit can't be checked, try again: {error}", retry_after=RETRY_AFTER_S)


def _rate_headers(rate: int, taken: TokenGrant) -> dict[str, str]:
    full_s = math.ceil((rate - taken.remaining) * 60 / rate)
    return {
        "RateLimit-Limit": str(rate),
        "RateLimit-Remaining": str(int(taken.remaining)),
        "RateLimit-Reset": str(max(0, full_s)),
    }


def _put(more: dict[str, str], headers: MutableHeaders) -> None:
    headers.update(more)
