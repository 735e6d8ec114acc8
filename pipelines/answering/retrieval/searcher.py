"""Searches one index: each leg runs every query; one read of the store fetches and fuses the hits.

A leg that fails or times out is left out and recorded. This module doesn't know which index is live or how it is
prepared.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import chain
from typing import TypeVar

import numpy as np

from pipelines.answering.retrieval.evidence import Evidence
from pipelines.answering.retrieval.legs import BM25, LEGS, PREVIOUS, VECTOR, LegCalls, ScoredIds, SearchTrace
from pipelines.answering.retrieval.live import LiveIndex, LiveIndexes, Vector
from pipelines.answering.retrieval.neighbours import with_neighbours
from pipelines.answering.retrieval.one_page import page_first
from pipelines.answering.retrieval.ranking.comparisons import SIDE_DEPTH, compared, put_sides
from pipelines.answering.retrieval.ranking.fusion import FusedText, RankedList
from pipelines.answering.retrieval.ranking.prior import (
    Prior,
    boost_prior,
    both_priors,
    language_prior,
    no_prior,
    version_prior,
)
from pipelines.answering.retrieval.ranking.texts import LEARNED, rank, with_odds
from pipelines.answering.retrieval.search import Retrieval, RetrievalSettings, Search
from pipelines.lexical import Matches, other_words
from pipelines.lexical.english import is_english
from pipelines.records import Hit, Index
from pipelines.store import Store
from pipelines.store.indexes import IndexSnapshot, ScoredChunk, SearchResult
from pipelines.text.counts import counted
from pipelines.text.detection import find_language, is_foreign, same_language

T = TypeVar("T")

NEIGHBOURS, HYDE, PLACE = "neighbours", "hyde", "page"  # parts of a search, other than legs, that may fail
NO_MATCHES = Matches(0, ())
AT_ONCE_S = 0.001  # remembered vectors come within this time; a model takes 2 ms and more
FEW_WORDS = 0.5  # share of a full BM25 score; a foreign question below it shares hardly a word with the pages


@dataclass(frozen=True, slots=True)
class _Vectors:
    """The vector of each query, None if it is missing.

    `imagined` is the mean of the question's vector and its hypothetical passage's.
    """

    of_queries: Sequence[Vector | None]
    imagined: Vector | None = None

    @property
    def first(self) -> Vector | None:
        """The question's own vector."""
        return self.of_queries[0] if self.of_queries else None

    def __iter__(self) -> Iterator[Vector]:
        return (vector for vector in (*self.of_queries, self.imagined) if vector is not None)


@dataclass(frozen=True, slots=True)
class _Words:
    """What BM25 finds: the chunks for each query, and for each side of a comparison."""

    of_queries: Sequence[Matches] = ()
    sides: Mapping[str, ScoredIds] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Found:
    """What one snapshot of an index has for a search: `of_page` are chunks of the open page."""

    vectors: _Vectors
    words: _Words
    chunks: SearchResult
    of_page: Sequence[ScoredChunk]


