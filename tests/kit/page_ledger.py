"""Implements PageLedger as a JSON-lines file that a crawler process writes and a test reads, without a database."""

import base64
import json
from collections.abc import Generator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TypeVar

from pipelines.fetched import FetchedPage, KnownPage
from pipelines.records import digest

Report = TypeVar("Report")


def finish(crawl: Generator[list[str], None, Report]) -> tuple[list[str], Report]:
    """Run a crawl to its end, and return the URLs that it yielded and its report."""
    named: list[str] = []
    while True:
        try:
            named += next(crawl)
        except StopIteration as end:
            return named, end.value


class FileLedger:
    """Appends one line per batch, so that a line is a transaction. The last row of a URL wins."""

    def __init__(self, path: str):
        self._path = Path(path)
        self._rows = {row["url"]: row for batch in self.batches() for row in batch}

    def batches(self) -> list[list[dict]]:
        lines = self._path.read_text().splitlines() if self._path.exists() else []
        return [json.loads(line) for line in lines]

    @property
    def rows(self) -> dict[str, dict]:
        return self._rows

    def known_page(self, collection: str, url: str, run: int) -> KnownPage | None:
        row = self._rows.get(url)
        if row is None:
            return None
        etag = row["etag"] if row["state"] == "ok" else None
        return KnownPage(url, row["state"], etag, row["content_hash"], tuple(row["links"]))

    def known_urls(self, collection: str) -> list[str]:
        return [url for url, row in self._rows.items() if row["state"] in ("ok", "failed")]

    def failed_urls(self, collection: str) -> list[str]:
        return [url for url, row in self._rows.items() if row["state"] == "failed"]

    def save_pages(self, collection: str, run: int, pages: Sequence[FetchedPage]) -> None:
        batch = [_row(page, run, self._rows.get(page.url)) for page in pages]
        with self._path.open("a") as file:
            file.write(json.dumps(batch) + "\n")
        self._rows.update((row["url"], row) for row in batch)


def _row(page: FetchedPage, run: int, before: dict | None) -> dict:
    row = asdict(page) | {"run": run, "body": None, "content_hash": before and before["content_hash"]}
    if page.body is not None:
        row |= {"body": base64.b64encode(page.body).decode(), "content_hash": digest(page.body)}
    return row


class BrokenLedger(FileLedger):
    """Fails at the first save, as if the database had gone away."""

    def save_pages(self, collection: str, run: int, pages: Sequence[FetchedPage]) -> None:
        raise ConnectionError("the ledger went away")
