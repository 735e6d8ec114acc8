"""Reads questions with their ratings, and the pages and sections that they could have cited.

It reads no key name, session, conversation or id: nothing that leads from a question to a person.
"""

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from psycopg.rows import DictRow

from pipelines.store.chunks import chunk_table
from pipelines.store.database.connection import Database, statement
from pipelines.text.cleaning import clean_for_storage

# How many hits of a question are read; their sections show its subject (insights/clustering.py).
FOUND = 5
ROWS_AT_ONCE = 1_000


@dataclass(frozen=True, slots=True)
class AskedQuestion:
    """A question as it reads without its conversation, and how its answer went; nothing about who asked.

    `cited` are the sources of its answer, `found` the sources of its first hits, and `cosines` their scores from the
    vector search. `passages` are the beginnings of these hits, if the question was not answered. `confidence` is "" if
    none was recorded; `answer` is "" unless a reader rated it down; seconds are None if they were not measured.
    """

    question: str
    asked_at: datetime
    collection: str = ""
    known: bool = True
    confidence: str = ""
    failed: bool = False
    channel: str = ""
    agent: str = ""
    cost: float = 0.0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    seconds: float | None = None
    first_word: float | None = None
    cited: tuple[str, ...] = ()
    found: tuple[str, ...] = ()
    passages: tuple[str, ...] = ()
    cosines: tuple[float, ...] = ()
    ups: int = 0
    downs: int = 0
    reasons: tuple[str, ...] = ()
    comments: tuple[str, ...] = ()
    answer: str = ""


class AskedQuestions(Database):
    """Questions as insights need them."""

    def count_asked(
        self, collection: str | None = None, since: datetime | None = None, until: datetime | None = None
    ) -> int:
        """Count the questions that `asked` yields without a limit."""
        row = self._one("count_asked", {"collection": collection, "since": since, "until": until})
        return int((row or {})["questions"])

    @contextmanager
    def asked(
        self,
        collection: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        most: int | None = None,
    ) -> Iterator[Iterator[AskedQuestion]]:
        """Yield the last `most` questions, newest first, streamed through a server-side cursor.

        If given, only those to `collection`, asked from `since` on and before `until`.
        """
        values = {"collection": collection, "since": since, "until": until, "most": most}
        with self._connection() as connection, connection.cursor("asked") as cursor:
            cursor.itersize = ROWS_AT_ONCE
            cursor.execute(
                statement("asked", answer=statement("answer_fields")), {**values, "first_hits": f"$[0 to {FOUND - 1}]"}
            )
            yield map(_asked, cursor)

    def changed_sections(
        self, collection: str, index: int, since: datetime | None, until: datetime | None, most: int
    ) -> list[DictRow]:
        """Return the sections cited by recorded answers that have changed in `index` or are no longer there (`gone`).

        Each row has how many `answers` cited the section, when the `last` of them was asked, and the last few
        `questions`.
        """
        values = {"collection": collection, "index": index, "since": since, "until": until, "most": most}
        return self._all("changed_sections", values, chunk=chunk_table(index), answer=statement("answer_fields"))

    def indexed_pages(self, index: int) -> dict[str, str]:
        """Return the title of each page of an index, by URL."""
        return {row["url"]: row["title"] for row in self._all("indexed_pages", chunk=chunk_table(index))}

    def indexed_sections(self, index: int, sources: Sequence[str]) -> dict[str, str]:
        """Return by source the headings, outermost first, of each of `sources` that is in the index."""
        wanted = {
            (url, anchor): source for source in sources for url, _, anchor in [clean_for_storage(source).partition("#")]
        }
        if not wanted:
            return {}
        values = {"urls": [url for url, _ in wanted], "anchors": [anchor for _, anchor in wanted]}
        rows = self._all("indexed_sections", values, chunk=chunk_table(index))
        return {wanted[row["url"], row["anchor"]]: _heading(row) for row in rows}


def _heading(row: Mapping[str, Any]) -> str:
    return " › ".join(dict.fromkeys(row["headings"])) or row["title"] or row["url"]


def _asked(row: Mapping[str, Any]) -> AskedQuestion:
    """Return the question of a row; strings that many rows share are stored once."""
    values: dict[str, Any] = {**row}
    values |= {name: tuple(map(_shared, row[name])) for name in ("cited", "found", "reasons")}
    values |= {name: _shared(row[name] or "") for name in ("collection", "confidence", "channel", "agent")}
    values |= {name: row[name] or 0 for name in ("ups", "downs")}
    values |= {name: tuple(row[name]) for name in ("comments", "passages")}
    values["cosines"] = tuple(cosine for cosine in row["cosines"] if cosine is not None)
    return AskedQuestion(**values)


def _shared(text: Any) -> str:
    return sys.intern(str(text))
