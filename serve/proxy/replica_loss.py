"""Answers 503 when a replica dies during a request.

When a replica dies, Ray's proxy sends nothing more; its server then answers with a bare 500, or truncates a stream.
"""

import asyncio
import json
import logging
from collections.abc import Callable

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from serve.failure import RETRY_AFTER_S, Failure, is_openai, path_of
from serve.proxy.refusal import id_of, refuse

log = logging.getLogger(__name__)

# Interval of checks for a running replica of the ingress. Without one, the proxy would hold every question.
ABSENCE_CHECK_S = 5.0
INGRESS = "Raydex"
# A reply that is not streamed begins when it is complete: 1,024 tokens from a model that writes one in three seconds.
LONGEST_S = 3600.0
OUR_HEADER = b"x-content-type-options"  # the service's replies have it, Ray's own do not
# A replica is replaced within a few seconds, most of them spent loading its models.
DIED = Failure(503, "the replica that had this question died: ask again", retry_after=RETRY_AFTER_S)
STARTING = Failure(503, "the service is starting: ask again in a few seconds", retry_after=RETRY_AFTER_S)
NONE_FREE = Failure(503, "no replica could take this question: ask again", retry_after=RETRY_AFTER_S)


class AnswerReplicaLoss:
    """Ends unfinished replies: with a 503 before the first byte, with an `error` event in an event stream.

    Ray's own 503 is replaced too. A reply must begin within `longest_s` seconds. It is given up earlier if `absent`,
    called every `check_s` seconds, returns that no replica can begin it. Until a replica has answered anything, the
    service is said to be starting, since no replica that died can have had the question.
    """

    def __init__(
        self,
        app: ASGIApp,
        longest_s: float = LONGEST_S,
        absent: Callable[[], bool] = lambda: False,
        check_s: float = ABSENCE_CHECK_S,
    ) -> None:
        self._app, self._longest_s, self._absent, self._check_s = app, longest_s, absent, check_s
        self._answered = False  # by any replica since this proxy started

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        id_of(scope)  # the replica logs the same id as the 503 that replaces its reply
        limit = asyncio.timeout(self._longest_s)
        reply = _Reply(send, limit)
        try:
            async with limit:
                watching = asyncio.create_task(self._watch(reply, limit))
                try:
                    await self._app(scope, receive, reply)
                finally:
                    watching.cancel()
        except Exception as error:
            log.warning("a request got no answer: %s: %s", type(error).__name__, error)
        self._answered |= reply.ours
        if not reply.begun:
            lost = NONE_FREE if reply.refused else DIED
            await refuse(lost if self._answered else STARTING, scope, receive, send)
        elif reply.cut:
            await send({"type": "http.response.body", "body": _last_event(path_of(scope)).encode()})

    async def _watch(self, reply: "_Reply", limit: asyncio.Timeout) -> None:
        """End the time limit once no replica can begin the reply."""
        while not reply.begun:
            await asyncio.sleep(self._check_s)
            if await asyncio.to_thread(self._absent) and not reply.begun and not limit.expired():
                limit.reschedule(0)
                return


class _Reply:
    """One reply and its progress.

    Its start is held back until the first byte of its body, because a replica that dies in between has not answered.
    It is `ours` if the service sent it, and `refused` if Ray says itself that no replica takes the request.
    """

    def __init__(self, send: Send, limit: asyncio.Timeout) -> None:
        self._send, self._limit = send, limit
        self._start: Message | None = None
        self.begun = self.ours = self.refused = self._ended = self._events = False

    @property
    def cut(self) -> bool:
        """Whether it is an event stream that has begun and not ended."""
        return self._events and not self._ended

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._start = message
            return
        if self._start is not None:
            headers = {name.lower(): value for name, value in self._start.get("headers", ())}
            self.ours = OUR_HEADER in headers
            if self._start["status"] == 503 and not self.ours:
                self.refused = True
                return
            self._events = headers.get(b"content-type", b"").startswith(b"text/event-stream")
            await self._begin(self._start)
        self._ended = message["type"] == "http.response.body" and not message.get("more_body", False)
        await self._send(message)

    async def _begin(self, start: Message) -> None:
        self._start, self.begun = None, True
        if not self._limit.expired():
            self._limit.reschedule(None)
        await self._send(start)


def _last_event(path: str) -> str:
    if is_openai(path):
        return f"data: {json.dumps(DIED.openai_body)}\n\n"
    return f"event: error\ndata: {json.dumps(DIED.body)}\n\n"


def no_replica() -> bool:
    """Return whether Serve has the ingress, but all its replicas are STARTING; False if that is unknown."""
    from ray import serve

    try:
        ingresses = [
            app.deployments[INGRESS] for app in serve.status().applications.values() if INGRESS in app.deployments
        ]
    except Exception as error:
        log.warning("it is unknown whether a replica runs: %s", error)
        return False
    states = {state for deployment in ingresses for state, count in deployment.replica_states.items() if count}
    return bool(ingresses) and states <= {"STARTING"}
