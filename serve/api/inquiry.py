"""Inquiries: one question each, from loading its conversation to recording its answer.

All APIs ask through an inquiry; it knows no format of requests or replies.
"""

import logging
import secrets
import time
import uuid
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace

from fastapi import Request

from pipelines import tracing
from pipelines.answering.engine import QueryEngine
from pipelines.answering.events import Delta
from pipelines.answering.question import Question
from pipelines.records import Answer, Message
from pipelines.store import RecordedQuestion, Store
from serve.api.errors import ClientGone
from serve.api.stream import Events, run_while_connected
from serve.guard.keys import key_of
from serve.recorder import Recorder
from serve.telemetry import Metrics
from serve.threads import DatabaseThreads

log = logging.getLogger(__name__)

# A follow-up is resolved with this many turns: its "it" refers to one of the last few.
TURNS = 5
# A program may ask the next question at once, milliseconds before the answer's row is written, or longer if the
# database is unavailable.
SETTLE_S = 0.5
# Listed in `degraded` if the turns of a conversation could not be read.
CONVERSATION = "conversation"


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a question comes from: its conversation (None: a new one) and its channel.

    `after` lists the ids of the turns that it follows, None for the last ones.
    """

    conversation: str | None = None
    channel: str = "api"
    after: Sequence[str] | None = None


class Inquiries:
    """Opens inquiries with one engine; `recorder` records their questions, `observer` counts their answers."""

    def __init__(
        self,
        engine: QueryEngine,
        store: Store,
        threads: DatabaseThreads,
        recorder: Recorder | None = None,
        observer: Metrics | None = None,
    ) -> None:
        self.engine, self.recorder, self.observer = engine, recorder, observer
        self._store, self._threads = store, threads

    async def open(self, request: Request, question: Question, origin: Origin = Origin()) -> "Inquiry":
        """Return the inquiry for `question`, with the last turns of its conversation unless it brings a history.

        A question or conversation without an id gets a new one.
        """
        question, key = replace(question, id=question.id or uuid.uuid4().hex), key_name(request)
        if origin.conversation is None or question.history or question.background:
            origin = replace(origin, conversation=origin.conversation or secrets.token_urlsafe(16))
            return Inquiry(self, question, origin, key)
        try:
            if self.recorder:
                await self._threads.run(self.recorder.settle, SETTLE_S)
            turns = await self._threads.run(self._store.conversation, origin.conversation, TURNS, key, origin.after)
        except Exception as error:  # for any reason: the question itself can still be answered
            log.warning("answering without the conversation's turns: %s: %s", type(error).__name__, error)
            return Inquiry(self, question, origin, key, (CONVERSATION,))
        history = [Message(*said) for turn in turns for said in (("user", turn.question), ("assistant", turn.answer))]
        question = replace(question, history=tuple(history), previous=turns[-1].cited if turns else ())
        return Inquiry(self, question, origin, key)


@dataclass(frozen=True, slots=True)
class Inquiry:
    """One question to the engine; `key` is the name of its API key, `degraded` the parts missing before it starts."""

    factory: Inquiries
    question: Question
    origin: Origin
    key: str = ""
    degraded: tuple[str, ...] = ()

    @property
    def conversation(self) -> str:
        """The id of the conversation."""
        return self.origin.conversation or ""

    async def answer(self, request: Request) -> Answer:
        """Return the answer and record it. Raises the errors of the engine, and ClientGone."""
        try:
            answer = await run_while_connected(request, self.factory.engine.aquery(self.question))
        except ClientGone:
            raise
        except Exception as error:
            self._record(error=f"{type(error).__name__}: {error}")
            raise
        return self.finish(answer)

    def finish(self, answer: Answer) -> Answer:
        """Count and record `answer`; return it with all its missing parts."""
        answer = replace(answer, degraded=(*answer.degraded, *self.degraded))
        tracing.note({"gen_ai.conversation.id": self.conversation, "raydex.channel": self.origin.channel})
        if self.factory.observer and self.question.background:
            self.factory.observer.count_work(answer)
        elif self.factory.observer:
            self.factory.observer.count_answer(answer)
        self._record(answer)
        return answer

    async def stream(self) -> Events:
        """Yield the engine's events, the answer last.

        The reader must close this generator and call `finish` with the answer.
        """
        started: float | None = time.perf_counter()
        try:
            async with aclosing(self.factory.engine.stream(self.question)) as events:
                async for event in events:
                    if started is not None and isinstance(event, Delta):
                        if self.factory.observer:
                            self.factory.observer.observe_first_delta(time.perf_counter() - started)
                        started = None
                    yield event
        except Exception as error:  # a disconnect is a CancelledError or GeneratorExit, not a failure
            self._record(error=f"{type(error).__name__}: {error}")
            raise

    def _record(self, answer: Answer | None = None, error: str | None = None) -> None:
        """Record the question with its answer, or with the reason why it has none.

        Background tasks are not recorded.
        """
        if self.factory.recorder and not self.question.background:
            asked, collection = self.question, answer.collection if answer else ""
            recorded = RecordedQuestion(
                asked.id,
                asked.question,
                answer,
                collection=asked.collection or collection,
                conversation=self.conversation,
                mode=asked.mode or "",
                key_name=self.key,
                error=error,
                channel=self.origin.channel,
                page=asked.page,
            )
            self.factory.recorder.record(recorded)


def key_name(request: Request) -> str:
    """Return the owner of a question: `name` of the request's API key, `name/session`, or "" without either."""
    key = key_of(request.scope)
    return key.owner if key else ""
