"""Answers messages that reach it from a chat platform: once, at once, and to the end.

A message is answered by one process over all that share an inbox; what a process leaves is answered by the next.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Coroutine
from typing import Any, Generic, TypeVar

from pipelines.service_client import AskFailed, ServiceClient
from pipelines.text.languages import say_beside
from serve.chat.channel import Channel, ChannelRefused, LiveAnswer
from serve.chat.inbox import Inbox, TakenMessage
from serve.chat.question import Asked
from serve.chat.reply import HELP, AnswerView, Reply, explain

log = logging.getLogger(__name__)

# A service that is busy or restarting is asked again, as long as that is soon.
MOST_ASKS, LONGEST_WAIT_S = 3, 30.0
# The answers in progress get that long at the end; Ray Serve kills a replica after 20 s.
END_S = 10.0
LEFT_OVER_EVERY_S = 15.0  # another process that was killed may have left something
STALE_S = 3600.0  # what was asked longer ago is not answered after a restart
M = TypeVar("M")


class ChatBot(Generic[M]):
    """Answers the messages of the platform `name`, by asking `service`; `inbox` knows what is answered already.

    `channel_of` gives the channel of a workspace, None if the bot is not in it; `collection` says which one a
    question goes to, "" for the service's default.
    """

    def __init__(
        self,
        name: str,
        service: ServiceClient,
        inbox: Inbox,
        channel_of: Callable[[str], Channel[M] | None],
        collection: Callable[[Asked], str],
    ) -> None:
        self._name, self._service, self._inbox = name, service, inbox
        self._channel_of, self._collection = channel_of, collection
        self._tasks: set[asyncio.Task[None]] = set()

    def take(self, asked: Asked, *, again: bool = False) -> asyncio.Event | None:
        """Begin to answer, unless that was done; return what is set once the first reply stands or nothing comes.

        `again` says that the platform has delivered the message before, perhaps to another machine.
        """
        if not (taken := self._inbox.take(asked)):
            return None
        began = asyncio.Event()
        self.start(self._answer(taken, began, again=again))
        return began

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Run `work`, which `serve` waits for at its end."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)

    async def serve(self, stop: asyncio.Event) -> None:
        """Answer what other processes have left, until `stop`."""
        while not stop.is_set():
            for taken in list(self._inbox.left_over()):
                self.start(self._answer(taken, asyncio.Event()))
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(stop.wait(), LEFT_OVER_EVERY_S)

    async def end(self) -> None:
        """Let the answers in progress end; those that take too long are left to the next process."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=END_S)
        for task in (left := list(self._tasks)):
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)
        self._inbox.release()
        await self._service.aclose()

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()):
            log.error("the bot failed", exc_info=error)

    async def _answer(self, taken: TakenMessage, began: asyncio.Event, *, again: bool = False) -> None:
        """Answer a message, to the end; what could not be said is left to the next process."""
        try:
            channel = self._channel_of(taken.asked.team)
            elsewhere = again and not taken.first and channel and await channel.replied(taken.asked)
            if channel and not elsewhere:
                await self._reply(channel, taken, began)
        except OSError as error:
            log.error("a message was not answered, the next start tries again: %s", error)
            return
        except ChannelRefused as error:
            log.error("a message was not answered: %s", error)
        finally:
            began.set()
        self._inbox.close(taken.asked)

    async def _reply(self, channel: Channel[M], taken: TakenMessage, began: asyncio.Event) -> None:
        """Say at once that the question is heard, and then what the service says."""
        asked = taken.asked
        view = AnswerView(channel.render, self._collection(asked), asked.language)
        show = view.messages if asked.question else lambda: channel.render(Reply(HELP))
        live = LiveAnswer(channel, asked, show, taken.first)
        await live.begin()
        self._inbox.note(asked, live.first)
        began.set()
        if taken.age_s > STALE_S:
            view.fail(say_beside("cut", asked.language))
        elif asked.question:
            try:
                await self._ask(asked, view, live)
            except Exception as error:  # a fault of ours: the reader must not wait for ever
                log.error("the bot failed", exc_info=error)
                view.fail(say_beside("failed", asked.language))
        await live.finish()

    async def _ask(self, asked: Asked, view: AnswerView[M], live: LiveAnswer[M]) -> None:
        """Ask the service, again if it is busy, and let `view` take what comes."""
        conversation = f"{self._name}-{asked.conversation}"
        question = {"question": asked.question, "conversation": conversation, "channel": self._name}
        if collection := self._collection(asked):
            question["collection"] = collection
        for left in reversed(range(MOST_ASKS)):
            try:
                async for name, data in self._service.stream(question):
                    view.take(name, data)
                    live.changed()
                return
            except AskFailed as error:
                log.warning("the service did not answer: %s", error)
                if not left or error.seconds is None or error.seconds > LONGEST_WAIT_S:
                    view.fail(explain(error, asked.language))
                    return
                view.wait(say_beside("unavailable", asked.language))
                live.changed()
                await asyncio.sleep(error.seconds)
