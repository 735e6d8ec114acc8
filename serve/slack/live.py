"""A message that follows an answer: posted at once, edited as it grows, continued in further ones."""

import asyncio
import contextlib
import logging
from collections.abc import Callable
from typing import Any

from slack_sdk.errors import SlackApiError

from serve.slack.calls import SlackCalls, error_of
from serve.slack.text.packing import SlackMessage
from serve.slack.text.question import Asked

log = logging.getLogger(__name__)

METADATA = "raydex_answer"  # the type of the metadata that says which message an answer belongs to
# A message that can no longer be changed: someone deleted it, or the channel. Nothing more is to be shown.
GONE = frozenset({"message_not_found", "channel_not_found", "is_archived", "thread_not_found", "not_in_channel"})
# A message that the workspace's rules let nobody edit any more: what it should say is posted.
CLOSED = frozenset({"edit_window_closed", "cant_update_message"})
# Slack dislikes the blocks: the text says the same.
UNFIT = frozenset({"invalid_blocks", "invalid_blocks_format", "msg_blocks_too_long", "invalid_arguments"})

Show = Callable[[], list[SlackMessage]]


class LiveAnswer:
    """Keeps the messages in Slack as `show` says: soon after each `changed`, and exactly after `finish`.

    `first` is the message to edit, where an earlier process has posted it.
    """

    def __init__(self, calls: SlackCalls, asked: Asked, show: Show, first: str = "") -> None:
        self._calls, self._asked, self._show = calls, asked, show
        self._posted: list[tuple[str, SlackMessage | None]] = [(first, None)] if first else []
        self._change, self._writing = asyncio.Event(), asyncio.Lock()
        self._follower: asyncio.Task[None] | None = None
        self.gone = False

    @property
    def first(self) -> str:
        """The timestamp of the first message, which is its id; "" before it is posted."""
        return self._posted[0][0] if self._posted else ""

    async def begin(self) -> None:
        """Post the first message at once, and follow the changes. Raises as SlackCalls.call."""
        await self._calls.channel_turn(self._asked.channel, at_once=True)
        if not self._posted:
            await self._post(0)
        self._follower = asyncio.create_task(self._follow())

    def changed(self) -> None:
        """Say that there is something new to show."""
        self._change.set()

    async def finish(self) -> None:
        """Show the last state, whatever waits that takes. Raises as SlackCalls.call."""
        await self.stop()
        await self._bring_up_to_date(whole=True)

    async def stop(self) -> None:
        """Follow no more. A write that has begun is not torn: it may have reached Slack."""
        async with self._writing:
            if self._follower:
                self._follower.cancel()

    async def withdraw(self) -> None:
        """Delete what was posted."""
        await self.stop()
        await self._remove_from(0)

    async def _follow(self) -> None:
        while not self.gone:
            await self._change.wait()
            self._change.clear()
            await self._calls.edit_turn()
            try:
                async with self._writing:
                    await self._bring_up_to_date()
            except (SlackApiError, OSError) as error:  # the next change may succeed, and the end is tried in any case
                log.warning("an edit failed: %s", error)

    async def _bring_up_to_date(self, whole: bool = False) -> None:
        """Edit the messages that differ from what is to be shown, post those that are missing, delete the rest."""
        place = 0
        while place < len(shown := self._show()) and not self.gone:
            if place >= len(self._posted):
                await self._calls.channel_turn(self._asked.channel)
                await self._post(place)
            elif self._posted[place][1] != shown[place]:
                await self._calls.channel_turn(self._asked.channel)
                await self._edit(place)
            else:
                place += 1
        if whole:
            await self._remove_from(place)

    async def _post(self, place: int) -> None:
        reply = await self._write("chat.postMessage", place, unfurl_links=False, unfurl_media=False)
        if reply:
            self._posted[place : place + 1] = [(str(reply["ts"]), self._sent)]

    async def _edit(self, place: int) -> None:
        ts = self._posted[place][0]
        try:
            if await self._write("chat.update", place, ts=ts):
                self._posted[place] = ts, self._sent
        except SlackApiError as error:
            if error_of(error) not in CLOSED:
                raise
            await self._post(place)

    async def _write(self, method: str, place: int, **more: Any) -> dict[str, Any] | None:
        """Send the message at `place` as it is to be shown; None if the conversation is gone."""
        try:
            return await self._calls.call(method, lambda: self._arguments(place, **more))
        except SlackApiError as error:
            if error_of(error) in UNFIT:
                log.error("Slack refused the blocks of a message, which is sent as text: %s", error)
                return await self._calls.call(method, lambda: {**self._arguments(place, **more), "blocks": []})
            if error_of(error) not in GONE or not self._posted:
                raise
            log.info("the answer is not shown any more: %s", error_of(error))
            self.gone = True
            return None

    def _arguments(self, place: int, **more: Any) -> dict[str, Any]:
        shown = self._show()
        self._sent = message = shown[min(place, len(shown) - 1)]
        asked = self._asked
        return {
            "channel": asked.channel,
            **({} if "ts" in more else {"thread_ts": asked.thread}),
            "text": message.text,
            "blocks": message.blocks,
            "parse": "none",
            "link_names": False,
            "metadata": {"event_type": METADATA, "event_payload": {"question": asked.ts, "part": place}},
            **more,
        }

    async def _remove_from(self, place: int) -> None:
        while len(self._posted) > place:
            ts, _ = self._posted.pop()
            with contextlib.suppress(SlackApiError):
                await self._calls.call("chat.delete", {"channel": self._asked.channel, "ts": ts})
