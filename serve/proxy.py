"""What stands in the HTTP proxy: a replica that dies under a request is a 503 with Retry-After, not a bare 500.

Ray's proxy sends nothing more when a replica dies; its server then says 500, or cuts a stream. It takes middleware
from RAY_SERVE_HTTP_PROXY_CALLBACK_IMPORT_PATH=serve.proxy:middlewares, set where Ray is started.
"""

import json
from typing import Any

from starlette.middleware import Middleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send

VARIABLE, VALUE = "RAY_SERVE_HTTP_PROXY_CALLBACK_IMPORT_PATH", "serve.proxy:middlewares"
# A replica is replaced within some seconds, most of them for loading its models.
RETRY_AFTER_S = 2
DIED = "the replica that had this question died; ask again"


class AnswerAlways:
    """Ends what the application left open: 503 where no answer had begun, an `error` event in a stream of events."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        sent = _Sent(send)
        try:
            await self._app(scope, receive, sent)
        finally:
            await sent.end()


class _Sent:
    """What has been sent of one response."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._begun = self._ended = self._events = False

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._begun = True
            self._events = dict(message.get("headers", ())).get(b"content-type", b"").startswith(b"text/event-stream")
        elif message["type"] == "http.response.body":
            self._ended = not message.get("more_body", False)
        await self._send(message)

    async def end(self) -> None:
        if not self._begun:
            headers = [(b"content-type", b"application/json"), (b"retry-after", str(RETRY_AFTER_S).encode())]
            await self._send({"type": "http.response.start", "status": 503, "headers": headers})
            await self._send({"type": "http.response.body", "body": json.dumps({"error": DIED}).encode()})
        elif self._events and not self._ended:
            event = json.dumps({"error": DIED, "retry_after": RETRY_AFTER_S})
            await self._send({"type": "http.response.body", "body": f"event: error\r\ndata: {event}\r\n\r\n".encode()})


def middlewares() -> list[Any]:
    """What Ray's proxy puts around its own application."""
    return [Middleware(AnswerAlways)]
