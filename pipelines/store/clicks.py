"""The sources that readers opened, of answers and of searches.

Knows no HTTP, and not who opened them: a source of an answer or a search counts once.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from pipelines.store.database.connection import Database


@dataclass(frozen=True, slots=True)
class OpenedSource:
    """How often readers opened a source of a collection on one day."""

    source: str
    collection: str
    day: datetime
    clicks: int


class Clicks(Database):
    """What readers opened."""

    def record_click(self, id: str, source: str, key_name: str | None) -> bool:
        """Write that a source of an answer was opened; return whether that is new.

        Nothing is written for a source that the answer does not show, nor for an answer that is unknown or neither
        asked with the key `key_name` nor shared.
        """
        return self._run("record_click", {"id": id, "source": source, "key_name": key_name}) > 0

    def record_search_click(self, shown: str, source: str, collection: str, query: str) -> bool:
        """Write that a source of the search `shown` for `query` was opened; return whether that is new."""
        values = {"shown": shown, "source": source, "collection": collection, "query": query}
        return self._run("record_search_click", values) > 0

    def opened_sources(
        self, collection: str | None = None, since: datetime | None = None, until: datetime | None = None
    ) -> list[OpenedSource]:
        """Return what was opened from `since` on and before `until`, by source and day."""
        values = {"collection": collection, "since": since, "until": until}
        return [OpenedSource(**row) for row in self._all("opened_sources", values)]

    def opened_questions(self, collection: str) -> list[tuple[str, Sequence[str]]]:
        """Return what was asked or searched for, oldest first, each with the sources that were opened for it."""
        rows = self._all("opened_questions", {"collection": collection})
        return [(row["question"], tuple(row["sources"])) for row in rows]
