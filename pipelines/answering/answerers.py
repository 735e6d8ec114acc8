"""Tries the ways to answer a question in order: small talk, a verified answer, hits, given texts."""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TypedDict

from pipelines.answering.conversation.notes import make_notes, note_search
from pipelines.answering.conversation.reader import Reading
from pipelines.answering.conversation.rewriting import Rewriter
from pipelines.answering.events import Send
from pipelines.answering.forms import ChosenForm, FormFinder
from pipelines.answering.grounding.dates import SourceDates
from pipelines.answering.grounding.subject import subject_first
from pipelines.answering.hit_finder import HitFinder
from pipelines.answering.question import EngineSettings
from pipelines.answering.reranking.base import Reranker
from pipelines.answering.research.researcher import Researcher
from pipelines.answering.retrieval.interface import AsyncRetriever
from pipelines.answering.retrieval.legs import VECTOR
from pipelines.answering.retrieval.live import CollectionNotNamed, NotReady
from pipelines.answering.retrieval.neighbours import EXTRA
from pipelines.answering.retrieval.search import Retrieval
from pipelines.answering.routing.router import FixedRouter, Router
from pipelines.answering.synthesis.base import DEFAULT_MODE, Task
from pipelines.answering.synthesis.modes import NO_TEXT, RESEARCH, uses_retrieval
from pipelines.answering.trace import Trace
from pipelines.answering.verified.answer_finder import VerifiedFinder
from pipelines.answering.verified.pinned import PinnedFinder
from pipelines.answering.writing.agents import Agent, StepUnavailable
from pipelines.answering.writing.citations import cite_sections
from pipelines.answering.writing.draft import Draft
from pipelines.answering.writing.writer import AnswerWriter
from pipelines.records import FULL, QUOTED, SUMMARY, VERIFIED, WRITTEN, Form, Hit, Index, IndexSettings, Route
from pipelines.store import StoreUnavailable

log = logging.getLogger(__name__)

SMALLTALK = "smalltalk"  # the agent name in the answer to a greeting or thanks


class Steps(TypedDict, total=False):
    """The optional steps of an engine, besides its retriever.

    `agents` are in the order of fallback: if one fails, the next one answers. `verified` finds the answers that people
    wrote. `pinned` finds the sections that a collection's file pins to questions. `dates` looks up when pages were last
    checked, and `forms` decides the form of each agent's answers.
    """

    agents: Sequence[Agent]
    router: Router | None
    rewriter: Rewriter | None
    reranker: Reranker | None
    verified: VerifiedFinder | None
    pinned: PinnedFinder | None
    dates: SourceDates | None
    forms: FormFinder | None


