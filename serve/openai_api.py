"""The service in OpenAI's words: collections are models, a chat completion is a cited answer.

The `openai` client works against it unchanged. What the protocol has no place for rides in one key, `raydex`: options
in a request, sources in a reply. Knows nothing of how an answer is made.
"""

import base64
import re
import time
from collections.abc import AsyncIterator, Sequence
from typing import Annotated, Any, Literal

import numpy as np
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ConfigDict, Field, model_validator
from sse_starlette import ServerSentEvent

from pipelines.answering.engine import Ask, Delta, Event, QueryEngine, Retrieved
from pipelines.records import Answer, Citation, Filters, Message
from pipelines.store import NoLiveIndex, Store, clean
from serve.asking import Asked, Asking
from serve.errors import failure_of
from serve.keys import Aside
from serve.schemas import (
    MOST_CHARACTERS,
    MOST_MESSAGES,
    AnswerOut,
    FiltersIn,
    K,
    Name,
    QuestionText,
    Text,
)
from serve.stream import EventStream, StreamedAnswer, event, first_of

# The model of a service that has one collection, or a collection that it means where none is named.
DEFAULT_MODEL = "raydex"
# As many as OpenAI takes in one request.
MOST_INPUTS = 2048


# ---------------------------------------------------------------------------------------------- requests


class Part(BaseModel):
    """A piece of a message. Pictures, sounds and files can't be read."""

    type: Literal["text"]
    text: Text


class ChatMessage(BaseModel):
    """One message. System messages and tools' replies are passed over: what the service may say is its operator's."""

    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: Text | list[Part] | None = None

    @property
    def text(self) -> str:
        parts = [self.content] if isinstance(self.content, str) else [part.text for part in self.content or ()]
        return "\n".join(parts).strip()


class Options(BaseModel):
    """What the protocol has no field for: `extra_body={"raydex": {…}}` of the client."""

    model_config = ConfigDict(extra="forbid")

    footnotes: Annotated[bool | None, Field(description="sources as Markdown footnotes in the text")] = None
    k: K | None = None
    filters: FiltersIn | None = None
    mode: Name | None = None
    variables: dict[Name, Text] = {}
    conversation: Name | None = None


class StreamOptions(BaseModel):
    """`include_usage`: a last chunk with the tokens."""

    include_usage: bool = False


class ResponseFormat(BaseModel):
    """Answers are text with citations."""

    type: Literal["text"]


class ChatIn(BaseModel):
    """A chat whose last user message is the question. Sampling parameters and tools are taken and not used."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"model": "docs", "messages": [{"role": "user", "content": "How do I read a CSV file?"}]},
                {
                    "model": "docs",
                    "messages": [{"role": "user", "content": "How do I read a CSV file?"}],
                    "stream": True,
                    "raydex": {"footnotes": True, "k": 8},
                },
            ]
        }
    )

    model: Name
    messages: Annotated[list[ChatMessage], Field(min_length=1, max_length=2000)]
    stream: bool | None = False
    stream_options: StreamOptions | None = None
    n: Annotated[int, Field(ge=1, le=1, description="one answer")] | None = None
    response_format: ResponseFormat | None = None
    raydex: Options | None = None

    @model_validator(mode="after")
    def has_a_question(self) -> "ChatIn":
        if not self.question:
            raise ValueError("messages: there is no user message with text in it")
        if len(self.question) > MOST_CHARACTERS:
            raise ValueError(f"messages: the question has more than {MOST_CHARACTERS} characters")
        return self

    @property
    def question(self) -> str:
        """The last message of the user."""
        return next((message.text for message in reversed(self.messages) if message.role == "user"), "")

    @property
    def history(self) -> tuple[Message, ...]:
        """What user and assistant said before the question."""
        last = max(n for n, message in enumerate(self.messages) if message.role == "user")
        said = [Message(m.role, m.text) for m in self.messages[:last] if m.role in ("user", "assistant") and m.text]
        return tuple(said[-MOST_MESSAGES:])

    def ask(self) -> Ask:
        options = self.raydex or Options()
        return Ask(
            self.question,
            collection=_collection(self.model),
            k=options.k,
            filters=options.filters.record() if options.filters else Filters(),
            history=self.history,
            mode=options.mode,
            variables=options.variables,
        )


class EmbeddingsIn(BaseModel):
    """Texts to embed with the model of a collection, as its questions are embedded."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"model": "docs", "input": ["How do I read a CSV file?"]}]}
    )

    model: Name
    input: QuestionText | Annotated[list[QuestionText], Field(min_length=1, max_length=MOST_INPUTS)]
    encoding_format: Literal["float", "base64"] | None = "float"
    dimensions: Annotated[int, Field(ge=1, description="that of the model; no other can be had")] | None = None

    @model_validator(mode="before")
    @classmethod
    def is_text(cls, given: Any) -> Any:
        texts = given.get("input") if isinstance(given, dict) else None
        if isinstance(texts, list) and texts and not all(isinstance(text, str) for text in texts):
            raise ValueError("input: token ids can't be embedded here, send the text itself")
        return given


# ---------------------------------------------------------------------------------------------- replies


