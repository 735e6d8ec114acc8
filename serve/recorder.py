"""Writes every question, answered or failed, to the database after its reply.

No reply waits for it or fails because of it: it uses a bounded queue and one thread. While the database is unavailable,
rows wait in the queue; rows that do not fit are dropped, counted and logged. It also deletes questions after their
retention. Knows neither Ray nor HTTP nor the environment.
"""

import contextlib
import logging
import queue
import threading
import time
from dataclasses import replace
from urllib.parse import urlsplit, urlunsplit

from pipelines.page.stored import readable_text
from pipelines.records import Answer
from pipelines.store import RecordedQuestion, Store, StoreUnavailable
from pipelines.text.detection import find_language

log = logging.getLogger(__name__)

# A row has a few kilobytes, so a full queue has a few megabytes: minutes of outage at ten questions per second.
MOST_WAITING = 2_000
# Rows per transaction. More are no faster, and after one bad row all are written one by one.
BATCH_ROWS = 100
# The first lines of an error give the reason; some errors include a whole reply of a model.
MOST_ERROR_CHARACTERS = 1_000
# Enough of a hit to recognize it; its full text is in the index, as long as that exists.
SNIPPET_CHARACTERS = 300
# A longer path is not a documentation page.
MOST_URL_CHARACTERS = 2_000
RETENTION_DAYS = 90
FORGET_EVERY_S = 3_600.0
# The first and the longest pause between attempts while the database is unavailable.
PAUSE_S, LONGEST_PAUSE_S = 0.1, 5.0


