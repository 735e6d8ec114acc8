"""Handlers of OpenAI's API: collections are models, a chat completion is a cited answer.

The `openai` client works with it unchanged. Everything that has no field in OpenAI's format is in the key `raydex`:
options in a request, sources in a reply.
"""

import asyncio
import base64
import re
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError
from sse_starlette import ServerSentEvent

from pipelines.answering.engine import QueryEngine
from pipelines.answering.events import Delta, Event
from pipelines.answering.retrieval.search import Retrieval
from pipelines.llm.session import Status
from pipelines.llm.tokens import estimate
from pipelines.records import Answer
from pipelines.store import NoLiveIndex, Store
from pipelines.text.cleaning import clean_for_storage
from pipelines.text.counts import counted
from serve.api.errors import failure_of
from serve.api.inquiry import Inquiries, Inquiry, Origin
from serve.api.openai import schemas
from serve.api.openai.sources import BY_PERSON, WRITERS, SourcesPlace, SourceWriter
from serve.api.replies import AnswerOut, StatusOut
from serve.api.requests import COMPLETION_PREFIX
from serve.api.stream import StreamedAnswer, first_event, make_event
from serve.guard.cors import IGNORED
from serve.threads import DatabaseThreads

MOST_NAMED = 20  # models in an error, fields in a header: enough to spot a misspelled name
PLAIN_NAME = re.compile(r"[\w.-]{1,64}", re.ASCII)


class OpenAIRoutes:
    """The handlers, one for each route in routes.py. `sources` applies if a request does not say."""

    def __init__(
        self,
        engine: QueryEngine,
        store: Store,
        threads: DatabaseThreads,
        inquiries: Inquiries,
        sources: SourcesPlace,
        heartbeat_s: float,
    ) -> None:
        self._engine, self._store, self._threads = engine, store, threads
        self._inquiries, self._sources, self._heartbeat_s = inquiries, sources, heartbeat_s

    async def chat(
        self, body: schemas.ChatIn, request: Request, response: Response
    ) -> schemas.ChatOut | StreamedAnswer:
        options = body.raydex or schemas.RaydexOptions()
        places: dict[bool | None, SourcesPlace] = {None: self._sources, True: "footnotes", False: "key"}
        place = places[options.footnotes]
        question = body.to_question()
        if question.background:
            place = "key"  # a program reads the text
        inquiry = await self._inquiries.open(request, question, Origin(options.conversation, "openai"))
        tokens = await asyncio.to_thread(_estimate, [message.text for message in body.messages])
        asked = ChatRequest(body, place, tokens)
        said = _ignored_header(body.ignored)
        response.headers.update(said)
        try:
            if not body.stream:
                return _completion(await inquiry.answer(request), inquiry, asked)
            events = inquiry.stream()
            first = await first_event(request, events)
        except NoLiveIndex as error:
            raise await self._no_model(body.model) from error
        return StreamedAnswer(ChatChunks(inquiry, asked), first, events, self._heartbeat_s, said)

    async def models(self) -> schemas.ModelsOut:
        return schemas.ModelsOut(data=[_model(row["name"], row) for row in await self._published()])

    async def model(self, model: str) -> schemas.ModelOut:
        for row in await self._published():
            if model in (schemas.DEFAULT_MODEL, row["name"]):
                return _model(model, row)
        raise await self._no_model(model)

    async def embeddings(self, body: schemas.EmbeddingsIn) -> schemas.EmbeddingsOut:
        try:
            vectors = np.asarray(await self._engine.aembed(body.input, schemas.collection_of(body.model)), dtype="<f4")
        except NoLiveIndex as error:
            raise await self._no_model(body.model) from error
        if body.dimensions not in (None, vectors.shape[1]):
            why = f"the model's vectors have {counted(vectors.shape[1], 'dimension')}, not {body.dimensions}"
            raise RequestValidationError([{"loc": ("body", "dimensions"), "msg": why, "type": "value_error"}])
        packed = body.encoding_format == "base64"
        encoded = [base64.b64encode(vector).decode() if packed else vector.tolist() for vector in vectors]
        rows = [schemas.EmbeddingsOut.EmbeddingOut(index=n, embedding=vector) for n, vector in enumerate(encoded)]
        read = await asyncio.to_thread(_estimate, body.input)
        return schemas.EmbeddingsOut(data=rows, model=body.model, usage={"prompt_tokens": read, "total_tokens": read})

    async def _no_model(self, model: str) -> NoLiveIndex:
        """Return the error for an unknown model, with the names of the known ones."""
        names = [row["name"] for row in await self._published()]
        more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
        there_are = f"the models are {', '.join(names[:MOST_NAMED])}{more}" if names else "nothing is published yet"
        return NoLiveIndex(f"there is no model {clean_for_storage(model)!r}: {there_are} (GET /v1/models)")

    async def _published(self) -> list[Mapping[str, Any]]:
        rows = await self._threads.run(self._store.collections)
        return [row for row in rows if row["index"] is not None]


def _model(name: str, row: Mapping[str, Any]) -> schemas.ModelOut:
    published = row["published_at"]
    return schemas.ModelOut(id=name, created=int(published.timestamp()) if published else 0)