class OpenAIError(BaseModel):
    """OpenAI's shape of an error."""

    class Detail(BaseModel):
        message: str
        type: str
        code: str | None
        param: str | None

    error: Detail


class ModelOut(BaseModel):
    """A collection that can be asked."""

    id: str
    object: Literal["model"] = "model"
    created: int
    owned_by: str = DEFAULT_MODEL


class ModelsOut(BaseModel):
    """All collections that can be asked."""

    object: Literal["list"] = "list"
    data: list[ModelOut]


class UsageOut(BaseModel):
    prompt_tokens: int
    completion_tokens: int
    total_tokens: int


class ChatOut(BaseModel):
    """A chat completion; `raydex` holds the reply of /query but for the text and the hits."""

    class Choice(BaseModel):
        class MessageOut(BaseModel):
            role: Literal["assistant"] = "assistant"
            content: str
            refusal: None = None

        index: int = 0
        message: MessageOut
        finish_reason: Literal["stop"] = "stop"
        logprobs: None = None

    id: str
    object: Literal["chat.completion"] = "chat.completion"
    created: int
    model: str
    choices: list[Choice]
    usage: UsageOut
    raydex: dict[str, Any]


class EmbeddingsOut(BaseModel):
    """Vectors of length 1, as lists or as base64 of little-endian float32."""

    class EmbeddingOut(BaseModel):
        object: Literal["embedding"] = "embedding"
        index: int
        embedding: list[float] | str

    object: Literal["list"] = "list"
    data: list[EmbeddingOut]
    model: str
    usage: dict[str, int]


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
        vectors = np.asarray(await engine.aembed(texts, _collection(body.model)), dtype="<f4")
        if body.dimensions not in (None, vectors.shape[1]):
            why = f"the model's vectors have {vectors.shape[1]} dimensions, not {body.dimensions}"
            raise RequestValidationError([{"loc": ("body", "dimensions"), "msg": why, "type": "value_error"}])
        shown = [_base64(vector) if body.encoding_format == "base64" else vector.tolist() for vector in vectors]
        rows = [EmbeddingsOut.EmbeddingOut(index=n, embedding=vector) for n, vector in enumerate(shown)]
        # How many tokens its model makes of them the service does not count; OpenAI's client wants the key.
        return EmbeddingsOut(data=rows, model=body.model, usage={"prompt_tokens": 0, "total_tokens": 0})


def _base64(vector: np.ndarray) -> str:
    return base64.b64encode(vector.tobytes()).decode()


def _collection(model: str) -> str | None:
    return None if model == DEFAULT_MODEL else model


# ---------------------------------------------------------------------------------------------- completions


def _completion(answer: Answer, asked: Asked, model: str, notes: bool) -> ChatOut:
    text = clean(answer.text)
    if notes:
        footnotes = Footnotes()
        text = footnotes.feed(text) + footnotes.close() + definitions(answer.citations)
    return ChatOut(
        id=f"chatcmpl-{answer.id}",
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
            "id": f"chatcmpl-{asked.ask.id}",
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


# ---------------------------------------------------------------------------------------------- footnotes


class Footnotes:
    """Turns `[1]` into `[^1]`, Markdown's mark of a footnote, in a text that comes in pieces; code is left alone.

    The pieces that come out are, put together, the same however the text was cut.
    """

    _TOKEN = re.compile(r"(`+)|\[(\d{1,4})\]|(\n\s*\n)")
    _MAY_GROW = re.compile(r"(?:`+|\[\d{0,4}|\n\s*)\Z")

    def __init__(self) -> None:
        self._held = ""
        self._ticks = 0  # length of the run of backticks that the code began with, 0 outside code

    def feed(self, text: str) -> str:
        """What can be said now; the beginning of a possible mark is held back."""
        text = self._held + text
        cut = self._MAY_GROW.search(text)
        end = cut.start() if cut else len(text)
        self._held = text[end:]
        return self._TOKEN.sub(self._mark, text[:end])

    def close(self) -> str:
        """What was held back."""
        held, self._held = self._held, ""
        return self._TOKEN.sub(self._mark, held)

    def _mark(self, found: re.Match[str]) -> str:
        ticks, number, blank = found.groups()
        if ticks:
            self._ticks = len(ticks) if not self._ticks else 0 if self._ticks == len(ticks) else self._ticks
        elif blank and self._ticks < 3:
            self._ticks = 0  # code in a line does not go on after a blank one
        return f"[^{number}]" if number and not self._ticks else found[0]


def definitions(citations: Sequence[Citation]) -> str:
    """The footnotes that the marks refer to, as the end of a text; nothing where nothing is cited."""
    lines = [f"[^{c.n}]: [{_escaped(c.title or c.source)}](<{_target(c.source)}>)" for c in citations]
    return "\n\n" + "\n".join(lines) if lines else ""


def _escaped(title: str) -> str:
    return re.sub(r"([\\\[\]`*_<>])", r"\\\1", " ".join(clean(title).split()))


def _target(source: str) -> str:
    return clean(source).translate({ord("<"): "%3C", ord(">"): "%3E", ord("\n"): "%0A", ord(" "): "%20"})
