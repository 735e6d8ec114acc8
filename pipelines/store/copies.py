"""Copies of a collection: its pages under another name, to be indexed otherwise without touching what is live.

No collection file can give a name with the mark, so a copy is never taken for a collection of its own.
"""

from typing import Any

from pipelines.store.chunks import drop_index
from pipelines.store.connection import Connection, Database, statement

MARK = "@"


def copy_name(collection: str, fingerprint: str) -> str:
    """The copy of `collection` whose index has this fingerprint."""
    return f"{collection}{MARK}{fingerprint[:12]}"


def is_copy(name: str) -> bool:
    """Whether a collection is another one's copy."""
    return MARK in name


class Copies(Database):
    """Making, listing and dropping them."""

    def copy_pages(self, collection: str, copy: str, run: int) -> int:
        """Give `copy` the pages of `collection` as they are now, as if `run` had seen them; returns how many."""
        named = {"collection": collection, "copy": copy, "run": run}

        def work(connection: Connection) -> int:
            copied = connection.execute(statement("copy_pages"), named).rowcount
            gone = {"collection": copy, "run": run, "prefix": "", "error": f"is no page of {collection} any longer"}
            connection.execute(statement("mark_unseen"), gone)
            return copied

        return self._do(work)

    def copies(self, collection: str) -> list[str]:
        """The names of its copies."""
        return [row["name"] for row in self._all("copies", {"collection": collection, "mark": MARK})]

    def collection_settings(self, collection: str) -> dict[str, Any]:
        """What its last reindex was told; nothing of one that is not there."""
        row = self._one("collection_settings", {"collection": collection})
        return dict(row["settings"]) if row else {}

    def drop_copy(self, copy: str) -> list[int]:
        """Drop a copy with its indexes; returns their ids. Raises ValueError for what is no copy."""
        if not is_copy(copy):
            raise ValueError(f"{copy!r} is no copy of a collection: nothing is dropped")

        def work(connection: Connection) -> list[int]:
            indexes = [row["id"] for row in connection.execute(statement("indexes_of"), {"collection": copy})]
            for index in indexes:
                drop_index(connection, index)
            connection.execute(statement("delete_collection"), {"collection": copy})
            return indexes

        return self._do(work)
