"""Handlers of /query, /query/stream and /search."""

from collections.abc import Iterable
from typing import Any

from fastapi import Request
from sse_starlette import ServerSentEvent

from pipelines.answering.engine import QueryEngine
from pipelines.answering.events import Delta, Event
from pipelines.answering.retrieval.search import Retrieval
from pipelines.llm.session import Status
from pipelines.text.cleaning import clean_for_storage
from serve.api.clicks import SearchIds
from serve.api.errors import failure_of
from serve.api.inquiry import Inquiries, Inquiry, Origin
from serve.api.replies import AnswerOut, CitationOut, SearchOut, StatusOut
from serve.api.requests import QueryIn, SearchIn
from serve.api.sessions import AskedCollections, check_reader
from serve.api.stream import StreamedAnswer, first_event, make_event


class QuestionRoutes:
    """The handlers, one for each route in routes.py."""

    def __init__(
        self,
        engine: QueryEngine,
        inquiries: Inquiries,
        collections: AskedCollections,
        heartbeat_s: float,
        ids: SearchIds | None = None,
    ) -> None:
        self._engine, self._heartbeat_s, self._ids = engine, heartbeat_s, ids
        self._inquiries, self._collections = inquiries, collections

    async def query(self, question: QueryIn, request: Request) -> AnswerOut:
        reading, inquiry = await self._open(question, request)
        answer = await inquiry.answer(request)
        return AnswerOut.of(answer, inquiry.conversation, question.prompts, reading=reading)

    async def stream(self, question: QueryIn, request: Request) -> StreamedAnswer:
        reading, inquiry = await self._open(question, request)
        events = inquiry.stream()
        first = await first_event(request, events)
        return StreamedAnswer(AnswerEvents(inquiry, question.prompts, reading), first, events, self._heartbeat_s)

    async def search(self, question: SearchIn, request: Request) -> SearchOut:
        check_reader(question, request)
        found = await self._engine.asearch(await self._collections.question(question, request))
        return SearchOut.of(found, await self._ids.make(question.question, found) if self._ids else "")

    async def _open(self, question: QueryIn, request: Request) -> tuple[bool, Inquiry]:
        """Return whether the asker is a reader without a key, and the inquiry for the question."""
        reading = check_reader(question, request)
        asked = await self._collections.question(question, request)
        origin = Origin(question.conversation, question.channel, question.after)
        return reading, await self._inquiries.open(request, asked, origin)


class AnswerEvents:
    """Encodes one answer as the events of /query/stream; `prompts` and `reading` as in AnswerOut.of."""

    heartbeat = make_event("heartbeat", {})

    def __init__(self, inquiry: Inquiry, prompts: bool, reading: bool) -> None:
        self._inquiry, self._prompts, self._reading = inquiry, prompts, reading

    def begin(self) -> Iterable[ServerSentEvent]:
        return ()

    def encode(self, event: Event) -> Iterable[ServerSentEvent]:
        if isinstance(event, Retrieval):
            return [make_event("hits", _hits(event))]
        if isinstance(event, Status):
            return [make_event("status", StatusOut.model_validate(event))]
        if isinstance(event, Delta):
            return [
                make_event("delta", {"text": clean_for_storage(event.text), **({"reset": True} if event.reset else {})})
            ]
        answer = self._inquiry.finish(event)
        citations = [make_event("citation", CitationOut.model_validate(citation)) for citation in answer.citations]
        whole = AnswerOut.of(answer, self._inquiry.conversation, self._prompts, reading=self._reading)
        return [*citations, make_event("answer", whole)]

    def fail(self, error: Exception) -> ServerSentEvent:
        return make_event("error", failure_of(error).body)


def _hits(retrieval: Retrieval) -> dict[str, Any]:
    return SearchOut.of(retrieval).model_dump(include={"hits", "queries", "index", "revision"})
