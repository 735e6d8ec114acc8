"""The legs of a search: their names and weights, what a further one must offer, and how one is lost.

Knows neither index nor store.
"""

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor, Future
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol, TypeVar

from pipelines.answering.retrieval.fusion import FUSIONS, RRF_K, RankedList, check_weight, fuse, insert, pages_first
from pipelines.answering.retrieval.prior import reference_prior
from pipelines.records import Filters, Hit, Index

log = logging.getLogger(__name__)

VECTOR, BM25, PREVIOUS = "vector", "bm25", "previous"

T = TypeVar("T")
ScoredIds = Sequence[tuple[str, float]]  # chunk ids with a leg's scores


class LegRetriever(Protocol):
    """A further way to find chunks; `name` is the leg's.

    `find` gives up to `k` chunk ids of `index` with scores, higher is better; called from threads. What it raises
    costs its leg alone; ids that the index does not hold, or the filters do not keep, are passed over.
    """

    name: str

    def find(self, query: str, index: Index, k: int, filters: Filters, /) -> ScoredIds: ...


class UnknownLeg(ValueError):
    """A weight names a leg that there is not."""

    def __init__(self, name: str, legs: Sequence[str]) -> None:
        super().__init__(f"there is no leg {name!r} to weigh; the legs are: {', '.join(legs)}")


class Fusion:
    """How the legs are put together: their weights and the fusion.

    `weights` are 1 where not given; 0 switches a leg off: it is neither searched nor reported. Raises UnknownLeg,
    and ValueError for a weight that is none, for an unknown fusion, or if no leg is left that searches. `rrf_k` is
    the constant of reciprocal rank fusion, `reference_weight` the prior of reference pages that no query names. With
    `pages_first` the best hit of every page comes before a second one of any.
    """

    def __init__(
        self,
        legs: Sequence[str],
        weights: Mapping[str, float],
        *,
        original_weight: float = 1.0,
        fusion: str = "rrf",
        lexical_k: int = 1,
        rrf_k: int = RRF_K,
        reference_weight: float = 1.0,
        pages_first: bool = False,
    ) -> None:
        for name in weights:
            if name not in legs:
                raise UnknownLeg(name, legs)
        if fusion not in FUSIONS:
            raise ValueError(f"there is no fusion {fusion!r}; the fusions are: {', '.join(FUSIONS)}")
        self.legs = tuple(legs)
        self._weights = {name: float(weights.get(name, 1.0)) for name in legs}
        for name, weight in {**self._weights, "original query": original_weight}.items():
            check_weight(name, weight)
        searching = [name for name in legs if name != PREVIOUS]
        if not any(self._weights[name] for name in searching):
            raise ValueError(
                f"the weights of all legs that search are 0 ({', '.join(searching)}); give one more than 0"
            )
        self._original_weight = original_weight
        self._fusion, self._lexical_k, self._rrf_k = fusion, lexical_k, rrf_k
        self._reference_weight, self._pages_first = reference_weight, pages_first

    def uses(self, leg: str) -> bool:
        """Whether the leg counts at all."""
        return self._weights[leg] > 0

    def lists(self, leg: str, found: Sequence[Sequence[Hit]]) -> list[RankedList]:
        """What a leg found for each query, the question itself first, with what each list weighs."""
        weights = [1.0 if leg == PREVIOUS else self._original_weight, *(1.0 for _ in found[1:])]
        return [
            RankedList(leg, hits, self._weights[leg] * weight) for hits, weight in zip(found, weights, strict=False)
        ]

    def fused(self, legs: Sequence[RankedList], queries: Sequence[str]) -> list[Hit]:
        """All hits of the legs that were asked `queries`, best first."""
        prior = reference_prior(queries, self._reference_weight)
        if self._fusion == "insert":
            hits = insert(legs, at=self._lexical_k, inserted=BM25, k=self._rrf_k, prior=prior)
        else:
            hits = fuse(legs, k=self._rrf_k, prior=prior)
        return pages_first(hits) if self._pages_first else hits


@dataclass(slots=True)
class SearchTrace:
    """What a question has cost so far (seconds by step) and which legs it has lost."""

    timings: dict[str, float] = field(default_factory=dict)
    degraded: set[str] = field(default_factory=set)

    def run(self, name: str, call: Callable[[], T]) -> T:
        """`call()`, its seconds noted under `name`: the longest, where several run at a time."""
        started = time.perf_counter()
        try:
            return call()
        finally:
            self.timings[name] = max(time.perf_counter() - started, self.timings.get(name, 0.0))

    def leg(self, leg: str, step: str, call: Callable[[], T], otherwise: T) -> T:
        """As `run`, but a failure is `otherwise` and loses `leg`."""
        try:
            return self.run(step, call)
        except Exception as error:
            self.lose(leg, f"{type(error).__name__}: {error}")
            return otherwise

    def lose(self, leg: str, why: str) -> None:
        """Note that `leg` is missing in the answer."""
        self.degraded.add(leg)
        log.warning("answering without %s: %s", leg, why)


class LegCalls:
    """The calls of all legs of one question, side by side in `threads`; each is waited for until `timeout_s`."""

    def __init__(self, threads: Executor, steps: SearchTrace, timeout_s: float | None) -> None:
        self._threads, self._steps = threads, steps
        self._deadline = None if timeout_s is None else time.monotonic() + timeout_s

    def start(
        self, leg: str, step: str, call: Callable[[str], T], queries: Sequence[str], otherwise: T
    ) -> Callable[[], list[T]]:
        """Start `call` for every query; what is returned waits for them. One that fails or lags is `otherwise`."""
        futures = [self._threads.submit(self._steps.leg, leg, step, partial(call, q), otherwise) for q in queries]
        return lambda: [self._result(future, leg, otherwise) for future in futures]

    def _result(self, future: "Future[T]", leg: str, otherwise: T) -> T:
        left = None if self._deadline is None else max(0.0, self._deadline - time.monotonic())
        try:
            return future.result(left)
        except TimeoutError:
            future.cancel()
            self._steps.lose(leg, "it took too long")
            return otherwise
