"""Changes of pages that were announced to the service, and what their senders sign with.

Knows no HTTP and no run: who takes announcements holds their collection.
"""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from psycopg.rows import DictRow

from pipelines.store.database.connection import Connection, Database, statement
from pipelines.text.cleaning import clean_for_storage

KEPT_DAYS = 30  # what a repeated delivery may come after


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
        """Record changes of pages; return their id, the same one for a `delivery` that came before."""
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
        """Return the collections with announcements to come: whether one is `due`, and whether a run has it `held`."""
        return self._all("announced_collections")

    def take_announcements(self, collection: str, run: int) -> list[Announced]:
        """Give the announcements that are due to `run`, which holds the collection; the oldest is the first."""
        rows = self._all("take_announcements", {"collection": collection, "run": run})
        return [Announced(**(row | {key: tuple(row[key]) for key in ("changed", "deleted")})) for row in rows]

    def end_announcement(self, id: int, error: str | None, again_s: float | None = None) -> None:
        """Note how a run over an announcement ended: that is its end, unless it is due again in so many seconds."""
        self._run("end_announcement", {"id": id, "error": error and clean_for_storage(error), "again_s": again_s})

    def announcing_secret(self, collection: str) -> str | None:
        """Return what announcements to a collection are signed with, None without such a secret or collection."""
        row = self._one("announcing_secret", {"collection": collection})
        return row["secret"] if row else None

    def make_announcing_secret(self, collection: str) -> str | None:
        """Make a new secret in place of the one before and return it; None if there is no such collection."""
        values = {"collection": collection, "secret": f"rdw_{secrets.token_urlsafe(32)}"}
        return values["secret"] if self._run("set_announcing_secret", values) else None
