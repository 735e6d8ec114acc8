"""A question becomes an answer: route, rewrite, retrieve, rerank, synthesize, cite. Usable from a notebook.

Composes steps that are plain objects, wherever they run. A step that fails degrades the answer, it never fails
the question. Knows no HTTP, no Ray and no environment.
"""

import asyncio
import logging
import uuid
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
from anyio.from_thread import start_blocking_portal

from pipelines.answering.agents import Agent, AgentResult, ExtractiveAgent, LLMAgent
from pipelines.answering.grounding.answerable import answerable
from pipelines.answering.grounding.citations import cite
from pipelines.answering.reranking.base import Reranker, RerankFailed
from pipelines.answering.retrieval.fusion import diverse, pages_first
from pipelines.answering.retrieval.retriever import Retrieval, Search
from pipelines.answering.rewriting import Rewrite, Rewriter
from pipelines.answering.routing.router import FixedRouter, Router
from pipelines.answering.sanitizing.stream import AnswerSanitizer
from pipelines.answering.synthesis.base import Synthesizer, Task, UnknownMode
from pipelines.answering.synthesis.extractive import UNKNOWN
from pipelines.answering.synthesis.modes import MODES
from pipelines.answering.synthesis.prompts import TemplateError
from pipelines.answering.trace import Trace
from pipelines.llm.session import ChatModel
from pipelines.records import Answer, Citation, Filters, Hit, Index, IndexSettings, Message

log = logging.getLogger(__name__)

Matrix = np.ndarray[tuple[int, ...], np.dtype[np.float32]]

NO_TEXT, GENERATION, CONTEXT_ONLY = "no_text", "generation", "context_only"
WITHOUT_RETRIEVAL = (GENERATION, CONTEXT_ONLY)
# An answer that has been said waits no longer than that for the vectors that judge its citations: many times what a
# model takes for some sentences. Words alone judge then.
JUDGING_S = 5.0


@dataclass(frozen=True, slots=True)
class Question:
    """A question with all that may be said about it.

    `k` is how many hits the answer is made from; `previous` are the ids of the chunks that the turn before cited;
    `mode` names the synthesizer; `variables` fill its prompts; `context` are the texts of mode `context_only`.
    """

    question: str
    collection: str | None = None
    k: int | None = None
    filters: Filters = Filters()
    history: tuple[Message, ...] = ()
    previous: tuple[str, ...] = ()
    mode: str | None = None
    variables: Mapping[str, str] = field(default_factory=dict)
    context: tuple[str, ...] = ()
    id: str = ""


@dataclass(frozen=True, slots=True)
class Delta:
    """More of the answer's text. `reset`: an agent failed half way, what was said is void, another one begins."""

    text: str
    reset: bool = False


Event = Retrieval | Delta | Answer


class AsyncRetriever(Protocol):
    """A retriever, in this process or elsewhere."""

    async def aretrieve(self, search: Search) -> Retrieval: ...

    async def aready(self, collection: str | None = None) -> Index: ...

    async def aembed(self, texts: Sequence[str], collection: str | None = None) -> Matrix: ...


