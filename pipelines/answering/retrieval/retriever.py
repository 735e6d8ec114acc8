"""A question becomes hits, from the live index of its collection, whichever that is by now.

Composes what follows the live index (serving) with what searches it (searcher). Knows no HTTP and no prompt.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TypeVar

import numpy as np

from pipelines.answering.retrieval.fusion import RRF_K
from pipelines.answering.retrieval.legs import BM25, PREVIOUS, VECTOR, Fusion, LegRetriever, SearchTrace
from pipelines.answering.retrieval.live import (
    CollectionNotNamed,
    LiveIndex,
    LiveIndexes,
    ModelNotReady,
    QueryEmbedder,
    Vector,
)
from pipelines.answering.retrieval.search import IndexStore, Retrieval, Search, Searcher
from pipelines.lexical import LexicalIndex
from pipelines.records import Index
from pipelines.store import NoSuchIndex

__all__ = ["CollectionNotNamed", "IndexStore", "ModelNotReady", "QueryEmbedder", "Retrieval", "Retriever", "Search"]

log = logging.getLogger(__name__)

T = TypeVar("T")


class Retriever:
    """Hybrid retrieval from the live index of a collection.

    `load_embedder` gives the embedder of a model's name, once a model; `lexical` the BM25 folder of an index;
    `others` are further legs. `collection` is the one meant where a question names none ("": the only one there
    is). Each leg brings up to `candidates` hits for each query.

    `weights` by leg (vector, bm25, previous, the others') are 1 where not given; 0 switches a leg off. What was
    cited before, `previous`, so counts as one further list among those of the queries. `original_weight` is how
    much the first query counts against each other one. `fusion` is one of FUSIONS; `lexical_k` the place and
    number of inserted hits; `rrf_k` and `reference_weight` are Mix's. `neighbours` is how many chunks of its section
    on each side a hit's context gets.

    `patience` is how many seconds a question waits for BM25 to follow or for a new index to be prepared before it
    is answered with what is ready; `timeout_s` how long it waits for a leg beyond that (None: for ever).
    """

    def __init__(
        self,
        store: IndexStore,
        load_embedder: Callable[[str], QueryEmbedder],
        lexical: Callable[[Index], LexicalIndex],
        *,
        collection: str = "",
        candidates: int = 50,
        weights: Mapping[str, float] | None = None,
        original_weight: float = 1.0,
        fusion: str = "rrf",
        lexical_k: int = 1,
        rrf_k: int = RRF_K,
        reference_weight: float = 1.0,
        pages_first: bool = False,
        neighbours: int = 0,
        others: Sequence[LegRetriever] = (),
        patience: float = 2.0,
        timeout_s: float | None = 10.0,
        threads: int = 32,
    ) -> None:
        names = (VECTOR, BM25, *(leg.name for leg in others), PREVIOUS)
        mix = Fusion(
            names,
            weights or {},
            original_weight=original_weight,
            fusion=fusion,
            lexical_k=lexical_k,
            rrf_k=rrf_k,
            reference_weight=reference_weight,
            pages_first=pages_first,
        )
        self._servings = LiveIndexes(store, load_embedder, lexical, collection, patience)
        self._calls = ThreadPoolExecutor(threads, "raydex-retrieve")
        self._legs = ThreadPoolExecutor(threads, "raydex-leg")
        self._searcher = Searcher(
            store,
            self._servings,
            mix,
            self._legs,
            others=others,
            candidates=candidates,
            neighbours=neighbours,
            patience=patience,
            timeout_s=timeout_s,
        )

    def close(self) -> None:
        """Give up what is being prepared. The store and the embedders are the caller's."""
        self._servings.close()
        for threads in (self._calls, self._legs):
            threads.shutdown(wait=False, cancel_futures=True)

    # -- being ready

    def name(self, collection: str | None = None) -> str:
        """The collection meant. Raises CollectionNotNamed where that is not clear."""
        return self._servings.name(collection)

    def prepare(self, collection: str | None = None) -> Index:
        """Load all that questions to the collection need, BM25 too, and return its live index.

        Raises CollectionNotNamed, NoLiveIndex, StoreUnavailable, and ModelNotReady if its model does not load.
        """
        live = self._servings.live(collection)
        serving = self._servings.prepared(live).result()
        self._servings.follow(serving.lexical, live, timeout=None)
        _ = serving.model
        return live

    def warm(self, collection: str | None = None) -> None:
        """`prepare` without raising, ahead of the first question."""
        try:
            self.prepare(collection)
        except Exception as error:
            log.info("nothing is prepared yet: %s", error)

    def ready(self, collection: str | None = None) -> Index:
        """The live index, if a question would be answered from it now, by vectors too.

        Starts what is missing and raises ModelNotReady meanwhile; else raises as `prepare`.
        """
        live = self._servings.live(collection)
        serving = self._servings.serving(live)
        if serving is None or serving.embedder is None:
            self._servings.prepared(live)
            raise ModelNotReady(live.settings.model)
        return live

    # -- asking

    def retrieve(self, search: Search) -> Retrieval:
        """The `search.k` best hits, all of one snapshot of the live index.

        Raises CollectionNotNamed, NoLiveIndex and StoreUnavailable; a leg that fails is named in `degraded`.
        """
        search = replace(search, queries=tuple(dict.fromkeys(search.queries)))
        steps = SearchTrace()
        try:
            live = self._live(search, steps)
            return self._search(search, self._servings.current(live), live, steps)
        except NoSuchIndex:  # pruned since it was looked up: the one that is live now is waited for
            live = self._live(search, steps)
            return self._search(search, self._servings.prepared(live).result(), live, steps)

    def _live(self, search: Search, steps: SearchTrace) -> Index:
        return steps.run("index", lambda: self._servings.live(search.collection))

    def _search(self, search: Search, serving: LiveIndex, live: Index, steps: SearchTrace) -> Retrieval:
        index = live if serving.index.id == live.id else serving.index
        return self._searcher.search(search, serving, index, steps)

    def embed(self, texts: Sequence[str], collection: str | None = None) -> Vector:
        """Vectors of `texts` by the live index's model: float32, (texts, dimension), rows of length 1.

        Raises ModelNotReady, EmbeddingFailed, and what `retrieve` raises.
        """
        serving = self._servings.current(self._servings.live(collection))
        if not texts:
            return np.zeros((0, serving.index.settings.dimension), np.float32)
        vectors = np.asarray(serving.model.embed_chunks(texts), np.float32)
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        return np.asarray(vectors / np.where(lengths > 0, lengths, 1), np.float32)

    async def aretrieve(self, search: Search) -> Retrieval:
        """As `retrieve`, in a thread of the retriever's own."""
        return await self._thread(lambda: self.retrieve(search))

    async def aembed(self, texts: Sequence[str], collection: str | None = None) -> Vector:
        """As `embed`, in a thread of the retriever's own."""
        return await self._thread(lambda: self.embed(texts, collection))

    async def aready(self, collection: str | None = None) -> Index:
        """As `ready`, in a thread of the retriever's own."""
        return await self._thread(lambda: self.ready(collection))

    async def _thread(self, call: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._calls, call)
