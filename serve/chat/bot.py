"""Answers messages from a chat platform: each once, immediately, and to the end.

Among all processes that share an inbox, one answers a message; the next one takes over from a process that ended.
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

# A busy or restarting service is asked again, if its wait is short.
MOST_ASKS, LONGEST_WAIT_S = 3, 30.0
# How long answers in progress may take at shutdown; Ray Serve kills a replica after 20 s.
END_S = 10.0
LEFT_OVER_EVERY_S = 15.0  # a killed process may have left messages
STALE_S = 3600.0  # older messages are not answered after a restart
M = TypeVar("M")


class ChatBot(Generic[M]):
    """Answers the messages of the platform `name` by asking `service`; `inbox` knows which are answered already.

    `channel_of` returns the channel of a workspace, None if the bot is not in it. `collection` returns the collection
    for a question, "" for the service's default.
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
        """Start to answer, unless done already.

        Return an event that is set once the first reply is posted or none will be.

        `again` means that the platform has delivered the message before, perhaps to another machine.
        """
        if not (taken := self._inbox.take(asked)):
            return None
        began = asyncio.Event()
        self.start(self._answer(taken, began, again=again))
        return began

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Run `work` as a task that shutdown waits for."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)

    async def serve(self, stop: asyncio.Event) -> None:
        """Answer messages that other processes left behind, until `stop`."""
        while not stop.is_set():
            for taken in list(self._inbox.left_over()):
                self.start(self._answer(taken, asyncio.Event()))
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(stop.wait(), LEFT_OVER_EVERY_S)

    async def end(self) -> None:
        """Let the answers in progress finish; leave those that take too long to the next process."""
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
        """Answer a message completely; an undelivered answer is left to the next process.

        A message that a bug prevents from being answered is closed, because the next attempt would fail too.
        """
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
        except Exception as error:
            log.error("a message was not answered, because the bot failed", exc_info=error)
        finally:
            began.set()
        self._inbox.close(taken.asked)

    async def _reply(self, channel: Channel[M], taken: TakenMessage, began: asyncio.Event) -> None:
        """Answer the question, or show that the bot failed: the reader must not wait forever."""
        asked = taken.asked
        view = AnswerView(channel.render, self._collection(asked), asked.language)
        show = view.messages if asked.question else lambda: channel.render(Reply(HELP))
        live = LiveAnswer(channel, asked, show, taken.first)
        try:
            await self._show(taken, began, view, live)
        except (OSError, ChannelRefused):
            raise
        except Exception as error:
            log.error("the bot failed", exc_info=error)
            failure = Reply(language=asked.language, failure=say_beside("failed", asked.language))
            await live.finish(lambda: channel.render(failure))

    async def _show(self, taken: TakenMessage, began: asyncio.Event, view: AnswerView[M], live: LiveAnswer[M]) -> None:
        """Acknowledge the question at once, then show the service's events."""
        asked = taken.asked
        await live.begin()
        self._inbox.note(asked, live.first)
        began.set()
        if taken.age_s > STALE_S:
            view.fail(say_beside("cut", asked.language))
        elif asked.question:
            try:
                await self._ask(asked, view, live)
            except Exception as error:  # a bug of ours, after which the text so far is still shown
                log.error("the bot failed", exc_info=error)
                view.fail(say_beside("failed", asked.language))
        await live.finish()

    async def _ask(self, asked: Asked, view: AnswerView[M], live: LiveAnswer[M]) -> None:
        """Ask the service, again if it is busy, and pass the events to `view`."""
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
