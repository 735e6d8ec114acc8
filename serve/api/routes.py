"""The HTTP face: FastAPI routes around a QueryEngine. Errors have one shape and say what to do.

Knows no Ray, no environment and nothing of how an answer is made, nor who may ask: that stands around it.
"""

import base64
import contextlib
import hashlib
import re
from collections.abc import AsyncIterator
from importlib import resources
from typing import Any, Literal

from fastapi import FastAPI, Request
from fastapi.responses import HTMLResponse
from sse_starlette import ServerSentEvent
from starlette.exceptions import HTTPException

from pipelines.answering.engine import Delta, Event, QueryEngine, Retrieved
from pipelines.answering.retrieval.retriever import CollectionNotNamed, Retrieval
from pipelines.records import Index
from pipelines.store import NoLiveIndex, Store, clean
from serve.api.errors import failure_of, handle_errors
from serve.api.openai import add_openai
from serve.api.schemas import (
    AnswerOut,
    CitationOut,
    CollectionOut,
    ErrorOut,
    FeedbackIn,
    FeedbackOut,
    HealthOut,
    HitOut,
    QueryIn,
    ReadyOut,
    SearchIn,
    SearchOut,
)
from serve.api.stream import HEARTBEAT_S, EventStream, StreamedAnswer, event, first_of
from serve.guard.keys import Aside
from serve.session import Asked, Asking, Observer, QuestionLog, key_name

DESCRIPTION = """Ask a documentation site; answers cite their sources.

Errors are `{"error", "field"?, "choices"?}`. A 503 or 429 has `Retry-After`: the same request may succeed then."""

RESPONSES: dict[int, str] = {
    401: "No API key, or one that opens nothing here.",
    404: "There is no such collection, or nothing is published in it.",
    422: "Something in the request can't be used; `field` names it.",
    429: "Too many requests with this key; `Retry-After` says when the next one is let through.",
    503: "The database or a model is away or busy; come back after `Retry-After` seconds.",
}


def create_app(
    engine: QueryEngine,
    store: Store,
    *,
    recorder: QuestionLog | None = None,
    observer: Observer | None = None,
    openai_sources: Literal["key", "footnotes"] = "key",
    heartbeat_s: float = HEARTBEAT_S,
) -> FastAPI:
    """The whole HTTP application around `engine`; `store` is asked for collections, conversations and feedback.

    `recorder` writes answers down, `observer` counts them. `openai_sources`: how sources ride on chat completions
    that don't say: in the key `raydex` alone, or as Markdown footnotes too. An open stream is silent for at most
    `heartbeat_s` seconds.
    """
    app = FastAPI(title="Raydex", description=DESCRIPTION)
    aside = Aside()
    asking = Asking(engine, store, aside, recorder, observer)
    _add_questions(app, engine, asking)
    _add_stream(app, asking, heartbeat_s)
    _add_feedback(app, store, aside)
    _add_state(app, engine, store, aside)
    add_openai(app, engine, store, aside, asking, footnotes=openai_sources == "footnotes", heartbeat_s=heartbeat_s)
    _add_page(app)
    handle_errors(app)
    return app


def _errors(*statuses: int) -> dict[int | str, dict[str, Any]]:
    return {status: {"model": ErrorOut, "description": RESPONSES[status]} for status in (401, 429, *statuses)}


def _add_questions(app: FastAPI, engine: QueryEngine, asking: Asking) -> None:
    @app.post("/query", summary="A cited answer", response_model_exclude_unset=True, responses=_errors(404, 422, 503))
    async def query(question: QueryIn, request: Request) -> AnswerOut:
        asked = await asking.begin(request, question.ask(), question.conversation)
        answer = await asking.answer(request, asked)
        return AnswerOut.of(answer, asked.conversation, question.prompts)

    @app.post("/search", summary="The hits alone", responses=_errors(404, 422, 503))
    async def search(question: SearchIn) -> SearchOut:
        return SearchOut.found(await engine.asearch(question.ask()))


# ---------------------------------------------------------------------------------------------- streaming

STREAM_EXAMPLE = """event: hits
data: {"hits":[…],"queries":["How do I read a CSV file?"],"index":4,"revision":2}

event: delta
data: {"text":"Call ray.data.read_csv [1]."}

event: citation
data: {"n":1,"source":"https://docs.example/data#csv","title":"Data › CSV",…}

event: answer
data: {"id":"…","answer":"Call ray.data.read_csv [1].",…}
"""


