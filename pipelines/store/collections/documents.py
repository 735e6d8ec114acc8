"""Reads the pages of an index: their list, and each one as it was when it was indexed."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from psycopg import sql

from pipelines.records import Index, Page
from pipelines.store.chunks import ChunkTables, chunk_table
from pipelines.store.page_states import page_of

BEGINNING = 300  # characters of a page's first text in a listing: a sentence or two


@dataclass(frozen=True, slots=True)
class ListedPage:
    """A page of an index: its URL, its title, and the beginning of its text."""

    url: str
    title: str
    begins: str


class Documents(ChunkTables):
    """The pages of indexes, for callers that read whole pages."""

    def list_pages(self, index: int, after: str = "", most: int = 1_000) -> list[ListedPage]:
        """Return the first `most` pages with text whose URL sorts after `after`, ordered by URL."""
        values = {"after": after, "most": most, "characters": BEGINNING}
        return [ListedPage(**row) for row in self._all("list_pages", values, chunk=chunk_table(index))]

    def indexed_urls(self, index: int) -> list[str]:
        """Return the URL of every page of an index."""
        return [row["url"] for row in self._all("indexed_urls", {"index": index})]

    def find_pages(self, index: Index, urls: Sequence[str]) -> list[str]:
        """Return the pages of an index at one of `urls`, or of which a page there is a copy."""
        values = {"index": index.id, "collection": index.collection, "urls": list(urls)}
        return [row["url"] for row in self._all("find_pages", values)]

    def indexed_page(self, index: Index, url: str) -> Page | None:
        """Return a page with the body from which the index was made; None if that body is no longer stored."""
        values = {"index": index.id, "collection": index.collection, "url": url}
        row = self._one("indexed_body", values)
        return page_of(row) if row else None

    def common_url(self, index: int) -> str:
        """Return the common prefix of the URLs of an index, up to a slash; "" if the index has several hosts."""
        row = self._one("first_and_last_page", {}, chunk=chunk_table(index))
        if row is None or row["first"] is None:
            return ""
        pairs = zip(row["first"].split("/")[:-1], row["last"].split("/")[:-1], strict=False)
        shared = [part for part, _ in itertools.takewhile(lambda pair: pair[0] == pair[1], pairs)]
        return "/".join([*shared, ""]) if len(shared) > 2 else ""  # the scheme, an empty part, the host

    def versions(self, index: int) -> list[str]:
        """Return the versions of the pages of an index, in order."""
        return self._distinct(index, "version")

    def languages(self, index: int) -> list[str]:
        """Return the languages of the pages of an index, in order."""
        return self._distinct(index, "language")

    def _distinct(self, index: int, column: str) -> list[str]:
        parts = {"chunk": chunk_table(index), "column": sql.Identifier(column)}
        return [row["value"] for row in self._all("distinct_values", None, **parts)]
