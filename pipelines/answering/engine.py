"""Answers questions: route, rewrite, retrieve, rerank, synthesize, cite.

Usable from a notebook. Composes steps that are plain objects, wherever they run. A step that fails degrades the answer
but never fails the question. Knows no HTTP, no Ray and no environment.
"""

import asyncio
import logging
import uuid
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import Any

from anyio.from_thread import start_blocking_portal

from pipelines.answering.agents import Agent, LLMAgent, StepUnavailable
from pipelines.answering.chain import AgentChain, Delta
from pipelines.answering.grounding.answerable import likelihood
from pipelines.answering.grounding.citations import cite_sections
from pipelines.answering.grounding.confidence import rate_confidence
from pipelines.answering.grounding.subject import subject_first
from pipelines.answering.opening import look_at_page
from pipelines.answering.question_length import check_length
from pipelines.answering.reranking.base import Reranker, RerankFailed
from pipelines.answering.retrieval.fusion import Fusion, spread_pages, take_diverse
from pipelines.answering.retrieval.interface import AsyncRetriever, Matrix, load
from pipelines.answering.retrieval.live import CollectionNotNamed, NotReady
from pipelines.answering.retrieval.search import HITS, Retrieval, Search
from pipelines.answering.rewriting import Rewrite, Rewriter
from pipelines.answering.routing.router import FixedRouter, Router
from pipelines.answering.synthesis.base import ModeNeedsModel, Synthesizer, Task, UnknownMode
from pipelines.answering.synthesis.modes import GENERATION, MODES, NO_TEXT, uses_retrieval
from pipelines.answering.trace import Trace
from pipelines.answering.understanding.followup import complete
from pipelines.answering.understanding.language import is_foreign
from pipelines.answering.understanding.notes import make_notes, note_search
from pipelines.answering.understanding.place import OpenPage
from pipelines.answering.understanding.smalltalk import SmallTalk, find_smalltalk, strip_smalltalk
from pipelines.answering.verified.book import AnswerBook, VerifiedMatch
from pipelines.answering.verified.lookup import look_up
from pipelines.llm.session import ChatModel, Status
from pipelines.records import HIGH, VERIFIED, Answer, Filters, Hit, Index, IndexSettings, Message, Route
from pipelines.store import StoreUnavailable

log = logging.getLogger(__name__)

QUOTED_AROUND = 2  # chunks of its section on each side of a hit that may be quoted with it
SMALLTALK = "smalltalk"  # the agent's name of an answer to a greeting or thanks


