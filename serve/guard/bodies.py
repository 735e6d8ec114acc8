"""ASGI middleware that reads a request's body, limited in size and time, before the application.

Pure ASGI, like keys.py. The proxy uses it too, so it imports as little of the service as possible.
"""

import asyncio
from collections.abc import Callable

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pipelines.text.counts import counted
from serve.failure import Failure

# Enough for a question of 100,000 characters of four bytes each, with its conversation.
MOST_BODY_BYTES = 1_000_000
# Longer than a slow connection needs for that many bytes; a sender of one byte per minute is cut off.
BODY_TIMEOUT_S = 30.0
CLOSE = {"Connection": "close"}


class BodyLimit:
    """Reads a request's body of up to `most` bytes before the application does; answers 413 to a larger one.

    Bytes are counted as they arrive; Content-Length is trusted only if it exceeds the limit.
    """

    def __init__(self, app: ASGIApp, most: int = MOST_BODY_BYTES, timeout_s: float = BODY_TIMEOUT_S) -> None:
        self._app, self._most, self._timeout_s = app, most, timeout_s
        self._too_late = f"the request's body did not arrive within {timeout_s:g} s"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        try:
            body = await self._body(scope, receive)
        except TimeoutError:
            await self._refuse(Failure(408, self._too_late, headers=CLOSE), scope, receive, send)
        except _TooLarge:
            message = f"the request is larger than {counted(self._most, 'byte')}: send a smaller one"
            await self._refuse(Failure(413, message, headers=CLOSE), scope, receive, send)
        except _SenderLeft:
            return
        else:
            await self._app(scope, replay(body, receive), send)

    async def _refuse(self, failure: Failure, scope: Scope, receive: Receive, send: Send) -> None:
        await failure.response(scope)(scope, receive, send)

    async def _body(self, scope: Scope, receive: Receive) -> bytes:
        """Return the complete body. Raises TimeoutError."""
        async with asyncio.timeout(self._timeout_s):
            return await self._read(scope, receive)

    async def _read(self, scope: Scope, receive: Receive, grown: Callable[[int], None] = lambda size: None) -> bytes:
        """Read the complete body; `grown` is called with the number of bytes so far."""
        length = Headers(scope=scope).get("content-length", "")
        if length.isascii() and length.isdigit() and int(length[:20]) > self._most:
            raise _TooLarge
        body, more = bytearray(), True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise _SenderLeft
            body += message.get("body", b"")
            if len(body) > self._most:
                raise _TooLarge
            more = message.get("more_body", False)
            grown(len(body))
        return bytes(body)


class _SenderLeft(Exception):
    """The client disconnected before its request was complete."""


class _TooLarge(Exception):
    """The body is larger than the service accepts."""


def replay(body: bytes, receive: Receive) -> Receive:
    """Return a `receive` that returns `body`, then waits until the client disconnects, ignoring other messages."""
    given = False

    async def again() -> Message:
        nonlocal given
        if not given:
            given = True
            return {"type": "http.request", "body": body, "more_body": False}
        while (message := await receive())["type"] == "http.request":
            pass
        return message

    return again
