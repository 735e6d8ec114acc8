"""The service in OpenAI's words: collections are models, a chat completion is a cited answer.

The `openai` client works against it unchanged. What the protocol has no place for rides in one key, `raydex`: options
in a request, sources in a reply. Knows nothing of how an answer is made.
"""

import base64
import time
from collections.abc import AsyncIterator
from typing import Any

import numpy as np
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from sse_starlette import ServerSentEvent

from pipelines.answering.engine import Delta, Event, QueryEngine, Retrieved
from pipelines.records import Answer
from pipelines.store import NoLiveIndex, Store, clean
from serve.api.errors import failure_of
from serve.api.footnotes import Footnotes, definitions
from serve.api.openai_schemas import (
    DEFAULT_MODEL,
    ChatIn,
    ChatOut,
    EmbeddingsIn,
    EmbeddingsOut,
    ModelOut,
    ModelsOut,
    OpenAIError,
    Options,
    UsageOut,
    collection_of,
)
from serve.api.schemas import COMPLETION, AnswerOut
from serve.api.stream import EventStream, StreamedAnswer, event, first_of
from serve.guard.keys import Aside
from serve.session import Asked, Asking

# ---------------------------------------------------------------------------------------------- routes

_WRONG = {
    status: {"model": OpenAIError, "description": why}
    for status, why in {
        400: "Something in the request can't be used; `param` names it.",
        401: "No API key, or one that opens nothing here.",
        404: "There is no such model: no collection of that name has anything published.",
        429: "Too many requests with this key.",
        503: "The database or a model is away or busy; come back after `Retry-After` seconds.",
    }.items()
}


def add_openai(
    app: FastAPI,
    engine: QueryEngine,
    store: Store,
    aside: Aside,
    asking: Asking,
    *,
    footnotes: bool,
    heartbeat_s: float,
) -> None:
    """Add /v1/chat/completions, /v1/models and /v1/embeddings; `footnotes` where a request does not say."""
    _add_chat(app, asking, footnotes, heartbeat_s)
    _add_models(app, store, aside)
    _add_embeddings(app, engine)


def _add_chat(app: FastAPI, asking: Asking, footnotes: bool, heartbeat_s: float) -> None:
    @app.post(
        "/v1/chat/completions",
        summary="A cited answer in OpenAI's words, whole or streamed",
        response_model=ChatOut,
        responses={
            200: {"content": {"text/event-stream": {"schema": {"type": "string"}}}},
            **{status: _WRONG[status] for status in (400, 401, 404, 429, 503)},
            422: {"description": "Not used: what can't be used is a 400 here.", "model": OpenAIError},
        },
    )
    async def chat(body: ChatIn, request: Request) -> Any:
        options = body.raydex or Options()
        notes = footnotes if options.footnotes is None else options.footnotes
        asked = await asking.begin(request, body.ask(), options.conversation)
        if not body.stream:
            return _completion(await asking.answer(request, asked), asked, body.model, notes)
        events = asking.stream(asked)
        first = await first_of(request, events)
        usage = bool(body.stream_options and body.stream_options.include_usage)
        chunks = Chunks(body.model, asking, asked, notes, usage)
        silence = ServerSentEvent(comment="still here", sep="\n")
        return StreamedAnswer(chunks.of(first, events), events, heartbeat=silence, heartbeat_s=heartbeat_s)


def _add_models(app: FastAPI, store: Store, aside: Aside) -> None:
    @app.get("/v1/models", summary="The collections that can be asked", responses={503: _WRONG[503]})
    async def models() -> ModelsOut:
        rows = await aside(store.collections)
        return ModelsOut(data=[_model(row["name"], row) for row in rows if row["index"] is not None])

    @app.get(
        "/v1/models/{model:path}",
        summary="One of them",
        responses={
            **{status: _WRONG[status] for status in (404, 503)},
            422: {"description": "Not used.", "model": OpenAIError},
        },
    )
    async def model(model: str) -> ModelOut:
        rows = [row for row in await aside(store.collections) if row["index"] is not None]
        if model == DEFAULT_MODEL and rows:
            return _model(model, rows[0])
        for row in rows:
            if row["name"] == model:
                return _model(model, row)
        raise NoLiveIndex(f"there is no model {clean(model)!r}: GET /v1/models lists them")


def _model(name: str, row: Any) -> ModelOut:
    published = row["published_at"]
    return ModelOut(id=name, created=int(published.timestamp()) if published else 0)


