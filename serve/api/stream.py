"""Streams an answer as server-sent events, and cancels it when its client disconnects.

Each API has an encoder that turns the engine's events into server-sent events.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Coroutine, Iterable, Mapping
from typing import Any, Protocol, TypeVar

from fastapi import Request
from pydantic import BaseModel
from pydantic_core import to_json
from sse_starlette import EventSourceResponse, ServerSentEvent
from starlette.types import Receive, Scope, Send

from pipelines.answering.events import Event
from serve.api.errors import ClientGone

T = TypeVar("T")
Events = AsyncGenerator[Event, None]

# Proxies close connections that are silent for a minute, some after half a minute. The HTML standard also recommends
# 15 s for server-sent events.
HEARTBEAT_S = 15.0
# Unicode line ends that do not end a line in server-sent events, but some clients split at them anyway. In JSON they
# occur only in strings, where they may be escaped.
LINE_ENDS = {code: f"\\u{code:04x}" for code in (0x85, 0x2028, 0x2029)}


class EventEncoder(Protocol):
    """Turns one answer's events into server-sent events; `heartbeat` is sent during silences."""

    heartbeat: ServerSentEvent

    def begin(self) -> Iterable[ServerSentEvent]: ...

    def encode(self, event: Event, /) -> Iterable[ServerSentEvent]: ...

    def fail(self, error: Exception, /) -> ServerSentEvent: ...


class StreamedAnswer(EventSourceResponse):
    """The response that sends `first` and the rest of `events`, encoded.

    Closes `events` at the end or when the client disconnects, even before the first byte.
    """

    def __init__(
        self,
        encoder: EventEncoder,
        first: Event,
        events: Events,
        heartbeat_s: float = HEARTBEAT_S,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        content = _encode_all(encoder, first, events)
        super().__init__(
            content, headers=headers, ping=heartbeat_s, ping_message_factory=lambda: encoder.heartbeat, sep="\n"
        )
        self._events = events

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            await self._events.aclose()


async def _encode_all(encoder: EventEncoder, first: Event, events: Events) -> AsyncIterator[ServerSentEvent]:
    """Yield all server-sent events of an answer; a failure is sent as the last one."""
    try:
        for sent in (*encoder.begin(), *encoder.encode(first)):
            yield sent
        async for event in events:
            for sent in encoder.encode(event):
                yield sent
    except Exception as error:
        yield encoder.fail(error)


async def first_event(request: Request, events: Events) -> Event:
    """Wait for the first event, so that an earlier failure becomes an HTTP status. Closes `events` if there is none."""
    try:
        return await run_while_connected(request, events.__anext__())
    except BaseException:
        await events.aclose()
        raise


async def run_while_connected(request: Request, work: Coroutine[Any, Any, T]) -> T:
    """Return the result of `work`; cancel it and raise ClientGone as soon as the client disconnects.

    FastAPI itself lets a handler keep running after its client has disconnected. The request's body must have been
    read.
    """
    task, gone = asyncio.create_task(work), asyncio.create_task(_wait_for_disconnect(request))
    try:
        await asyncio.wait({task, gone}, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise ClientGone
        return task.result()
    finally:
        task.cancel()
        gone.cancel()
        await asyncio.gather(task, gone, return_exceptions=True)


async def _wait_for_disconnect(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


def make_event(name: str | None, body: BaseModel | dict[str, Any]) -> ServerSentEvent:
    """Return a server-sent event with `body` as one line of JSON; OpenAI's streams have no event names."""
    text = (
        body.model_dump_json(exclude_unset=True)
        if isinstance(body, BaseModel)
        else to_json(body, inf_nan_mode="null").decode()
    )
    return ServerSentEvent(text.translate(LINE_ENDS), event=name, sep="\n")
