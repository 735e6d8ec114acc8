"""A message that follows an answer: posted at once, edited as it grows, continued in further ones.

A chat platform implements `Channel`.
"""

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

from serve.chat.question import Asked
from serve.chat.reply import Reply

log = logging.getLogger(__name__)

M = TypeVar("M")  # a message in the platform's format


class ChannelRefused(RuntimeError):
    """The platform refuses a message, and will refuse it again."""


class MessageGone(ChannelRefused):
    """Someone deleted the message or its channel, so there is nothing more to show."""


class Channel(Protocol[M]):
    """One workspace of a chat platform. Its methods retry temporary failures for a while.

    Then they raise ChannelRefused, or OSError if the platform can't be reached.
    """

    turns: "WritingTurns"

    def render(self, reply: Reply) -> list[M]:
        """Return the messages that show `reply`: at least one, and as many as the platform's limits require."""

    async def write(self, asked: Asked, part: int, message: M, id: str = "") -> str:
        """Post `message` as one part of the reply, or replace the message `id` with it; return its id."""

    async def delete(self, asked: Asked, id: str) -> None:
        """Delete a message."""

    async def replied(self, asked: Asked) -> bool:
        """Return whether another process, on another machine, has replied; False if that is unknown."""


class Turns:
    """Hands out turns at least `every_s` seconds apart, first come, first served."""

    def __init__(self, every_s: float) -> None:
        self._every_s, self._next = every_s, 0.0

    def book(self) -> float:
        """Take the next turn, and return the seconds until it comes."""
        now = time.monotonic()
        turn = max(now, self._next)
        self._next = turn + self._every_s
        return turn - now


class WritingTurns:
    """Spaces out writes to a workspace: `channel_s` seconds per channel, `edits_s` between unfinished answers."""

    def __init__(self, channel_s: float, edits_s: float) -> None:
        self._channel_s, self._edits = channel_s, Turns(edits_s)
        self._channels: dict[str, Turns] = {}

    async def edit(self) -> None:
        """Wait until an unfinished answer may be edited."""
        await asyncio.sleep(self._edits.book())

    async def write(self, channel: str, *, at_once: bool = False) -> None:
        """Wait until something may be written in `channel`; with `at_once`, only delay the next write."""
        wait = self._channels.setdefault(channel, Turns(self._channel_s)).book()
        if not at_once:
            await asyncio.sleep(wait)


class LiveAnswer(Generic[M]):
    """Keeps the messages of a channel in sync with `show`: soon after each `changed`, and exactly after `finish`.

    `first` is the message to edit, if an earlier process has posted it.
    """

    def __init__(self, channel: Channel[M], asked: Asked, show: Callable[[], list[M]], first: str = "") -> None:
        self._channel, self._asked, self._show = channel, asked, show
        self._posted: list[tuple[str, M | None]] = [(first, None)] if first else []
        self._change, self._writing = asyncio.Event(), asyncio.Lock()
        self._follower: asyncio.Task[None] | None = None
        self._gone = False

    @property
    def first(self) -> str:
        """The id of the first message; "" before it is posted."""
        return self._posted[0][0] if self._posted else ""

    async def begin(self) -> None:
        """Post the first message at once, and follow the changes. Raises the errors of Channel.write."""
        await self._channel.turns.write(self._asked.channel, at_once=True)
        if not self._posted:
            await self._write(0)
        self._follower = asyncio.create_task(self._follow())

    def changed(self) -> None:
        """Signal that there is something new to show."""
        self._change.set()

    async def finish(self, show: Callable[[], list[M]] | None = None) -> None:
        """Show the final state, or `show` instead of it, however long it has to wait.

        Raises the errors of Channel.write.
        """
        async with self._writing:  # let a started write finish: it may have reached the platform
            if self._follower:
                self._follower.cancel()
        self._show = show or self._show
        await self._bring_up_to_date()
        while len(self._posted) > len(self._show()) and not self._gone:
            with contextlib.suppress(ChannelRefused):
                await self._channel.delete(self._asked, self._posted.pop()[0])

    async def _follow(self) -> None:
        while not self._gone:
            await self._change.wait()
            self._change.clear()
            await self._channel.turns.edit()
            try:
                async with self._writing:
                    await self._bring_up_to_date()
            except (ChannelRefused, OSError) as error:  # the next change may succeed; the final state is always tried
                log.warning("an edit failed: %s", error)
            except Exception as error:
                log.error("an edit failed", exc_info=error)

    async def _bring_up_to_date(self) -> None:
        """Edit the messages that differ from `show`, and post the missing ones."""
        part = 0
        while part < len(shown := self._show()) and not self._gone:
            if part < len(self._posted) and self._posted[part][1] == shown[part]:
                part += 1
                continue
            await self._channel.turns.write(self._asked.channel)
            await self._write(part)

    async def _write(self, part: int) -> None:
        shown = self._show()
        message = shown[min(part, len(shown) - 1)]
        id = self._posted[part][0] if part < len(self._posted) else ""
        try:
            id = await self._channel.write(self._asked, part, message, id)
        except MessageGone as error:
            if not self._posted:
                raise
            log.info("the answer is not shown any more: %s", error)
            self._gone = True
            return
        self._posted[part : part + 1] = [(id, message)]
