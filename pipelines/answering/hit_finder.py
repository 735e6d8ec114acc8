"""Finds the hits for a question: searches, reranks, and takes the best ones."""

import asyncio
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain, zip_longest

from pipelines.answering.conversation.reader import Reading
from pipelines.answering.conversation.rewriting import Rewrite, Rewriter
from pipelines.answering.grounding.answerable import is_likely
from pipelines.answering.grounding.words import content_words, words_of
from pipelines.answering.question import EngineSettings
from pipelines.answering.reranking.base import Reranker
from pipelines.answering.retrieval.interface import AsyncRetriever
from pipelines.answering.retrieval.neighbours import EXTRA, as_section, by_section, other_sections
from pipelines.answering.retrieval.ranking.fusion import spread_pages, take_diverse
from pipelines.answering.retrieval.ranking.texts import LEARNED
from pipelines.answering.retrieval.search import Retrieval, Search
from pipelines.answering.trace import Trace
from pipelines.answering.verified.pinned import PinnedFinder
from pipelines.page.stored import plain_text
from pipelines.records import Hit

READ = "read"  # the score kind of a section from a page that a model read
QUOTED_AROUND = 2  # chunks of the section on each side of a hit that may be quoted with it
# A capable model gets up to SECTIONS sections from MOST_FOUND hits, with WHOLE chunks on each side of a hit. Chosen by
# hand: of 39 bad answers that a capable model wrote from five chunks, 25 lacked another chunk of a page in the prompt.
# So the introductions of these sections, further hits, and other sections of the first PAGES pages follow if they fit.
SECTIONS, MOST_FOUND, WHOLE, PAGES = 12, 30, 8, 8
FIRST_PAGES, SHORT_PAGE = 2, 1_500  # the first pages are given whole if they have at most this many words; by hand
# A further hit is left out if its log odds are this much lower than the best one's: its odds are a fiftieth. Chosen
# on 36 questions to two sites: benchmarks/results/readers-own-words.md.
LEAST_ODDS = 4.0
SAME = 0.85  # Jaccard similarity of the words of two sections from which they count as copies; by hand


class HitFinder:
    """Finds hits with `retriever`; all other steps are optional.

    `rewriter` writes further queries and a hypothetical passage that answers. `reranker` reorders the hits. Sections
    that `pinned` finds come first.
    """

    def __init__(
        self,
        retriever: AsyncRetriever,
        rewriter: Rewriter | None,
        reranker: Reranker | None,
        settings: EngineSettings,
        pinned: PinnedFinder | None = None,
    ) -> None:
        self._retriever, self._rewriter, self._reranker = retriever, rewriter, reranker
        self._settings, self._pinned = settings, pinned

    async def find(self, reading: Reading, trace: Trace, *, quoted: bool, whole: bool = False) -> Retrieval:
        """Return the hits for a question; hits that will be `quoted` include the chunks around them.

        With `whole` there are more hits, each from a different section, with up to WHOLE chunks of the section on each
        side. Raises CollectionNotNamed, NoLiveIndex, StoreUnavailable and StepUnavailable.
        """
        rewrite = await self._rewrite(reading.standalone, trace)
        question, page, k = reading.question, reading.page, reading.question.k or self._settings.k
        whole = whole and not page.focus
        k = question.k or max(k, SECTIONS) if whole else k
        wide = max(k, self._settings.depth) if self._reranker or self._settings.max_per_page else k
        wide = max(wide, MOST_FOUND) if whole else wide
        around = QUOTED_AROUND if quoted else WHOLE if whole else 0
        where = (question.collection, wide, question.filters, question.previous, around)
        queries = page.queries((*reading.wordings, *rewrite.further), quoted)
        with trace.step("retrieve"):
            search = Search(queries, *where, PAGES if whole else 0, rewrite.passage, page.place, page.focus)
            retrieval = await self._retrieve(search, reading.parts)
        trace.timings |= retrieval.timings
        for leg in retrieval.degraded:
            trace.mark_degraded(leg)
        retrieval = await self._rerank(retrieval, trace)
        if whole:  # comparing whole sections takes tenths of a second: a thread keeps the event loop free
            retrieval = replace(retrieval, hits=await asyncio.to_thread(_one_of_each_section, retrieval.hits))
        taken = await self._pin(self._take(retrieval, reading, k, quoted), reading, k, trace)
        return await asyncio.to_thread(_with_more, taken, retrieval.hits) if whole else taken

    async def find_more(self, query: str, reading: Reading, k: int, trace: Trace) -> tuple[Hit, ...]:
        """Return the `k` best sections for another `query`, with the question's collection and filters.

        Raises the errors of `find`.
        """
        question = reading.question
        search = Search((query,), question.collection, 2 * k, question.filters, neighbours=WHOLE)
        found = await self._rerank(await self._retriever.aretrieve(search), trace)
        for leg in found.degraded:
            trace.mark_degraded(leg)
        return (await asyncio.to_thread(_one_of_each_section, found.hits))[:k]

    async def read_page(self, url: str, reading: Reading) -> tuple[Hit, ...]:
        """Return the sections of the page at `url`; empty if the question's filters exclude the page.

        Raises the errors of `find`.
        """
        question = reading.question
        place = await self._retriever.aplace(url, question.collection)
        if place is None:
            return ()
        search = Search((reading.standalone,), question.collection, 2, pages=2, place=place, focus="whole")
        found = await self._retriever.aretrieve(search)
        parts = by_section([hit for hit in found.pages if hit.url == place.url and question.filters.keep(hit)])
        overlap = found.index.settings.chunk_overlap
        return tuple(replace(as_section(part, overlap), score_kind=READ) for part in parts)

    async def _retrieve(self, search: Search, parts: Sequence[str]) -> Retrieval:
        """Return the hits of a search, interleaved with the hits of each of its `parts`."""
        searches = [replace(search, queries=(part,)) for part in parts]
        whole, *others = await asyncio.gather(*map(self._retriever.aretrieve, (search, *searches)))
        if not others:
            return whole
        hits: dict[str, Hit] = {}
        for hit in chain.from_iterable(zip_longest(*(one.hits for one in (whole, *others)))):
            if hit:
                hits.setdefault(hit.chunk_id, hit)
        evidence = next((one.evidence for one in others if one.evidence and is_likely(one.evidence)), whole.evidence)
        degraded = tuple(dict.fromkeys(chain.from_iterable(one.degraded for one in (whole, *others))))
        found = replace(whole, hits=tuple(hits.values())[: search.k], evidence=evidence, degraded=degraded)
        return replace(found, queries=(*whole.queries, *parts))

    async def _pin(self, retrieval: Retrieval, reading: Reading, k: int, trace: Trace) -> Retrieval:
        """Return the hits, preceded by the section that a person pinned to the question, if any."""
        if self._pinned is None or reading.page.focus or not retrieval.index.rules.get("pinned"):
            return retrieval
        version = reading.page.place.version if reading.page.place else None
        finding = self._pinned.find(reading.standalone, retrieval.index, reading.question.filters, version)
        section = await trace.attempt("pinned", finding, None)
        if section is None:
            return retrieval
        score = max((hit.score for hit in retrieval.hits), default=1.0)
        first = replace(section, score=score, score_kind="pinned", sources=(section.source,))
        others = [hit for hit in retrieval.hits if hit.chunk_id != section.chunk_id]
        evidence = retrieval.evidence and replace(retrieval.evidence, words=1.0, cosine=1.0)
        return replace(retrieval, hits=(first, *others)[:k], evidence=evidence)

    async def _rewrite(self, question: str, trace: Trace) -> Rewrite:
        if self._rewriter is None:
            return Rewrite(question)
        with trace.step("rewrite"):
            rewrite = await self._rewriter.rewrite(question)
        rewrite.record(trace)
        return rewrite

    async def _rerank(self, retrieval: Retrieval, trace: Trace) -> Retrieval:
        if self._reranker is None or not retrieval.hits:
            return retrieval
        reranking = self._reranker.rerank(retrieval.question, retrieval.hits)
        hits = await trace.attempt("rerank", reranking, retrieval.hits, "reranker")
        return replace(retrieval, hits=hits)

    def _take(self, retrieval: Retrieval, reading: Reading, k: int, quoted: bool) -> Retrieval:
        """Return the `k` hits for the answer."""
        page, hits = reading.page, retrieval.hits
        if page.focus:
            evidence = None if page.focus == "whole" and not quoted else retrieval.evidence
            return replace(retrieval, hits=tuple(page.arrange(hits, k)), evidence=evidence)
        spread = spread_pages(hits) if self._reranker and self._settings.pages_first else hits
        return replace(retrieval, hits=tuple(take_diverse(spread, k, self._settings.max_per_page)))


