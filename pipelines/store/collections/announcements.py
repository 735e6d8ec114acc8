"""Stores announced page changes, and the secrets that their senders sign with.

This module knows no HTTP and no run: the caller of `take_announcements` has locked the collection.
"""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from psycopg.rows import DictRow

from pipelines.store.database.connection import Connection, Database, statement
from pipelines.text.cleaning import clean_for_storage

KEPT_DAYS = 30  # a repeated delivery may come this much later


@dataclass(frozen=True, slots=True)
class Announced:
    """An announcement that a run has taken: the URLs of pages, and how many runs have taken it so far."""

    id: int
    changed: tuple[str, ...]
    deleted: tuple[str, ...]
    attempts: int


class Announcements(Database):
    """Announced changes."""

    def announce(
        self, collection: str, changed: Sequence[str], deleted: Sequence[str], delivery: str | None = None
    ) -> int:
        """Record page changes; return their id, which is the old one if this `delivery` came before."""
        values: dict[str, Any] = {"collection": collection, "delivery": delivery and clean_for_storage(delivery)}
        values |= {"changed": list(changed), "deleted": list(deleted), "days": KEPT_DAYS}

        def work(connection: Connection) -> int:
            connection.execute(statement("forget_announcements"), values)
            return int((connection.execute(statement("announce"), values).fetchone() or {})["id"])

        return self._do(work)

    def announcement(self, collection: str, id: int) -> DictRow | None:
        """Return an announcement with its `state` (waiting, running, done, failed), None if there is none."""
        return self._one("announcement", {"collection": collection, "id": id})

    def announced_collections(self) -> list[DictRow]:
        """Return the collections with open announcements: whether one is `due`, and if a run is at work (`held`)."""
        return self._all("announced_collections")

    def take_announcements(self, collection: str, run: int) -> list[Announced]:
        """Assign the due announcements to `run`, which has locked the collection; return them, oldest first."""
        rows = self._all("take_announcements", {"collection": collection, "run": run})
        return [Announced(**(row | {key: tuple(row[key]) for key in ("changed", "deleted")})) for row in rows]

    def end_announcement(self, id: int, error: str | None, again_s: float | None = None) -> None:
        """Record how a run over an announcement ended. It is done, unless `again_s` makes it due again later."""
        self._run("end_announcement", {"id": id, "error": error and clean_for_storage(error), "again_s": again_s})

    def announcing_secret(self, collection: str) -> str | None:
        """Return the secret that signs announcements to a collection, None if there is no secret or collection."""
        row = self._one("announcing_secret", {"collection": collection})
        return row["secret"] if row else None

    def make_announcing_secret(self, collection: str) -> str | None:
        """Replace the secret by a new one and return it; return None if there is no such collection."""
        values = {"collection": collection, "secret": f"rdw_{secrets.token_urlsafe(32)}"}
        return values["secret"] if self._run("set_announcing_secret", values) else None
