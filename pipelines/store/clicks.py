"""Records which sources readers opened, from answers and from searches.

This module knows no HTTP, and doesn't record who opened them. A source counts once per answer or search.
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
    """Clicks of readers on sources."""

    def record_click(self, id: str, source: str, key_name: str | None) -> bool:
        """Record that a source of an answer was opened; return whether that is new.

        Nothing is recorded if the answer doesn't show the source or doesn't exist. The answer must also be shared or
        have been asked with the key `key_name`.
        """
        return self._run("record_click", {"id": id, "source": source, "key_name": key_name}) > 0

    def record_search_click(self, shown: str, source: str, collection: str, query: str) -> bool:
        """Record that a source of the search `shown` for `query` was opened; return whether that is new."""
        values = {"shown": shown, "source": source, "collection": collection, "query": query}
        return self._run("record_search_click", values) > 0

    def opened_sources(
        self, collection: str | None = None, since: datetime | None = None, until: datetime | None = None
    ) -> list[OpenedSource]:
        """Return the clicks from `since` on and before `until`, by source and day."""
        values = {"collection": collection, "since": since, "until": until}
        return [OpenedSource(**row) for row in self._all("opened_sources", values)]

    def opened_questions(self, collection: str) -> list[tuple[str, Sequence[str]]]:
        """Return the questions and searches, oldest first, each with the sources that were opened for it."""
        rows = self._all("opened_questions", {"collection": collection})
        return [(row["question"], tuple(row["sources"])) for row in rows]
