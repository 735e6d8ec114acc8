"""Handler of POST /session, and the collections that a session may ask."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from fastapi import Request
from pydantic import BaseModel
from starlette.exceptions import HTTPException

from pipelines.answering.question import Question, QuestionTooLong
from pipelines.answering.retrieval.live import CollectionNotNamed, choose_collection
from pipelines.store import Key, Store, key_hash
from serve.api.requests import MOST_READER_CHARACTERS, FeedbackIn, SearchIn
from serve.guard.cors import RENEW
from serve.guard.keys import key_of
from serve.guard.origin import bearer_token, origin_of
from serve.guard.sessions import NO_KEY, SESSION_S, ServiceSecret, SessionTokens
from serve.threads import DatabaseThreads


class SessionOut(BaseModel):
    """A session: `token` is sent as `Authorization: Bearer rds_…` with each request, for `expires_in` seconds."""

    token: str
    expires_in: int


class SessionRoutes:
    """Opens sessions; the guard has already checked the request's key and page."""

    def __init__(self, store: Store, threads: DatabaseThreads) -> None:
        self._tokens = SessionTokens(ServiceSecret(store, threads))

    async def open(self, request: Request) -> SessionOut:
        """Open a session; the header X-Raydex-Renew with an earlier token keeps its id, and so its questions."""
        key, scope = key_of(request.scope), request.scope
        publishable = key is not None and key.publishable
        # A reader's session is for our own pages, at any address that a proxy gives them.
        owner, origin = (key_hash(bearer_token(scope)), origin_of(scope)) if publishable else (NO_KEY, "")
        token = await self._tokens.open(owner, origin, request.headers.get(RENEW, ""))
        return SessionOut(token=token, expires_in=SESSION_S)


class AskedCollections:
    """Restricts a question to the collections that its key may ask; `default` is the service's own."""

    def __init__(self, store: Store, threads: DatabaseThreads, default: str = "") -> None:
        self._store, self._threads, self._default = store, threads, default

    async def question(self, asked: SearchIn, request: Request) -> Question:
        """Return the question for the engine. Raises HTTPException, CollectionNotNamed, StoreUnavailable."""
        question, key = asked.to_question(), key_of(request.scope)
        if key is None or not key.collections:
            return question
        return replace(question, collection=await self.name(question.collection, request))

    async def name(self, named: str | None, request: Request) -> str:
        """Return the collection `named`, or the default one. Raises the same errors as `question`."""
        key = key_of(request.scope)
        if named:
            check_collection(key, named)
            return named
        default = own_default(key, self._default)
        return default or choose_collection(seen(key, await self._threads.run(self._store.collections)))


def check_collection(key: Key | None, name: str) -> None:
    """Raise HTTPException if `key` may not ask the collection; the error is the same for one that does not exist."""
    if key and not key.sees(name):
        raise HTTPException(404, f"there is no collection {name!r} that this key may ask")


def own_default(key: Key | None, default: str) -> str:
    """Return the service's own collection if `key` may ask it, else ""."""
    return default if key is None or key.sees(default) else ""


def seen(key: Key | None, rows: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the rows of the collections that `key` may ask."""
    return [row for row in rows if key is None or key.sees(row["name"])]


def meant_collection(rows: Sequence[Mapping[str, Any]], default: str) -> str:
    """Return the collection for a question that names none; "" if it must name one."""
    try:
        return default or choose_collection(rows)
    except CollectionNotNamed:
        return ""


def check_reader(question: SearchIn | FeedbackIn, request: Request) -> bool:
    """Return whether the caller may only ask. Raises HTTPException if a secret key is needed, QuestionTooLong."""
    key = key_of(request.scope)
    if key is None or key.may("query"):
        return False
    if question.beyond_readers:
        raise HTTPException(403, question.beyond_readers)
    if isinstance(question, SearchIn) and len(question.question) > MOST_READER_CHARACTERS:
        raise QuestionTooLong(len(question.question), MOST_READER_CHARACTERS, "without a secret API key")
    return True
