"""Waits for the body of a request before giving it any scarce resource.

A request occupies one of the few slots of a replica from its head on. So bodies are read here, in the proxy, where a
connection costs a few kilobytes, and a body that never arrives blocks nobody.
"""

import asyncio
from collections.abc import Sequence

from starlette.types import ASGIApp, Receive, Scope, Send

from serve.failure import Failure
from serve.guard.bodies import BODY_TIMEOUT_S, MOST_BODY_BYTES, BodyLimit, replay
from serve.guard.origin import Network, network_of
from serve.proxy.address import PRIVATE
from serve.proxy.refusal import refuse
from serve.proxy.waiting import Waiting

# Limits for late or large bodies. Per address: a browser's connections to one host, for three readers behind it. In
# total: at most 64 MB. Small bodies that arrive promptly do not count, however many there are.
MOST_OF_ADDRESS, MOST = 18, 64
LATE_S, LARGE_BYTES = 3.0, 64_000
# No route reads a body with these methods, so the proxy does not wait for one.
BODILESS = {"GET", "HEAD", "OPTIONS"}
OF_BODY = {b"content-length", b"transfer-encoding", b"expect"}


class WholeBodies(BodyLimit):
    """Passes requests to `app` with their complete body, of up to `most_bytes`.

    Answers 413 and, after `timeout_s`, 408.

    Bodies that are incomplete after `late_s`, or larger than LARGE_BYTES, are limited in number. Above
    `most_of_address` for an address, or `most` in total, the oldest ends with 408 (see Waiting).
    """

    def __init__(
        self,
        app: ASGIApp,
        timeout_s: float = BODY_TIMEOUT_S,
        most_bytes: int = MOST_BODY_BYTES,
        most_of_address: int = MOST_OF_ADDRESS,
        most: int = MOST,
        trusted: Sequence[Network] = PRIVATE,
        late_s: float = LATE_S,
    ) -> None:
        super().__init__(app, most_bytes, timeout_s)
        self._too_late = "the request's body did not arrive in time: send it at once"
        self._late_s, self._trusted = late_s, trusted
        self._awaited = Waiting(_end, most_of_address, most)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["method"] in BODILESS:
            headers = [(name, value) for name, value in scope["headers"] if name not in OF_BODY]
            await self._app({**scope, "headers": headers}, replay(b"", receive), send)
        else:
            await super().__call__(scope, receive, send)

    async def _refuse(self, failure: Failure, scope: Scope, receive: Receive, send: Send) -> None:
        await refuse(failure, scope, receive, send)

    async def _body(self, scope: Scope, receive: Receive) -> bytes:
        async with asyncio.timeout(self._timeout_s) as limit:
            address = network_of(scope, self._trusted)
            late = asyncio.get_running_loop().call_later(self._late_s, self._awaited.add, limit, address)

            def count_if_large(size: int) -> None:
                if size > LARGE_BYTES and not late.cancelled():
                    late.cancel()
                    self._awaited.add(limit, address)

            try:
                return await self._read(scope, receive, count_if_large)
            finally:
                late.cancel()
                self._awaited.remove(limit)


def _end(waiting: asyncio.Timeout) -> None:
    if not waiting.expired():
        waiting.reschedule(asyncio.get_running_loop().time())
