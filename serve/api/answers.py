"""Handlers of /answers and /feedback: a recorded answer, for its asker or, once shared, for everyone."""

import asyncio
from datetime import datetime
from typing import Annotated, Any, Self

from fastapi import Path, Request
from pydantic import AfterValidator, BaseModel
from starlette.exceptions import HTTPException

from pipelines.store import RecordedQuestion, Store
from serve.api.inquiry import key_name
from serve.api.replies import AnswerOut, FeedbackOut
from serve.api.requests import FeedbackIn, Name, without_completion_prefix
from serve.api.sessions import check_reader
from serve.guard.keys import READER, key_of
from serve.threads import DatabaseThreads

AnswerId = Annotated[
    Name, AfterValidator(without_completion_prefix), Path(description="the id of a reply or of a chat completion")
]
# An answer is recorded after it is sent, so reading it is retried with these pauses, in seconds.
PAUSES_S = (0.05, 0.1, 0.15)
UNKNOWN_ANSWER = (
    "there is no such answer, or it is not yours: only the person who asked may read it until it is shared, "
    "and it is deleted after the retention of the service (`recording.retention_days`)"
)


class RecordedAnswerOut(AnswerOut):
    """A recorded answer: the reply of /query with snippets of its hits, your rating, and whether it is shared.

    `rating` is your own rating. If `shared`, everyone who may ask may read the answer. People other than the asker see
    no `conversation` and no `route`.
    """

    collection: str
    asked_at: datetime
    rating: int | None
    shared: bool

    @classmethod
    def of_recorded(cls, recorded: RecordedQuestion, own: bool, reading: bool = False) -> Self:
        """Return the reply for a recorded answer; `own` for its asker or an admin key. `reading` as in AnswerOut."""
        assert recorded.answer is not None
        return cls.of(
            recorded.answer,
            recorded.conversation if own else "",
            reading=reading or not own,
            collection=recorded.collection,
            asked_at=recorded.asked_at,
            rating=recorded.rating,
            shared=recorded.shared_at is not None,
        )


class SharedOut(BaseModel):
    """Whether everyone who may ask may now read the answer."""

    id: str
    shared: bool


class AnswerRoutes:
    """The handlers, one for each route in routes.py."""

    def __init__(self, store: Store, threads: DatabaseThreads) -> None:
        self._store, self._threads = store, threads

    async def answer(self, id: AnswerId, request: Request) -> RecordedAnswerOut:
        recorded, key = await self._readable(id, request), key_of(request.scope)
        reading = key is not None and not key.may("query")
        own = is_admin(request) or recorded.key_name == asker_of(request)
        return RecordedAnswerOut.of_recorded(recorded, own, reading)

    async def rate(self, feedback: FeedbackIn, request: Request) -> FeedbackOut:
        """Record a rating of a readable answer; it replaces an earlier rating by the same person."""
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

    async def _readable(self, id: str, request: Request) -> RecordedQuestion:
        """Return an answer of the caller's own, or a shared one. Raises HTTPException."""
        recorded: RecordedQuestion = await self._once_recorded(
            self._store.readable_answer, id, asker_of(request), is_admin(request)
        )
        if (key := key_of(request.scope)) and not key.sees(recorded.collection):  # shared by someone else
            raise HTTPException(404, UNKNOWN_ANSWER)
        return recorded

    async def _once_recorded(self, call: Any, *arguments: object) -> Any:
        """Return the result of `call`, retrying for a moment if there is none yet. Raises HTTPException."""
        for pause_s in (*PAUSES_S, None):
            if found := await self._threads.run(call, *arguments):
                return found
            if pause_s is not None:
                await asyncio.sleep(pause_s)
        raise HTTPException(404, UNKNOWN_ANSWER)


def asker_of(request: Request) -> str | None:
    """Return the asker's recognizable name; None for readers of a public service without a session."""
    return None if key_of(request.scope) is READER else key_name(request)


def is_admin(request: Request) -> bool:
    """Return whether the request came with an admin key."""
    key = key_of(request.scope)
    return key is not None and key.may("admin")
