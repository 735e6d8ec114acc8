"""Retrieves hits for a question from the live index of its collection.

The retriever combines LiveIndexes with a Searcher. This module knows nothing about HTTP or prompts.
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

# Threads for retrievals, and as many for models, whose endpoint may hang. Further questions queue.
THREADS = 32

log = logging.getLogger(__name__)

T = TypeVar("T")


class Retriever:
    """Hybrid retrieval from the live index of a collection.

    `load_embedder` returns the embedder of a model and is called once per model; `lexical` returns the BM25 folder of
    an index. `collection` is the default for questions that name none ("": the only collection).
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
        self._embeds = ThreadPoolExecutor(THREADS, "raydex-embed")
        self._searcher = self._make_searcher(settings)
        self._alone = {leg: self._make_searcher(_only(leg, settings)) for leg in (VECTOR, BM25)}

    @classmethod
    def over(
        cls, store: Store, home: Path, *, collection: str = "", settings: RetrievalSettings | None = None
    ) -> "Retriever":
        """Return a retriever over the indexes of `store`, with their own models and with BM25 files under `home`."""

        def lexical(index: Index) -> LexicalIndex:
            return LexicalIndex(lexical_folder(home, store.url, index.id))

        return cls(store, load_embedder, lexical, collection=collection, settings=settings)

    def _make_searcher(self, settings: RetrievalSettings) -> Searcher:
        return Searcher(self._store, self._indexes, self._embeds, settings)

    def close(self) -> None:
        """Cancel all preparations. The caller closes the store and the embedders."""
        self._indexes.close()
        for threads in (self._calls, self._embeds):
            threads.shutdown(wait=False, cancel_futures=True)

    # -- readiness

    def name(self, collection: str | None = None) -> str:
        """Return the name of the collection, resolving the default. Raises CollectionNotNamed if it is ambiguous."""
        return self._indexes.name(collection)

    def prepare(self, collection: str | None = None) -> Index:
        """Load everything that questions to the collection need, with BM25, and return its live index.

        Raises CollectionNotNamed, NoLiveIndex, StoreUnavailable, and ModelNotReady if its model can't be loaded.
        """
        index = self._indexes.index(collection)
        live = self._indexes.prepare(index).result()
        if self._words:
            self._indexes.follow(live.lexical, index, timeout=None)
        _ = live.model
        return index

    def warm(self) -> None:
        """Prepare every live collection before its first question, the default one first; never raises."""
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
        """Return the live index if it can answer a question now, by vectors and by BM25.

        Otherwise, start the missing preparation and raise IndexLoading or ModelNotReady. Also raises the errors of
        `prepare`.
        """
        index = self._indexes.index(collection)
        live = self._indexes.ready(index)
        if live and live.embedder:
            return index
        self._indexes.prepare(index)
        raise ModelNotReady(index.settings.model, index.collection) if live else IndexLoading(index.collection)

    def has_loaded(self, collection: str | None = None) -> bool:
        """Return whether an index of the collection was loaded at the last query of the store."""
        index = self._indexes.remembered(collection)
        return index is not None and self._indexes.ready(index) is not None

    async def aload(self, collection: str | None = None) -> None:
        """Wait until an index of the collection is loaded, including BM25, without occupying a retriever thread.

        A leg that can't be loaded is missing from the answers. Raises CollectionNotNamed, NoLiveIndex and
        StoreUnavailable.
        """
        index = await self._in_thread(lambda: self._indexes.index(collection))
        if self._indexes.ready(index) is None:
            await asyncio.shield(asyncio.wrap_future(self._indexes.prepare(index)))

    # -- searching

    def leg(self, name: str, weight: float = 1.0, collection: str | None = None) -> "IndexLeg":
        """Return the leg "vector" or "bm25" of a collection, to combine with custom legs. Raises ValueError."""
        if name not in self._alone:
            raise ValueError(f"there is no leg {name!r}; the legs are {', '.join(self._alone)}")
        return IndexLeg(self, name, weight, collection)

    def retrieve(self, search: Search, leg: str = "") -> Retrieval:
        """Return the `search.k` best hits from one snapshot of the live index, from all legs or only from `leg`.

        It searches the last known live index, in a snapshot that also says which index is live now. So it makes a
        separate query for the live index only after a publish. Raises CollectionNotNamed, NoLiveIndex and
        StoreUnavailable; a failed leg is named in `degraded`.
        """
        search = replace(search, queries=tuple(dict.fromkeys(search.queries)))
        searcher = self._alone.get(leg, self._searcher)
        return self._retrieve_remembered(search, searcher) or self._retrieve(search, searcher)

    def _retrieve_remembered(self, search: Search, searcher: Searcher) -> Retrieval | None:
        """Search the last known live index; return None if it is no longer live."""
        index = self._indexes.remembered(search.collection)
        if index is None:
            return None
        with suppress(NoSuchIndex, IndexReplaced, CollectionNotNamed):
            return searcher.search(search, self._indexes.current(index), index, SearchTrace(), index)
        return None

    def _retrieve(self, search: Search, searcher: Searcher) -> Retrieval:
        """Look up the live index in the store and search it."""
        trace = SearchTrace()
        try:
            index = self._index(search, trace)
            return searcher.search(search, self._indexes.current(index), index, trace)
        except NoSuchIndex:  # pruned since the lookup: wait for the current live index
            index = self._index(search, trace)
            return searcher.search(search, self._indexes.prepare(index).result(), index, trace)

    def embed(self, texts: Sequence[str], collection: str | None = None) -> Vector:
        """Return vectors of `texts` from the live index's model: float32, (texts, dimension), rows of length 1.

        Raises ModelNotReady, EmbeddingFailed, and the errors of `retrieve`.
        """
        live = self._indexes.current(self._indexes.index(collection))
        if not texts:
            return np.zeros((0, live.index.settings.dimension), np.float32)
        vectors = np.asarray(live.model.embed_chunks(texts), np.float32)
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        return np.asarray(vectors / np.where(lengths > 0, lengths, 1), np.float32)

    async def aplace(self, url: str, collection: str | None = None) -> Place | None:
        """Return the page of the live index at the URL that a reader has open; None if the index lacks it.

        Raises CollectionNotNamed, NoLiveIndex and StoreUnavailable.
        """
        if not (spellings := page_spellings(url)):
            return None
        anchor = fragment_of(url)
        return await self._in_thread(lambda: self._store.find_place(self._indexes.index(collection), spellings, anchor))

    async def aretrieve(self, search: Search) -> Retrieval:
        """Call `retrieve` in one of the retriever's threads, once an index is loaded."""
        if not self.has_loaded(search.collection):
            await self.aload(search.collection)
        return await self._in_thread(lambda: self.retrieve(search))

    async def aembed(self, texts: Sequence[str], collection: str | None = None) -> Vector:
        """Call `embed` in one of the retriever's threads."""
        return await self._in_thread(lambda: self.embed(texts, collection), self._embeds)

    async def aready(self, collection: str | None = None) -> Index:
        """Call `ready` in one of the retriever's threads."""
        return await self._in_thread(lambda: self.ready(collection))

    def _index(self, search: Search, trace: SearchTrace) -> Index:
        return trace.run("index", lambda: self._indexes.index(search.collection))

    async def _in_thread(self, call: Callable[[], T], threads: Executor | None = None) -> T:
        return await asyncio.get_running_loop().run_in_executor(threads or self._calls, copy_context().run, call)


@dataclass(frozen=True, slots=True)
class IndexLeg:
    """One leg of a retriever, vector search or BM25 over a collection, as a `Leg`."""

    retriever: Retriever
    name: str
    weight: float = 1.0
    collection: str | None = None

    def search(self, query: str, k: int) -> Sequence[Hit]:
        """Return the `k` best hits with the leg's own score. Raises LegLost and the errors of `Retriever.retrieve`."""
        found = self.retriever.retrieve(Search((query,), self.collection, k), self.name)
        if self.name in found.degraded:
            raise LegLost(f"{self.name} found nothing: it failed or was too slow, the log says why")
        return [replace(hit, score=hit.scores[self.name]) for hit in found.hits]


class LegLost(RuntimeError):
    """A leg of an index failed."""


def _only(leg: str, settings: RetrievalSettings) -> RetrievalSettings:
    """Return settings that search only `leg` and keep its order."""
    weights = {other: float(other == leg) for other in (VECTOR, BM25, PREVIOUS)}
    fusion = Fusion(weights, reference_weight=1.0, pages_first=False)
    return replace(settings, fusion=fusion, ranking=FUSED, neighbours=0)
