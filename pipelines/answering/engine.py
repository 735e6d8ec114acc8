"""Answers questions: interprets the question, finds material, and writes the answer.

The engine works in a notebook too. It composes steps that are plain objects and may run anywhere. A failed step
degrades the answer but never fails the question. This module knows nothing about HTTP, Ray or environment variables.
"""

from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Unpack

from anyio.from_thread import start_blocking_portal

from pipelines import tracing
from pipelines.answering.answerers import Answerers, Steps
from pipelines.answering.background import BackgroundAnswerer
from pipelines.answering.conversation.reader import QuestionReader
from pipelines.answering.events import Event, Send, pull
from pipelines.answering.question import EngineSettings, Question
from pipelines.answering.retrieval.fusion_retriever import as_retriever
from pipelines.answering.retrieval.interface import AsyncRetriever, Leg, Matrix
from pipelines.answering.retrieval.search import Retrieval, Search
from pipelines.answering.synthesis.base import Synthesizer
from pipelines.answering.trace import ASKED, Trace, note_answer
from pipelines.answering.writing.writer import AnswerWriter
from pipelines.llm.session import ChatModel
from pipelines.records import Answer, Index


class QueryEngine:
    """Answers questions: `QueryEngine(retriever, synthesizer, llm).query("How …?")`.

    Without an LLM, answers are extractive. `retriever` is one of Raydex's, your own `Leg`, or a list of legs, whose
    hits are fused. `steps` are the optional steps (`Steps`): `agents` (the extractive agent is always added as the last
    one), a `router`, a `rewriter`, a `reranker`, and `verified`, the answers that people wrote, which are tried first.
    """

    def __init__(
        self,
        retriever: AsyncRetriever | Leg | Sequence[Leg],
        synthesizer: Synthesizer | None = None,
        llm: ChatModel | None = None,
        *,
        settings: EngineSettings = EngineSettings(),
        **steps: Unpack[Steps],
    ) -> None:
        self.settings = settings
        self._retriever = retriever = as_retriever(retriever)
        self._reader = QuestionReader(retriever, steps.get("rewriter"), settings.longest_question)
        self._writer = AnswerWriter(steps.get("agents", ()), retriever.aembed, llm, synthesizer)
        self._background = BackgroundAnswerer(retriever, self._writer.models)
        self._dates = steps.get("dates")
        self._answerers = Answerers(retriever, self._writer, settings, steps)
        self.agents, self.modes = self._writer.names, self._writer.modes

    # -- questions

    def query(self, question: str | Question, **options: Any) -> Answer:
        """Return the answer; `options` are fields of Question. Raises the errors of `stream`."""
        with start_blocking_portal() as portal:
            return portal.call(self.aquery, _with_options(question, options))

    def search(self, question: str | Question, **options: Any) -> Retrieval:
        """Return only the hits. Raises the errors of `stream`."""
        with start_blocking_portal() as portal:
            return portal.call(self.asearch, _with_options(question, options))

    async def aquery(self, question: str | Question, **options: Any) -> Answer:
        """Return the answer. Cancelling it cancels the calls in progress. Raises the errors of `stream`."""
        return await self._answer(_with_options(question, options), lambda event: None)

    async def asearch(self, question: str | Question, **options: Any) -> Retrieval:
        """Return only the hits, with the seconds that each step took. Raises the errors of `stream`."""
        question, trace = _with_options(question, options), Trace()
        reading = await self._reader.with_page(self._reader.read_alone(question), trace)
        retrieval = await self._answerers.find(reading, trace)
        return replace(retrieval, degraded=tuple(trace.degraded), timings=trace.all_timings())

    def stream(self, question: Question) -> AsyncGenerator[Event, None]:
        """Yield the Retrieval, each Status and Delta when it is ready, and last the Answer.

        Closing the generator cancels the calls in progress. Raises QuestionTooLong, UnknownMode, TemplateError,
        CollectionNotNamed, NoLiveIndex, StoreUnavailable and StepUnavailable.
        """

        async def answer(send: Send) -> None:
            send(await self._answer(question, send))

        return pull(answer)

    async def _answer(self, question: Question, send: Send) -> Answer:
        """Return the answer, after sending the events that precede it."""
        if question.background:
            return await self._background.answer(question, question.background, send)
        trace, mode = Trace(), self._writer.check_mode(question.mode or self.settings.mode)
        with tracing.span("invoke_agent raydex", ASKED, root=True):
            with tracing.span("read"):
                reading = await self._reader.read(question, mode, trace, send)
            with tracing.span("find"):
                draft = await self._answerers.take(reading, trace, send)
            send(draft.retrieval)
            with tracing.span("write"):
                written = await self._writer.write(draft, trace, send)
                answer = written.answer(question)
                answer = await self._dates.add(answer) if self._dates else answer
            note_answer(answer)
        return answer

    # -- only the retriever

    async def aready(self, collection: str | None = None) -> Index:
        """Return the live index if it can answer a question now. Raises the errors of `Retriever.ready`."""
        return await self._retriever.aready(collection)

    async def aretrieve(self, search: Search) -> Retrieval:
        """Return the retriever's hits, without rewriting or reranking."""
        return await self._retriever.aretrieve(search)

    async def aembed(self, texts: Sequence[str], collection: str | None = None) -> Matrix:
        """Return vectors of `texts` from the live index's model: float32 (n, d), rows of length 1."""
        return await self._retriever.aembed(texts, collection)


def _with_options(question: str | Question, options: Mapping[str, Any]) -> Question:
    return replace(question, **options) if isinstance(question, Question) else Question(question, **options)
