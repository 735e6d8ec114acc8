"""Handlers of /answers and /feedback: a recorded answer, for its asker or, once shared, for all."""

import asyncio
from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Self

from fastapi import Path, Request
from pydantic import AfterValidator, BaseModel
from starlette.exceptions import HTTPException

from pipelines.records import FINISHED, LOW, MODEL, Answer, Citation, Claims, Hit, Route, Usage
from pipelines.store import Store
from serve.api.replies import AnswerOut, FeedbackOut
from serve.api.requests import FeedbackIn, Name, without_completion_prefix
from serve.api.sessions import check_reader
from serve.guard.keys import READER, key_of
from serve.session import key_name
from serve.threads import DatabaseThreads

AnswerId = Annotated[
    Name, AfterValidator(without_completion_prefix), Path(description="the id of a reply or of a chat completion")
]
# An answer is recorded after it was sent: seconds between the attempts to read it.
PAUSES_S = (0.05, 0.1, 0.15)
UNKNOWN_ANSWER = (
    "there is no such answer, or it is not yours: its asker alone may read it until it is shared, and it is deleted "
    "after the retention of the service (`retention_days`)"
)


class RecordedAnswerOut(AnswerOut):
    """A recorded answer: the reply of /query with the first words of its hits, and what became of it.

    `rating` is the one that you gave, `shared` whether everyone who may ask may read it. One who reads the shared
    answer of another one sees no `conversation` and no `route`.
    """

    collection: str
    asked_at: datetime
    rating: int | None
    shared: bool

    @classmethod
    def of_row(cls, row: Mapping[str, Any], own: bool, reading: bool = False) -> Self:
        """Return the reply for the row of an answer; `own`: to its asker or an admin key. `reading` as in AnswerOut."""
        answer = AnswerOut.of(answer_of(row), row["conversation"] if own else "", reading=reading or not own)
        return cls(
            **answer.model_dump(exclude_unset=True),
            collection=row["collection"],
            asked_at=row["asked_at"],
            rating=row["rating"],
            shared=row["shared_at"] is not None,
        )


class SharedOut(BaseModel):
    """Whether everyone who may ask may read the answer now."""

    id: str
    shared: bool


class AnswerRoutes:
    """The handlers; each answers its route in routes.py."""

    def __init__(self, store: Store, threads: DatabaseThreads) -> None:
        self._store, self._threads = store, threads

    async def answer(self, id: AnswerId, request: Request) -> RecordedAnswerOut:
        row, key = await self._readable(id, request), key_of(request.scope)
        reading = key is not None and not key.may("query")
        return RecordedAnswerOut.of_row(row, is_admin(request) or row["key_name"] == asker_of(request), reading)

    async def rate(self, feedback: FeedbackIn, request: Request) -> FeedbackOut:
        """Write down a rating of an answer that one may read, in the place of one's earlier rating."""
        check_reader(feedback, request)
        await self._readable(feedback.id, request)
        owner = key_name(request) if feedback.rater is None else f"{key_name(request)}#{feedback.rater}"
        given = (feedback.id, feedback.rating, feedback.comment, owner, feedback.reasons)
        await self._threads.run(self._store.record_feedback, *given)
        return FeedbackOut(id=feedback.id, rating=feedback.rating)

    async def share(self, id: AnswerId, request: Request) -> SharedOut:
        await self._once_recorded(self._store.share_answer, id, asker_of(request), True, is_admin(request))
        return SharedOut(id=id, shared=True)

    async def unshare(self, id: AnswerId, request: Request) -> SharedOut:
        await self._once_recorded(self._store.share_answer, id, asker_of(request), False, is_admin(request))
        return SharedOut(id=id, shared=False)

    async def _readable(self, id: str, request: Request) -> Mapping[str, Any]:
        """Return the row of an answer that is one's own, or shared. Raises HTTPException."""
        row = await self._once_recorded(self._store.readable_answer, id, asker_of(request), is_admin(request))
        if (key := key_of(request.scope)) and not key.sees(row["collection"]):  # another's, shared
            raise HTTPException(404, UNKNOWN_ANSWER)
        return dict(row)

    async def _once_recorded(self, call: Any, *arguments: object) -> Any:
        """Return what `call` finds, if need be a moment later. Raises HTTPException."""
        for pause_s in (*PAUSES_S, None):
            if found := await self._threads.run(call, *arguments):
                return found
            if pause_s is not None:
                await asyncio.sleep(pause_s)
        raise HTTPException(404, UNKNOWN_ANSWER)


def asker_of(request: Request) -> str | None:
    """Return the name that one who asks is known again by; None for readers of a public service without a session."""
    return None if key_of(request.scope) is READER else key_name(request)


def is_admin(request: Request) -> bool:
    """Return whether the request came with an admin key."""
    key = key_of(request.scope)
    return key is not None and key.may("admin")


def answer_of(row: Mapping[str, Any]) -> Answer:
    """Return an answer as it was recorded; its hits have the first words of their texts."""
    return Answer(
        id=row["id"],
        question=row["question"],
        text=row["answer"],
        agent=row["agent"],
        citations=tuple(_citation(citation) for citation in row["citations"]),
        hits=tuple(_hit(hit) for hit in row["hits"]),
        degraded=tuple(row["degraded"]),
        timings=row["timings"],
        index=row["index"] or 0,
        revision=row["revision"] or 0,
        known=row["known"],
        route=Route(row["agent"], row["why"]),
        queries=tuple(row["queries"]),
        notes=tuple(row["notes"] or ()),
        usage=Usage(row["prompt_tokens"], row["completion_tokens"], row["calls"], row["cost"]),
        finish_reason=row["finish_reason"] or FINISHED,
        claims=Claims(**row["claims"]) if row["claims"] else Claims(),
        confidence=row["confidence"] or LOW,
        collection=row["collection"],
    )


def _citation(recorded: Mapping[str, Any]) -> Citation:
    return Citation(
        n=recorded["n"],
        source=recorded["source"],
        title=recorded["title"],
        snippet=recorded["snippet"],
        headings=tuple(recorded.get("headings", ())),
        scores=recorded.get("scores", {}),
        supported=recorded.get("supported", True),
        support=recorded.get("support", 1.0),
        by=recorded.get("by", MODEL),
    )


def _hit(recorded: Mapping[str, Any]) -> Hit:
    url, _, anchor = recorded["source"].partition("#")
    return Hit(
        chunk_id=recorded["chunk_id"],
        url=url,
        anchors=(anchor,) if anchor else (),
        title=recorded["title"],
        headings=tuple(recorded.get("headings", ())),
        text=recorded["snippet"],
        text_hash=recorded.get("text_hash", ""),
        score=recorded["score"],
        score_kind=recorded.get("score_kind", ""),
        ranks=recorded.get("ranks", {}),
        scores=recorded.get("scores", {}),
        sources=(recorded["source"],),
    )
