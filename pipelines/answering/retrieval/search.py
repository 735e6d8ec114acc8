"""One search of one index: every query by every leg side by side, one look at the store, fused.

A leg that fails or lags is missing and noted, no more. Knows neither which index is live nor how it is made ready.
"""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from typing import Protocol, TypeVar

import numpy as np

from pipelines.answering.retrieval.fusion import RankedList
from pipelines.answering.retrieval.legs import (
    BM25,
    PREVIOUS,
    VECTOR,
    Fusion,
    LegCalls,
    LegRetriever,
    ScoredIds,
    SearchTrace,
)
from pipelines.answering.retrieval.live import LiveIndex, LiveIndexes, LiveIndexStore, Vector
from pipelines.answering.retrieval.neighbours import in_context
from pipelines.lexical import Matches
from pipelines.records import Filters, Hit, Index
from pipelines.store.search import SearchResult

T = TypeVar("T")

NEIGHBOURS = "neighbours"


class IndexStore(LiveIndexStore, Protocol):
    """What the retriever reads of the store."""

    def search(
        self,
        index: Index,
        vectors: Sequence[Vector],
        ids: Sequence[str],
        k: int,
        filters: Filters,
        timeout_s: float | None,
        /,
    ) -> SearchResult: ...

    def neighbours(self, index: int, ids: Sequence[str], reach: int, /) -> Mapping[str, Sequence[Hit]]: ...


@dataclass(frozen=True, slots=True)
class Search:
    """What is looked for: `queries`, the question as it stands on its own first, then other wordings of it.

    `collection` None is the retriever's own or the only one there is. `previous` are the ids of chunks that the
    turn before cited: they stay candidates.
    """

    queries: tuple[str, ...]
    collection: str | None = None
    k: int = 5
    filters: Filters = field(default_factory=Filters)
    previous: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.queries:
            raise ValueError("a search needs at least one query: the question itself")


@dataclass(frozen=True, slots=True)
class Retrieval:
    """Hits of one snapshot of one index. `degraded` names the legs that are missing, `timings` are seconds."""

    question: str
    hits: tuple[Hit, ...]
    index: Index
    revision: int
    degraded: tuple[str, ...]
    timings: dict[str, float]
    queries: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Said:
    """What the legs said, query by query, before the store was looked at. None: no vector."""

    vectors: Sequence[Vector | None]
    words: Sequence[Matches]
    others: Mapping[str, Sequence[ScoredIds]]

    def scores(self) -> Mapping[str, Sequence[ScoredIds]]:
        """Ids with scores by leg and query."""
        return {BM25: [matches.scores for matches in self.words], **self.others}

    def ids(self) -> list[str]:
        return [name for lists in self.scores().values() for scores in lists for name, _ in scores]


