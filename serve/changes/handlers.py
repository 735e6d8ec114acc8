"""Handlers of /v1/collections/{name}/changes: record which pages changed, and report the progress.

serve/guard has already checked the permission. Does not know who indexes the pages.
"""

import re
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Annotated, Any, Literal, Self

from fastapi import Request
from pydantic import BaseModel, ConfigDict, FailFast, Field, StringConstraints
from starlette.exceptions import HTTPException

from pipelines.indexing.collection import collection_from
from pipelines.indexing.settings import BadChanges, NotInCollection, PageChanges, check_changes
from pipelines.signing import DELIVERY_HEADER, SIGNATURE_HEADER
from pipelines.store import Store
from serve.api.requests import MOST_URL_CHARACTERS, Name, examples_of
from serve.api.sessions import check_collection
from serve.guard.keys import key_of
from serve.threads import DatabaseThreads

# A merge touches some pages; after rebuilding a whole site, run `raydex index`.
MOST_PAGES = 1_000
Url = Annotated[str, StringConstraints(min_length=1, max_length=MOST_URL_CHARACTERS, pattern=r"^[^\s\x00]+$")]
Urls = Annotated[list[Url], Field(max_length=MOST_PAGES), FailFast()]


class ChangesIn(BaseModel):
    """URLs of changed or new pages, and of deleted pages."""

    model_config = ConfigDict(extra="forbid", json_schema_extra=examples_of("ChangesIn"))

    changed: Urls = []
    deleted: Urls = []


class AnnouncementOut(BaseModel):
    """Announced changes: `waiting` for a run, `running`, `done`, or `failed` with an `error`.

    Changes that wait with an error will be retried. `run` is the last run over these pages.
    """

    id: int
    collection: str
    state: Literal["waiting", "running", "done", "failed"]
    changed: int
    deleted: int
    received: datetime
    ended: datetime | None
    run: int | None
    attempts: int
    error: str | None

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> Self:
        counts: dict[str, Any] = {"changed": len(row["changed"]), "deleted": len(row["deleted"])}
        return cls(**{**row, **counts})


class ChangesRoutes:
    """The handlers, one for each route in routes.py. `wake` notifies the indexer of new work."""

    def __init__(self, store: Store, threads: DatabaseThreads, wake: Callable[[], object]) -> None:
        self._store, self._threads, self._wake = store, threads, wake

    async def announce(self, name: Name, changes: ChangesIn, request: Request) -> AnnouncementOut:
        check_collection(key_of(request.scope), name)
        delivery = request.headers.get(DELIVERY_HEADER) or request.headers.get(SIGNATURE_HEADER)
        try:
            id = await self._threads.run(self._record, name, changes, delivery)
        except (BadChanges, NotInCollection) as error:
            raise HTTPException(422, str(error)) from error
        self._wake()
        return await self._read(name, id)

    async def announcement(self, name: Name, id: str, request: Request) -> AnnouncementOut:
        check_collection(key_of(request.scope), name)
        return await self._read(name, int(id) if re.fullmatch(r"[0-9]{1,18}", id) else 0)

    def _record(self, name: str, changes: ChangesIn, delivery: str | None) -> int:
        pages = PageChanges(tuple(changes.changed), tuple(changes.deleted))
        self._store.live_index(name)  # raises for an impossible name, which has no settings
        settings = self._store.collection_settings(name)
        check_changes(self._store, collection_from({"name": name, **settings}, "stored settings"), pages)
        return self._store.announce(name, pages.changed, pages.deleted, delivery)

    async def _read(self, name: str, id: int) -> AnnouncementOut:
        row = await self._threads.run(self._store.announcement, name, id)
        if row is None:
            raise HTTPException(404, f"collection {name!r} has no announced changes {id}")
        return AnnouncementOut.of(row)
