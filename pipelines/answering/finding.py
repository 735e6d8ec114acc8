"""Finds the hits of a question: writes queries, searches, reranks, and takes the best few."""

from dataclasses import replace

from pipelines.answering import optional
from pipelines.answering.conversation.reader import Reading
from pipelines.answering.conversation.rewriting import Rewrite, Rewriter
from pipelines.answering.question import EngineSettings
from pipelines.answering.reranking.base import Reranker, Reranking
from pipelines.answering.retrieval.fusion import spread_pages, take_diverse
from pipelines.answering.retrieval.interface import AsyncRetriever
from pipelines.answering.retrieval.search import Retrieval, Search
from pipelines.answering.trace import Trace

QUOTED_AROUND = 2  # chunks of its section on each side of a hit that may be quoted with it


class HitFinder:
    """Finds hits by `retriever`; `rewriter` writes further queries, `reranker` orders the hits; both may be None."""

    def __init__(
        self, retriever: AsyncRetriever, rewriter: Rewriter | None, reranker: Reranker | None, settings: EngineSettings
    ) -> None:
        self._retriever, self._rewriter, self._reranker = retriever, rewriter, reranker
        self._settings = settings

    async def find(self, reading: Reading, trace: Trace, *, quoted: bool) -> Retrieval:
        """Return the hits of a question; what will be `quoted` comes with the chunks around it.

        Raises CollectionNotNamed, NoLiveIndex, StoreUnavailable and StepUnavailable.
        """
        rewrite = await self._rewrite(reading.standalone, trace)
        question, page, k = reading.question, reading.page, reading.question.k or self._settings.k
        wide = max(k, self._settings.depth) if self._reranker or self._settings.max_per_page else k
        around = QUOTED_AROUND if quoted else 0
        where = (question.collection, wide, question.filters, question.previous, around)
        queries = page.queries((*reading.wordings, *rewrite.queries[1:]), quoted)
        with trace.step("retrieve"):
            search = Search(queries, *where, rewrite.passage, page.place, page.focus)
            retrieval = await self._retriever.aretrieve(search)
        trace.timings |= retrieval.timings
        for leg in retrieval.degraded:
            trace.mark_degraded(leg)
        return self._take(await self._rerank(retrieval, trace), reading, k, quoted)

    async def _rewrite(self, question: str, trace: Trace) -> Rewrite:
        if self._rewriter is None:
            return Rewrite((question,))
        with trace.step("rewrite"):
            rewrite = await self._rewriter.rewrite(question)
        rewrite.record(trace)
        return rewrite

    async def _rerank(self, retrieval: Retrieval, trace: Trace) -> Retrieval:
        if self._reranker is None or not retrieval.hits:
            return retrieval
        reranking = self._reranker.rerank(retrieval.question, retrieval.hits)
        reranked = await optional.run(trace, "rerank", reranking, Reranking(retrieval.hits), "reranker")
        trace.add_usage(reranked.usage, reranked.exchanges)
        return replace(retrieval, hits=reranked.hits)

    def _take(self, retrieval: Retrieval, reading: Reading, k: int, quoted: bool) -> Retrieval:
        """Return the `k` hits to answer from."""
        page, hits = reading.page, retrieval.hits
        if page.focus:
            evidence = None if page.focus == "whole" and not quoted else retrieval.evidence
            return replace(retrieval, hits=tuple(page.arrange(hits, k)), evidence=evidence)
        spread = spread_pages(hits) if self._settings.pages_first else hits
        return replace(retrieval, hits=tuple(take_diverse(spread, k, self._settings.max_per_page)))