class Searcher:
    """Searches an index by all its legs. The parameters are the Retriever's."""

    def __init__(
        self,
        store: IndexStore,
        servings: LiveIndexes,
        mix: Fusion,
        threads: Executor,
        *,
        others: Sequence[LegRetriever] = (),
        candidates: int,
        neighbours: int,
        patience: float,
        timeout_s: float | None,
    ) -> None:
        self._store, self._servings, self._mix, self._threads = store, servings, mix, threads
        self._others = {leg.name: leg for leg in others}
        self._candidates = candidates
        self._neighbours = neighbours
        self._patience = patience
        self._timeout_s = timeout_s

    def search(self, search: Search, serving: LiveIndex, index: Index, steps: SearchTrace) -> Retrieval:
        """The best hits of one snapshot. Raises StoreUnavailable, and NoSuchIndex if the index was pruned."""
        said = self._ask(search, serving, index, steps)
        found = steps.run("search", lambda: self._look(search, index, said))
        if found.too_slow:
            steps.lose(VECTOR, f"the store took longer than {self._timeout_s} s")
        self._check_words(serving, said.words, found, steps)
        fused = steps.run("fuse", lambda: self._mix.fused(self._lists(search, said, found), search.queries))
        hits = self._in_context(index, fused[: search.k], steps)
        return Retrieval(
            question=search.queries[0],
            hits=tuple(hits),
            index=index,
            revision=found.revision,
            degraded=tuple(leg for leg in (*self._mix.legs, NEIGHBOURS) if leg in steps.degraded),
            timings=dict(steps.timings),
            queries=search.queries,
        )

    def _ask(self, search: Search, serving: LiveIndex, index: Index, steps: SearchTrace) -> _Said:
        """Every query to every leg, side by side."""
        depth = self._depth(search)
        legs = LegCalls(self._threads, steps, None if self._timeout_s is None else self._patience + self._timeout_s)

        def start(leg: str, step: str, call: Callable[[str], T], otherwise: T) -> Callable[[], list[T]]:
            asked = search.queries if self._mix.uses(leg) else ()
            return legs.start(leg, step, call, asked, otherwise)

        def words(query: str) -> Matches:
            return self._search_words(query, depth, search.filters, serving, index, steps)

        def find(leg: LegRetriever) -> Callable[[str], ScoredIds]:
            return lambda query: leg.find(query, index, depth, search.filters)

        matches = start(BM25, "bm25", words, Matches(0, ()))
        nothing: ScoredIds = ()
        others = {name: start(name, name, find(leg), nothing) for name, leg in self._others.items()}
        vectors = start(VECTOR, "embed", lambda query: self._embed(query, serving), None)
        return _Said(vectors(), matches(), {name: scores() for name, scores in others.items()})

    def _look(self, search: Search, index: Index, said: _Said) -> SearchResult:
        """One snapshot: the nearest to every vector, and every chunk that a leg or the turn before has named."""
        vectors = [vector for vector in said.vectors if vector is not None]
        ids = list(dict.fromkeys([*said.ids(), *self._previous(search)]))
        return self._store.search(index, vectors, ids, self._depth(search), search.filters, self._timeout_s)

    def _lists(self, search: Search, said: _Said, found: SearchResult) -> list[RankedList]:
        """What was found, as the lists that are fused: one for each leg and query."""
        nearest = iter(found.nearest)
        legs = self._mix.lists(VECTOR, [next(nearest) if vector is not None else [] for vector in said.vectors])
        for name, scores in said.scores().items():
            legs += self._mix.lists(name, [_named(one, found, name) for one in scores])
        heard = {hit.chunk_id for leg in legs for hit in leg.hits}
        # What another leg has found needs no help: it would push out a better section of the same page.
        if previous := [chunk_id for chunk_id in self._previous(search) if chunk_id not in heard]:
            places = [(chunk_id, 1 / place) for place, chunk_id in enumerate(previous, start=1)]
            legs += self._mix.lists(PREVIOUS, [_named(places, found, PREVIOUS)])
        return legs

    def _previous(self, search: Search) -> list[str]:
        return list(dict.fromkeys(search.previous)) if self._mix.uses(PREVIOUS) else []

    def _depth(self, search: Search) -> int:
        return max(self._candidates, search.k)

    def _in_context(self, index: Index, hits: Sequence[Hit], steps: SearchTrace) -> Sequence[Hit]:
        if not self._neighbours or not hits:
            return hits
        ids = [hit.chunk_id for hit in hits]
        nobody: Mapping[str, Sequence[Hit]] = {}
        sections = steps.leg(
            NEIGHBOURS, NEIGHBOURS, lambda: self._store.neighbours(index.id, ids, self._neighbours), nobody
        )
        return [in_context(hit, sections.get(hit.chunk_id, ()), index.settings.chunk_overlap) for hit in hits]

    # -- legs

    def _embed(self, query: str, serving: LiveIndex) -> Vector | None:
        vector = serving.model.embed_query(query)
        expected = serving.index.settings.dimension or len(vector)
        if vector.shape != (expected,) or not np.isfinite(vector).all():
            raise ValueError(f"the question's vector has shape {vector.shape} or is not finite, not ({expected},)")
        return vector

    def _search_words(
        self, query: str, depth: int, filters: Filters, serving: LiveIndex, index: Index, steps: SearchTrace
    ) -> Matches:
        try:
            self._servings.follow(serving.lexical, index, self._patience)
        except Exception as error:
            steps.lose(BM25, f"it has not followed to revision {index.revision}: {type(error).__name__} {error}")
            if serving.lexical.revision is None:
                return Matches(0, ())
        return serving.lexical.search(query, depth, filters)

    def _check_words(
        self, serving: LiveIndex, words: Sequence[Matches], found: SearchResult, steps: SearchTrace
    ) -> None:
        """At one revision BM25 and the store hold the same chunks; a folder that does not is of another database."""
        said = {name for matches in words if matches.revision == found.revision for name, _ in matches.scores}
        missing = said - found.by_id.keys()
        if missing:
            steps.lose(BM25, f"{len(missing)} of {len(said)} chunks are not in the store")
            self._servings.forget(serving.lexical)


def _named(scores: ScoredIds, found: SearchResult, kind: str) -> list[Hit]:
    """The chunks that a leg named, as far as the store has them, with the leg's scores."""
    return [replace(found.by_id[name], score=score, score_kind=kind) for name, score in scores if name in found.by_id]
