"""The HTTP face: FastAPI routes around a QueryEngine. Errors have one shape and say what to do.

Knows no Ray, no environment and nothing of how an answer is made.
"""

import asyncio
import uuid
from dataclasses import asdict
from importlib import resources
from typing import Annotated, Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse
from pydantic import BaseModel, ConfigDict, Field, StringConstraints
from starlette.exceptions import HTTPException

from pipelines.answering.engine import QueryEngine
from pipelines.answering.retriever import CollectionNotNamed, ModelNotReady
from pipelines.records import Hit
from pipelines.store import NoLiveIndex, Store, StoreUnavailable

# An embedded Postgres that was killed is back within a second or two.
RETRY_AFTER_S = 2
# Ten thousand words are a question; a book is not.
MOST_CHARACTERS = 100_000


class Question(BaseModel):
    """A question to a collection (default: the service's, or the only one); `k` is how many hits to use."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"examples": [{"question": "How do I read a CSV file?", "k": 5}]}
    )

    question: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=MOST_CHARACTERS)]
    collection: Annotated[str, StringConstraints(min_length=1, max_length=200)] | None = None
    k: Annotated[int, Field(ge=1, le=100)] | None = None


class CitationOut(BaseModel):
    """`[n]` in the answer points here."""

    n: int
    source: str
    title: str
    snippet: str


class HitOut(BaseModel):
    """A chunk with its score and what each leg said of it."""

    source: str
    sources: list[str]
    title: str
    headings: list[str]
    text: str
    score: float
    score_kind: str
    ranks: dict[str, int]
    scores: dict[str, float]


class SearchOut(BaseModel):
    """Hits of one revision of one index; `timings` are seconds."""

    hits: list[HitOut]
    degraded: list[str]
    timings: dict[str, float]
    index: int
    revision: int


class AnswerOut(SearchOut):
    """An answer with its sources."""

    id: str
    question: str
    answer: str
    agent: str
    citations: list[CitationOut]


class CollectionOut(BaseModel):
    """A collection and its live index, if it has one."""

    name: str
    index: int | None
    revision: int | None
    published_at: str | None
    stats: dict[str, Any]


def create_app(engine: QueryEngine, store: Store) -> FastAPI:
    """The whole HTTP application around `engine`; `store` is asked for its health and its collections."""
    app = FastAPI(title="Raydex", description="Ask a documentation site; answers cite their sources.")
    _handle_errors(app)
    _add_questions(app, engine)
    _add_state(app, engine, store)
    return app


def _add_questions(app: FastAPI, engine: QueryEngine) -> None:
    @app.post("/query", summary="A cited answer")
    async def query(asked: Question) -> AnswerOut:
        answer = await engine.aquery(asked.question, asked.collection, asked.k)
        return AnswerOut(
            id=uuid.uuid4().hex,
            question=answer.question,
            answer=answer.text,
            agent=answer.agent,
            citations=[CitationOut(**asdict(citation)) for citation in answer.citations],
            hits=[_hit(hit) for hit in answer.hits],
            degraded=list(answer.degraded),
            timings=answer.timings,
            index=answer.index,
            revision=answer.revision,
        )

    @app.post("/search", summary="The hits alone")
    async def search(asked: Question) -> SearchOut:
        found = await engine.asearch(asked.question, asked.collection, asked.k)
        return SearchOut(
            hits=[_hit(hit) for hit in found.hits],
            degraded=list(found.degraded),
            timings=found.timings,
            index=found.index.id,
            revision=found.revision,
        )


def _add_state(app: FastAPI, engine: QueryEngine, store: Store) -> None:
    @app.get("/collections", summary="What can be asked")
    async def collections() -> list[CollectionOut]:
        rows = await asyncio.to_thread(store.collections)
        return [
            CollectionOut(
                name=row["name"],
                index=row["index"],
                revision=row["revision"],
                published_at=row["published_at"].isoformat() if row["published_at"] else None,
                stats=row["stats"],
            )
            for row in rows
        ]

    @app.get("/health", summary="The process lives")
    async def health() -> dict[str, str]:
        return {"status": "ok"}

    @app.get("/health/ready", summary="A question would be answered now", responses={503: {}})
    async def ready() -> JSONResponse:
        try:
            index = await asyncio.to_thread(engine.retriever.ready)
        except (CollectionNotNamed, NoLiveIndex, ModelNotReady, StoreUnavailable) as error:
            return _failure(503, str(error), retry=True)
        ready = {"status": "ready", "collection": index.collection, "index": index.id, "revision": index.revision}
        return JSONResponse(ready)

    @app.get("/", include_in_schema=False)
    async def page() -> HTMLResponse:
        return HTMLResponse(resources.files("serve").joinpath("web/index.html").read_text())


def _hit(hit: Hit) -> HitOut:
    return HitOut(
        source=hit.source,
        sources=list(hit.sources),
        title=hit.title,
        headings=list(hit.headings),
        text=hit.text,
        score=hit.score,
        score_kind=hit.score_kind,
        ranks=hit.ranks,
        scores=hit.scores,
    )


def _handle_errors(app: FastAPI) -> None:
    @app.exception_handler(RequestValidationError)
    async def bad_input(request: Request, error: RequestValidationError) -> JSONResponse:
        found = [(".".join(str(part) for part in e["loc"][1:]) or "body", e["msg"]) for e in error.errors()]
        return _failure(422, "; ".join(f"{field}: {why}" for field, why in found), field=found[0][0])

    @app.exception_handler(HTTPException)
    async def refused(request: Request, error: HTTPException) -> JSONResponse:
        if error.status_code == 400:  # a body that is not UTF-8
            return _failure(422, f"body: {error.detail}", field="body")
        return _failure(error.status_code, error.detail)

    @app.exception_handler(CollectionNotNamed)
    async def not_named(request: Request, error: CollectionNotNamed) -> JSONResponse:
        return _failure(422, str(error), field="collection", choices=list(error.names))

    @app.exception_handler(NoLiveIndex)
    async def nothing_live(request: Request, error: NoLiveIndex) -> JSONResponse:
        return _failure(404, str(error))

    @app.exception_handler(StoreUnavailable)
    async def away(request: Request, error: StoreUnavailable) -> JSONResponse:
        return _failure(503, f"the database is away, try again: {error}", retry=True)


def _failure(status: int, message: str, retry: bool = False, **more: object) -> JSONResponse:
    headers = {"Retry-After": str(RETRY_AFTER_S)} if retry else None
    return JSONResponse({"error": message, **more}, status, headers)
