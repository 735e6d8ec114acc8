"""Answers background tasks by passing them to a model unchanged; without a model, the reply is empty.

A program reads the reply, so nothing is searched, added, cited or removed. This module knows only about agents;
conversation/background.py tells tasks from questions.
"""

import logging
import uuid
from collections.abc import Sequence
from contextlib import aclosing

from pipelines import tracing
from pipelines.answering.events import Delta, Send
from pipelines.answering.question import BackgroundTask, Question
from pipelines.answering.retrieval.interface import AsyncRetriever
from pipelines.answering.retrieval.live import CollectionNotNamed, NotReady
from pipelines.answering.synthesis.base import Task
from pipelines.answering.trace import ASKED, Trace, note_answer
from pipelines.answering.writing.agents import Agent, AgentResult, StepUnavailable
from pipelines.llm.session import Status
from pipelines.records import FINISHED, WITHOUT_MODEL, Answer, Route
from pipelines.store import StoreUnavailable

log = logging.getLogger(__name__)

WHY = "a background task of a client: a model answers it as it stands"


class BackgroundAnswerer:
    """Asks each of `agents` in turn until one succeeds; `retriever` checks that the collection exists."""

    def __init__(self, retriever: AsyncRetriever, agents: Sequence[Agent]) -> None:
        self._retriever, self._agents = retriever, agents

    async def answer(self, question: Question, task: BackgroundTask, send: Send) -> Answer:
        """Return the model's reply; its text is sent in one piece when it is complete. Raises NoLiveIndex."""
        trace = Trace()
        with tracing.span("invoke_agent raydex", ASKED, root=True):
            await self._check(question.collection)
            reply = _TaskReply(task.empty)
            for agent in self._agents:
                with trace.step("synthesize"):
                    await reply.take(agent, Task(question.question, sent=task.messages), trace, send)
                if reply.whole:
                    break
            send(Delta(reply.text))
            answer = reply.answer(question, trace)
            note_answer(answer)
        return answer

    async def _check(self, collection: str | None) -> None:
        try:
            await self._retriever.aready(collection)
        except (CollectionNotNamed, NotReady, StoreUnavailable, StepUnavailable) as error:
            log.info("answering a background task anyway: %s", error)


class _TaskReply:
    """The reply of the first agent that succeeds; until then, the empty reply."""

    def __init__(self, empty: str) -> None:
        self.text, self.whole = empty, False
        self._agent, self._why, self._finish_reason = WITHOUT_MODEL[0], WHY, FINISHED

    async def take(self, agent: Agent, task: Task, trace: Trace, send: Send) -> None:
        """Take the reply of `agent`, unless it fails or is empty."""
        text, result = "", AgentResult(failed="it said nothing")
        try:
            async with aclosing(agent.answer(task)) as parts:
                async for part in parts:
                    if isinstance(part, AgentResult):
                        result = part
                    elif isinstance(part, Status):
                        send(part)
                    else:
                        text += part
        except StepUnavailable as error:
            result = AgentResult(failed=str(error))
        trace.add_usage(result.usage, result.exchanges)
        if result.failed or not text.strip():
            log.warning("agent %s failed: %s", agent.name, result.failed)
            trace.mark_degraded(f"llm:{agent.name}")
            self._why = f"{self._why}; {agent.name} failed: {result.failed}"
            return
        self.text, self.whole, self._agent = text, True, agent.name
        self._finish_reason = next((one.finish_reason for one in result.exchanges[-1:]), FINISHED)

    def answer(self, question: Question, trace: Trace) -> Answer:
        """Return the reply as an answer without sources."""
        return Answer(
            question=question.question,
            text=self.text,
            agent=self._agent,
            degraded=tuple(trace.degraded),
            timings=trace.all_timings(),
            id=question.id or uuid.uuid4().hex,
            route=Route(self._agent, self._why),
            usage=trace.usage,
            exchanges=tuple(trace.exchanges),
            finish_reason=self._finish_reason,
            collection=question.collection or "",
        )
