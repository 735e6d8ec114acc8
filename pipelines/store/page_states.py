"""Stores the pages of a collection: the crawl frontier and the state of each page.

This module knows neither chunks nor indexes, except to find the pages that an index does not have yet.
"""

import zlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from psycopg.rows import DictRow
from psycopg.types.json import Jsonb

from pipelines.fetched import FetchedPage, KnownPage
from pipelines.records import Page, content_hash
from pipelines.store.database.connection import Connection, Database, statement

# A page that could not be read is tried this often (the machine may have been busy), then only on request.
READ_ATTEMPTS = 3


@dataclass(frozen=True, slots=True)
class PageToIndex:
    """A stored page whose present input (`input_hash`: body and metadata rules) is not in the index yet."""

    page: Page
    input_hash: str


class Pages(Database):
    """Pages and crawls."""

    def save_pages(self, collection: str, run: int, pages: Sequence[FetchedPage]) -> None:
        """Commit the states of `pages` in `run`; a body of None keeps the stored one."""
        rows = [_page_row(collection, run, page) for page in pages]
        save = statement("save_page", still_unreadable=statement("still_unreadable"))
        self._do(lambda connection: self._for_each(connection, save, rows))

    def see_files(self, collection: str, run: int, stamps: Sequence[str]) -> dict[str, str]:
        """Commit that `run` found files unchanged; return the URLs of their pages by stamp."""
        rows = self._all("see_files", {"collection": collection, "run": run, "stamps": list(stamps)})
        return {row["file_stamp"]: row["url"] for row in rows}

    def known_page(self, collection: str, url: str, run: int = 0) -> KnownPage | None:
        """Return the stored record of `url`, including whether `run` can skip fetching it."""
        row = self._one("known_page", {"collection": collection, "url": url, "run": run})
        return KnownPage(**(row | {"links": tuple(row["links"])})) if row else None

    def content_hashes(self, collection: str, urls: Sequence[str]) -> dict[str, str | None]:
        """Return the stored content hash of each known URL in `urls`."""
        rows = self._all("content_hashes", {"collection": collection, "urls": list(urls)})
        return {row["url"]: row["content_hash"] for row in rows}

    def known_urls(self, collection: str) -> list[str]:
        """Return every URL that existed, or failed, when it was last fetched."""
        return [row["url"] for row in self._all("known_urls", {"collection": collection})]

    def failed_urls(self, collection: str) -> list[str]:
        """Return every URL whose last fetch or reading failed."""
        return [row["url"] for row in self._all("failed_urls", {"collection": collection})]

    def gone_pages(self, collection: str, urls: Collection[str]) -> set[str]:
        """Return the URLs in `urls` that are no longer pages of the site: gone, moved, or copies of other pages."""
        return {row["url"] for row in self._all("gone_pages", {"collection": collection, "urls": list(urls)})}

    def fail_pages(self, collection: str, failures: Iterable[tuple[str, str]]) -> None:
        """Record (url, reason) of pages that could not be read; their chunks in an index stay."""
        rows = [{"collection": collection, "url": url, "error": reason} for url, reason in failures]
        if rows:
            self._do(lambda connection: self._for_each(connection, statement("fail_page"), rows))

    def mark_unseen(self, collection: str, run: int, prefix: str, reason: str, kept: Sequence[str] = ()) -> int:
        """Mark pages under `prefix` that `run` did not see as gone, except the URLs `kept`; return how many."""
        values = {"collection": collection, "run": run, "prefix": prefix, "error": reason}
        return self._run("mark_unseen", values | {"kept": list(kept)})

    def mark_unclaimed(self, collection: str, run: int, urls: Sequence[str]) -> int:
        """Mark the pages at `urls` that `run` did not see as gone with their source; return how many."""
        return self._run("mark_unclaimed", {"collection": collection, "run": run, "urls": list(urls)})

    def mark_deleted(self, collection: str, run: int, urls: Sequence[str]) -> int:
        """Mark the pages at `urls` as gone; return how many exist."""
        return self._run("mark_deleted", {"collection": collection, "run": run, "urls": list(urls)})

    def page_names(self, collection: str) -> list[DictRow]:
        """Return a row for each stored page that exists: url, canonical, content_hash, is_html."""
        return self._all("page_names", {"collection": collection})

    def page_sketches(self, collection: str, urls: Sequence[str]) -> dict[str, str]:
        """Return the stored sketches of the present texts of pages, by URL."""
        rows = self._all("page_sketches", {"collection": collection, "urls": list(urls)})
        return {row["url"]: row["sketch"] for row in rows}

    def save_sketches(self, collection: str, sketches: Mapping[str, str]) -> None:
        """Store the sketches of the present texts of pages, given by URL."""
        rows = [{"collection": collection, "url": url, "sketch": sketch} for url, sketch in sketches.items()]
        if rows:
            self._do(lambda connection: self._for_each(connection, statement("save_sketch"), rows))

    def mark_duplicates(self, collection: str, run: int, copies: Mapping[str, str]) -> None:
        """Mark `copies` (the original's URL by the copy's) as duplicates, and drop their staged rows of `run`.

        Every other page loses its mark.
        """
        values = {"collection": collection, "run": run, "copies": list(copies), "originals": list(copies.values())}

        def work(connection: Connection) -> None:
            for name in ("unmark_duplicates", "mark_duplicates", "drop_staged_duplicates"):
                connection.execute(statement(name), values)

        self._do(work)

    def left_out(self, collection: str, run: int) -> list[DictRow]:
        """Return why pages that `run` saw are not indexed: state, number of pages, and url and error of the first."""
        return self._all("left_out", {"collection": collection, "run": run})

    def ranges_to_index(
        self,
        collection: str,
        run: int,
        index: int | None,
        rules: str,
        size: int,
        attempts: int = READ_ATTEMPTS,
        seen: bool = False,
    ) -> list[DictRow]:
        """Return URL ranges {first, last, pages, bytes} of about `size` pages that neither `index` nor `run` has yet.

        Pages whose texts `run` has staged and claimed but not embedded are included. Pages that could not be read
        `attempts` times are left out; with `seen`, so are all pages that `run` has not seen.
        """
        values = {"collection": collection, "run": run, "index": index, "rules": rules, "size": size}
        return self._all("ranges_to_index", values | {"attempts": attempts, "seen": seen})

    def urls_in_range(self, collection: str, first: str, last: str) -> list[str]:
        """Return the URLs of stored pages from `first` to `last`."""
        rows = self._all("urls_in_range", {"collection": collection, "first": first, "last": last})
        return [row["url"] for row in rows]

    def pages_to_index(
        self,
        collection: str,
        run: int,
        index: int | None,
        rules: str,
        urls: Sequence[str],
        attempts: int = READ_ATTEMPTS,
    ) -> list[PageToIndex]:
        """Return the pages at `urls` whose present input is not in `index` (None: a new index), with their bodies."""
        values = {"collection": collection, "run": run, "index": index, "rules": rules, "urls": list(urls)}
        rows = self._all("pages_to_index", values | {"attempts": attempts})
        return [PageToIndex(page_of(row), row["input_hash"]) for row in rows]

    def layout_sample(self, collection: str, least: int, most: int) -> dict[str, str]:
        """Return `most` HTML pages of each site that has at least `least`: content hashes by URL.

        The sample is deterministic.
        """
        rows = self._all("layout_sample", {"collection": collection, "least": least, "most": most})
        return {row["url"]: row["content_hash"] for row in rows}

    def page_bodies(self, collection: str, urls: Sequence[str]) -> list[Page]:
        """Return the stored pages at `urls`."""
        rows = self._all("page_bodies", {"collection": collection, "urls": list(urls)})
        return [page_of(row) for row in rows]

    def layouts(self, collection: str) -> tuple[str, dict[str, Any]]:
        """Return the saved layouts of a collection's sites, and the hash of the sample they were learned from."""
        row = self._one("get_layouts", {"collection": collection})
        return (row["sample"], dict(row["sites"])) if row else ("", {})

    def save_layouts(self, collection: str, sample: str, sites: Mapping[str, Any]) -> None:
        """Store the layouts of a collection's sites, and the hash of the sample they were learned from."""
        self._run("save_layouts", {"collection": collection, "sample": sample, "sites": Jsonb(dict(sites))})

    def listing(self, collection: str, base_url: str) -> list[str]:
        """Return the URLs that the site at `base_url` listed when it last responded."""
        row = self._one("get_listing", {"collection": collection, "base_url": base_url})
        return list(row["urls"]) if row else []

    def save_listing(self, collection: str, base_url: str, urls: Sequence[str]) -> None:
        """Store the URLs that the site at `base_url` lists."""
        self._run("save_listing", {"collection": collection, "base_url": base_url, "urls": list(urls)})

    def save_crawl(self, run: int, host: str, complete: bool, stopped_by: str, counts: Mapping[str, Any]) -> None:
        """Record how the crawl of one host ended."""
        values = {"run": run, "host": host, "complete": complete, "stopped_by": stopped_by}
        self._run("save_crawl", values | {"counts": Jsonb(dict(counts))})

    def crawls(self, run: int) -> list[DictRow]:
        """Return how the crawls of `run` ended: host, complete, stopped_by, counts."""
        return self._all("crawls", {"run": run})

    def seen_pages(self, collection: str, run: int) -> dict[str, int]:
        """Return how many pages `run` has seen so far, and the stored bytes of their bodies."""
        return dict(self._one("seen_pages", {"collection": collection, "run": run}) or {})

    def page_counts(self, collection: str, run: int) -> dict[str, int]:
        """Count the pages that `run` saw: seen, new, changed, unchanged, failed, duplicate, skipped."""
        return dict(self._one("page_counts", {"collection": collection, "run": run}) or {})

    def page_dates(self, collection: str, urls: Sequence[str]) -> dict[str, DictRow]:
        """Return by URL when pages were last `checked`, and when their content last `changed`; None if unknown."""
        return {row["url"]: row for row in self._all("page_dates", {"collection": collection, "urls": list(urls)})}

    def unread(self, collection: str, run: int, urls: Sequence[str]) -> dict[str, str]:
        """Return the URLs in `urls` that `run` could not read, with the reasons."""
        rows = self._all("unread", {"collection": collection, "run": run, "urls": list(urls)})
        return {row["url"]: row["reason"] for row in rows}

    def pages_failed_with(self, collection: str, run: int, reason: str) -> list[str]:
        """Return the URLs of pages that `run` saw and that failed for `reason`."""
        rows = self._all("pages_failed_with", {"collection": collection, "run": run, "reason": reason})
        return [row["url"] for row in rows]


def page_of(row: Mapping[str, Any]) -> Page:
    """Return the page of a row, with its body as fetched."""
    return Page(row["url"], zlib.decompress(row["body"]), row["content_type"], row["charset"])


def _page_row(collection: str, run: int, page: FetchedPage) -> dict[str, Any]:
    body = page.body
    row = {field.name: getattr(page, field.name) for field in fields(page)}
    row |= {"collection": collection, "run": run, "content_hash": None}
    if body is not None:
        row |= {"content_hash": content_hash(body, page.content_type, page.charset), "body": zlib.compress(body, 6)}
    return row
