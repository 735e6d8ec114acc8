"""Handlers of /admin, for admin keys: recorded questions, and the state of collections."""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any

from fastapi import Query
from pydantic import BaseModel

from pipelines.store import NoLiveIndex, Store
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

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> "RecordedQuestionOut":
        sources = [str(citation["source"]) for citation in row["citations"]]
        return cls(**row, sources=sources, seconds=row["timings"].get("total"))


class AdminRoutes:
    """The handlers; each answers its route in routes.py."""

    def __init__(self, store: Store, threads: DatabaseThreads) -> None:
        self._store, self._threads = store, threads

    async def questions(
        self,
        collection: Name | None = None,
        before: Annotated[datetime | None, Query(description="only questions asked before; for the next page")] = None,
        unknown: Annotated[bool, Query(description="only questions that no source answered, or that failed")] = False,
        most: Annotated[int, Query(ge=1, le=MOST_QUESTIONS)] = 100,
    ) -> list[RecordedQuestionOut]:
        rows = await self._threads.run(self._store.recent_questions, collection, before, unknown, most)
        return [RecordedQuestionOut.of(row) for row in rows]

    async def status(self, collection: Name | None = None) -> dict[str, Any]:
        names = [row["name"] for row in await self._threads.run(self._store.collections)]
        if collection is not None and collection not in names:
            raise NoLiveIndex(f"there is no collection {collection!r}; there are: {', '.join(names) or 'none'}")
        wanted = names if collection is None else [collection]
        return {"collections": {name: await self._threads.run(self._store.status, name) for name in wanted}}
