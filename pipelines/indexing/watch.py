"""Watches a run from beside it: how much is done, and when it is likely to end.

The database knows the counts of all processes; this reads them every few seconds. Changes nothing.
"""

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from pipelines.progress import Passing, Progress, describe_seconds, seconds_left
from pipelines.store import Store, StoreUnavailable

# A few short queries each time; a person sees a line move.
EVERY_S = 2.0


class RunWatch:
    """Reports on one run to `tell`, as messages that pass."""

    def __init__(self, store: Store, collection: str, run: int, tell: Progress) -> None:
        self._store, self._collection, self._run, self._tell = store, collection, run, tell
        self._state: tuple[object, ...] = ()
        self._end_s = 0.0

    @contextmanager
    def crawling(self) -> Iterator[None]:
        """Report while the body crawls, and embeds what it finds."""
        with self._every(self._report_crawl):
            yield

    @contextmanager
    def embedding(self, pages: int) -> Iterator[None]:
        """Report while the body embeds so many stored pages."""
        before = self._count()
        with self._every(lambda elapsed_s: self._report_embedding(pages, before, elapsed_s)):
            yield

    def _report_crawl(self, elapsed_s: float) -> None:
        seen = self._store.page_counts(self._collection, self._run)["seen"]
        queued = sum(row["counts"].get("queued", 0) for row in self._store.crawls(self._run))
        if seen:
            self._say(f"{seen:,} of {seen + queued:,} known pages", seen, seen + queued, self._count(), elapsed_s)
        else:
            self._tell(Passing("waiting for the first page"))

    def _report_embedding(self, pages: int, before: Counter[str], elapsed_s: float) -> None:
        counts = self._count() - before
        self._say(f"{counts['pages']:,} of {pages:,} stored pages", counts["pages"], pages, counts, elapsed_s)

    def _say(self, what: str, pages: int, total: int, counts: Counter[str], elapsed_s: float) -> None:
        """Tell how many pages and texts are done; the one of the two that takes longer decides about the end."""
        ends = [seconds_left(pages, total, elapsed_s)]
        if pages and counts["claimed"]:
            ends.append(seconds_left(counts["embedded"], counts["claimed"] * total / pages, elapsed_s))
        state = (pages, total, *counts.items())
        if state != self._state:  # between two batches of the model nothing new is known: count down
            known = [end for end in ends if end is not None]
            self._state, self._end_s = state, elapsed_s + max(known) if len(known) == len(ends) else 0.0
        left = f", about {describe_seconds(self._end_s - elapsed_s)} left" if self._end_s > elapsed_s else ""
        self._tell(Passing(f"{what}, {counts['chunks']:,} chunks, {counts['embedded']:,} embedded{left}"))

    def _count(self) -> Counter[str]:
        """Count what the run has staged so far: pages, chunks, texts claimed and embedded."""
        return Counter({**self._store.staged_counts(self._run), "claimed": self._store.claimed_texts(self._run)})

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
