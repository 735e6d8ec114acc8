"""Retrieves hits for a question from the live index of its collection.

Composes what follows the live index with what searches it. Knows no HTTP and no prompt.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import suppress
from contextvars import copy_context
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

import numpy as np

from pipelines.answering.retrieval.legs import BM25, PREVIOUS, VECTOR, SearchTrace
from pipelines.answering.retrieval.live import (
    CollectionNotNamed,
    IndexLoading,
    IndexReplaced,
    LiveIndexes,
    ModelNotReady,
    QueryEmbedder,
    Vector,
)
from pipelines.answering.retrieval.one_page import fragment_of, page_spellings
from pipelines.answering.retrieval.ranking.fusion import Fusion
from pipelines.answering.retrieval.ranking.texts import FUSED
from pipelines.answering.retrieval.search import Retrieval, RetrievalSettings, Search
from pipelines.answering.retrieval.searcher import Searcher
from pipelines.embedding import load_embedder
from pipelines.lexical import LexicalIndex, lexical_folder
from pipelines.records import EmbeddingModel, Hit, Index
from pipelines.store import NoSuchIndex, Place, Store, StoreUnavailable, is_copy

# For retrievals, as many for their legs, and as many for models, whose endpoint may hang: beyond them questions queue.
THREADS = 32

log = logging.getLogger(__name__)

T = TypeVar("T")


class Retriever:
    """Hybrid retrieval from the live index of a collection.

    `load_embedder` returns the embedder of a model and is called once for each; `lexical` returns the BM25
    folder of an index. `collection` is used where a question names none ("": the only collection).
    """

    def __init__(
        self,
        store: Store,
        load_embedder: Callable[[EmbeddingModel], QueryEmbedder],
        lexical: Callable[[Index], LexicalIndex],
        *,
        collection: str = "",
        settings: RetrievalSettings | None = None,
    ) -> None:
        self.settings = settings = settings or RetrievalSettings()
        self._store = store
        self._words = settings.fusion.uses(BM25)
        self._indexes = LiveIndexes(store, load_embedder, lexical, collection, settings.patience_s, self._words)
        self._calls = ThreadPoolExecutor(THREADS, "raydex-retrieve")
        self._legs = ThreadPoolExecutor(THREADS, "raydex-leg")
        self._embeds = ThreadPoolExecutor(THREADS, "raydex-embed")
        self._searcher = self._make_searcher(settings)
        self._alone = {leg: self._make_searcher(_only(leg, settings)) for leg in (VECTOR, BM25)}

    @classmethod
    def over(
        cls, store: Store, home: Path, *, collection: str = "", settings: RetrievalSettings | None = None
    ) -> "Retriever":
        """Return the retriever over the indexes of `store`, with their own models and BM25 files under `home`."""

        def lexical(index: Index) -> LexicalIndex:
            return LexicalIndex(lexical_folder(home, store.url, index.id))

        return cls(store, load_embedder, lexical, collection=collection, settings=settings)

    def _make_searcher(self, settings: RetrievalSettings) -> Searcher:
        return Searcher(self._store, self._indexes, (self._legs, self._embeds), settings)

    def close(self) -> None:
        """Abandon what is being prepared. The store and the embedders are the caller's."""
        self._indexes.close()
        for threads in (self._calls, self._legs, self._embeds):
            threads.shutdown(wait=False, cancel_futures=True)

    # -- being ready

    def name(self, collection: str | None = None) -> str:
        """Return the name of the collection that is meant. Raises CollectionNotNamed where that is not clear."""
        return self._indexes.name(collection)

    def prepare(self, collection: str | None = None) -> Index:
        """Load all that questions to the collection need, BM25 too, and return its live index.

        Raises CollectionNotNamed, NoLiveIndex, StoreUnavailable, and ModelNotReady if its model does not load.
        """
        index = self._indexes.index(collection)
        live = self._indexes.prepare(index).result()
        if self._words:
            self._indexes.follow(live.lexical, index, timeout=None)
        _ = live.model
        return index

    def warm(self) -> None:
        """Prepare every live collection ahead of its first question, the one that is meant first, without raising."""
        self._try_to_prepare(None)
        try:
            rows = self._store.collections()
        except StoreUnavailable as error:
            log.info("no collection is prepared yet: %s", error)
            return
        for row in rows:
            if row["index"] is not None and not is_copy(row["name"]):
                self._try_to_prepare(row["name"])

    def _try_to_prepare(self, collection: str | None) -> None:
        try:
            self.prepare(collection)
        except Exception as error:
            log.info("%s is not prepared yet: %s", collection or "the default collection", error)

    def ready(self, collection: str | None = None) -> Index:
        """Return the live index if a question would be answered from it now, by vectors and by BM25.

        Otherwise starts what is missing and raises IndexLoading, or ModelNotReady. Also raises as `prepare`.
        """
        index = self._indexes.index(collection)
        live = self._indexes.ready(index)
        if live and live.embedder:
            return index
        self._indexes.prepare(index)
        raise ModelNotReady(index.settings.model, index.collection) if live else IndexLoading(index.collection)

    def has_loaded(self, collection: str | None = None) -> bool:
        """Return whether an index of the collection was loaded when the store was last asked for it."""
        index = self._indexes.remembered(collection)
        return index is not None and self._indexes.ready(index) is not None

    async def aload(self, collection: str | None = None) -> None:
        """Wait until an index of the collection is loaded, BM25 too; no thread of the retriever's waits with it.

        A leg that can't be loaded is missing from the answers. Raises CollectionNotNamed, NoLiveIndex and
        StoreUnavailable.
        """
        index = await self._in_thread(lambda: self._indexes.index(collection))
        if self._indexes.ready(index) is None:
            await asyncio.shield(asyncio.wrap_future(self._indexes.prepare(index)))

    # -- asking

    def leg(self, name: str, weight: float = 1.0, collection: str | None = None) -> "IndexLeg":
        """Return the leg "vector" or "bm25" of a collection, to join with legs of your own. Raises ValueError."""
        if name not in self._alone:
            raise ValueError(f"there is no leg {name!r}; the legs are {', '.join(self._alone)}")
        return IndexLeg(self, name, weight, collection)

    def retrieve(self, search: Search, leg: str = "") -> Retrieval:
        """Return the `search.k` best hits, all of one snapshot of the live index; those of one `leg`, or of all.

        The index that was live before is searched, in a snapshot that says which one is live now: the store is asked
        for that beforehand only after a publish. Raises CollectionNotNamed, NoLiveIndex and StoreUnavailable; a leg
        that fails is named in `degraded`.
        """
        search = replace(search, queries=tuple(dict.fromkeys(search.queries)))
        searcher = self._alone.get(leg, self._searcher)
        return self._retrieve_remembered(search, searcher) or self._retrieve(search, searcher)

    def _retrieve_remembered(self, search: Search, searcher: Searcher) -> Retrieval | None:
        """Search the index that was live before; return None if it is not what is live now."""
        index = self._indexes.remembered(search.collection)
        if index is None:
            return None
        with suppress(NoSuchIndex, IndexReplaced, CollectionNotNamed):
            return searcher.search(search, self._indexes.current(index), index, SearchTrace(), index)
        return None

    def _retrieve(self, search: Search, searcher: Searcher) -> Retrieval:
        """Ask the store for the live index and search it."""
        trace = SearchTrace()
        try:
            index = self._index(search, trace)
            return searcher.search(search, self._indexes.current(index), index, trace)
        except NoSuchIndex:  # pruned since it was looked up: wait for the index that is live now
            index = self._index(search, trace)
            return searcher.search(search, self._indexes.prepare(index).result(), index, trace)

    def embed(self, texts: Sequence[str], collection: str | None = None) -> Vector:
        """Return vectors of `texts` by the live index's model: float32, (texts, dimension), rows of length 1.

        Raises ModelNotReady, EmbeddingFailed, and as `retrieve`.
        """
        live = self._indexes.current(self._indexes.index(collection))
        if not texts:
            return np.zeros((0, live.index.settings.dimension), np.float32)
        vectors = np.asarray(live.model.embed_chunks(texts), np.float32)
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        return np.asarray(vectors / np.where(lengths > 0, lengths, 1), np.float32)

    async def aplace(self, url: str, collection: str | None = None) -> Place | None:
        """Return the page of the live index that a reader has open at `url`; None if the index does not hold it.

        Raises CollectionNotNamed, NoLiveIndex and StoreUnavailable.
        """
        if not (spellings := page_spellings(url)):
            return None
        anchor = fragment_of(url)
        return await self._in_thread(lambda: self._store.find_place(self._indexes.index(collection), spellings, anchor))

    async def aretrieve(self, search: Search) -> Retrieval:
        """Retrieve in a thread of the retriever's own, once an index is loaded."""
        if not self.has_loaded(search.collection):
            await self.aload(search.collection)
        return await self._in_thread(lambda: self.retrieve(search))

    async def aembed(self, texts: Sequence[str], collection: str | None = None) -> Vector:
        """Embed in a thread of the retriever's own."""
        return await self._in_thread(lambda: self.embed(texts, collection), self._embeds)

    async def aready(self, collection: str | None = None) -> Index:
        """Call `ready` in a thread of the retriever's own."""
        return await self._in_thread(lambda: self.ready(collection))

    def _index(self, search: Search, trace: SearchTrace) -> Index:
        return trace.run("index", lambda: self._indexes.index(search.collection))

    async def _in_thread(self, call: Callable[[], T], threads: Executor | None = None) -> T:
        return await asyncio.get_running_loop().run_in_executor(threads or self._calls, copy_context().run, call)


@dataclass(frozen=True, slots=True)
class IndexLeg:
    """One leg of a retriever: the vector search or BM25 over a collection, as a `Leg`."""

    retriever: Retriever
    name: str
    weight: float = 1.0
    collection: str | None = None

    def search(self, query: str, k: int) -> Sequence[Hit]:
        """Return the `k` best hits with the leg's own score. Raises as `Retriever.retrieve`, and LegLost."""
        found = self.retriever.retrieve(Search((query,), self.collection, k), self.name)
        if self.name in found.degraded:
            raise LegLost(f"{self.name} found nothing: it failed or was too slow, the log says why")
        return [replace(hit, score=hit.scores[self.name]) for hit in found.hits]


class LegLost(RuntimeError):
    """A leg of an index could not be searched."""


def _only(leg: str, settings: RetrievalSettings) -> RetrievalSettings:
    """Return the settings by which `leg` is searched by itself, in its own order."""
    weights = {other: float(other == leg) for other in (VECTOR, BM25, PREVIOUS)}
    fusion = Fusion(weights, reference_weight=1.0, pages_first=False)
    return replace(settings, fusion=fusion, ranking=FUSED, neighbours=0)
