"""Waits for the body of a request before anything that is scarce is given to it.

A request holds one of the few places of a replica from its head on. So a body is read here, in the proxy, where a
connection costs a few kilobytes: bodies that never come hold up nobody.
"""

import asyncio

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from serve.failure import Failure
from serve.proxy.address import Addresses
from serve.proxy.waiting import Waiting

# As the replica's own limits (serve/guard/limits.py), which hold on its port too.
MOST_BODY_BYTES = 1_000_000
BODY_TIMEOUT_S = 30.0
# Bodies that are late, or large: of one address, as many as a browser has connections to one host, for three readers
# behind it; of all, 64 MB at most. However many come at once, small ones that come within a moment do not count.
MOST_OF_ADDRESS, MOST = 18, 64
LATE_S, LARGE_BYTES = 3.0, 64_000
# No route reads a body of these, so none is awaited.
BODILESS = {"GET", "HEAD", "OPTIONS"}
OF_BODY = {b"content-length", b"transfer-encoding", b"expect"}


class WholeBodies:
    """Gives requests to `app` with their whole body, of up to `most_bytes`; answers 413 and, after `timeout_s`, 408.

    A body that is incomplete after `late_s`, or has more than LARGE_BYTES, is one of few: beyond `most_of_address` of
    an address, or `most` of all, the oldest ends with 408 (see Waiting).
    """

    def __init__(
        self,
        app: ASGIApp,
        timeout_s: float = BODY_TIMEOUT_S,
        most_bytes: int = MOST_BODY_BYTES,
        most_of_address: int = MOST_OF_ADDRESS,
        most: int = MOST,
        addresses: Addresses | None = None,
        late_s: float = LATE_S,
    ) -> None:
        self._app, self._timeout_s, self._most_bytes, self._late_s = app, timeout_s, most_bytes, late_s
        self._addresses, self._awaited = addresses or Addresses(), Waiting(_end, most_of_address, most)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
        elif scope["method"] in BODILESS:
            headers = [(name, value) for name, value in scope["headers"] if name not in OF_BODY]
            await self._app({**scope, "headers": headers}, _after(b"", receive), send)
        else:
            await self._with_body(scope, receive, send)

    async def _with_body(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            body = await self._body(scope, receive)
        except TimeoutError:
            await _refuse(408, "the request's body did not arrive in time: send it at once", scope, receive, send)
        except _TooLarge:
            message = f"the request is larger than {self._most_bytes} bytes: send a smaller one"
            await _refuse(413, message, scope, receive, send)
        except _SenderLeft:
            return
        else:
            await self._app(scope, _after(body, receive), send)

    async def _body(self, scope: Scope, receive: Receive) -> bytes:
        length = Headers(scope=scope).get("content-length", "")
        if length.isascii() and length.isdigit() and int(length[:20]) > self._most_bytes:
            raise _TooLarge
        body, more = bytearray(), True
        async with asyncio.timeout(self._timeout_s) as limit:
            address = self._addresses.of(scope)
            late = asyncio.get_running_loop().call_later(self._late_s, self._awaited.add, limit, address)
            try:
                while more:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise _SenderLeft
                    body += message.get("body", b"")
                    if len(body) > self._most_bytes:
                        raise _TooLarge
                    more = message.get("more_body", False)
                    if len(body) > LARGE_BYTES and not late.cancelled():
                        late.cancel()
                        self._awaited.add(limit, address)
            finally:
                late.cancel()
                self._awaited.remove(limit)
        return bytes(body)


def _end(waiting: asyncio.Timeout) -> None:
    if not waiting.expired():
        waiting.reschedule(asyncio.get_running_loop().time())


class _SenderLeft(Exception):
    """The client left before its request was complete."""


class _TooLarge(Exception):
    """The body has more bytes than the service reads."""


def _after(body: bytes, receive: Receive) -> Receive:
    """Return a `receive` that gives `body`, and then waits until the client leaves, whatever else it sends."""
    given = False

    async def replay() -> Message:
        nonlocal given
        if not given:
            given = True
            return {"type": "http.request", "body": body, "more_body": False}
        while (message := await receive())["type"] == "http.request":
            pass
        return message

    return replay


async def _refuse(status: int, message: str, scope: Scope, receive: Receive, send: Send) -> None:
    await Failure(status, message, headers={"Connection": "close"}).response(scope)(scope, receive, send)
