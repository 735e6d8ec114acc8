"""An answer while it is made: the events of the engine, read by one task, sent as they come, given up with the client.

Knows nothing of what the events mean to whom: each API brings the words for them.
"""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import aclosing
from typing import Any, Self, TypeVar

from fastapi import Request
from pydantic import BaseModel
from pydantic_core import to_json
from sse_starlette import EventSourceResponse, ServerSentEvent
from starlette.types import Receive, Scope, Send

from pipelines.answering.engine import Event
from serve.api.errors import ClientGone

T = TypeVar("T")

# Proxies cut connections that are silent for a minute, some for half of it; 15 s is also what the HTML standard
# advises for server-sent events.
HEARTBEAT_S = 15.0
# Line ends to Unicode, though not to server-sent events: some clients split at them. Inside JSON they stand in
# texts alone, where they may be escaped.
LINE_ENDS = {code: f"\\u{code:04x}" for code in (0x85, 0x2028, 0x2029)}


class EventStream:
    """The engine's events, iterated by one task from first to last.

    Timeouts and task groups that the engine holds open between two events belong to the task that opened them, so the
    response may not read on where the request handler began. An answer is small: what a slow client has not yet
    taken waits in memory.
    """

    def __init__(self, events: AsyncIterator[Event]) -> None:
        self._queue: asyncio.Queue[Event | None] = asyncio.Queue()
        self._task = asyncio.create_task(self._read(events))

    async def _read(self, events: AsyncIterator[Event]) -> None:
        try:
            async with aclosing(events) as open_events:  # type: ignore[type-var]
                async for event in open_events:
                    self._queue.put_nowait(event)
        finally:
            self._queue.put_nowait(None)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Event:
        """The next event. Raises what the engine raised."""
        event = await self._queue.get()
        if event is None:
            await self._task
            raise StopAsyncIteration
        return event

    async def close(self) -> None:
        """Give up: the engine's generator is cancelled, and with it its calls."""
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)


class StreamedAnswer(EventSourceResponse):
    """Sends `content` and closes `events` when it is through or the client is gone, started or not."""

    def __init__(
        self,
        content: AsyncIterator[ServerSentEvent],
        events: EventStream,
        *,
        heartbeat: ServerSentEvent,
        heartbeat_s: float = HEARTBEAT_S,
    ) -> None:
        super().__init__(content, ping=heartbeat_s, ping_message_factory=lambda: heartbeat, sep="\n")
        self._events = events

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            await self._events.close()


async def first_of(request: Request, events: EventStream) -> Event:
    """The first event, so that what fails before it is an HTTP status. Closes `events` where there is none."""
    try:
        return await while_connected(request, events.__anext__())
    except BaseException:
        await events.close()
        raise


async def while_connected(request: Request, work: Coroutine[Any, Any, T]) -> T:
    """What `work` returns; it is cancelled as soon as the client goes away. Raises ClientGone then.

    FastAPI itself lets a handler run on for a client that is no longer there. The request's body must have been read.
    """
    task, gone = asyncio.create_task(work), asyncio.create_task(_disconnected(request))
    try:
        await asyncio.wait({task, gone}, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise ClientGone
        return task.result()
    finally:
        task.cancel()
        gone.cancel()
        await asyncio.gather(task, gone, return_exceptions=True)


async def _disconnected(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


def event(name: str | None, body: BaseModel | dict[str, Any]) -> ServerSentEvent:
    """A server-sent event with `body` as JSON in one line; without a name as OpenAI's streams have them."""
    text = (
        body.model_dump_json(exclude_unset=True)
        if isinstance(body, BaseModel)
        else to_json(body, inf_nan_mode="null").decode()
    )
    return ServerSentEvent(text.translate(LINE_ENDS), event=name, sep="\n")
