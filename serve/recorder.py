"""Writes every question, answered or failed, to the database after its reply.

Nobody waits for it and nothing fails with it.

A bounded queue and one thread. While the database is away rows wait in the queue; what does not fit is dropped,
counted and said in the log. Also forgets what is older than its retention. Knows no Ray, no environment and no HTTP.
"""

import contextlib
import logging
import queue
import threading
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from pipelines.records import Answer, Citation, Hit
from pipelines.store import QuestionRow, StoreUnavailable

log = logging.getLogger(__name__)

# A row is some kilobytes, so a full queue is some megabytes: minutes of outage at ten questions a second.
MOST_WAITING = 2_000
# Rows of one transaction: more are no faster, and one bad row makes all of them be written singly.
BATCH = 100
# An error message says why in its first lines; some carry a whole reply of a model.
MOST_ERROR_CHARACTERS = 1_000
# As much of a hit as shows what was found; its whole text is in the index, as long as that lives.
SNIPPET = 300
FORGET_EVERY_S = 3_600.0
# The first and the longest pause between tries while the database is away.
PAUSE_S, LONGEST_PAUSE_S = 0.1, 5.0


class QuestionStore(Protocol):
    """What is needed of a store."""

    def record_questions(self, rows: Sequence[QuestionRow]) -> None: ...

    def forget_questions(self, days: float) -> int: ...


@dataclass(frozen=True, slots=True)
class QuestionContext:
    """Where a question belongs: its collection, conversation and mode, and the name of the API key it came with."""

    collection: str = ""
    conversation: str = ""
    mode: str = ""
    key: str = ""


class Recorder:
    """Records answers. Thread-safe; `close` it to have the last ones written.

    Not `enabled`, it records nothing and still forgets. `retention_days` None keeps what there is for ever.
    `dropped` counts what could not be written.
    """

    def __init__(
        self,
        store: QuestionStore,
        *,
        enabled: bool = True,
        retention_days: float | None = 90,
        most_waiting: int = MOST_WAITING,
        pause_s: float = PAUSE_S,
    ) -> None:
        self._store, self._enabled, self._retention_days, self._pause_s = store, enabled, retention_days, pause_s
        self._waiting: queue.Queue[QuestionRow | None] = queue.Queue(most_waiting)
        self._closing = threading.Event()
        self._give_up_at = float("inf")
        self._forget_at = time.monotonic()
        self._counting = threading.Lock()
        self.dropped = 0
        self._thread = threading.Thread(target=self._work, name="recorder", daemon=True)
        self._thread.start()

    def record(self, answer: Answer, context: QuestionContext = QuestionContext()) -> None:
        """Have `answer` written soon. Never waits and never raises."""
        if not self._enabled:
            return
        try:
            row = row_of(answer, context)
        except Exception:
            self._drop(1, "it can't be made a row", exc_info=True)
        else:
            self._enqueue(row)

    def record_failure(self, id: str, question: str, error: str, context: QuestionContext = QuestionContext()) -> None:
        """Have a question written that got no answer, and why. Never waits and never raises."""
        if not self._enabled:
            return
        self._enqueue(
            QuestionRow(
                id,
                question,
                collection=context.collection,
                conversation=context.conversation,
                mode=context.mode,
                key_name=context.key,
                known=False,
                error=error[:MOST_ERROR_CHARACTERS] or "unknown",
            )
        )

    def close(self, timeout_s: float = 5.0) -> None:
        """Write what waits, for at most `timeout_s`; what is left then is dropped. What comes later is dropped too."""
        self._give_up_at = time.monotonic() + timeout_s
        self._closing.set()
        with contextlib.suppress(queue.Full):  # where there is no room the thread is awake
            self._waiting.put_nowait(None)
        self._thread.join(timeout_s + 1.0)
        self._drop(len(self._rest()), "the service ends")

    # -------------------------------------------------------------------------------------------- the caller's side

    def _enqueue(self, row: QuestionRow) -> None:
        if self._closing.is_set():
            self._drop(1, "the service ends")
            return
        try:
            self._waiting.put_nowait(row)
        except queue.Full:
            self._drop(1, f"{self._waiting.maxsize} wait already")

    def _drop(self, rows: int, why: str, exc_info: bool = False) -> None:
        """Count what is lost, and say so at the first and then at each doubling: an outage fills no log."""
        if not rows:
            return
        with self._counting:
            before, self.dropped = self.dropped, self.dropped + rows
        if before.bit_length() != self.dropped.bit_length():
            log.warning("%d questions were not recorded so far, now since %s", self.dropped, why, exc_info=exc_info)

    # -------------------------------------------------------------------------------------------- the thread's side

    def _work(self) -> None:
        while not (self._closing.is_set() and self._waiting.empty()):
            self._forget_if_due()
            batch = self._next()
            if batch:
                self._write(batch)

    def _next(self) -> list[QuestionRow]:
        """What waits, up to a batch; waits for the first row until it is time to forget."""
        try:
            first = self._waiting.get(timeout=max(0.01, self._forget_at - time.monotonic()))
        except queue.Empty:
            return []
        return [row for row in (first, *self._rest(BATCH - 1)) if row is not None]

    def _rest(self, most: int | None = None) -> list[QuestionRow]:
        rows: list[QuestionRow] = []
        while most is None or len(rows) < most:
            try:
                row = self._waiting.get_nowait()
            except queue.Empty:
                break
            if row is not None:
                rows.append(row)
        return rows

    def _write(self, rows: list[QuestionRow]) -> None:
        """Write `rows`, again while the database is away; those that it refuses are dropped, the others not."""
        pause = self._pause_s
        while True:
            try:
                self._store.record_questions(rows)
                return
            except StoreUnavailable as error:
                left = self._give_up_at - time.monotonic()
                if left <= 0:
                    self._drop(len(rows), f"the database is away: {error}")
                    return
                self._sleep(min(pause, left))
                pause = min(pause * 2, LONGEST_PAUSE_S)
            except Exception:
                if len(rows) == 1:
                    self._drop(1, "the database refuses it", exc_info=True)
                    return
                for row in rows:
                    self._write([row])
                return

    def _sleep(self, seconds: float) -> None:
        """A pause that `close` ends early, once; then short ones, as time is running out."""
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
            forgotten = self._store.forget_questions(self._retention_days)
        except Exception as error:
            self._forget_at = time.monotonic() + 60.0
            log.warning("old questions were not forgotten, trying again in a minute: %s", error)
        else:
            if forgotten:
                log.info("forgot %d questions older than %g days", forgotten, self._retention_days)


