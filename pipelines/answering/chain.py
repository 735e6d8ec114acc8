"""The agents in the order in which they stand in for each other, the extractive one last.

Knows agents and what may leave the service; not how hits are found nor how citations are checked.
"""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial

from pipelines.answering.agents import Agent, AgentResult, CollectionEmbed, ExtractiveAgent
from pipelines.answering.grounding.answerable import UNKNOWN, is_askable, is_likely
from pipelines.answering.grounding.attribution import Attributor
from pipelines.answering.grounding.refusals import RefusalFilter
from pipelines.answering.grounding.support import Passages
from pipelines.answering.hits import full_text
from pipelines.answering.sanitizing.stream import AnswerSanitizer
from pipelines.answering.synthesis.base import Task
from pipelines.answering.synthesis.modes import may_refuse, uses_retrieval
from pipelines.answering.synthesis.prompts import TemplateError
from pipelines.answering.synthesis.styles import EXAMPLE_NAME
from pipelines.answering.trace import Trace
from pipelines.llm.session import Status

# Said before the quotes that stand in for the answer of a model that says that there is none.
FOUND_NONE = "The language model found no answer in the passages, so they are quoted."


@dataclass(frozen=True, slots=True)
class Delta:
    """A piece of the answer's text. `reset`: an agent failed half way, its text is void and another agent begins."""

    text: str
    reset: bool = False


class AgentChain:
    """Streams the answer of the first of `agents` that succeeds, at last of the extractive agent.

    `embed` gives the vectors by which claims are compared with passages.
    """

    def __init__(self, agents: Sequence[Agent], embed: CollectionEmbed | None = None) -> None:
        self._embed, self._extractive = embed, ExtractiveAgent(embed)
        self._agents: list[Agent] = [*agents, self._extractive]
        self.names = tuple(agent.name for agent in self._agents)

    def check(self, name: str, variables: Mapping[str, str]) -> None:
        """Raise TemplateError if the prompts of the agent `name`, else of the first, cannot take `variables`."""
        next((agent for agent in self._agents if agent.name == name), self._agents[0]).check(variables)

    def quotes(self, name: str) -> bool:
        """Return whether the agent `name` answers by quoting."""
        return name == self._extractive.name or len(self._agents) == 1

    async def prepare(self, task: Task, trace: Trace) -> Task:
        """Return the task, with its hits in the order in which the answer quotes them if no model is asked."""
        if self._order(trace.route.agent, task)[0] is not self._extractive:
            return task
        with trace.step("choose"):
            return await self._extractive.prepare(task)

    async def answer(self, task: Task, trace: Trace) -> AsyncGenerator[Delta | Status, None]:
        """Stream the first agent that succeeds, sanitized, and record it in the trace. Raises TemplateError."""
        sent = False
        for agent in self._order(trace.route.agent, task):
            async with aclosing(self._deltas(agent, task, trace, sent)) as deltas:
                async for delta in deltas:
                    yield delta
            sent = sent or bool(trace.text)
            if not trace.failed:
                break
        if trace.refused:
            async with aclosing(self._stand_in(task, trace, sent)) as deltas:
                async for delta in deltas:
                    yield delta
        if closest := trace.add_closest(task.hits):
            trace.say(closest)
            yield Delta(closest)

    async def _deltas(self, agent: Agent, task: Task, trace: Trace, sent: bool) -> AsyncGenerator[Delta | Status, None]:
        """Stream one agent; its first delta voids what an earlier one `sent`."""
        trace.begin(agent.name)
        with trace.step("synthesize"):
            write = self._stream if agent is self._extractive else self._cited  # quotes have their numbers
            async with aclosing(write(agent, task, trace)) as texts:
                async for text in texts:
                    if isinstance(text, Status):
                        yield text
                        continue
                    yield Delta(text, reset=sent and not trace.text)
                    trace.say(text)

    async def _stand_in(self, task: Task, trace: Trace, sent: bool) -> AsyncGenerator[Delta | Status, None]:
        """Stream what stands in for an answer that only says that there is none.

        Where the index probably has one, it is the passages that an extractive answer quotes.
        """
        if not _is_likely(task):
            trace.begin(trace.agent)
            yield Delta(UNKNOWN, reset=sent)
            trace.say(UNKNOWN)
            return
        trace.give_way(trace.agent, FOUND_NONE)
        if not sent:
            yield Delta(f"{FOUND_NONE}\n\n")
        async with aclosing(self._deltas(self._extractive, task, trace, sent)) as deltas:
            async for delta in deltas:
                yield delta

    def _order(self, first: str, task: Task) -> list[Agent]:
        """Return the agent `first`, then its stand-ins, the extractive one last.

        Where no hit could support an answer it is the extractive agent alone, which says so: no model is tempted.
        """
        if uses_retrieval(task.mode) and not is_askable(
            task.question, task.hits, task.evidence, again=bool(task.history)
        ):
            return self._agents[-1:]
        return sorted(self._agents, key=lambda agent: (agent.name != first, agent.name == ExtractiveAgent.name))

    async def _cited(self, agent: Agent, task: Task, trace: Trace) -> AsyncGenerator[str | Status, None]:
        """Yield the agent's text with the numbers of the passages that support it, and what it is at."""
        embed = partial(self._embed, collection=task.collection) if self._embed and uses_retrieval(task.mode) else None
        attributor = Attributor(Passages(task.hits, embed))
        async with aclosing(self._stream(agent, task, trace)) as texts:
            async for text in texts:
                if isinstance(text, Status):
                    yield text
                    continue
                async for cited in attributor.feed(text):
                    yield cited
        if not trace.failed:
            async for cited in attributor.close():
                yield cited
        trace.checked, trace.timings["cite"] = attributor.checked, attributor.seconds

    async def _stream(self, agent: Agent, task: Task, trace: Trace) -> AsyncGenerator[str | Status, None]:
        """Yield the agent's text, sanitized, and what it is at; record its result or its failure in the trace."""
        sanitizer = AnswerSanitizer(len(task.hits), [hit.url for hit in task.hits], map(full_text, task.hits))
        refusals = RefusalFilter(final=not _is_likely(task), copied=EXAMPLE_NAME, question=task.question)
        refuses = agent is not self._extractive and may_refuse(task.mode)
        feed, close = (refusals.feed, refusals.close) if refuses else (str, str)
        try:
            async with aclosing(agent.answer(task)) as parts:
                async for part in parts:
                    if isinstance(part, AgentResult):
                        trace.end(agent.name, part)
                    elif isinstance(part, Status):
                        yield part
                    elif text := feed(sanitizer.feed(part)):
                        yield text
        except TemplateError:
            raise
        except Exception as error:
            trace.fail(agent.name, f"{type(error).__name__}: {error}")
        if not trace.failed:
            if rest := f"{feed(sanitizer.close())}{close()}":
                yield rest
            trace.refused = refusals.refused


def _is_likely(task: Task) -> bool:
    return task.evidence is not None and is_likely(task.evidence)