def _add_stream(app: FastAPI, asking: Asking, heartbeat_s: float) -> None:
    @app.post(
        "/query/stream",
        summary="A cited answer while it is made, as server-sent events",
        response_class=StreamedAnswer,
        status_code=200,
        responses={
            200: {
                "description": "Events `hits`, `delta`, `citation`, `answer` (the reply of /query) or `error`, and "
                "`heartbeat` in silences. A delta with `reset` voids those before it.",
                "content": {"text/event-stream": {"schema": {"type": "string"}, "example": STREAM_EXAMPLE}},
            },
            **_errors(404, 422, 503),
        },
    )
    async def stream(question: QueryIn, request: Request) -> StreamedAnswer:
        asked = await asking.begin(request, question.ask(), question.conversation)
        events = asking.stream(asked)
        first = await first_of(request, events)
        spoken = _spoken(first, events, asking, asked, question.prompts)
        return StreamedAnswer(spoken, events, heartbeat=event("heartbeat", {}), heartbeat_s=heartbeat_s)


async def _spoken(
    first: Event, events: EventStream, asking: Asking, asked: Asked, prompts: bool
) -> AsyncIterator[ServerSentEvent]:
    """The engine's events as /query/stream says them; a failure is the last one."""
    try:
        for said in _said(first, asking, asked, prompts):
            yield said
        async for happened in events:
            for said in _said(happened, asking, asked, prompts):
                yield said
    except Exception as error:
        failure = failure_of(error)
        wait = {"retry_after": failure.retry_after} if failure.retry_after else {}
        yield event("error", {**failure.body, **wait})


def _said(happened: Event, asking: Asking, asked: Asked, prompts: bool) -> list[ServerSentEvent]:
    if isinstance(happened, Retrieved):
        return [event("hits", _hits(happened.retrieval))]
    if isinstance(happened, Delta):
        return [event("delta", {"text": clean(happened.text), **({"reset": True} if happened.reset else {})})]
    answer = asking.done(asked, happened)
    citations = [event("citation", CitationOut.of(citation)) for citation in answer.citations]
    return [*citations, event("answer", AnswerOut.of(answer, asked.conversation, prompts))]


def _hits(found: Retrieval) -> dict[str, Any]:
    return {
        "hits": [HitOut.of(hit).model_dump() for hit in found.hits],
        "queries": [clean(query) for query in found.queries],
        "index": found.index.id,
        "revision": found.revision,
    }


# ---------------------------------------------------------------------------------------------- feedback and state


def _add_feedback(app: FastAPI, store: Store, aside: Aside) -> None:
    @app.post("/feedback", summary="What one thinks of an answer", responses=_errors(422, 503))
    async def feedback(given: FeedbackIn, request: Request) -> FeedbackOut:
        await aside(store.record_feedback, given.id, given.rating, given.comment, key_name(request))
        return FeedbackOut(id=given.id, rating=given.rating)


def _add_state(app: FastAPI, engine: QueryEngine, store: Store, aside: Aside) -> None:
    @app.get("/collections", summary="What can be asked", responses=_errors(503))
    async def collections() -> list[CollectionOut]:
        return [CollectionOut.of(row) for row in await aside(store.collections)]

    @app.get("/health", summary="The process lives")
    async def health() -> HealthOut:
        return HealthOut()

    @app.get(
        "/health/ready",
        summary="A question would be answered now: the database is there and the models are loaded",
        responses={503: {"model": ErrorOut, "description": RESPONSES[503]}},
    )
    async def ready() -> ReadyOut:
        try:
            index = await _ready(engine)
        except (CollectionNotNamed, NoLiveIndex) as error:
            raise HTTPException(503, str(error)) from error
        return ReadyOut(collection=index.collection, index=index.id, revision=index.revision)


async def _ready(engine: QueryEngine) -> Index:
    """The index that answers; where several collections stand beside each other, the first once all are ready."""
    try:
        return await engine.aready()
    except CollectionNotNamed as error:
        indexes = []
        for name in error.names:
            with contextlib.suppress(NoLiveIndex):
                indexes.append(await engine.aready(name))
        if not indexes:
            raise
        return indexes[0]


# ---------------------------------------------------------------------------------------------- the page


def _add_page(app: FastAPI) -> None:
    text = resources.files("serve").joinpath("web/index.html").read_text("utf-8")
    headers = {
        "Content-Security-Policy": content_security_policy(text),
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "no-referrer",
    }

    @app.get("/", include_in_schema=False)
    async def page() -> HTMLResponse:
        return HTMLResponse(text, headers=headers)


def content_security_policy(page: str) -> str:
    """Lets `page` run its own script and style, known by their hashes, and speak to its own service: nothing else."""
    own = {tag: _hashes(page, tag) for tag in ("script", "style")}
    return (
        f"default-src 'none'; script-src {own['script']}; style-src {own['style']}; connect-src 'self'; img-src data:; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )


def _hashes(page: str, tag: str) -> str:
    texts = re.findall(rf"<{tag}>(.*?)</{tag}>", page, re.DOTALL)
    digests = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in texts]
    return " ".join(f"'sha256-{digest}'" for digest in digests)