@dataclass(frozen=True)
class ChatRequest:
    """A request, the place for its sources, and the estimated tokens of its messages."""

    body: schemas.ChatIn
    place: SourcesPlace
    tokens: int


def _completion(answer: Answer, inquiry: Inquiry, asked: ChatRequest) -> schemas.ChatOut:
    writer = WRITERS[asked.place]()
    text = writer.feed(clean_for_storage(answer.text)) + writer.close() + _below(answer, writer, asked.place)
    message = schemas.ChatOut.Choice.AssistantMessageOut(content=text)
    return schemas.ChatOut(
        id=f"{COMPLETION_PREFIX}{answer.id}",
        created=int(time.time()),
        model=asked.body.model,
        choices=[schemas.ChatOut.Choice(message=message, finish_reason=answer.finish_reason)],
        usage=_token_counts(answer, asked),
        raydex=_sources(answer, inquiry.conversation, asked),
    )


def _ignored_header(names: Iterable[str]) -> dict[str, str]:
    """Return the header that lists ignored fields; clients choose the names, so only plain ones are included."""
    plain = [name for name in names if PLAIN_NAME.fullmatch(name)][:MOST_NAMED]
    return {IGNORED: ", ".join(plain)} if plain else {}


def _below(answer: Answer, writer: SourceWriter, place: SourcesPlace) -> str:
    """Return the text below the answer for clients that show only text: its author and the sources."""
    label = BY_PERSON if answer.written_by == "person" and place != "key" else ""
    return label + writer.list_sources(answer.citations)


def _sources(answer: Answer, conversation: str, asked: ChatRequest) -> dict[str, Any]:
    """Return the reply's `raydex`: the reply of /query without the text and the hits, and the ignored fields."""
    whole = AnswerOut.of(answer, conversation).model_dump(exclude_unset=True)
    kept = {name: value for name, value in whole.items() if name not in ("answer", "hits", "question", "timings")}
    return {**kept, **({"ignored": asked.body.ignored} if asked.body.ignored else {})}


def _token_counts(answer: Answer, asked: ChatRequest) -> schemas.TokenCountsOut:
    prompt = answer.usage.prompt_tokens or asked.tokens
    completion = answer.usage.completion_tokens or estimate(answer.text)
    return schemas.TokenCountsOut(prompt_tokens=prompt, completion_tokens=completion, total_tokens=prompt + completion)


def _estimate(texts: Sequence[str]) -> int:
    return sum(map(estimate, texts))


class ChatChunks:
    """Encodes one answer as OpenAI's chunks. The format can't retract text: the new text follows below it."""

    heartbeat = ServerSentEvent(comment="still here", sep="\n")

    def __init__(self, inquiry: Inquiry, asked: ChatRequest) -> None:
        options = asked.body.stream_options
        self._inquiry, self._asked, self._usage = inquiry, asked, bool(options and options.include_usage)
        self._place, self._writer = asked.place, WRITERS[asked.place]()
        self._frame = {
            "id": f"{COMPLETION_PREFIX}{inquiry.question.id}",
            "object": "chat.completion.chunk",
            "created": int(time.time()),
            "model": asked.body.model,
        }

    def begin(self) -> Iterable[ServerSentEvent]:
        return [self._chunk({"role": "assistant", "content": ""})]

    def encode(self, event: Event) -> Iterable[ServerSentEvent]:
        if isinstance(event, Retrieval):
            return []
        if isinstance(event, Status):
            return [self._chunk({}, raydex={"status": StatusOut.model_validate(event).model_dump()})]
        if isinstance(event, Delta):
            return self._text(self._delta(event))
        answer = self._inquiry.finish(event)
        rest = self._writer.close() + _below(answer, self._writer, self._place)
        raydex = _sources(answer, self._inquiry.conversation, self._asked)
        last = self._chunk({}, answer.finish_reason, raydex=raydex)
        usage = _token_counts(answer, self._asked).model_dump()
        used = [self._event({"choices": [], "usage": usage})] if self._usage else []
        return [*self._text(rest), last, *used, ServerSentEvent("[DONE]", sep="\n")]

    def fail(self, error: Exception) -> ServerSentEvent:
        return make_event(None, failure_of(error).openai_body)

    def _delta(self, delta: Delta) -> str:
        text = clean_for_storage(delta.text)
        before = ""
        if delta.reset:
            before, self._writer = f"{self._writer.close()}\n\n", WRITERS[self._place]()
        return before + self._writer.feed(text)

    def _text(self, text: str) -> list[ServerSentEvent]:
        return [self._chunk({"content": text})] if text else []

    def _chunk(self, delta: dict[str, str], finish: str | None = None, **more: object) -> ServerSentEvent:
        choice = {"index": 0, "delta": delta, "finish_reason": finish, "logprobs": None}
        return self._event({"choices": [choice], **more})

    def _event(self, body: dict[str, Any]) -> ServerSentEvent:
        return make_event(None, {**self._frame, **({"usage": None} if self._usage else {}), **body})
