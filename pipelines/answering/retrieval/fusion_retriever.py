"""Retrieves hits with any legs: each leg runs every query, concurrently, and the hits are fused.

This is the counterpart of LlamaIndex's `QueryFusionRetriever`. This module works with legs and the fusion of lists,
without an index or a store.
"""

import asyncio
import hashlib
import inspect
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from contextvars import copy_context
from dataclasses import replace
from itertools import product

from pipelines.answering.retrieval.interface import AsyncRetriever, Leg, Matrix
from pipelines.answering.retrieval.ranking.fusion import FusedText, Fusion, RankedList
from pipelines.answering.retrieval.search import Retrieval, RetrievalSettings, Search
from pipelines.embedding.embedder import EmbeddingFailed
from pipelines.records import Hit, Index, IndexSettings
from pipelines.store import Place
from pipelines.store.indexes import ScoredChunk

log = logging.getLogger(__name__)


class FusionRetriever:
    """Searches with `legs` and fuses their hits; each leg contributes up to `leg_depth` hits per query.

    A leg that fails or takes longer than `timeout_s` is named in `degraded`. Filters apply to the hits after the
    search. `embed` returns vectors of texts, float32 (n, d) with rows of length 1, to compare claims with passages;
    without it, only words are compared. Raises ValueError without legs, and for two legs with the same name.
    """

    def __init__(
        self,
        legs: Sequence[Leg],
        fusion: Fusion | None = None,
        *,
        leg_depth: int = RetrievalSettings().leg_depth,
        timeout_s: float = 10.0,
        embed: Callable[[Sequence[str]], Matrix] | None = None,
    ) -> None:
        names = [leg.name for leg in legs]
        if not legs or len(set(names)) < len(names):
            raise ValueError(f"legs need names of their own, and there must be one: {', '.join(names) or 'none given'}")
        self._legs, self._leg_depth, self._timeout_s = tuple(legs), leg_depth, timeout_s
        self._fusion, self._embed = fusion or Fusion(reference_weight=1.0), embed

    def has_loaded(self, collection: str | None = None) -> bool:
        """Return True, because legs load nothing."""
        return True

    async def aload(self, collection: str | None = None) -> None:
        """Return immediately."""

    async def aready(self, collection: str | None = None) -> Index:
        """Return a placeholder index for the sources that the legs search."""
        return Index(0, collection or "", IndexSettings(), "live", 0)

    async def aplace(self, url: str, collection: str | None = None) -> Place | None:
        """Return None, because legs know no pages."""
        return None

    async def aembed(self, texts: Sequence[str], collection: str | None = None) -> Matrix:
        """Return the vectors of texts from `embed`. Raises EmbeddingFailed without it."""
        if self._embed is None:
            raise EmbeddingFailed("the legs of this retriever have no embedding model")
        return await asyncio.to_thread(self._embed, texts)

    async def aretrieve(self, search: Search) -> Retrieval:
        """Return the `search.k` best hits of all legs and queries."""
        started = time.perf_counter()
        calls = list(product(self._legs, search.queries))
        found = await asyncio.gather(*(self._search(leg, query, search) for leg, query in calls))
        lists = [
            RankedList(leg.name, _scored(hits), leg.weight) for (leg, _), hits in zip(calls, found, strict=True) if hits
        ]
        by_id = {_chunk(hit).chunk_id: hit for hits in found for hit in hits or ()}
        fused: list[FusedText] = self._fusion.fuse(lists, search.queries)[: search.k]
        lost = [leg.name for (leg, _), hits in zip(calls, found, strict=True) if hits is None]
        return Retrieval(
            search.queries[0],
            tuple(one.to_hit(by_id[one.chunk_id]) for one in fused),
            await self.aready(search.collection),
            0,
            tuple(dict.fromkeys(lost)),
            {"search": time.perf_counter() - started},
            search.queries,
        )

    async def _search(self, leg: Leg, query: str, search: Search) -> Sequence[Hit] | None:
        """Return a leg's hits for a query, or None if it fails."""
        depth = max(self._leg_depth, search.k)
        try:
            async with asyncio.timeout(self._timeout_s):
                found: Sequence[Hit] | Awaitable[Sequence[Hit]]
                if inspect.iscoroutinefunction(leg.search):
                    found = leg.search(query, depth)
                else:
                    found = await asyncio.to_thread(copy_context().run, leg.search, query, depth)
                hits = await found if isinstance(found, Awaitable) else found
            return [hit for hit in hits if search.filters.keep(hit)][:depth]
        except Exception as error:
            log.warning("answering without %s: %s: %s", leg.name, type(error).__name__, error)
            return None


def _scored(hits: Sequence[Hit]) -> list[ScoredChunk]:
    return [(hit.score, _chunk(hit)) for hit in hits]


def _chunk(hit: Hit) -> Hit:
    """Return a hit with a text hash and an id if it has none."""
    text_hash = hit.text_hash or hashlib.sha256(hit.text.encode(errors="replace")).hexdigest()
    return replace(hit, text_hash=text_hash, chunk_id=hit.chunk_id or f"{hit.source} {text_hash}")


def as_retriever(given: AsyncRetriever | Leg | Sequence[Leg]) -> AsyncRetriever:
    """Return `given` if it is a retriever, otherwise a retriever over its legs. Raises ValueError for an empty list."""
    if isinstance(given, Sequence):
        return FusionRetriever(given)
    return FusionRetriever([given]) if isinstance(given, Leg) else given
