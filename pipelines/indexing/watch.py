"""Watches a run from beside it: how much is done, and when it is likely to end.

The database knows the counts of all processes; this reads them every few seconds. Changes nothing.
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from pipelines.progress import Passing, Progress, describe_seconds, seconds_left
from pipelines.store import Store, StoreUnavailable

# Two short queries each time; a person sees a line move.
EVERY_S = 2.0


class RunWatch:
    """Reports on one run to `tell`, as messages that pass."""

    def __init__(self, store: Store, collection: str, run: int, tell: Progress) -> None:
        self._store, self._collection, self._run, self._tell = store, collection, run, tell

    @contextmanager
    def crawling(self) -> Iterator[None]:
        """Report while the body crawls, and embeds what it finds."""
        with self._every(self._report_crawl):
            yield

    @contextmanager
    def embedding(self, pages: int) -> Iterator[None]:
        """Report while the body embeds so many stored pages."""
        before = self._store.staged_counts(self._run)["pages"]
        with self._every(lambda elapsed_s: self._report_embedding(pages, before, elapsed_s)):
            yield

    def _report_crawl(self, elapsed_s: float) -> None:
        pages, staged = self._store.page_counts(self._collection, self._run), self._store.staged_counts(self._run)
        queued = sum(row["counts"].get("queued", 0) for row in self._store.crawls(self._run))
        seen, fresh = pages["seen"], pages["new"] + pages["changed"]
        if not seen:
            self._tell(Passing("waiting for the first page"))
            return
        total = seen + queued
        ends = [seconds_left(seen, total, elapsed_s)]
        if fresh > staged["pages"]:  # embedding lags behind the crawl
            ends.append(seconds_left(staged["pages"], fresh * total / seen, elapsed_s))
        self._say(f"{seen:,} of {total:,} pages known so far", staged, ends)

    def _report_embedding(self, pages: int, before: int, elapsed_s: float) -> None:
        staged = self._store.staged_counts(self._run)
        done = staged["pages"] - before
        self._say(f"{done:,} of {pages:,} stored pages", staged, [seconds_left(done, pages, elapsed_s)])

    def _say(self, pages: str, staged: dict[str, int], ends: list[float | None]) -> None:
        known = [end for end in ends if end is not None]
        left = f", about {describe_seconds(max(known))} left" if len(known) == len(ends) else ""
        self._tell(Passing(f"{pages}, {staged['chunks']:,} chunks, {staged['embedded']:,} embedded{left}"))

    @contextmanager
    def _every(self, report: Callable[[float], None]) -> Iterator[None]:
        done, began = threading.Event(), time.monotonic()

        def watch() -> None:
            while not done.wait(EVERY_S):
                with suppress(StoreUnavailable):
                    report(time.monotonic() - began)

        thread = threading.Thread(target=watch, daemon=True)
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join()