@dataclass(frozen=True, slots=True)
class Question:
    """A question and its options.

    `k` is the number of hits for the answer; `previous` are the ids of the chunks that the turn before cited; `mode`
    names the synthesizer; `variables` fill its prompts; `context` are the texts of mode `context_only`; `page` is the
    URL of the page that the reader has open, which "this page" means.
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
    page: str = ""


@dataclass(frozen=True, slots=True)
class EngineSettings:
    """How many and which hits an answer is made from, and how.

    `mode` names the synthesizer and `k` is the number of hits, for questions that name none. The reranker gets `depth`
    hits. With `pages_first` the hits are of as many pages as possible; at most `max_per_page` are of one page (0: any
    number). `longest_question` is in characters.
    """

    mode: str = "compact"
    k: int = HITS
    depth: int = 30
    pages_first: bool = Fusion().pages_first
    max_per_page: int = 0
    longest_question: int = 8_000


Event = Retrieval | Status | Delta | Answer


class QueryEngine:
    """Answers questions: `QueryEngine(retriever, synthesizer, llm).query("How …?")`; extractively without an LLM.

    `agents` are further agents, in the order in which they stand in for each other; the extractive one is always the
    last resort. The attribute `verified` has the answers that people wrote: they come first.
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
        settings: EngineSettings = EngineSettings(),
    ) -> None:
        self.settings = settings
        own: list[Agent] = [LLMAgent("llm", llm, synthesizer)] if llm else []
        self._chain = AgentChain([*own, *agents], retriever.aembed)
        self.agents = self._chain.names
        self.modes = tuple(mode for mode in (*MODES, NO_TEXT) if mode != GENERATION or len(self.agents) > 1)
        self.verified: AnswerBook | None = None
        self._retriever = retriever
        self._router = router or FixedRouter(self.agents[0])
        self._rewriter = rewriter
        self._reranker = reranker

    # -- questions

    def query(self, question: str | Question, **options: Any) -> Answer:
        """Return the answer. `options` are fields of Question. Raises as `stream`."""
        with start_blocking_portal() as portal:
            return portal.call(self.aquery, _with_options(question, options))

    def search(self, question: str | Question, **options: Any) -> Retrieval:
        """Return the hits alone. Raises as `stream`."""
        with start_blocking_portal() as portal:
            return portal.call(self.asearch, _with_options(question, options))

    async def aquery(self, question: str | Question, **options: Any) -> Answer:
        """Return the answer. Cancelling it cancels the calls under way. Raises as `stream`."""
        async with aclosing(self.stream(_with_options(question, options))) as events:
            async for event in events:
                if isinstance(event, Answer):
                    return event
        raise AssertionError("a stream ends with its answer")

    async def asearch(self, question: str | Question, **options: Any) -> Retrieval:
        """Return the hits alone, with the seconds of each step. Raises as `stream`."""
        question, trace = _with_options(question, options), Trace()
        check_length(question.question, self.settings.longest_question)
        asked = strip_smalltalk(question.question)
        page = await self._look_at_page(question, asked, trace)
        retrieval = await self._retrieve(question, [page.question], trace, page)
        return replace(retrieval, degraded=tuple(trace.degraded), timings=trace.all_timings())

    async def stream(self, question: Question) -> AsyncGenerator[Event, None]:
        """Yield the Retrieval, Status and Deltas as they come, the Answer. Closing it cancels the calls under way.

        Raises QuestionTooLong, UnknownMode, TemplateError, CollectionNotNamed, NoLiveIndex, StoreUnavailable and
        StepUnavailable.
        """
        check_length(question.question, self.settings.longest_question)
        trace, mode = Trace(), self._check_mode(question.mode or self.settings.mode)
        smalltalk = find_smalltalk(question.question) if uses_retrieval(mode) and mode != NO_TEXT else None
        if smalltalk:
            async for event in self._chat(question, smalltalk, trace):
                yield event
            return
        if uses_retrieval(mode):
            async with aclosing(load(self._retriever, question.collection)) as statuses:
                async for status in statuses:
                    yield status
        trace.asked = strip_smalltalk(question.question)
        page = await self._look_at_page(question, trace.asked, trace) if uses_retrieval(mode) else OpenPage(trace.asked)
        said, trace.asked = trace.asked, page.question
        standalone = await self._condense(question, trace)
        book = self.verified if uses_retrieval(mode) and mode != NO_TEXT else None
        match = await look_up(book, standalone[0], question.collection, question.filters, page, trace)
        if match:
            for given in _give(question, standalone[0], match, trace):
                yield given
            return
        with trace.step("route"):
            trace.route = await asyncio.to_thread(self._router.route, standalone[0])
        self._chain.check(trace.route.agent, question.variables)
        if uses_retrieval(mode):
            retrieval = await self._retrieve(question, standalone, trace, page)
            about = "" if page.focus else trace.about
            hits, found = subject_first(about, retrieval.hits)
            retrieval, trace.astray = replace(retrieval, hits=hits), "" if found else about
            trace.notes = make_notes(said if page.focus else trace.asked, trace.unclear, retrieval, trace.astray)
        else:
            retrieval = _from_context(question, standalone[0])
        task = _task(question, retrieval, mode, trace.about)
        if mode != NO_TEXT:
            task = await self._chain.prepare(task, trace)
        retrieval = replace(retrieval, hits=task.hits)
        yield retrieval
        if mode != NO_TEXT:
            async with aclosing(self._write(task, trace)) as parts:
                async for part in parts:
                    yield part
        yield _answer(question, retrieval, trace)

    async def aready(self, collection: str | None = None) -> Index:
        """Return the live index, if a question would be answered from it now. Raises as `Retriever.ready`."""
        return await self._retriever.aready(collection)

    async def aretrieve(self, search: Search) -> Retrieval:
        """Return the hits of the retriever alone: no model rewrites or reranks."""
        return await self._retriever.aretrieve(search)

    async def aembed(self, texts: Sequence[str], collection: str | None = None) -> Matrix:
        """Return vectors of `texts` by the live index's model: float32 (n, d), rows of length 1."""
        return await self._retriever.aembed(texts, collection)

    # -- steps

    async def _write(self, task: Task, trace: Trace) -> AsyncGenerator[Event, None]:
        """Yield what the agents write, after the preface; one that begins anew gets the preface again."""
        if trace.preface:
            yield Delta(trace.preface)
        async with aclosing(self._chain.answer(task, trace)) as parts:
            async for part in parts:
                if isinstance(part, Delta) and part.reset:
                    yield replace(part, text=f"{trace.preface}{part.text}")
                else:
                    yield part

    def _check_mode(self, mode: str) -> str:
        if mode not in self.modes:
            raise (ModeNeedsModel if mode in MODES else UnknownMode)(mode, self.modes)
        return mode

    async def _chat(self, question: Question, smalltalk: SmallTalk, trace: Trace) -> AsyncGenerator[Event, None]:
        """Answer small talk: no step is asked but for the collection's name. Raises NoLiveIndex."""
        retrieval = replace(_from_context(question, question.question), queries=())
        names = [question.collection] if question.collection else []
        try:
            index = await self._retriever.aready(question.collection)
            retrieval = replace(retrieval, index=index, revision=index.revision)
            names = [index.collection]
        except CollectionNotNamed as error:
            names = list(error.names)
        except NotReady as error:
            names = [error.collection] if error.collection else names
        except (StoreUnavailable, StepUnavailable) as error:
            log.info("a greeting is answered all the same: %s", error)
        yield retrieval
        trace.route = Route(SMALLTALK, f"all of it is {smalltalk.kind}")
        trace.begin(SMALLTALK)
        trace.say(smalltalk.reply(names))
        yield Delta(trace.text)
        yield _answer(question, retrieval, trace)

    async def _look_at_page(self, question: Question, asked: str, trace: Trace) -> OpenPage:
        alone = not question.history
        return await look_at_page(self._retriever, asked, question.page, question.collection, alone, trace)

    async def _condense(self, question: Question, trace: Trace) -> tuple[str, ...]:
        """Return the question as it reads without the turns before it, then the rules' wording if a model wrote it.

        The rules come first, as they cost nothing and a small model does no better (docs/quality.md); the model is
        asked where they have no form, and for questions that are not in English.
        """
        if not question.history:
            return (trace.asked,)
        followup = complete(trace.asked, [turn.content for turn in question.history if turn.role == "user"])
        trace.about = followup.about
        if self._rewriter is not None and (not followup.by_form or is_foreign(trace.asked)):
            with trace.step("condense"):
                rewrite = _record(await self._rewriter.condense(trace.asked, question.history), trace)
            if not rewrite.failed:
                trace.asked = rewrite.queries[0]
                return (trace.asked, followup.question)
        trace.unclear = followup.unclear
        return (followup.question,)

    async def _retrieve(self, question: Question, standalone: Sequence[str], trace: Trace, page: OpenPage) -> Retrieval:
        rewrite = Rewrite((standalone[0],))
        if self._rewriter is not None:
            with trace.step("rewrite"):
                rewrite = _record(await self._rewriter.rewrite(standalone[0]), trace)
        settings, k = self.settings, question.k or self.settings.k
        wide = max(k, settings.depth) if self._reranker or settings.max_per_page else k
        around = QUOTED_AROUND if self._chain.quotes(trace.route.agent) else 0
        where = (question.collection, wide, question.filters, question.previous, around)
        queries = page.queries((*standalone, *rewrite.queries[1:]), bool(around))
        search = Search(queries, *where, rewrite.passage, page.place, page.focus)
        with trace.step("retrieve"):
            retrieval = await self._retriever.aretrieve(search)
        trace.timings |= retrieval.timings
        for leg in retrieval.degraded:
            trace.lose(leg)
        hits = await self._rerank(retrieval.question, retrieval.hits, trace)
        if page.focus:
            evidence = None if page.focus == "whole" and not around else retrieval.evidence
            return replace(retrieval, hits=tuple(page.arrange(hits, k)), evidence=evidence)
        hits = spread_pages(hits) if settings.pages_first else hits
        return replace(retrieval, hits=tuple(take_diverse(hits, k, settings.max_per_page)))

    async def _rerank(self, question: str, hits: Sequence[Hit], trace: Trace) -> Sequence[Hit]:
        if self._reranker is None or not hits:
            return hits
        try:
            with trace.step("rerank"):
                reranking = await self._reranker.rerank(question, hits)
        except Exception as error:
            log.warning("answering without %s: %s", self._reranker.name, error)
            trace.lose("reranker")
            if isinstance(error, RerankFailed):
                trace.pay(error.usage, error.exchanges)
            return hits
        trace.pay(reranking.usage, reranking.exchanges)
        return reranking.hits