class Recorder:
    """Records questions. Thread-safe; `close` writes the last ones.

    If not `enabled`, it records nothing but still deletes old questions. `retention_days` None keeps them forever.
    `dropped` counts the rows that could not be written.
    """

    def __init__(
        self,
        store: Store,
        *,
        enabled: bool = True,
        retention_days: float | None = RETENTION_DAYS,
        most_waiting: int = MOST_WAITING,
        pause_s: float = PAUSE_S,
    ) -> None:
        self._store, self.enabled, self._retention_days, self._pause_s = store, enabled, retention_days, pause_s
        self._waiting: queue.Queue[RecordedQuestion | None] = queue.Queue(most_waiting)
        self._progress, self._queued, self._done = threading.Condition(), 0, 0
        self._closing = threading.Event()
        self._give_up_at = float("inf")
        self._forget_at = time.monotonic()
        self._counting = threading.Lock()
        self.dropped = 0
        self._thread = threading.Thread(target=self._work, name="recorder", daemon=True)
        self._thread.start()

    def record(self, question: RecordedQuestion) -> None:
        """Queue a question, with its answer or the reason for having none, for writing.

        Never waits and never raises.
        """
        if not self.enabled:
            return
        try:
            kept = as_kept(question)
        except Exception:
            self._drop(1, "an answer does not fit a row", exc_info=True)
        else:
            self._enqueue(kept)

    def settle(self, seconds: float) -> bool:
        """Wait until everything queued so far is written or dropped, for at most `seconds`; return whether it is."""
        with self._progress:
            queued = self._queued
            return self._progress.wait_for(lambda: self._done >= queued, seconds)

    def close(self, timeout_s: float = 5.0) -> None:
        """Write the waiting rows for at most `timeout_s`; drop the rest and any that come later."""
        self._give_up_at = time.monotonic() + timeout_s
        self._closing.set()
        with contextlib.suppress(queue.Full):  # a full queue means that the thread is awake
            self._waiting.put_nowait(None)
        self._thread.join(timeout_s + 1.0)
        self._drop(len(self._rest()), "the service is stopping")

    # ---------------------------------------------------------------------------------------- in the caller's thread

    def _enqueue(self, row: RecordedQuestion) -> None:
        if self._closing.is_set():
            self._drop(1, "the service is stopping")
            return
        try:
            with self._progress:
                self._waiting.put_nowait(row)
                self._queued += 1
        except queue.Full:
            self._drop(1, f"the queue is full with {self._waiting.maxsize}")

    def _drop(self, rows: int, why: str, exc_info: bool = False) -> None:
        """Count lost rows; log the first and then each doubling, so that an outage does not flood the log."""
        if not rows:
            return
        with self._counting:
            before, self.dropped = self.dropped, self.dropped + rows
        if before.bit_length() != self.dropped.bit_length():
            log.warning(
                "%d questions were not recorded so far, the last because %s", self.dropped, why, exc_info=exc_info
            )

    # ---------------------------------------------------------------------------------------- in the recorder's thread

    def _work(self) -> None:
        while not (self._closing.is_set() and self._waiting.empty()):
            self._forget_if_due()
            batch = self._next()
            if batch:
                self._write(batch)
            with self._progress:
                self._done += len(batch)
                self._progress.notify_all()

    def _next(self) -> list[RecordedQuestion]:
        """Return a batch of waiting rows; wait for the first one until it is time to delete old questions."""
        try:
            first = self._waiting.get(timeout=max(0.01, self._forget_at - time.monotonic()))
        except queue.Empty:
            return []
        return [row for row in (first, *self._rest(BATCH_ROWS - 1)) if row is not None]

    def _rest(self, most: int | None = None) -> list[RecordedQuestion]:
        rows: list[RecordedQuestion | None] = []
        with contextlib.suppress(queue.Empty):
            while most is None or len(rows) < most:
                rows.append(self._waiting.get_nowait())
        return [row for row in rows if row is not None]

    def _write(self, rows: list[RecordedQuestion]) -> None:
        """Write `rows`, retrying while the database is unavailable; drop only rows that it rejects."""
        pause = self._pause_s
        while True:
            try:
                self._store.record_questions(rows)
                return
            except StoreUnavailable as error:
                left = self._give_up_at - time.monotonic()
                if left <= 0:
                    self._drop(len(rows), f"the database is unavailable: {error}")
                    return
                self._sleep(min(pause, left))
                pause = min(pause * 2, LONGEST_PAUSE_S)
            except Exception:
                if len(rows) == 1:
                    self._drop(1, "the database refused it", exc_info=True)
                    return
                for row in rows:
                    self._write([row])
                return

    def _sleep(self, seconds: float) -> None:
        """Pause; `close` ends the first pause early, later ones are short."""
        if self._closing.is_set():
            time.sleep(min(seconds, self._pause_s))
        else:
            self._closing.wait(seconds)

    def _forget_if_due(self) -> None:
        if time.monotonic() < self._forget_at or self._closing.is_set():
            return
        self._forget_at = time.monotonic() + FORGET_EVERY_S
        if self._retention_days is None:
            return
        try:
            if deleted := self._store.forget_questions(self._retention_days):
                log.info("deleted %d questions older than %g days", deleted, self._retention_days)
        except Exception as error:
            self._forget_at = time.monotonic() + 60.0
            log.warning("old questions were not deleted, trying again in a minute: %s", error)


def as_kept(question: RecordedQuestion) -> RecordedQuestion:
    """Return a question in the form to store: shortened, with its language and an anonymous page URL."""
    return replace(
        question,
        answer=question.answer and abridged(question.answer),
        error=question.error if question.error is None else question.error[:MOST_ERROR_CHARACTERS] or "unknown",
        page=without_query(question.page),
        language=find_language(question.question),
    )


def abridged(answer: Answer) -> Answer:
    """Return an answer without its prompts and the full text of its hits; it is readable without its index."""
    return replace(
        answer,
        exchanges=(),
        citations=tuple(replace(one, snippet=one.snippet[:SNIPPET_CHARACTERS]) for one in answer.citations),
        hits=tuple(
            replace(
                hit,
                text=readable_text(hit.text)[:SNIPPET_CHARACTERS],
                plain="",
                context="",
                sources=hit.sources or (hit.source,),
            )
            for hit in answer.hits
        ),
    )


def without_query(url: str) -> str:
    """Return a page's URL without its query, fragment and user, which may identify a person or grant access.

    "" for none.
    """
    try:
        parts = urlsplit(url)
    except ValueError:
        return ""
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))[:MOST_URL_CHARACTERS]