def _one_of_each_section(hits: Sequence[Hit]) -> tuple[Hit, ...]:
    """Return the first hit of each section, without copies; hits more than WHOLE chunks apart both stay."""
    kept: list[Hit] = []
    for hit in hits:
        near = (one for one in kept if (one.source, one.headings) == (hit.source, hit.headings))
        if all(abs(one.ordinal - hit.ordinal) > WHOLE for one in near):
            kept.append(hit)
    return tuple(_without_copies(kept))


def _without_copies(hits: Sequence[Hit]) -> Iterator[Hit]:
    """Yield the hits; of copies (older versions, shared paragraphs) only the first."""
    seen: list[frozenset[str]] = []
    for hit in hits:
        words = words_of(plain_text(hit.passage))
        if all(len(words & other) < SAME * len(words | other) for other in seen):
            seen.append(words)
            yield hit


def _with_more(retrieval: Retrieval, found: Sequence[Hit]) -> Retrieval:
    """Return the hits, then introductions, short pages, the near ones of the hits `found`, and more of their pages."""
    urls, taken = {hit.url for hit in retrieval.hits}, {hit.chunk_id for hit in retrieval.hits}
    best = max((hit.score for hit in found if hit.score_kind == LEARNED), default=0.0)
    near = (hit for hit in found if hit.score_kind != LEARNED or best - hit.score <= LEAST_ODDS)
    further = [replace(hit, score_kind=EXTRA) for hit in near if hit.chunk_id not in taken]
    pages = [hit for hit in retrieval.pages if hit.url in urls]
    words = Counter[str]()
    for hit in pages:
        words[hit.url] += len(hit.text.split())
    first = list(dict.fromkeys(hit.url for hit in retrieval.hits))[:FIRST_PAGES]
    short = [url for url in first if words[url] <= SHORT_PAGE]
    overlap = retrieval.index.settings.chunk_overlap
    more = other_sections(retrieval.question, [*retrieval.hits, *further], pages, overlap, short, content_words)
    hits = tuple(_without_copies([*retrieval.hits, *more.leads, *more.short, *further, *more.others]))
    return replace(retrieval, hits=hits, pages=())
