"""Searches one index: each leg runs every query; one read of the store fetches and fuses the hits.

A leg that fails or times out is left out and recorded. This module doesn't know which index is live or how it is
prepared.
"""

from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
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
FEW_WORDS = 0.5  # share of a full BM25 score; a foreign question below it shares hardly a word with the pages


@dataclass(frozen=True, slots=True)
class _LegResults:
    """The results of the legs for each query, before the store is read; None stands for a missing vector.

    `imagined` is the mean of the question's vector and its hypothetical passage's. `sides` has the ids found for each
    side of a comparison.
    """

    vectors: Sequence[Vector | None]
    words: Sequence[Matches]
    imagined: Vector | None = None
    sides: Mapping[str, ScoredIds] = field(default_factory=dict)


class Searcher:
    """Searches an index with all legs; `threads` are those of the embedding model."""

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
        results = self._run_legs(search, live, index, trace)
        found, hits = self._store.read_index(
            index,
            lambda chunks: self._rank(search, results, index, chunks, trace, remembered),
            self._settings.timeout_s,
        )
        if found.too_slow:
            trace.mark_degraded(VECTOR, f"the store took longer than {self._settings.timeout_s} s")
        self._check_words(live, results.words, found, trace)
        hits = self._add_neighbours(index, hits, search.neighbours, trace)
        return Retrieval(
            question=search.queries[0],
            hits=tuple(hits),
            index=index,
            revision=found.revision,
            degraded=tuple(part for part in (*LEGS, NEIGHBOURS, HYDE, PLACE) if part in trace.degraded),
            timings=dict(trace.timings),
            queries=search.queries,
            evidence=_weigh_evidence(search.queries[0], live, results, found),
            pages=self._read_pages(index, hits, search.pages, trace),
        )

    def _rank(
        self,
        search: Search,
        results: _LegResults,
        index: Index,
        chunks: IndexSnapshot,
        trace: SearchTrace,
        remembered: Index | None,
    ) -> tuple[SearchResult, Sequence[Hit]]:
        """Search one snapshot, fuse what was found, and rank the texts."""
        found = trace.run("search", lambda: self._find(search, results, chunks))
        if remembered:
            self._indexes.check_live(remembered, search.collection, found.live)
        lists = self._lists(search, results, found)
        if search.focus:
            nothing: list[ScoredChunk] = []
            of_page = trace.run_leg(PLACE, PLACE, lambda: self._find_in_page(search, chunks, results), nothing)
            lists.append(RankedList(PLACE, of_page))
        of_pages = both_priors(place_prior(search), boost_prior(index.rules.get("boosts", {})))
        of_question = question_prior(search, lists)
        prior = both_priors(of_pages, of_question)
        texts = trace.run("fuse", lambda: self._fuse(search, lists, prior))
        if not self._orders(search):
            return found, [text.to_hit(text.chunk) for text in texts]
        weights = self._fusion.prior(search.queries, of_pages), of_question
        ranked = trace.run("rank", lambda: self._by_texts(search, texts, *weights))
        return found, put_sides(ranked, results.sides, found.by_id, search.k)

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

    def _run_legs(self, search: Search, live: LiveIndex, index: Index, trace: SearchTrace) -> _LegResults:
        """Run every query on every leg: the model in its own threads, and meanwhile BM25 in this one."""
        timeout_s = self._settings.timeout_s
        limit = None if timeout_s is None else self._settings.patience_s + timeout_s
        model = LegCalls(self._threads, trace, limit)

        def words(step: str, query: str) -> Matches:
            return trace.run_leg(BM25, step, lambda: self._find_words(query, search, live, index, trace), NO_MATCHES)

        asked = search.queries if self._fusion.uses(VECTOR) else ()
        vectors = model.start(VECTOR, "embed", lambda query: _checked(live.model.embed_query(query), live), asked, None)
        passages = [search.passage] if search.passage and self._fusion.uses(VECTOR) else []
        passage = model.start(HYDE, "embed_passage", lambda text: _embed_passage(text, live), passages, None)
        matches = [words("bm25", query) for query in search.queries] if self._fusion.uses(BM25) else []
        sides = compared(search.queries[0]) if self._orders(search) and self._fusion.uses(BM25) else ()
        by_side = {side: words("sides", side).scores[:SIDE_DEPTH] for side in sides}
        found = vectors()
        return _LegResults(found, matches, _mean(*found[:1], *passage()), by_side)

    def _find_words(self, query: str, search: Search, live: LiveIndex, index: Index, trace: SearchTrace) -> Matches:
        """Find the chunks with words of a query by BM25; none before the first sync."""
        self._follow(live, index, trace)
        if live.lexical.revision is None:
            return NO_MATCHES
        also = other_words(query, index.rules.get("synonyms", ()))
        return live.lexical.search(query, self._depth(search), search.filters, also)

    def _find(self, search: Search, results: _LegResults, chunks: IndexSnapshot) -> SearchResult:
        """Find the nearest chunks to every vector, and every chunk that a leg or the previous turn named."""
        vectors = [vector for vector in (*results.vectors, results.imagined) if vector is not None]
        lists = [*(matches.scores for matches in results.words), *results.sides.values()]
        found = [name for scores in lists for name, _ in scores]
        ids = list(dict.fromkeys([*found, *self._previous(search)]))
        named = self._indexes.named(search.collection)
        return chunks.search(vectors, ids, self._depth(search), search.filters, collection=named)

    def _find_in_page(self, search: Search, chunks: IndexSnapshot, results: _LegResults) -> list[ScoredChunk]:
        """Find chunks of the open page: the nearest to the last wording of the question, or the first ones."""
        place, vectors = search.place, [vector for vector in results.vectors[-1:] if vector is not None]
        if place is None:
            return []
        if search.focus != "whole" and vectors:
            only = replace(search.filters, url_prefix=place.url)
            (nearest,) = chunks.search(vectors, [], self._depth(search), only).nearest
            # Pages below the open one can fill the depth.
            if of_page := [scored for scored in nearest if scored[1].url == place.url]:
                return of_page
        return [(1 / n, chunk) for n, chunk in enumerate(chunks.page(place.url)[: self._depth(search)], start=1)]

    def _lists(self, search: Search, results: _LegResults, found: SearchResult) -> list[RankedList]:
        """Return the lists to fuse, one for each leg and query."""
        nearest = iter(found.nearest)
        by_query = [next(nearest) if vector is not None else [] for vector in results.vectors]
        if results.imagined is not None:
            by_query[0] = next(nearest)
        lists = self._fusion.weigh(VECTOR, by_query)
        lists += self._fusion.weigh(BM25, [_chunks(matches.scores, found) for matches in results.words])
        known = {chunk.chunk_id for one in lists for _, chunk in one.chunks}
        # A chunk that another leg also found needs no boost, which could push out a better section of its page.
        if previous := [chunk_id for chunk_id in self._previous(search) if chunk_id not in known]:
            places = [(chunk_id, 1 / place) for place, chunk_id in enumerate(previous, start=1)]
            lists += self._fusion.weigh(PREVIOUS, [_chunks(places, found)])
        return lists

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


def _weigh_evidence(question: str, live: LiveIndex, results: _LegResults, found: SearchResult) -> Evidence | None:
    """Return how well the index fits the question, which is the first query; None without words to weigh."""
    matches = results.words[0] if results.words else NO_MATCHES
    if not matches.full_score:
        return None
    nearest = found.nearest[0] if found.nearest and results.vectors and results.vectors[0] is not None else ()
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