def _with_options(question: str | Question, options: Mapping[str, Any]) -> Question:
    return replace(question, **options) if isinstance(question, Question) else Question(question, **options)


def _record(rewrite: Rewrite, trace: Trace) -> Rewrite:
    trace.pay(rewrite.usage, rewrite.exchanges)
    if rewrite.failed:
        trace.lose("rewrite")
    return rewrite


def _task(question: Question, retrieval: Retrieval, mode: str, about: str) -> Task:
    return Task(
        retrieval.question,
        retrieval.hits,
        question.history,
        mode,
        question.variables,
        question.context,
        question.collection,
        evidence=retrieval.evidence,
        about=about,
    )


def _from_context(question: Question, standalone: str) -> Retrieval:
    """Return the given texts as hits, for modes that do not retrieve."""
    hits = tuple(
        Hit(f"context:{n}", f"context:{n}", (), f"Context {n}", (), text, "", 1.0, "given")
        for n, text in enumerate(question.context, 1)
    )
    nowhere = Index(0, question.collection or "", IndexSettings(), "live", 0)
    return Retrieval(standalone, hits, nowhere, 0, (), {}, (standalone,))


def _give(question: Question, standalone: str, match: VerifiedMatch, trace: Trace) -> tuple[Event, ...]:
    """Return the events of an answer that a person wrote: its sections as hits, its text, the answer."""
    nothing: dict[str, float] = {}
    retrieval = Retrieval(standalone, match.hits, match.index, match.index.revision, (), nothing, (standalone,))
    trace.notes = note_search(trace.asked, standalone)
    why = f"a person answered {match.question!r} (likeness {match.likeness:.2f}, verified answer {match.id})"
    trace.route = Route(VERIFIED, why)
    trace.begin(VERIFIED)
    trace.say(match.text)
    answer = _answer(question, retrieval, trace)
    cited = cite_sections(match.text, match.hits)
    return retrieval, Delta(answer.text), replace(answer, citations=cited, confidence=HIGH)


def _answer(question: Question, retrieval: Retrieval, trace: Trace) -> Answer:
    citations, claims = trace.cite(retrieval.hits)
    likely = likelihood(retrieval.evidence) if retrieval.evidence else None
    held = all(citation.supported for citation in citations)
    return Answer(
        question=question.question,
        text=f"{trace.preface}{trace.text}" if trace.text else "",
        agent=trace.agent,
        citations=citations,
        hits=retrieval.hits,
        degraded=tuple(trace.degraded),
        timings=trace.all_timings(),
        index=retrieval.index.id,
        revision=retrieval.revision,
        id=question.id or uuid.uuid4().hex,
        known=trace.known,
        route=trace.route,
        queries=retrieval.queries,
        notes=trace.notes,
        usage=trace.usage,
        exchanges=tuple(trace.exchanges),
        finish_reason=trace.finish_reason,
        claims=claims,
        collection=retrieval.index.collection,
        confidence=rate_confidence(
            claims,
            trace.first_support,
            likely,
            known=trace.known and not trace.astray,
            whole=trace.is_whole and held,
            quoted=bool(trace.quoted),
        ),
    )