class Searcher:
    """Searches an index with all legs; the embedding model works in `threads`."""

    def __init__(self, store: Store, indexes: LiveIndexes, threads: Executor, settings: RetrievalSettings) -> None:
        self._store, self._indexes, self._threads, self._settings = store, indexes, threads, settings
        self._fusion = settings.fusion

    def search(
        self, search: Search, live: LiveIndex, index: Index, trace: SearchTrace, remembered: Index | None = None
    ) -> Retrieval:
        """Return the best hits from one snapshot of `index`, or of the previous index while only that is `live`.

        Raises StoreUnavailable, and NoSuchIndex if the index was pruned. If `remembered` is given, raises IndexReplaced
        unless it is still the live index.
        """
        index = index if live.index.id == index.id else live.index
        if self._settings.spelling and self._fusion.uses(BM25):
            search = trace.run("spell", lambda: self._correct(search, live, index, trace))
        found = self._find(search, live, index, trace)
        chunks = found.chunks
        if remembered:
            self._indexes.check_live(remembered, search.collection, chunks.live)
        hits = self._rank(search, found, index, trace)
        if chunks.too_slow:
            trace.mark_degraded(VECTOR, f"the store took longer than {self._settings.timeout_s} s")
        self._check_words(live, found.words.of_queries, chunks, trace)
        hits = self._add_neighbours(index, hits, search.neighbours, trace)
        return Retrieval(
            question=search.queries[0],
            hits=tuple(hits),
            index=index,
            revision=chunks.revision,
            degraded=tuple(part for part in (*LEGS, NEIGHBOURS, HYDE, PLACE) if part in trace.degraded),
            timings=dict(trace.timings),
            queries=search.queries,
            evidence=_weigh_evidence(search.queries[0], live, found),
            pages=self._read_pages(index, hits, search.pages, trace),
        )

    def _find(self, search: Search, live: LiveIndex, index: Index, trace: SearchTrace) -> _Found:
        """Run all legs: BM25 works in this thread while the model embeds.

        If the vectors are remembered, it works while the store searches.
        """
        if self._fusion.uses(BM25):
            self._follow(live, index, trace)
        model, embed = self._start_model(search, live, trace)
        words = cache(lambda: self._find_words(search, live, index, trace))
        if not model.end_within(AT_ONCE_S):
            words()
        vectors = embed()
        chunks, of_page = self._store.read_index(
            index, lambda chunks: self._read(search, vectors, words, chunks, trace), self._settings.timeout_s
        )
        return _Found(vectors, words(), chunks, of_page)

    def _rank(self, search: Search, found: _Found, index: Index, trace: SearchTrace) -> Sequence[Hit]:
        """Fuse what was found, and rank the texts."""
        lists = self._lists(search, found)
        of_pages = both_priors(place_prior(search), boost_prior(index.rules.get("boosts", {})))
        of_question = question_prior(search, lists)
        prior = both_priors(of_pages, of_question)
        texts = trace.run("fuse", lambda: self._fuse(search, lists, prior))
        if not self._orders(search):
            return [text.to_hit(text.chunk) for text in texts]
        weights = self._fusion.prior(search.queries, of_pages), of_question
        ranked = trace.run("rank", lambda: self._by_texts(search, texts, *weights))
        return put_sides(ranked, found.words.sides, found.chunks.by_id, search.k)

    def _by_texts(self, search: Search, texts: Sequence[FusedText], of_pages: Prior, of_question: Prior) -> list[Hit]:
        """Return the hits of the best texts; the best one in any language stays among them."""

        def best(k: int, prior: Prior) -> list[tuple[FusedText, float]]:
            priors = [prior(text.chunk) for text in texts]
            return rank(search.queries[0], texts, priors, k, spread=self._fusion.pages_first)

        if of_question is no_prior:
            kept = best(search.k, of_pages)
        else:
            ranked = best(len(texts), both_priors(of_pages, of_question))
            first = {text.chunk_id for text, _ in best(1, of_pages)}
            pushed_out = [one for one in ranked[search.k :] if search.k > 1 and one[0].chunk_id in first]
            kept = [*ranked[: search.k - len(pushed_out)], *pushed_out]
        return [with_odds(text.to_hit(text.chunk), odds) for text, odds in kept]

    def _orders(self, search: Search) -> bool:
        """Return whether the texts decide the order, which they don't for a question about the open page."""
        return self._settings.ranking == LEARNED and not search.focus

    def _fuse(self, search: Search, lists: Sequence[RankedList], prior: Prior) -> list[FusedText]:
        fused = self._fusion.fuse(lists, search.queries, prior)
        if search.place and search.focus:
            fused = page_first(fused, search.place.url, search.k, search.focus == "whole")
        return fused[: self._depth(search) if self._orders(search) else search.k]

    def _start_model(
        self, search: Search, live: LiveIndex, trace: SearchTrace
    ) -> tuple[LegCalls, Callable[[], _Vectors]]:
        """Start to embed the queries and the passage in the model's threads; return a function that waits for them."""
        timeout_s = self._settings.timeout_s
        model = LegCalls(self._threads, trace, None if timeout_s is None else self._settings.patience_s + timeout_s)
        asked = search.queries if self._fusion.uses(VECTOR) else ()
        passages = [search.passage] if search.passage and asked else []
        vectors = model.start(VECTOR, "embed", lambda query: _checked(live.model.embed_query(query), live), asked, None)
        passage = model.start(HYDE, "embed_passage", lambda text: _embed_passage(text, live), passages, None)

        def wait() -> _Vectors:
            of_queries = vectors()
            return _Vectors(of_queries, _mean(*of_queries[:1], *passage()))

        return model, wait

    def _find_words(self, search: Search, live: LiveIndex, index: Index, trace: SearchTrace) -> _Words:
        """Find the chunks with words of every query, and of every side of a comparison, by BM25."""
        if not self._fusion.uses(BM25):
            return _Words()

        def find(step: str, query: str) -> Matches:
            also = other_words(query, index.rules.get("synonyms", ()))
            depth = self._depth(search)
            return trace.run_leg(
                BM25, step, lambda: live.lexical.search(query, depth, search.filters, also), NO_MATCHES
            )

        if BM25 in trace.degraded and live.lexical.revision is None:  # before the first sync
            return _Words([NO_MATCHES for _ in search.queries])
        sides = compared(search.queries[0]) if self._orders(search) else ()
        return _Words(
            [find("bm25", query) for query in search.queries],
            {side: find("sides", side).scores[:SIDE_DEPTH] for side in sides},
        )

    def _read(
        self,
        search: Search,
        vectors: _Vectors,
        words: Callable[[], _Words],
        chunks: IndexSnapshot,
        trace: SearchTrace,
    ) -> tuple[SearchResult, Sequence[ScoredChunk]]:
        """Read the nearest chunks to every vector, those that BM25 or the previous turn named, and the open page's."""

        def names() -> list[str]:
            lists = [*(matches.scores for matches in words().of_queries), *words().sides.values()]
            found = [name for scores in lists for name, _ in scores]
            return list(dict.fromkeys([*found, *self._previous(search)]))

        def find() -> SearchResult:
            named = self._indexes.named(search.collection)
            return chunks.search_while(names, list(vectors), self._depth(search), search.filters, collection=named)

        found, nothing = trace.run("search", find), list[ScoredChunk]()
        if not search.focus:
            return found, nothing
        return found, trace.run_leg(PLACE, PLACE, lambda: self._find_in_page(search, chunks, vectors), nothing)

    def _find_in_page(self, search: Search, chunks: IndexSnapshot, vectors: _Vectors) -> list[ScoredChunk]:
        """Find chunks of the open page: the nearest to the last wording of the question, or the first ones."""
        place, last = search.place, [vector for vector in vectors.of_queries[-1:] if vector is not None]
        if place is None:
            return []
        if search.focus != "whole" and last:
            only = replace(search.filters, url_prefix=place.url)
            (nearest,) = chunks.search(last, [], self._depth(search), only).nearest
            # Pages below the open one can fill the depth.
            if of_page := [scored for scored in nearest if scored[1].url == place.url]:
                return of_page
        return [(1 / n, chunk) for n, chunk in enumerate(chunks.page(place.url)[: self._depth(search)], start=1)]

    def _lists(self, search: Search, found: _Found) -> list[RankedList]:
        """Return the lists to fuse, one for each leg and query."""
        chunks, vectors = found.chunks, found.vectors
        nearest = iter(chunks.nearest)
        by_query = [next(nearest) if vector is not None else [] for vector in vectors.of_queries]
        if vectors.imagined is not None:
            by_query[0] = next(nearest)
        lists = self._fusion.weigh(VECTOR, by_query)
        lists += self._fusion.weigh(BM25, [_chunks(matches.scores, chunks) for matches in found.words.of_queries])
        known = {chunk.chunk_id for one in lists for _, chunk in one.chunks}
        # A chunk that another leg also found needs no boost, which could push out a better section of its page.
        if previous := [chunk_id for chunk_id in self._previous(search) if chunk_id not in known]:
            places = [(chunk_id, 1 / place) for place, chunk_id in enumerate(previous, start=1)]
            lists += self._fusion.weigh(PREVIOUS, [_chunks(places, chunks)])
        return [*lists, RankedList(PLACE, found.of_page)] if search.focus else lists

    def _previous(self, search: Search) -> list[str]:
        return list(dict.fromkeys(search.previous)) if self._fusion.uses(PREVIOUS) else []

    def _depth(self, search: Search) -> int:
        return max(self._settings.leg_depth, search.k)

    def _add_neighbours(self, index: Index, hits: Sequence[Hit], least: int, trace: SearchTrace) -> Sequence[Hit]:
        reach = max(least, self._settings.neighbours)
        if not reach or not hits:
            return hits
        ids = [hit.chunk_id for hit in hits]
        none: Mapping[str, Sequence[Hit]] = {}
        sections = trace.run_leg(NEIGHBOURS, NEIGHBOURS, lambda: self._store.neighbours(index.id, ids, reach), none)
        overlap = index.settings.chunk_overlap
        return [with_neighbours(hit, sections.get(hit.chunk_id, ()), reach, overlap) for hit in hits]

    def _read_pages(self, index: Index, hits: Sequence[Hit], most: int, trace: SearchTrace) -> tuple[Hit, ...]:
        """Return the chunks of the pages of the first hits, up to `most` pages."""
        urls = list(dict.fromkeys(hit.url for hit in hits))[:most]
        if not urls:
            return ()
        none: Sequence[Hit] = ()
        read = trace.run_leg(NEIGHBOURS, NEIGHBOURS, lambda: self._store.chunks_of_pages(index.id, urls), none)
        return tuple(sorted(read, key=lambda hit: (urls.index(hit.url), hit.ordinal)))

    def _follow(self, live: LiveIndex, index: Index, trace: SearchTrace) -> None:
        try:
            self._indexes.follow(live.lexical, index, self._settings.patience_s)
        except Exception as error:
            trace.mark_degraded(
                BM25, f"it has not followed to revision {index.revision}: {type(error).__name__} {error}"
            )

    def _correct(self, search: Search, live: LiveIndex, index: Index, trace: SearchTrace) -> Search:
        """Correct the spelling of the question, but not of the other wordings, which a model wrote."""
        question, *others = search.queries
        if is_foreign(question):
            return search
        if live.lexical.revision is None:  # the first question since BM25 was opened
            self._follow(live, index, trace)
        known = " ".join(chain.from_iterable(index.rules.get("synonyms", ())))
        corrected = live.lexical.correct(question, is_english, known)
        return replace(search, queries=tuple(dict.fromkeys((corrected, *others))))

    def _check_words(self, live: LiveIndex, words: Sequence[Matches], found: SearchResult, trace: SearchTrace) -> None:
        """Check BM25 against the store: at the same revision they have the same chunks, or the folder is wrong."""
        named = {name for matches in words if matches.revision == found.revision for name, _ in matches.scores}
        missing = named - found.by_id.keys()
        if missing:
            trace.mark_degraded(
                BM25, f"{len(missing)} of {counted(len(named), 'chunk is', 'chunks are')} not in the store"
            )
            self._indexes.forget(live)


