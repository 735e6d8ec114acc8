"""The collections of a database: what there is, the state of each, and which one is the default."""

from collections.abc import Mapping
from typing import Any

from psycopg.rows import DictRow
from psycopg.types.json import Jsonb

from pipelines.store.connection import Connection, Database, statement


class NoSuchCollection(LookupError):
    """There is no collection with that name."""


class Collections(Database):
    """Collections."""

    def collections(self) -> list[DictRow]:
        """Return every collection: name, is_default; of its live index: id, revision, stats, settings, published_at."""
        return self._all("collections")

    def collection_settings(self, collection: str) -> dict[str, Any]:
        """Return the settings of the last reindex of a collection; empty for an unknown collection."""
        row = self._one("collection_settings", {"collection": collection})
        return dict(row["settings"]) if row else {}

    def status(self, collection: str, most: int = 5) -> dict[str, Any]:
        """Return the indexes, pages by state, last runs and failed pages of one collection."""
        values: dict[str, Any] = {"collection": collection, "most": most}
        return {
            "indexes": self._all("indexes", values),
            "pages": {row["state"]: row["pages"] for row in self._all("page_states", values)},
            "runs": self._all("last_runs", values),
            "failures": self._all("page_failures", values),
        }

    def set_default(self, collection: str | None) -> None:
        """Make `collection` the one that answers questions which name none; None: no collection is.

        Raises NoSuchCollection.
        """

        def work(connection: Connection) -> None:
            connection.execute(statement("clear_default"))
            values = {"collection": collection}
            if collection is not None and not connection.execute(statement("set_default"), values).rowcount:
                names = ", ".join(row["name"] for row in connection.execute(statement("collections")))
                raise NoSuchCollection(f"there is no collection {collection!r}; there are: {names or 'none'}")

        self._do(work)

    def forget_empty_run(self, collection: str, run: int, settings: Mapping[str, Any]) -> None:
        """Leave the collection as it was before `run`, with these settings, if that run read no page and is the last.

        A collection that has neither the body of a page nor an index goes away.
        """
        values = {"collection": collection, "run": run, "settings": Jsonb(dict(settings))}

        def work(connection: Connection) -> None:
            if connection.execute(statement("read_or_succeeded"), values).fetchone() is None:
                for name in ("forget_unread_pages", "restore_settings", "delete_empty_collection"):
                    connection.execute(statement(name), values)

        self._do(work)
