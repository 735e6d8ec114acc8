"""Names the legs of a search, and runs and times their calls.

This module knows nothing about indexes or the store.
"""

import logging
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future, wait
from contextvars import copy_context
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

from pipelines import tracing

log = logging.getLogger(__name__)

VECTOR, BM25, PREVIOUS = "vector", "bm25", "previous"
LEGS = (VECTOR, BM25, PREVIOUS)

T = TypeVar("T")
ScoredIds = Sequence[tuple[str, float]]  # chunk ids with a leg's scores


@dataclass(slots=True)
class SearchTrace:
    """A mutable record of one search: seconds by step, and the legs that failed."""

    timings: dict[str, float] = field(default_factory=dict)
    degraded: set[str] = field(default_factory=set)

    def run(self, name: str, call: Callable[[], T]) -> T:
        """Return `call()` and record its seconds as `name`; of several concurrent calls, the longest counts."""
        started = time.perf_counter()
        try:
            with tracing.span(name):
                return call()
        finally:
            self.timings[name] = max(time.perf_counter() - started, self.timings.get(name, 0.0))

    def run_leg(self, leg: str, step: str, call: Callable[[], T], otherwise: T) -> T:
        """Return `call()` like `run`; if it fails, mark `leg` as missing and return `otherwise`."""
        try:
            return self.run(step, call)
        except Exception as error:
            self.mark_degraded(leg, f"{type(error).__name__}: {error}")
            return otherwise

    def mark_degraded(self, leg: str, why: str) -> None:
        """Record that `leg` is missing from the answer."""
        self.degraded.add(leg)
        log.warning("answering without %s: %s", leg, why)


class LegCalls:
    """Runs calls of one question concurrently in `threads`, with a common `timeout_s`."""

    def __init__(self, threads: Executor, trace: SearchTrace, timeout_s: float | None) -> None:
        self._threads, self._trace = threads, trace
        self._deadline = None if timeout_s is None else time.monotonic() + timeout_s
        self._started: list[Future[Any]] = []

    def start(
        self, leg: str, step: str, call: Callable[[str], T], queries: Sequence[str], otherwise: T
    ) -> Callable[[], list[T]]:
        """Start `call` for every query; return a function that waits for the results, `otherwise` for a failed call."""
        run = self._trace.run_leg
        futures = [
            self._threads.submit(copy_context().run, run, leg, step, partial(call, q), otherwise) for q in queries
        ]
        self._started += futures
        return lambda: [self._result(future, leg, otherwise) for future in futures]

    def end_within(self, seconds: float) -> bool:
        """Return whether all calls that were started end within `seconds`."""
        return not wait(self._started, seconds).not_done

    def _result(self, future: "Future[T]", leg: str, otherwise: T) -> T:
        left = None if self._deadline is None else max(0.0, self._deadline - time.monotonic())
        try:
            return future.result(left)
        except TimeoutError:
            future.cancel()
            self._trace.mark_degraded(leg, "it took too long")
            return otherwise