def place_prior(search: Search) -> Prior:
    """Return the prior that prefers the version and language of the open page, unless filters set them."""
    place = search.place
    if place is None or search.filters.version is not None:
        return no_prior
    own = search.filters.language is None and _asked_in_its_language(search)
    return version_prior(place.version, place.language if own else "")


def question_prior(search: Search, lists: Sequence[RankedList]) -> Prior:
    """Return the prior that prefers the question's language, unless a filter or the open page sets it."""
    if search.filters.language is not None or (_asked_in_its_language(search) and search.filters.version is None):
        return no_prior
    return language_prior(find_language(search.queries[0]), (chunk for one in lists for _, chunk in one.chunks))


def _asked_in_its_language(search: Search) -> bool:
    """Return whether the open page has a language, and the question isn't clearly in another one."""
    asked_in, language = find_language(search.queries[0]), search.place.language if search.place else ""
    return bool(language) and (not asked_in or same_language(asked_in, language))


def _weigh_evidence(question: str, live: LiveIndex, found: _Found) -> Evidence | None:
    """Return how well the index fits the question, which is the first query; None without words to weigh."""
    matches = next(iter(found.words.of_queries), NO_MATCHES)
    if not matches.full_score:
        return None
    nearest = found.chunks.nearest[0] if found.chunks.nearest and found.vectors.first is not None else ()
    cosine = live.yardstick.scale(max(score for score, _ in nearest)) if live.yardstick and nearest else None
    words = matches.scores[0][1] / matches.full_score if matches.scores else 0.0
    if cosine is not None and words < FEW_WORDS and is_foreign(question):
        return Evidence(matches.terms, matches.texts, None, cosine)  # the pages are in another language
    return Evidence(matches.terms, matches.texts, words, cosine)


def _embed_passage(passage: str, live: LiveIndex) -> Vector | None:
    return _checked(live.model.embed_chunks([passage])[0], live)


def _mean(question: Vector | None = None, passage: Vector | None = None) -> Vector | None:
    """Return the normalized mean of two vectors of length 1; None if one is missing."""
    if question is None or passage is None:
        return None
    mean = question + passage
    length = np.linalg.norm(mean)
    return np.asarray(mean / length, np.float32) if length > 0 else None


def _checked(vector: Vector, live: LiveIndex) -> Vector:
    """Return `vector` if it fits the index. Raises ValueError."""
    expected = live.index.settings.dimension or len(vector)
    if vector.shape != (expected,) or not np.isfinite(vector).all():
        raise ValueError(f"the vector has shape {vector.shape} or is not finite, not ({expected},)")
    return vector


def _chunks(scores: ScoredIds, found: SearchResult) -> list[ScoredChunk]:
    """Return the chunks that a leg named and the store has, with the leg's scores."""
    return [(score, found.by_id[name]) for name, score in scores if name in found.by_id]
