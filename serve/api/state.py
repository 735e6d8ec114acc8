"""Handlers of /collections, /health and /health/ready."""

from collections.abc import Mapping, Sequence
from typing import Any

from fastapi import Request
from starlette.exceptions import HTTPException

from pipelines.answering.engine import QueryEngine
from pipelines.answering.retrieval.live import CollectionNotNamed, choose_collection
from pipelines.store import NoLiveIndex, Store
from serve.api.replies import CollectionOut, HealthOut, ReadyOut
from serve.api.requests import Name
from serve.api.sessions import seen
from serve.guard.keys import key_of
from serve.threads import DatabaseThreads


class StateRoutes:
    """The handlers; each answers its route in routes.py."""

    def __init__(self, engine: QueryEngine, store: Store, threads: DatabaseThreads, collection: str) -> None:
        self._engine, self._store, self._threads, self._collection = engine, store, threads, collection

    async def collections(self, request: Request) -> list[CollectionOut]:
        rows = seen(key_of(request.scope), await self._threads.run(self._store.collections))
        default = self._collection or _meant(rows)
        return [CollectionOut.of(row, row["name"] == default) for row in rows]

    async def health(self) -> HealthOut:
        return HealthOut()

    async def ready(self, collection: Name | None = None) -> ReadyOut:
        """Say which index answers a question to `collection`, or one that names none."""
        try:
            index = await self._engine.aready(collection)
        except CollectionNotNamed as error:  # without its names: no key is needed here
            why = f"{len(error.names)} collections and no default: add ?collection=NAME, or run `raydex default NAME`"
            raise HTTPException(503, why if error.names else str(error)) from error
        except NoLiveIndex as error:
            if collection:
                raise  # one that does not exist is nothing to wait for
            raise HTTPException(503, str(error)) from error
        return ReadyOut(collection=index.collection, index=index.id, revision=index.revision)


def _meant(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the collection that a question which names none goes to; "" if it must name one."""
    try:
        return choose_collection(rows)
    except CollectionNotNamed:
        return ""
