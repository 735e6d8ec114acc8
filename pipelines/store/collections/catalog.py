"""Manages the collections of a database and their copies, the state of each, and the default."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any

from psycopg.rows import DictRow
from psycopg.types.json import Jsonb

from pipelines.store.chunks import drop_index
from pipelines.store.collections.freshness import FAILING, Freshness
from pipelines.store.database.connection import Connection, Database, statement
from pipelines.text.mistakes import nearest

SHOWN = 5  # runs and failed pages of a collection, unless the caller wants more

# Statements that delete a collection's questions and evaluations, in order.
DELETE_QUESTIONS = ("delete_feedback", "delete_search_clicks", "delete_questions", "delete_evaluations")

# Marks the name of a copy; no collection file can give a name that contains it.
COPY_MARK = "@"


def is_copy(name: str) -> bool:
    """Return whether a collection is a copy of another one."""
    return COPY_MARK in name


def copy_name(collection: str, fingerprint: str) -> str:
    """Return the name of the copy of `collection` whose index has this fingerprint."""
    return f"{collection}{COPY_MARK}{fingerprint[:12]}"


class NoSuchCollection(LookupError):
    """There is no collection with that name; the message lists `names` without copies, and suggests a similar one."""

    def __init__(self, collection: str, names: Iterable[str]) -> None:
        names = [name for name in names if not is_copy(name)]
        near = nearest(collection, names)
        meant = f"; did you mean {near}?" if near else ""
        known = f"; there are: {', '.join(names)}{meant}" if names else ": `raydex index` makes the first one"
        super().__init__(f"there is no collection {collection!r}{known}")


class NoSuchRun(LookupError):
    """There is no run with that number."""


class Catalog(Database):
    """Collections and their copies."""

    def collections(self) -> list[DictRow]:
        """Return every collection: name, is_default, and its live index's id, revision, stats, settings, date.

        A collection without a live index has None in these columns; the date is `published_at`.
        """
        return self._all("collections")

    def find_collection(self, collection: str) -> DictRow:
        """Return a collection's row, as in `collections`. Raises NoSuchCollection."""
        rows = {row["name"]: row for row in self.collections()}
        if collection not in rows:
            raise NoSuchCollection(collection, rows)
        return rows[collection]

    def find_run(self, run: int) -> DictRow:
        """Return id, collection, kind, state, started, ended and error of a run, and whether it is alive.

        Raises NoSuchRun.
        """
        row = self._one("find_run", {"run": run})
        if row is None:
            raise NoSuchRun(f"there is no run {run}: `raydex status NAME` lists those of a collection")
        return row

    def collection_settings(self, collection: str) -> dict[str, Any]:
        """Return the settings of the last reindex of a collection; empty for an unknown collection."""
        row = self._one("collection_settings", {"collection": collection})
        return dict(row["settings"]) if row else {}

    def status(self, collection: str, most: int = SHOWN) -> dict[str, Any]:
        """Return the settings, indexes, pages by state, last runs, failed pages and freshness of one collection."""
        values: dict[str, Any] = {"collection": collection, "most": most}
        return {
            "settings": self.collection_settings(collection),
            "indexes": self._all("indexes", values),
            "pages": {row["state"]: row["pages"] for row in self._all("page_states", values)},
            "runs": self.last_runs(collection, most),
            "failures": self.failed_pages(collection, most),
            "freshness": asdict(self.freshness(collection)),
        }

    def last_runs(self, collection: str, most: int) -> list[DictRow]:
        """Return the last runs of a collection, newest first; `alive` says whether a running one lives."""
        return self._all("last_runs", {"collection": collection, "most": most})

    def last_run_with(self, collection: str, steps: Mapping[str, Any], days: float) -> datetime | None:
        """Return when the last run began, within `days`, whose steps contain these values."""
        values = {"collection": collection, "steps": Jsonb(dict(steps)), "seconds": days * 86_400}
        return (self._one("last_run_with", values) or {}).get("started")

    def freshness(self, collection: str) -> Freshness:
        """Return how fresh a collection is."""
        values = {"collection": collection, "failing_s": FAILING.total_seconds()}
        return Freshness(**self._one("freshness", values) or {})

    def failed_pages(self, collection: str, most: int | None = None, since: int = 0) -> list[DictRow]:
        """Return the first failed pages seen by run `since` or a later one: url, http_status, error, attempts."""
        return self._all("page_failures", {"collection": collection, "most": most, "since": since})

    def set_default(self, collection: str | None) -> None:
        """Make `collection` answer questions that name no collection; None leaves no default.

        Raises NoSuchCollection.
        """

        def work(connection: Connection) -> None:
            connection.execute(statement("clear_default"))
            values = {"collection": collection}
            if collection is not None and not connection.execute(statement("set_default"), values).rowcount:
                raise NoSuchCollection(
                    collection, (row["name"] for row in connection.execute(statement("collections")))
                )

        self._do(work)

    def forget_empty_run(self, collection: str, run: int, settings: Mapping[str, Any]) -> None:
        """If `run` is the last one and read no page, restore the collection's state before it, with these settings.

        A collection that has neither a page body nor an index is deleted.
        """
        values = {"collection": collection, "run": run, "settings": Jsonb(dict(settings))}

        def work(connection: Connection) -> None:
            if connection.execute(statement("read_or_succeeded"), values).fetchone() is None:
                for name in ("forget_unread_pages", "restore_settings", "delete_empty_collection"):
                    connection.execute(statement(name), values)

        self._do(work)

    def contents(self, collections: Sequence[str]) -> dict[str, int]:
        """Count the contents of these collections: pages, indexes, chunks, runs, and questions with their feedback."""
        asked = statement("asked_of_collections")
        return dict(self._one("collection_contents", {"names": list(collections)}, asked=asked) or {})

    def drop(self, collections: Sequence[str], with_questions: bool = False) -> list[int]:
        """Delete collections with their pages, indexes and runs; return the ids of the indexes.

        Questions, feedback and evaluations are kept, unless `with_questions`. The caller has locked the collections.
        """
        values: dict[str, Any] = {"names": list(collections)}

        def work(connection: Connection) -> list[int]:
            for name in DELETE_QUESTIONS if with_questions else ():
                connection.execute(statement(name, asked=statement("asked_of_collections")), values)
            indexes = [row["id"] for row in connection.execute(statement("indexes_of"), values)]
            for index in indexes:
                drop_index(connection, index)
            runs = [row["id"] for row in connection.execute(statement("delete_collections"), values)]
            connection.execute(statement("delete_vectors_of_runs"), {"runs": runs})
            return indexes

        return self._do(work)

    # -- copies: the pages of a collection under another name, to be indexed with other settings

    def copy_pages(self, collection: str, copy: str, run: int) -> int:
        """Copy the current pages of `collection` to `copy`, as if `run` had seen them; return how many."""
        values = {"collection": collection, "copy": copy, "run": run}

        def work(connection: Connection) -> int:
            copied = connection.execute(statement("copy_pages"), values).rowcount
            gone = {"collection": copy, "run": run, "prefix": "", "error": f"is no longer a page of {collection}"}
            connection.execute(statement("mark_unseen"), gone | {"kept": []})
            return copied

        return self._do(work)

    def copies(self, collection: str) -> list[str]:
        """Return the names of the copies of a collection."""
        return [row["name"] for row in self._all("copies", {"collection": collection, "mark": COPY_MARK})]

    def drop_copy(self, copy: str) -> list[int]:
        """Drop a copy with its indexes; return their ids. Raises ValueError if it is not a copy."""
        if not is_copy(copy):
            raise ValueError(f"{copy!r} is not a copy (its name has no {COPY_MARK!r}): nothing is dropped")
        return self.drop([copy])
