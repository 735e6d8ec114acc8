"""Writes the answer of a draft: the draft's own text, or the text of the first agent that succeeds.

This module knows about agents and about which text may leave the service, but not how hits are found.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from functools import cache, partial
from typing import TypeVar

from pipelines.answering.events import Send
from pipelines.answering.grounding.answerable import UNKNOWN, is_askable, is_likely, unknown_answer
from pipelines.answering.grounding.support import Passages
from pipelines.answering.hits import full_text
from pipelines.answering.sanitizing.stream import AnswerSanitizer
from pipelines.answering.synthesis.base import ModeNeedsModel, Synthesizer, Task, UnknownMode
from pipelines.answering.synthesis.modes import MODES, NEED_MODEL, NO_TEXT, may_refuse, uses_retrieval
from pipelines.answering.synthesis.prompts import TemplateError
from pipelines.answering.trace import Trace
from pipelines.answering.writing.agents import (
    Agent,
    AgentResult,
    CollectionEmbed,
    ExtractiveAgent,
    LLMAgent,
    ResearchAgent,
)
from pipelines.answering.writing.attribution import Attributor
from pipelines.answering.writing.draft import Draft
from pipelines.answering.writing.manuscript import Manuscript
from pipelines.answering.writing.stages import TextStage, TextStages, cut
from pipelines.answering.writing.stages.refusals import RefusalFilter
from pipelines.answering.writing.stages.text import TextReader
from pipelines.answering.writing.summary import SummaryFilter
from pipelines.llm.session import ChatModel, Status
from pipelines.page.stored import plain_text
from pipelines.records import FULL, QUOTED, SUMMARY
from pipelines.text.languages import say

CitedT = TypeVar("CitedT", Attributor, SummaryFilter)

MOST_SUMMARIZED = 2  # sections; a small model confuses more of them, and takes longer to read them


class AnswerWriter:
    """Writes answers with the first agent that succeeds: one from `llm`, then `agents`, last the extractive one.

    `embed` returns the vectors with which claims are compared with passages.
    """

    def __init__(
        self,
        agents: Sequence[Agent] = (),
        embed: CollectionEmbed | None = None,
        llm: ChatModel | None = None,
        synthesizer: Synthesizer | None = None,
    ) -> None:
        self._embed, self._extractive = embed, ExtractiveAgent(embed)
        own = [LLMAgent("llm", llm, synthesizer)] if llm else []
        self._agents: list[Agent] = [*own, *agents, self._extractive]
        self.names = tuple(agent.name for agent in self._agents)
        self.modes = tuple(mode for mode in (*MODES, NO_TEXT) if mode not in NEED_MODEL or len(self.names) > 1)

    @property
    def models(self) -> Sequence[Agent]:
        """The agents with a language model, in the order of fallback."""
        return self._agents[:-1]

    def check_mode(self, mode: str) -> str:
        """Return `mode`. Raises UnknownMode, or ModeNeedsModel for a mode that needs a model if there is none."""
        if mode not in self.modes:
            raise (ModeNeedsModel if mode in MODES else UnknownMode)(mode, self.modes)
        return mode

    def check(self, name: str, variables: Mapping[str, str], templates: Mapping[str, str]) -> None:
        """Raise TemplateError if the prompts of the agent `name`, or else of the first one, can't take these."""
        next((agent for agent in self._agents if agent.name == name), self._agents[0]).check(variables, templates)

    def quotes(self, name: str) -> bool:
        """Return whether the agent `name` answers by quoting."""
        return name == self._extractive.name or len(self._agents) == 1

    def researching(self, name: str) -> ResearchAgent | None:
        """Return the agent `name` if its model can search again, or its local counterpart if it runs elsewhere."""
        agent = next((agent for agent in self._agents if agent.name == name), self._agents[0])
        agent = getattr(agent, "like", agent)
        return agent if isinstance(agent, ResearchAgent) else None

    async def prepare(self, task: Task, agent: str, trace: Trace) -> Task:
        """Return the task; if no model will be asked, its hits are in the order in which the answer quotes them."""
        if task.form != SUMMARY and self._order(agent, task)[0] is not self._extractive:
            return task
        with trace.step("choose"):
            return await self._extractive.prepare(task)

    async def write(self, draft: Draft, trace: Trace, send: Send) -> Manuscript:
        """Write the answer; send its text and the agents' Status events. Raises TemplateError."""
        paper = Manuscript(draft, trace, send)
        if draft.text:
            paper.begin(draft.route.agent)
            paper.append_text(draft.text)
        elif draft.task:
            await self._by_agents(draft.task, paper)
        return paper

    async def _by_agents(self, task: Task, paper: Manuscript) -> None:
        agents = self._order(paper.draft.route.agent, task)
        if task.form == SUMMARY and agents[0] is not self._extractive:
            await self._by_agent(self._extractive, task, paper)
            await self._summarize(agents[0], task, paper)
            return
        for agent in agents:
            await self._by_agent(agent, task, paper)
            if not paper.failed:
                break
        if paper.refused and not _is_final(task):  # the index probably has an answer, so quote the passages
            paper.fall_back(say("quoted_instead", task.language))
            await self._by_agent(self._extractive, task, paper)
        elif paper.refused:
            paper.refuse(unknown_answer(task.question, task.hits, task.evidence, task.language))

    def _order(self, first: str, task: Task) -> list[Agent]:
        """Return the agent `first`, then its fallbacks, with the extractive one last.

        If no hit could support an answer, it is only the extractive agent, which says so; this keeps a model from
        inventing one. A capable model is asked anyway: it judges better than words and cosines whether passages answer.
        """
        askable = is_askable(task.question, task.hits, task.evidence, again=bool(task.history))
        askable = askable or (task.form == FULL and bool(task.hits))
        if task.form == QUOTED or (uses_retrieval(task.mode) and not askable):
            return self._agents[-1:]
        return sorted(self._agents, key=lambda agent: (agent.name != first, agent.name == ExtractiveAgent.name))

    async def _by_agent(self, agent: Agent, task: Task, paper: Manuscript) -> None:
        """Write one agent's text: sanitized, without refusals, with the numbers of the supporting passages."""
        capable = task.form == FULL
        refusals = RefusalFilter(final=_is_final(task), whole=capable, question=task.question)

        def prepare() -> tuple[TextStages, Attributor]:
            stages: list[TextStage] = [_sanitizer(task)]
            if agent is not self._extractive:  # a quotation already has its numbers
                stages += [TextReader(), *([refusals] if may_refuse(task.mode) else [])]
            return TextStages(stages), Attributor(self._passages(task), paper.append_text, task.language)

        paper.begin(agent.name)
        cited = await self._write_by(agent, task, paper, prepare)
        refused = refusals.refused or paper.text.strip() == UNKNOWN  # a mode without any passage
        paper.refused, paper.checked = not paper.failed and refused, cited.checked

    async def _summarize(self, agent: Agent, task: Task, paper: Manuscript) -> None:
        """Add the supported statements of `agent` about the quoted sections, if these likely answer."""
        if not task.quotes or not (task.evidence is None or is_likely(task.evidence)):
            return
        quoted = len({quote.hit for quote in task.quotes})
        task = replace(task, hits=task.hits[: min(quoted, MOST_SUMMARIZED)])

        def prepare() -> tuple[TextStages, SummaryFilter]:
            stages = TextStages([_sanitizer(task), TextReader(), RefusalFilter(final=True, question=task.question)])
            return stages, SummaryFilter(self._passages(task), paper.text, paper.append_text, task.language)

        quoting, paper.agent = paper.agent, agent.name
        summary = await self._write_by(agent, task, paper, prepare)
        paper.agent, paper.checked = agent.name if summary.checked else quoting, summary.checked

    async def _write_by(
        self, agent: Agent, task: Task, paper: Manuscript, prepare: Callable[[], tuple[TextStages, CitedT]]
    ) -> CitedT:
        """Pass the agent's text through stages to a filter that cites, record the result, and return the filter.

        `prepare` makes both. It is called when the agent says that its model has begun, so that no reader waits for it.
        """
        prepared = cache(prepare)
        with paper.trace.step("synthesize"):
            try:
                async with aclosing(agent.answer(task)) as parts:
                    async for part in parts:
                        if isinstance(part, AgentResult):
                            paper.end(part)
                        elif isinstance(part, Status):
                            paper.send(part)
                            prepared()
                        else:
                            stages, cited = prepared()
                            for each in cut(part):
                                await cited.feed(stages.feed(each))
                                await asyncio.sleep(0)  # an answer may be long: let other questions run
                if not paper.failed:
                    stages, cited = prepared()
                    await cited.feed(stages.close())
                    await cited.close()
            except TemplateError:
                raise
            except Exception as error:
                paper.fail(f"{type(error).__name__}: {error}")
        cited = prepared()[1]
        paper.trace.add_seconds("cite", cited.seconds)
        return cited

    def _passages(self, task: Task) -> Passages:
        if self._embed and task.vectors and uses_retrieval(task.mode):
            return Passages(task.hits, partial(self._embed, collection=task.collection), task.question)
        return Passages(task.hits, question=task.question)


def _is_final(task: Task) -> bool:
    """Return whether a refusal is final: the model is capable, or the index probably has no answer."""
    return task.form == FULL or not _is_likely(task)


def _is_likely(task: Task) -> bool:
    return task.evidence is not None and is_likely(task.evidence)


def _sanitizer(task: Task) -> AnswerSanitizer:
    """Return a sanitizer that knows all text of the hits that may be quoted, their subsections included."""
    texts = [*map(full_text, task.hits), *(plain_text(hit.below) for hit in task.hits if hit.below)]
    return AnswerSanitizer(len(task.hits), [hit.url for hit in task.hits], texts)