def row_of(answer: Answer, context: QuestionContext = QuestionContext()) -> QuestionRow:
    """What is kept of an answer: all but the whole texts of its hits and its prompts."""
    return QuestionRow(
        id=answer.id or uuid.uuid4().hex,
        question=answer.question,
        collection=context.collection,
        conversation=context.conversation,
        standalone=answer.queries[0] if answer.queries and answer.queries[0] != answer.question else "",
        mode=context.mode,
        agent=answer.agent,
        why=answer.route.why if answer.route else "",
        answer=answer.text,
        known=answer.known,
        citations=[_citation(citation, answer.hits) for citation in answer.citations],
        hits=[_hit(hit) for hit in answer.hits],
        queries=list(answer.queries),
        degraded=list(answer.degraded),
        prompt_tokens=answer.usage.prompt_tokens,
        completion_tokens=answer.usage.completion_tokens,
        calls=answer.usage.calls,
        cost=answer.usage.cost,
        timings=dict(answer.timings),
        index=answer.index,
        revision=answer.revision,
        key_name=context.key,
    )


def _hit(hit: Hit) -> dict[str, Any]:
    return {
        "source": hit.source,
        "chunk_id": hit.chunk_id,
        "title": hit.title,
        "snippet": hit.text[:SNIPPET],
        "score": hit.score,
        "score_kind": hit.score_kind,
        "ranks": dict(hit.ranks),
        "scores": dict(hit.scores),
    }


def _citation(citation: Citation, hits: Sequence[Hit]) -> dict[str, Any]:
    """A citation with the chunk it points to: the n-th hit, or where that is another source, the first of its own."""
    nth = hits[citation.n - 1 : citation.n] if citation.n > 0 else ()
    cited = (hit.chunk_id for hit in (*nth, *hits) if citation.source in (hit.source, *hit.sources))
    return {
        "n": citation.n,
        "source": citation.source,
        "chunk_id": next(cited, None),
        "title": citation.title,
        "snippet": citation.snippet[:SNIPPET],
        "supported": citation.supported,
        "support": citation.support,
    }
