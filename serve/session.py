"""What every way to ask shares: a conversation's turns are looked up, the answer is made, written down and counted.

Knows no shape of requests or replies.
"""

import logging
import secrets
import time
import uuid
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Any, Protocol

from fastapi import Request

from pipelines.answering.engine import Ask, Delta, Event, QueryEngine
from pipelines.records import Answer, Message
from serve.api.errors import ClientGone
from serve.api.stream import EventStream, while_connected
from serve.guard.keys import Aside, key_of
from serve.recorder import QuestionContext

log = logging.getLogger(__name__)

# Turns that a follow-up is understood by: what "it" means was said in one of the last few.
TURNS = 5
# Named in `degraded` where the turns of a conversation could not be read.
CONVERSATION = "conversation"


class Conversations(Protocol):
    """What is read of the store: the last turns with question, answer and the ids of the cited chunks."""

    def conversation(self, id: str, most: int = ..., key_name: str = ..., /) -> Sequence[Any]: ...


class QuestionLog(Protocol):
    """Records questions without making anyone wait; never raises."""

    def record(self, answer: Answer, context: QuestionContext, /) -> object: ...

    def record_failure(self, id: str, question: str, error: str, context: QuestionContext, /) -> object: ...


class Observer(Protocol):
    """The place for metrics: is told of every answer, and how many seconds a stream's first word took."""

    def answered(self, answer: Answer, /) -> None: ...

    def first_delta(self, seconds: float, /) -> None: ...


@dataclass(frozen=True, slots=True)
class Asked:
    """A question as the engine gets it; `key` names who asks, `degraded` what could not be looked up for it."""

    ask: Ask
    conversation: str
    key: str = ""
    degraded: tuple[str, ...] = ()

    @property
    def context(self) -> QuestionContext:
        """What is recorded with the question."""
        return QuestionContext(self.ask.collection or "", self.conversation, self.ask.mode or "", self.key)


class Asking:
    """Questions to one engine."""

    def __init__(
        self,
        engine: QueryEngine,
        conversations: Conversations,
        aside: Aside,
        recorder: QuestionLog | None = None,
        observer: Observer | None = None,
    ) -> None:
        self._engine = engine
        self._conversations = conversations
        self._aside = aside
        self._recorder = recorder
        self._observer = observer

    async def begin(self, request: Request, ask: Ask, conversation: str | None = None) -> Asked:
        """`ask` with the turns of its conversation, unless it brings its own; what is new gets an id."""
        ask, key = replace(ask, id=ask.id or uuid.uuid4().hex), key_name(request)
        if conversation is None or ask.history:
            return Asked(ask, conversation or secrets.token_urlsafe(16), key)
        try:
            turns = await self._aside(self._conversations.conversation, conversation, TURNS, key)
        except Exception as error:  # whatever the reason: the question itself can be answered
            log.warning("answering without the conversation's turns: %s: %s", type(error).__name__, error)
            return Asked(ask, conversation, key, (CONVERSATION,))
        return Asked(replace(ask, history=_history(turns), previous=_cited_last(turns)), conversation, key)

    async def answer(self, request: Request, asked: Asked) -> Answer:
        """The answer. Raises what the engine does, and ClientGone."""
        try:
            answer = await while_connected(request, self._engine.aquery(asked.ask))
        except ClientGone:
            raise
        except Exception as error:
            self._fail(asked, error)
            raise
        return self.done(asked, answer)

    def stream(self, asked: Asked) -> EventStream:
        """The engine's events, the answer last; give that to `done`."""
        return EventStream(self._events(asked))

    async def _events(self, asked: Asked) -> AsyncIterator[Event]:
        started: float | None = time.perf_counter()
        try:
            async with aclosing(self._engine.stream(asked.ask)) as events:
                async for event in events:
                    if started is not None and isinstance(event, Delta):
                        if self._observer:
                            self._observer.first_delta(time.perf_counter() - started)
                        started = None
                    yield event
        except Exception as error:  # a client that left is a CancelledError or a GeneratorExit: no failure
            self._fail(asked, error)
            raise

    def done(self, asked: Asked, answer: Answer) -> Answer:
        """`answer` with what could not be looked up; it is counted and written down."""
        answer = replace(answer, degraded=(*answer.degraded, *asked.degraded))
        if self._observer:
            self._observer.answered(answer)
        if self._recorder:
            self._recorder.record(answer, asked.context)
        return answer

    def _fail(self, asked: Asked, error: Exception) -> None:
        """Record a question that the engine refused or could not answer."""
        if self._recorder:
            why = f"{type(error).__name__}: {error}"
            self._recorder.record_failure(asked.ask.id, asked.ask.question, why, asked.context)


def key_name(request: Request) -> str:
    """The name of the API key that the request came with, "" without one."""
    key = key_of(request.scope)
    return key.name if key else ""


def _history(turns: Sequence[Any]) -> tuple[Message, ...]:
    return tuple(
        message for turn in turns for message in (Message("user", turn.question), Message("assistant", turn.answer))
    )


def _cited_last(turns: Sequence[Any]) -> tuple[str, ...]:
    return tuple(turns[-1].cited) if turns else ()
