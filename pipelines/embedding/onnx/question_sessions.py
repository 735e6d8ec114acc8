"""Shares the CPUs among questions that are embedded at the same time.

Knows sessions that run a model; knows neither texts nor vectors.
"""

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

log = logging.getLogger(__name__)

# Maximum threads of a lone question; measured with two. By arithmetic, its smallest product (26 tokens, 384 x 384
# weights) takes 90 µs on one thread; waking a thread takes about an eighth of that.
WIDEST = 8

Session = TypeVar("Session")


class QuestionSessions(Generic[Session]):
    """Chooses the session of each question: a lone one uses all CPUs, one of several uses one.

    `single` runs on its caller's thread. `open_wide` opens a session whose threads share a run. It is called for the
    first question, because nothing else needs its memory. Thread-safe.

    MiniLM in fp32 embeds a question of 26 tokens in 6.4 ms on one thread and in 3.9 ms on two. Several concurrent
    questions finish sooner on one thread each, because none waits for another thread. Batching waiting questions saves
    nothing: 6.1 ms each in fours, and in int8 2.5 ms both singly and in fours. The arithmetic is the cost.
    """

    def __init__(self, single: Session, open_wide: Callable[[], Session] | None) -> None:
        self._single, self._open_wide = single, open_wide
        self._wide: Session | None = None
        self._asking = 0
        self._lock = threading.Lock()

    @contextmanager
    def take(self) -> Iterator[Session]:
        """Yield the session for one question; it is in use until the body ends."""
        with self._lock:
            session = self._single if self._asking else self._widest()
            self._asking += 1
        try:
            yield session
        finally:
            with self._lock:
                self._asking -= 1

    def _widest(self) -> Session:
        """Return the session of a lone question: the single one if no other opens."""
        open_wide, self._open_wide = self._open_wide, None
        if open_wide:
            try:
                self._wide = open_wide()
            except Exception as error:  # the model's file may be gone by now
                log.warning("a lone question keeps to one thread: %s", error)
        return self._single if self._wide is None else self._wide