def _add_embeddings(app: FastAPI, engine: QueryEngine) -> None:
    @app.post(
        "/v1/embeddings",
        summary="Vectors by the embedding model of a collection",
        responses={
            **{status: _WRONG[status] for status in (400, 401, 404, 429, 503)},
            422: {"description": "Not used: what can't be used is a 400 here.", "model": OpenAIError},
        },
    )
    async def embeddings(body: EmbeddingsIn) -> EmbeddingsOut:
        texts = [body.input] if isinstance(body.input, str) else body.input
        vectors = np.asarray(await engine.aembed(texts, collection_of(body.model)), dtype="<f4")
        if body.dimensions not in (None, vectors.shape[1]):
            why = f"the model's vectors have {vectors.shape[1]} dimensions, not {body.dimensions}"
            raise RequestValidationError([{"loc": ("body", "dimensions"), "msg": why, "type": "value_error"}])
        shown = [_base64(vector) if body.encoding_format == "base64" else vector.tolist() for vector in vectors]
        rows = [EmbeddingsOut.EmbeddingOut(index=n, embedding=vector) for n, vector in enumerate(shown)]
        # How many tokens its model makes of them the service does not count; OpenAI's client wants the key.
        return EmbeddingsOut(data=rows, model=body.model, usage={"prompt_tokens": 0, "total_tokens": 0})


def _base64(vector: np.ndarray) -> str:
    return base64.b64encode(vector.tobytes()).decode()


# ---------------------------------------------------------------------------------------------- completions


def _completion(answer: Answer, asked: Asked, model: str, notes: bool) -> ChatOut:
    text = clean(answer.text)
    if notes:
        footnotes = Footnotes()
        text = footnotes.feed(text) + footnotes.close() + definitions(answer.citations)
    return ChatOut(
        id=f"{COMPLETION}{answer.id}",
        created=int(time.time()),
        model=model,
        choices=[ChatOut.Choice(message=ChatOut.Choice.MessageOut(content=text))],
        usage=_usage(answer),
        raydex=sources(answer, asked.conversation),
    )


def sources(answer: Answer, conversation: str) -> dict[str, Any]:
    """What a reply holds under `raydex`: all that /query says but for the text and the hits."""
    whole = AnswerOut.of(answer, conversation).model_dump(exclude_unset=True)
    return {name: value for name, value in whole.items() if name not in ("answer", "hits", "question", "timings")}


def _usage(answer: Answer) -> UsageOut:
    prompt, completion = answer.usage.prompt_tokens, answer.usage.completion_tokens
    return UsageOut(prompt_tokens=prompt, completion_tokens=completion, total_tokens=prompt + completion)


class Chunks:
    """One answer as OpenAI's chunks. A text that is void can't be taken back: what follows stands below it."""

    def __init__(self, model: str, asking: Asking, asked: Asked, notes: bool, usage: bool) -> None:
        self._asking, self._asked, self._usage = asking, asked, usage
        self._footnotes = Footnotes() if notes else None
        self._same = {
            "id": f"{COMPLETION}{asked.ask.id}",
            "object": "chat.completion.chunk",
            "created": int(time.time()),
            "model": model,
        }

    async def of(self, first: Event, events: EventStream) -> AsyncIterator[ServerSentEvent]:
        """The chunks, then `[DONE]`; a failure is OpenAI's error, the last of all."""
        try:
            yield self._chunk({"role": "assistant", "content": ""})
            for chunk in self._said(first):
                yield chunk
            async for happened in events:
                for chunk in self._said(happened):
                    yield chunk
            yield ServerSentEvent("[DONE]", sep="\n")
        except Exception as error:
            yield event(None, failure_of(error).openai_body)

    def _said(self, happened: Event) -> list[ServerSentEvent]:
        if isinstance(happened, Retrieved):
            return []
        if isinstance(happened, Delta):
            return self._text(self._delta(happened))
        answer = self._asking.done(self._asked, happened)
        rest = self._footnotes.close() + definitions(answer.citations) if self._footnotes else ""
        last = self._chunk({}, "stop", raydex=sources(answer, self._asked.conversation))
        used = [self._send({"choices": [], "usage": _usage(answer).model_dump()})] if self._usage else []
        return [*self._text(rest), last, *used]

    def _delta(self, delta: Delta) -> str:
        text = clean(delta.text)
        if self._footnotes is None:
            return f"\n\n{text}" if delta.reset else text
        before = ""
        if delta.reset:
            before, self._footnotes = f"{self._footnotes.close()}\n\n", Footnotes()
        return before + self._footnotes.feed(text)

    def _text(self, text: str) -> list[ServerSentEvent]:
        return [self._chunk({"content": text})] if text else []

    def _chunk(self, delta: dict[str, str], finish: str | None = None, **more: object) -> ServerSentEvent:
        choice = {"index": 0, "delta": delta, "finish_reason": finish, "logprobs": None}
        return self._send({"choices": [choice], **more})

    def _send(self, body: dict[str, Any]) -> ServerSentEvent:
        return event(None, {**self._same, **({"usage": None} if self._usage else {}), **body})