class QueryEngine:
    """Answers questions: `QueryEngine(retriever, synthesizer, llm).query("How …?")`; extractively without an LLM.

    `agents` are further ones, in the order in which they stand in for each other; the extractive one is always the
    last resort. `k` hits make an answer, with `pages_first` of as many pages as there are, and at most `max_per_page`
    of one page (0: any number); `depth` is how many the reranker sees. `mode` names the synthesizer where a question
    names none.
    """

    def __init__(
        self,
        retriever: AsyncRetriever,
        synthesizer: Synthesizer | None = None,
        llm: ChatModel | None = None,
        *,
        agents: Sequence[Agent] = (),
        router: Router | None = None,
        rewriter: Rewriter | None = None,
        reranker: Reranker | None = None,
        mode: str = "compact",
        k: int = 5,
        depth: int = 30,
        pages_first: bool = False,
        max_per_page: int = 0,
    ) -> None:
        own: list[Agent] = [LLMAgent("llm", llm, synthesizer)] if llm else []
        self._agents: list[Agent] = [*own, *agents, ExtractiveAgent()]
        self.agents = tuple(agent.name for agent in self._agents)
        self.modes = (
            (*MODES, NO_TEXT) if len(self._agents) > 1 else tuple(m for m in (*MODES, NO_TEXT) if m != GENERATION)
        )
        self._retriever = retriever
        self._router = router or FixedRouter(self.agents[0])
        self._rewriter = rewriter
        self._reranker = reranker
        self._mode = mode
        self._k, self._depth = k, depth
        self._pages_first, self._max_per_page = pages_first, max_per_page

    # -- what can be asked

    def query(self, question: str | Question, **more: Any) -> Answer:
        """The answer, waited for. `more` are fields of Ask. Raises as `stream`."""
        with start_blocking_portal() as portal:
            return portal.call(self.aquery, _ask(question, more))

    def search(self, question: str | Question, **more: Any) -> Retrieval:
        """The hits alone, waited for. Raises as `stream`."""
        with start_blocking_portal() as portal:
            return portal.call(self.asearch, _ask(question, more))

    async def aquery(self, question: str | Question, **more: Any) -> Answer:
        """The answer. Cancelling it cancels the calls under way. Raises as `stream`."""
        async with aclosing(self.stream(_ask(question, more))) as events:
            async for event in events:
                if isinstance(event, Answer):
                    return event
        raise AssertionError("a stream ends with its answer")

    async def asearch(self, question: str | Question, **more: Any) -> Retrieval:
        """The hits alone, with the seconds of each step. Raises as `stream`."""
        ask, work = _ask(question, more), Trace()
        found = await self._retrieved(ask, ask.question, work)
        return replace(found, degraded=tuple(work.degraded), timings=work.ended())

    async def stream(self, ask: Question) -> AsyncGenerator[Event, None]:
        """The Retrieval first, Deltas as they come, the Answer last. Closing it cancels the calls under way.

        Raises UnknownMode, TemplateError, CollectionNotNamed, NoLiveIndex, StoreUnavailable and StepUnavailable.
        """
        work, mode = Trace(), self._checked(ask.mode or self._mode)
        standalone = await self._standalone(ask, work)
        with work.step("route"):
            work.route = await asyncio.to_thread(self._router.route, standalone)
        self._named(work.route.agent).check(ask.variables)
        found = _given(ask, standalone) if mode in WITHOUT_RETRIEVAL else await self._retrieved(ask, standalone, work)
        yield found
        task = Task(standalone, found.hits, ask.history, mode, ask.variables, ask.context)
        if mode != NO_TEXT:
            async with aclosing(self._said(task, work)) as deltas:
                async for delta in deltas:
                    yield delta
        citations = await self._cited(work, found, ask.collection)
        yield Answer(
            question=ask.question,
            text=work.text,
            agent=work.agent,
            citations=citations,
            hits=found.hits,
            degraded=tuple(work.degraded),
            timings=work.ended(),
            index=found.index.id,
            revision=found.revision,
            id=ask.id or uuid.uuid4().hex,
            known=work.known,
            route=work.route,
            queries=found.queries,
            usage=work.usage,
            exchanges=tuple(work.exchanges),
        )

    async def aready(self, collection: str | None = None) -> Index:
        """The live index, if a question would be answered from it now. Raises as `Retriever.ready`."""
        return await self._retriever.aready(collection)

    async def aembed(self, texts: Sequence[str], collection: str | None = None) -> Matrix:
        """Vectors of `texts` by the live index's model: float32 (n, d), rows of length 1."""
        return await self._retriever.aembed(texts, collection)

    # -- steps

    def _checked(self, mode: str) -> str:
        if mode not in self.modes:
            raise UnknownMode(mode, self.modes)
        return mode

    async def _standalone(self, ask: Question, work: Trace) -> str:
        """The question as it reads without the turns before it."""
        if not ask.history or self._rewriter is None:
            return ask.question
        with work.step("condense"):
            return self._noted(await self._rewriter.condense(ask.question, ask.history), work).queries[0]

    def _noted(self, rewritten: Rewrite, work: Trace) -> Rewrite:
        work.paid(rewritten.usage, rewritten.exchanges)
        if rewritten.failed:
            work.lose("rewrite")
        return rewritten

    async def _retrieved(self, ask: Question, question: str, work: Trace) -> Retrieval:
        queries: tuple[str, ...] = (question,)
        if self._rewriter is not None:
            with work.step("rewrite"):
                queries = self._noted(await self._rewriter.rewrite(question), work).queries
        k = ask.k or self._k
        wide = max(k, self._depth) if self._reranker or self._max_per_page else k
        with work.step("retrieve"):
            found = await self._retriever.aretrieve(Search(queries, ask.collection, wide, ask.filters, ask.previous))
        work.timings |= found.timings
        for leg in found.degraded:
            work.lose(leg)
        hits = await self._reranked(question, found.hits, work)
        hits = pages_first(hits) if self._pages_first else hits
        return replace(found, question=question, hits=tuple(diverse(hits, k, self._max_per_page)))

    async def _reranked(self, question: str, hits: Sequence[Hit], work: Trace) -> Sequence[Hit]:
        if self._reranker is None or not hits:
            return hits
        try:
            with work.step("rerank"):
                reranked = await self._reranker.rerank(question, hits)
        except Exception as error:
            log.warning("answering without %s: %s", self._reranker.name, error)
            work.lose("reranker")
            if isinstance(error, RerankFailed):
                work.paid(error.usage, error.exchanges)
            return hits
        work.paid(reranked.usage, reranked.exchanges)
        return reranked.hits

    async def _said(self, task: Task, work: Trace) -> AsyncGenerator[Delta, None]:
        """What the first agent that does not fail says, as it leaves the house; noted in `work`."""
        said = False
        for agent in self._chain(work.route.agent, task):
            work.begin(agent.name)
            with work.step("synthesize"):
                async with aclosing(self._spoken(agent, task, work)) as deltas:
                    async for text in deltas:
                        yield Delta(text, reset=said and not work.text)
                        work.say(text)
            if not work.failed:
                if closest := work.closest(task.hits):
                    work.say(closest)
                    yield Delta(closest)
                return
            said = said or bool(work.text)

    def _named(self, name: str) -> Agent:
        return next((agent for agent in self._agents if agent.name == name), self._agents[0])

    def _chain(self, first: str, task: Task) -> list[Agent]:
        """The agent asked for, then those that stand in for it; the extractive one last.

        It alone where nothing that was retrieved could support an answer: it says so, and no model is tempted.
        """
        if task.mode not in WITHOUT_RETRIEVAL and not answerable(task.question, task.hits):
            return self._agents[-1:]
        return sorted(self._agents, key=lambda agent: (agent.name != first, agent.name == ExtractiveAgent.name))

    async def _spoken(self, agent: Agent, task: Task, work: Trace) -> AsyncGenerator[str, None]:
        """The agent's words, cleaned of what must not leave; a failure is noted in `work`."""
        secrets = [secret for one in self._agents for secret in one.secrets]
        leaving = AnswerSanitizer(len(task.hits), [hit.url for hit in task.hits], secrets, allowed=(UNKNOWN,))
        try:
            async with aclosing(agent.answer(task)) as parts:
                async for part in parts:
                    if isinstance(part, AgentResult):
                        work.done(agent.name, part)
                    elif text := leaving.feed(part):
                        yield text
        except TemplateError:
            raise
        except Exception as error:
            work.fail(agent.name, f"{type(error).__name__}: {error}")
        if not work.failed and (rest := leaving.close()):
            yield rest

    async def _cited(self, work: Trace, found: Retrieval, collection: str | None) -> tuple[Citation, ...]:
        if not work.text:
            return ()
        loop = asyncio.get_running_loop()

        def embed(texts: Sequence[str]) -> Matrix:
            embedding = asyncio.run_coroutine_threadsafe(self._retriever.aembed(texts, collection), loop)
            try:
                return embedding.result(JUDGING_S)
            finally:
                embedding.cancel()

        with work.step("cite"):
            by_meaning = embed if work.known and found.index.id else None
            citations = await asyncio.to_thread(cite, work.text, found.hits, by_meaning)
        return citations if work.known else tuple(replace(c, supported=False, support=0.0) for c in citations)


def _ask(question: str | Question, more: Mapping[str, Any]) -> Question:
    return replace(question, **more) if isinstance(question, Question) else Question(question, **more)


def _given(ask: Question, question: str) -> Retrieval:
    """Without retrieval: the given texts are the hits."""
    hits = tuple(
        Hit(f"context:{n}", f"context:{n}", (), f"Context {n}", (), text, "", 1.0, "given")
        for n, text in enumerate(ask.context, 1)
    )
    nowhere = Index(0, ask.collection or "", IndexSettings(), "live", 0)
    return Retrieval(question, hits, nowhere, 0, (), {}, (question,))
