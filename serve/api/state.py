"""Handlers of /collections, /health and /health/ready."""

import contextlib

from starlette.exceptions import HTTPException

from pipelines.answering.engine import QueryEngine
from pipelines.answering.retrieval.live import CollectionNotNamed
from pipelines.records import Index
from pipelines.store import NoLiveIndex, Store
from serve.api.replies import CollectionOut, HealthOut, ReadyOut
from serve.threads import DatabaseThreads


class StateRoutes:
    """The handlers; each answers its route in routes.py."""

    def __init__(self, engine: QueryEngine, store: Store, threads: DatabaseThreads) -> None:
        self._engine, self._store, self._threads = engine, store, threads

    async def collections(self) -> list[CollectionOut]:
        return [CollectionOut.of(row) for row in await self._threads.run(self._store.collections)]

    async def health(self) -> HealthOut:
        return HealthOut()

    async def ready(self) -> ReadyOut:
        try:
            index = await self._ready_index()
        except (CollectionNotNamed, NoLiveIndex) as error:
            raise HTTPException(503, str(error)) from error
        return ReadyOut(collection=index.collection, index=index.id, revision=index.revision)

    async def _ready_index(self) -> Index:
        """Return the index that answers; with several collections and no default, the first once all are ready."""
        try:
            return await self._engine.aready()
        except CollectionNotNamed as error:
            indexes = []
            for name in error.names:
                with contextlib.suppress(NoLiveIndex):
                    indexes.append(await self._engine.aready(name))
            if not indexes:
                raise
            return indexes[0]
