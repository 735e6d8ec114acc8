"""Handlers of /admin, for admin keys: recorded questions, insights, status of collections."""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated, Any

import numpy as np
from fastapi import Query
from pydantic import BaseModel

from pipelines.answering.engine import QueryEngine
from pipelines.insights.insights import Period, gather_insights
from pipelines.insights.vectors import RememberingEmbedder, VectorMemory
from pipelines.store import Store, is_copy
from serve.api.requests import Name
from serve.threads import DatabaseThreads

MOST_QUESTIONS = 500


class RecordedQuestionOut(BaseModel):
    """A recorded question with its answer; `rating` is the sum of its ratings, `error` why it was not answered."""

    id: str
    asked_at: datetime
    collection: str
    question: str
    answer: str
    known: bool
    agent: str
    sources: list[str]
    degraded: list[str]
    seconds: float | None
    cost: float
    key_name: str
    rating: int | None
    reasons: list[str]
    comments: list[str]
    confidence: str | None
    channel: str | None
    page: str | None
    language: str | None
    error: str | None


class AdminRoutes:
    """The handlers, one for each route in routes.py."""

    def __init__(self, engine: QueryEngine, store: Store, threads: DatabaseThreads) -> None:
        self._engine, self._store, self._threads = engine, store, threads
        self._memory = VectorMemory()
        self._one_at_a_time = asyncio.Lock()  # for insights, which take seconds on two cores

    async def questions(
        self,
        collection: Name | None = None,
        before: Annotated[datetime | None, Query(description="only questions asked before; for the next page")] = None,
        unknown: Annotated[bool, Query(description="only questions that no source answered, or that failed")] = False,
        most: Annotated[int, Query(ge=1, le=MOST_QUESTIONS)] = 100,
    ) -> list[RecordedQuestionOut]:
        rows = await self._threads.run(self._store.recent_questions, collection, before, unknown, most)
        if not rows and before is None:  # the questions of a dropped collection are kept
            await self._check(collection)
        return [RecordedQuestionOut(**row) for row in rows]

    async def status(self, collection: Name | None = None) -> dict[str, Any]:
        await self._check(collection)
        rows = [{"name": collection}] if collection else await self._threads.run(self._store.collections)
        names = [row["name"] for row in rows]
        return {"collections": {name: await self._threads.run(self._store.status, name) for name in names}}

    async def insights(
        self,
        collection: Name | None = None,
        days: Annotated[float | None, Query(gt=0, le=36_500, description="only the last days")] = None,
        since: Annotated[datetime | None, Query(description="only questions from then on")] = None,
        until: Annotated[datetime | None, Query(description="only questions before")] = None,
    ) -> dict[str, Any]:
        period = Period.of(days, since and in_utc(since), until and in_utc(until))
        loop = asyncio.get_running_loop()

        def make() -> dict[str, Any]:
            names = [row["name"] for row in self._store.collections() if not is_copy(row["name"])]
            found = gather_insights(self._store, lambda name: self._embedder(name, loop), period, collection)
            return {"choices": names, **found.view(collection or "")}

        async with self._one_at_a_time:
            return await asyncio.to_thread(make)

    async def _check(self, collection: str | None) -> None:
        """Raise NoSuchCollection if there is no collection with that name."""
        if collection is not None:
            await self._threads.run(self._store.find_collection, collection)

    def _embedder(self, collection: str, loop: asyncio.AbstractEventLoop) -> RememberingEmbedder:
        """Return the embedder of a collection's model, for use in a thread outside the event loop."""

        def embed(texts: Sequence[str]) -> np.ndarray:
            return asyncio.run_coroutine_threadsafe(self._engine.aembed(texts, collection), loop).result()

        return RememberingEmbedder(self._store.live_index(collection).settings.embedding, embed, self._memory)


def in_utc(time: datetime) -> datetime:
    """Return `time`, in UTC unless it has a time zone."""
    return time if time.tzinfo else time.replace(tzinfo=UTC)
