"""Watches a run from a separate thread: how much is done, and when it will probably end.

The database has the counts of all processes. This module reads them every few seconds and changes nothing.
"""

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress

from pipelines.store import Store, StoreUnavailable
from pipelines.text.counts import counted
from pipelines.text.progress import LEAST_SHARE, Passing, Progress, WorkPace, describe_seconds

# The pause between two reads, short enough that a person sees progress, and at least this many times a read's duration.
EVERY_S, LEAST_PAUSE = 2.0, 20.0
# Share of the fetched text that must be embedded before fetching counts as the bottleneck.
KEEPS_UP = 0.7
# Seconds that a publish takes per chunk: the HNSW graph of 10,314 took 5.1 s (2 cores, 384 dimensions).
PUBLISH_S = 0.0005
# The beginning of a message while other processes have the CPUs; a run has low priority.
STARVING = "waiting for a CPU, which other processes use: "


class RunWatch:
    """Reports on one run to `tell` in passing messages: one line, and one expected end for the whole run.

    The expected end comes from the slowest step: fetching pages, or embedding their text at the pace of tokens so far.
    The tokens of unread pages are estimated by bytes from the pages of the same phase that were read. Stored pages come
    in any order. But a crawl begins with the longest texts of a site, with up to three times the tokens per byte of the
    rest, so it has no expected end while embedding does not keep up. If there is nothing to embed, reading is the
    slowest step. The clock stops between two phases, when no watched work is done. `starves` returns whether other
    processes have the CPUs: the messages say so.
    """

    def __init__(
        self,
        store: Store,
        collection: str,
        run: int,
        tell: Progress,
        clock: Callable[[], float] = time.monotonic,
        starves: Callable[[], bool] = lambda: False,
    ) -> None:
        self._store, self._collection, self._run, self._tell, self._clock = store, collection, run, tell, clock
        self._stopped_s = self._paused_s = 0.0
        self._fetched, self._read, self._embedded = WorkPace(), WorkPace(), WorkPace()
        self._pages = self._total = self._known_tokens = 0
        self._before = {"bytes": 0, "tokens": 0}
        self._state: tuple[float, ...] = ()
        self._end_s = 0.0
        self._waits_for = ""
        self._starves = starves

    def crawling(self, rules: Callable[[], str]) -> AbstractContextManager[None]:
        """Report while the body crawls and embeds; `rules` returns the present rules for reading pages."""
        return self._every(lambda at_s: self._report_crawl(rules(), at_s))

    def embedding(self, rules: str, pages: int, size: int) -> AbstractContextManager[None]:
        """Report while the body embeds `pages` stored pages of `size` bytes."""
        self._read = WorkPace()
        self._before = before = self._store.staging_progress(self._collection, self._run, rules)
        known = (before["pages"] + pages, before["bytes"] + size)
        return self._every(lambda at_s: self._report(rules, *known, None, at_s))

    def preparing(self, what: str) -> AbstractContextManager[None]:
        """Report only if the body, which does `what`, waits for a CPU."""
        return self._periodically(lambda: self._starves() and self._tell(Passing(f"{STARVING}{what}")))

    @contextmanager
    def waiting(self, reason: str) -> Iterator[None]:
        """Report the reason while the body waits and no work is done."""
        self._waits_for = reason
        try:
            yield
        finally:
            self._waits_for = ""

    def _report_crawl(self, rules: str, at_s: float) -> None:
        seen = self._store.seen_pages(self._collection, self._run)
        queued = sum(row["counts"].get("queued", 0) for row in self._store.crawls(self._run))
        if seen["pages"]:
            total = seen["pages"] + queued
            self._fetched.note(at_s, seen["pages"])
            self._report(rules, total, seen["bytes"] * total / seen["pages"], self._fetched, at_s)
        else:
            self._say("waiting for the first page")

    def _report(self, rules: str, total: int, size: float, fetched: WorkPace | None, at_s: float) -> None:
        """Report how many of `total` pages with `size` bytes are done at `at_s`, and when all will probably be.

        `fetched` is the pace of a crawl that is still running.
        """
        staged = self._store.staging_progress(self._collection, self._run, rules)
        self._read.note(at_s, staged["bytes"])
        # Tokens embedded since the last read; a page that is read again removes its old texts.
        more = max(0, staged["embedded_tokens"] - self._known_tokens)
        self._known_tokens = staged["embedded_tokens"]
        self._embedded.note(at_s, self._embedded.done + more)
        state = (total, size, *staged.values())
        if state != self._state:  # between two batches of the model nothing new is known: count down
            left = self._all_left(staged, total, size, fetched)
            self._state, self._end_s = state, 0.0 if left is None else at_s + left
        self._pages, self._total = max(self._pages, staged["pages"]), max(self._total, total)
        ends = f", about {describe_seconds(self._end_s - at_s)} left" if self._end_s >= at_s + 1 else ""
        counts = f"{counted(staged['chunks'], 'chunk')}, {staged['embedded']:,} embedded"
        self._say(f"{self._pages:,} of {counted(self._total, 'page')}, {counts}{ends}")

    def _say(self, text: str) -> None:
        self._tell(Passing(f"{STARVING if self._starves() else ''}{text}"))

    def _all_left(self, staged: Mapping[str, int], total: int, size: float, fetched: WorkPace | None) -> float | None:
        """Return how long the run will take, None while too little is known."""
        left = self._work_left(staged, size)
        if fetched is None or staged["bytes"] >= size:
            return left
        fetching_s = fetched.seconds_left(total)
        if fetching_s is None or not _keeps_up(staged, size * fetched.done / total):
            return None
        return max(fetching_s, left or 0.0)

    def _work_left(self, staged: Mapping[str, int], size: float) -> float | None:
        """Return how long reading, embedding and publishing will take, None while too little is known."""
        read, unread = staged["bytes"] - self._before["bytes"], max(0.0, size - staged["bytes"])
        if not staged["bytes"] or read < LEAST_SHARE * (read + unread):
            return None
        publishing_s = PUBLISH_S * staged["chunks"] * (1 + unread / staged["bytes"])
        if not staged["tokens"]:
            left = self._read.seconds_left(size)
            return None if left is None else left + publishing_s
        to_come = (staged["tokens"] - self._before["tokens"]) * unread / read if read else 0.0
        each_s, waiting = self._embedded.seconds_each(), staged["tokens"] - staged["embedded_tokens"]
        return None if each_s is None else (waiting + to_come) * each_s + publishing_s

    @contextmanager
    def _every(self, report: Callable[[float], None]) -> Iterator[None]:
        self._paused_s += self._clock() - self._stopped_s

        def tell() -> None:
            if reason := self._waits_for:
                self._tell(Passing(reason))
            else:
                report(self._now())

        try:
            with self._periodically(tell):
                yield
        finally:
            self._stopped_s = self._clock()

    @contextmanager
    def _periodically(self, tell: Callable[[], object]) -> Iterator[None]:
        """Call `tell` in a thread while the body works."""
        done = threading.Event()

        def watch() -> None:
            pause_s = EVERY_S
            while not done.wait(pause_s):
                began = self._clock()
                with suppress(StoreUnavailable):
                    tell()
                pause_s = max(EVERY_S, LEAST_PAUSE * (self._clock() - began))

        thread = threading.Thread(target=watch, daemon=True)
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join()

    def _now(self) -> float:
        """Return the seconds watched so far."""
        return self._clock() - self._paused_s


def _keeps_up(staged: Mapping[str, int], size: float) -> bool:
    """Return whether most of the text in `size` bytes of fetched pages is embedded."""
    embedded = staged["embedded_tokens"] / staged["tokens"] if staged["tokens"] else 1.0
    return embedded * staged["bytes"] >= KEEPS_UP * size