class Answerers:
    """Tries the ways to answer a question in order; the first one that applies makes the draft."""

    def __init__(self, retriever: AsyncRetriever, writer: AnswerWriter, settings: EngineSettings, steps: Steps) -> None:
        self._retriever, self._writer = retriever, writer
        self._router = steps.get("router") or FixedRouter(writer.names[0])
        self._verified, self._forms = steps.get("verified"), steps.get("forms")
        rewriter, reranker, pinned = steps.get("rewriter"), steps.get("reranker"), steps.get("pinned")
        self._finder = HitFinder(retriever, rewriter, reranker, settings, pinned)
        self._researcher = Researcher(self._finder, settings.rounds, settings.rounds_s)

    async def take(self, reading: Reading, trace: Trace, tell: Send) -> Draft:
        """Return the draft of the answer; if a model researches, `tell` receives the first hits and each Status.

        Raises TemplateError and the errors of `HitFinder.find`.
        """
        for way in (self._answer_smalltalk, self._give_verified, partial(self._retrieve, tell=tell)):
            if draft := await way(reading, trace):
                return draft
        return await self._use_given(reading, trace)

    async def find(self, reading: Reading, trace: Trace) -> Retrieval:
        """Return only the hits. Raises the errors of `HitFinder.find`."""
        return await self._finder.find(reading, trace, quoted=self._writer.quotes(""))

    async def _answer_smalltalk(self, reading: Reading, _: Trace) -> Draft | None:
        """Answer a greeting or thanks; this only looks up the collection's name. Raises NoLiveIndex."""
        if reading.smalltalk is None:
            return None
        retrieval = replace(_from_context(reading), queries=())
        names = [reading.question.collection] if reading.question.collection else []
        try:
            index = await self._retriever.aready(reading.question.collection)
            retrieval = replace(retrieval, index=index, revision=index.revision)
            names = [index.collection]
        except CollectionNotNamed as error:
            names = list(error.names)
        except NotReady as error:
            names = [error.collection] if error.collection else names
        except (StoreUnavailable, StepUnavailable) as error:
            log.info("answering a greeting anyway: %s", error)
        route = Route(SMALLTALK, f"all of it is {reading.smalltalk.kind}")
        return Draft(retrieval, route, text=reading.smalltalk.reply(names, reading.language))

    async def _give_verified(self, reading: Reading, trace: Trace) -> Draft | None:
        """Give an answer that a person wrote, unless the question is unclear or about the open page."""
        question, page, standalone = reading.question, reading.page, reading.standalone
        if self._verified is None or not reading.may_be_given or reading.unclear or page.focus:
            return None
        version = page.place.version if page.place else None
        finding = self._verified.find(standalone, question.collection, question.filters, version)
        match = await trace.attempt(VERIFIED, finding, None)
        if match is None:
            return None
        why = f"a person answered {match.question!r} (similarity {match.similarity:.2f}, verified answer {match.id})"
        return Draft(
            Retrieval(standalone, match.hits, match.index, match.index.revision, (), {}, (standalone,)),
            Route(VERIFIED, why),
            note_search(reading.asked, standalone, reading.language),
            text=match.text,
            cited=cite_sections(match.text, match.hits),
        )

    async def _retrieve(self, reading: Reading, trace: Trace, tell: Send) -> Draft | None:
        """Answer from hits, with the agent that the router chooses.

        Raises TemplateError and the errors of `HitFinder.find`.
        """
        if not uses_retrieval(reading.mode):
            return None
        route = await self._route(reading, trace)
        form, route = await self._choose_form(reading, route, trace)
        quoted = form in (SUMMARY, QUOTED) or self._writer.quotes(route.agent)
        retrieval = await self._finder.find(reading, trace, quoted=quoted, whole=form == FULL)
        if reading.mode == RESEARCH and not quoted:
            looked = await self._look_again(reading, retrieval, route, trace, tell)
            if looked is None:
                without = replace(reading, question=replace(reading.question, mode=None), mode=DEFAULT_MODE)
                return await self._retrieve(without, trace, tell)
            retrieval = looked
        about = "" if reading.page.focus else reading.about
        hits, found = subject_first(about, retrieval.hits)
        retrieval, astray = replace(retrieval, hits=hits), "" if found else about
        notes = make_notes(reading.asked, reading.unclear, retrieval, astray, reading.language)
        if reading.mode == NO_TEXT:
            return Draft(retrieval, route, notes)
        task = replace(_task(reading, retrieval), form=form)
        task = await self._writer.prepare(task, route.agent, trace)
        return Draft(replace(retrieval, hits=task.hits), route, notes, task, astray=astray)

    async def _look_again(
        self, reading: Reading, retrieval: Retrieval, route: Route, trace: Trace, tell: Send
    ) -> Retrieval | None:
        """Return the hits with further ones that a model finds; None if it can't search again."""
        agent = self._writer.researching(route.agent)
        if agent is None:
            trace.mark_degraded(RESEARCH)
            return None
        tell(replace(retrieval, hits=tuple(hit for hit in retrieval.hits if hit.score_kind != EXTRA)))
        task = replace(_task(reading, retrieval), form=FULL)
        return await self._researcher.research(reading, retrieval, task, agent, trace, tell)

    async def _use_given(self, reading: Reading, trace: Trace) -> Draft:
        """Answer from the texts that came with the question, which may be none. Raises TemplateError."""
        route = await self._route(reading, trace)
        retrieval = _from_context(reading)
        task = await self._writer.prepare(_task(reading, retrieval), route.agent, trace)
        return Draft(replace(retrieval, hits=task.hits), route, task=task)

    async def _route(self, reading: Reading, trace: Trace) -> Route:
        with trace.step("route"):
            routing = self._router.route
            fixed = isinstance(self._router, FixedRouter)  # the way to a thread and back would take longer
            route = routing(reading.standalone) if fixed else await asyncio.to_thread(routing, reading.standalone)
        self._writer.check(route.agent, reading.question.variables, reading.question.templates)
        return route

    async def _choose_form(self, reading: Reading, route: Route, trace: Trace) -> tuple[Form, Route]:
        """Return the answer's form, and the route with the reason for it; WRITTEN if the reader names a mode."""
        if self._writer.quotes(route.agent):
            return WRITTEN, route
        if reading.mode == RESEARCH:
            return FULL, route
        if self._forms is None or reading.question.mode:
            return WRITTEN, route
        finding = self._forms.find(route.agent, reading.question.collection)
        chosen = await trace.attempt("form", finding, ChosenForm())
        return chosen.form, replace(route, why=f"{route.why}; {chosen.why}") if chosen.why else route


def _task(reading: Reading, retrieval: Retrieval) -> Task:
    question = reading.question
    return Task(
        retrieval.question,
        retrieval.hits,
        question.history,
        reading.mode,
        question.variables,
        question.context,
        question.collection,
        VECTOR not in retrieval.degraded,
        evidence=retrieval.evidence,
        about=reading.about,
        parts=reading.parts,
        language=reading.language,
        structured=question.structured,
        templates=question.templates,
    )


def _from_context(reading: Reading) -> Retrieval:
    """Return the texts that came with a question as hits."""
    hits = tuple(
        Hit(f"context:{n}", f"context:{n}", (), f"Context {n}", (), text, "", 1.0, "given")
        for n, text in enumerate(reading.question.context, 1)
    )
    nowhere = Index(0, reading.question.collection or "", IndexSettings(), "live", 0)
    return Retrieval(reading.standalone, hits, nowhere, 0, (), {}, (reading.standalone,))
