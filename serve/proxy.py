"""What stands in the HTTP proxy: a replica that dies under a request is a 503 with Retry-After, not a bare 500.

Ray's proxy sends nothing more when a replica dies; its server then says 500, or cuts a stream. It takes middleware
from RAY_SERVE_HTTP_PROXY_CALLBACK_IMPORT_PATH=serve.proxy:middlewares, set where Ray is started. Imports no more of
the service than it needs: the proxy is its own process.
"""

import asyncio
import json
import logging
from collections.abc import Callable
from typing import Any

from starlette.middleware import Middleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send

log = logging.getLogger(__name__)

VARIABLE, VALUE = "RAY_SERVE_HTTP_PROXY_CALLBACK_IMPORT_PATH", "serve.proxy:middlewares"
# A replica is replaced within some seconds, most of them for loading its models.
RETRY_AFTER_S = 2
# Where no replica of the ingress runs, the proxy would keep a question until one does: looked after that often.
ABSENT_S = 5.0
INGRESS = "Raydex"
# An answer begins before that, or nobody waits for it any more: the openai client gives up after 600 s.
LONGEST_S = 600.0
DIED = "the replica that had this question died, or could not be had in time; ask again"
Headers = list[tuple[bytes, bytes]]


class AnswerAlways:
    """Ends what the application left open: 503 where no answer had begun, an `error` event in a stream of events.

    A 503 of the proxy's own gets its Retry-After. A question is not left waiting for a beginning longer than
    `longest_s` seconds, nor while `absent` says, every `absent_s`, that there is nobody to begin.
    """

    def __init__(
        self,
        app: ASGIApp,
        longest_s: float = LONGEST_S,
        absent: Callable[[], bool] = lambda: False,
        absent_s: float = ABSENT_S,
    ) -> None:
        self._app, self._longest_s, self._absent, self._absent_s = app, longest_s, absent, absent_s

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        try:
            async with asyncio.timeout(self._longest_s) as limit:
                sent = _Sent(scope, send, limit)
                watching = asyncio.create_task(self._watch(sent, limit))
                try:
                    await self._app(scope, receive, sent)
                finally:
                    watching.cancel()
        except Exception as error:
            log.warning("a request was not answered: %s: %s", type(error).__name__, error)
        await sent.end()

    async def _watch(self, sent: "_Sent", limit: asyncio.Timeout) -> None:
        """End the time limit once nobody is there who could begin the answer."""
        while not sent.begun:
            await asyncio.sleep(self._absent_s)
            if await asyncio.to_thread(self._absent) and not sent.begun and not limit.expired():
                limit.reschedule(0)
                return


class _Sent:
    """What has been sent of one response.

    Its start is held back until there is something of its body: a replica that dies in between has not answered.
    """

    def __init__(self, scope: Scope, send: Send, limit: asyncio.Timeout) -> None:
        self._scope, self._send, self._limit = scope, send, limit
        self._start: Message | None = None
        self.begun = self._ended = self._events = False

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._start = message
            return
        if self._start is not None:
            await self._begin(self._start)
        self._ended = message["type"] == "http.response.body" and not message.get("more_body", False)
        await self._send(message)

    async def _begin(self, start: Message) -> None:
        self._start, self.begun = None, True
        if not self._limit.expired():
            self._limit.reschedule(None)
        headers: Headers = list(start.get("headers", ()))
        self._events = any(n.lower() == b"content-type" and v.startswith(b"text/event-stream") for n, v in headers)
        if start["status"] == 503 and not any(name.lower() == b"retry-after" for name, _ in headers):
            start = {**start, "headers": [*headers, _retry_after()]}
        await self._send(start)

    async def end(self) -> None:
        """Say what the application could not say any more."""
        if not self.begun:
            named = [(name, value) for name, value in self._scope["headers"] if name == b"x-request-id"]
            headers = [(b"content-type", b"application/json"), _retry_after(), *named]
            await self._send({"type": "http.response.start", "status": 503, "headers": headers})
            await self._send({"type": "http.response.body", "body": json.dumps(self._said()).encode()})
        elif self._events and not self._ended:
            await self._send({"type": "http.response.body", "body": self._event().encode()})

    @property
    def _openai(self) -> bool:
        return "/v1/" in self._scope["path"]

    def _said(self) -> dict[str, Any]:
        """In the shape of the API that was asked (see errors.py)."""
        if not self._openai:
            return {"error": DIED}
        return {"error": {"message": DIED, "type": "server_error", "code": "unavailable", "param": None}}

    def _event(self) -> str:
        if self._openai:
            return f"data: {json.dumps(self._said())}\n\n"
        return f"event: error\ndata: {json.dumps({**self._said(), 'retry_after': RETRY_AFTER_S})}\n\n"


def _retry_after() -> tuple[bytes, bytes]:
    return b"retry-after", str(RETRY_AFTER_S).encode()


def no_replica() -> bool:
    """Whether Serve has the ingress, but only replicas of it that are starting, or none. Not known is no."""
    from ray import serve

    try:
        found = [app.deployments[INGRESS] for app in serve.status().applications.values() if INGRESS in app.deployments]
    except Exception as error:
        log.warning("it is not known whether a replica runs: %s", error)
        return False
    states = {state for deployment in found for state, count in deployment.replica_states.items() if count}
    return bool(found) and states <= {"STARTING"}


def middlewares() -> list[Any]:
    """What Ray's proxy puts around its own application."""
    return [Middleware(AnswerAlways, absent=no_replica)]
