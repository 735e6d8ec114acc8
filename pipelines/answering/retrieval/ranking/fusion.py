"""Fuses the ranked lists of several searches into one list of hits.

`Fusion` declares the method, its weights and constants, and their defaults. Equal texts become one hit with all its
sources. This module uses ranks, scores and hashes of texts; it doesn't know how a leg searches.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from pipelines.answering.retrieval.legs import BM25, LEGS, VECTOR
from pipelines.answering.retrieval.one_page import PageItemT
from pipelines.answering.retrieval.ranking.prior import Prior, both_priors, no_prior, reference_prior
from pipelines.records import Hit
from pipelines.store.indexes import ScoredChunk

RRF, RELATIVE_SCORE, INSERT = "rrf", "relative_score", "insert"
FUSIONS = (RRF, RELATIVE_SCORE, INSERT)


@dataclass(frozen=True, slots=True)
class RankedList:
    """The chunks of one leg for one query, in any order, each with the leg's score; higher is better."""

    leg: str
    chunks: Sequence[ScoredChunk]
    weight: float = 1.0


@dataclass(slots=True)
class FusedText:
    """A text that legs found, with its rank and score in each; `chunk` is the representative of its chunks.

    `rank` and `preference` belong to `chunk`; `places` has all chunks with the text.
    """

    chunk: Hit
    rank: int
    preference: float
    kind: str = RRF
    score: float = 0.0
    ranks: dict[str, int] = field(default_factory=dict)
    scores: dict[str, float] = field(default_factory=dict)
    places: list[Hit] = field(default_factory=list)

    @property
    def chunk_id(self) -> str:
        return self.chunk.chunk_id

    @property
    def url(self) -> str:
        return self.chunk.url

    @property
    def title(self) -> str:
        return self.chunk.title

    @property
    def headings(self) -> Sequence[str]:
        return self.chunk.headings

    @property
    def ordinal(self) -> int:
        return self.chunk.ordinal

    @property
    def text(self) -> str:
        return self.chunk.text

    def add(self, leg: str, rank: int, scored: Sequence[ScoredChunk], share: float, preference: float) -> None:
        """Add a leg's chunks of the text, best first; `share` is added to the score.

        `preference` belongs to the first chunk.
        """
        score, chunk = scored[0]
        self.score += share
        self.places += [place for _, place in scored]
        if (-preference, rank, chunk.chunk_id) < (-self.preference, self.rank, self.chunk_id):
            self.chunk, self.rank, self.preference = chunk, rank, preference
        if leg not in self.ranks or (rank, -score) < (self.ranks[leg], -self.scores[leg]):
            self.ranks[leg], self.scores[leg] = rank, score

    def to_hit(self, chunk: Hit) -> Hit:
        """Return `chunk`, the complete record of the chunk, with the ranks, scores and sources of the text."""
        own = self.chunk.source
        others = dict.fromkeys(sorted({place.source for place in self.places}))
        return replace(
            chunk,
            score=self.score,
            score_kind=self.kind,
            ranks=self.ranks,
            scores={**self.scores, self.kind: self.score},
            sources=tuple({own: None} | others),
        )


@dataclass(frozen=True, slots=True)
class Fusion:
    """How the lists of the legs become one. Raises ValueError for an unknown kind and for invalid weights.

    - `kind` "rrf" is reciprocal rank fusion (Cormack, Clarke, Büttcher: "Reciprocal Rank Fusion outperforms Condorcet
      and individual Rank Learning Methods", SIGIR 2009): a hit of rank r counts weight / (`rrf_k` + r).
    - "relative_score" adds the legs' own scores, each list scaled to 0 to 1 (as LlamaIndex's `relative_score` and
      Weaviate's relativeScoreFusion do).
    - "insert" puts the best `lexical_k` BM25 hits after the same number of other hits ("Building RAG-based LLM
      Applications for Production", Anyscale, 2023).
    - `weights` are 1 for legs that are not named. A leg with weight 0 is neither searched nor reported.
    - `reference_weight` is the prior of reference pages whose object no query names (see prior).
    - With `pages_first`, the best hit of every page comes before a second hit of any page.

    docs/decisions/rank-fusion.md has the measurements behind the defaults.
    """

    weights: Mapping[str, float] = field(default_factory=dict)
    kind: str = RRF
    rrf_k: int = 30
    lexical_k: int = 5
    reference_weight: float = 0.3
    pages_first: bool = True

    def __post_init__(self) -> None:
        if self.kind not in FUSIONS:
            raise ValueError(f"there is no fusion {self.kind!r}; choose one of {', '.join(FUSIONS)}")
        for name, weight in self.weights.items():
            if name not in LEGS:
                raise ValueError(f"there is no leg {name!r} to weigh; the legs are: {', '.join(LEGS)}")
            if not (math.isfinite(weight) and weight >= 0):
                raise ValueError(f"the weight of leg {name!r} is {weight}; it must be a finite number of 0 or more")
        if not (self.uses(VECTOR) or self.uses(BM25)):
            raise ValueError(f"the weights of all legs that search are 0 ({VECTOR}, {BM25}); give one more than 0")

    def uses(self, leg: str) -> bool:
        """Return whether the leg has a weight above 0."""
        return self._weight(leg) > 0

    def weigh(self, leg: str, found: Sequence[Sequence[ScoredChunk]]) -> list[RankedList]:
        """Return the chunks of a leg for each query as lists with its weight."""
        return [RankedList(leg, one, self._weight(leg)) for one in found]

    def prior(self, queries: Sequence[str], further: Prior = no_prior) -> Prior:
        """Return `further` times the prior of reference pages that none of `queries` names."""
        return both_priors(reference_prior(queries, self.reference_weight), further)

    def fuse(self, lists: Sequence[RankedList], queries: Sequence[str], further: Prior = no_prior) -> list[FusedText]:
        """Return all texts of the lists, best first; they were found by `queries`, and `further` weighs them too."""
        prior = self.prior(queries, further)
        if self.kind == INSERT:
            texts = insert(lists, at=self.lexical_k, k=self.rrf_k, prior=prior, preferred=further)
        else:
            texts = fuse(lists, k=self.rrf_k, prior=prior, preferred=further, kind=self.kind)
        return spread_pages(texts) if self.pages_first else texts

    def _weight(self, leg: str) -> float:
        return float(self.weights.get(leg, 1.0))


def fuse(
    lists: Iterable[RankedList],
    *,
    k: int,
    prior: Prior = no_prior,
    preferred: Prior = no_prior,
    kind: str = RRF,
) -> list[FusedText]:
    """Return all texts, best first; a text's score is the sum of its shares over the lists.

    With `kind` "rrf", the share is weight / (k + rank / prior), with ranks from 1. With "relative_score", it is the
    leg's score, scaled to 0 to 1 within the list, times weight and prior. The most `preferred` chunk represents a text,
    then the one with the best rank. Each leg's rank and score stay on the text; for a leg with several queries, the
    best ones. Ties go to the best single rank, then to the id.
    """
    texts: dict[str, FusedText] = {}
    for one in lists:
        scaled = _scale(one.chunks)
        for rank, group in enumerate(group_by_text(one.chunks), start=1):
            scored = group if preferred is no_prior else sorted(group, key=lambda pair: -preferred(pair[1]))
            first = scored[0][1]
            preference = preferred(first)
            text = texts.get(first.text_hash)
            if text is None:
                text = texts[first.text_hash] = FusedText(first, rank, preference, kind)
            weight = prior(first)
            share = scaled(scored[0][0]) * weight if kind == RELATIVE_SCORE else 1 / (k + rank / weight)
            text.add(one.leg, rank, scored, one.weight * share, preference)
    for text in texts.values():  # rounded to 12 digits: sums that differ only in the order of their terms become equal
        text.score = float(f"{text.score:.11e}")
    return sorted(texts.values(), key=lambda text: (-text.score, text.rank, text.chunk_id, text.chunk.text_hash))


def _scale(chunks: Sequence[ScoredChunk]) -> Callable[[float], float]:
    """Return a function that scales the scores of a list to 0 to 1; if all are equal, each is 1."""
    scores = [score for score, _ in chunks]
    low, high = min(scores, default=0.0), max(scores, default=0.0)
    return lambda score: (score - low) / (high - low) if high > low else 1.0


def insert(
    lists: Sequence[RankedList],
    *,
    at: int,
    k: int,
    inserted: str = BM25,
    prior: Prior = no_prior,
    preferred: Prior = no_prior,
) -> list[FusedText]:
    """Return the fused texts of the other legs, with the first `at` texts of the leg `inserted` after position `at`.

    A text that both have keeps its first position. The score "insert" is 1 / position.
    """
    main, extra = (
        [one.chunk.text_hash for one in fuse(some, k=k, prior=prior, preferred=preferred)]
        for some in ([a for a in lists if a.leg != inserted], [a for a in lists if a.leg == inserted])
    )
    whole = {text.chunk.text_hash: text for text in fuse(lists, k=k, prior=prior, preferred=preferred, kind=INSERT)}
    order = dict.fromkeys([*main[:at], *extra[:at], *main[at:], *extra[at:]])
    return [replace(whole[text_hash], score=1 / place) for place, text_hash in enumerate(order, start=1)]


def take_diverse(hits: Iterable[PageItemT], k: int, max_per_page: int | None = None) -> list[PageItemT]:
    """Return the first `k` of `hits` with at most `max_per_page` of any page (None or 0: no limit)."""
    taken: list[PageItemT] = []
    pages: Counter[str] = Counter()
    for hit in hits:
        if len(taken) >= k:
            break
        if not max_per_page or pages[hit.url] < max_per_page:
            pages[hit.url] += 1
            taken.append(hit)
    return taken


def spread_pages(hits: Iterable[PageItemT]) -> list[PageItemT]:
    """Return `hits` in order, but with the best hit of every page before a second hit of any, and so on."""
    seen: dict[str, int] = {}
    rounds: list[list[PageItemT]] = []
    for hit in hits:
        nth = seen[hit.url] = seen.get(hit.url, -1) + 1
        if nth == len(rounds):
            rounds.append([])
        rounds[nth].append(hit)
    return [hit for one in rounds for hit in one]


def group_by_text(found: Iterable[ScoredChunk]) -> list[list[ScoredChunk]]:
    """Return the chunks of each text, by descending score; ties are ordered by chunk id."""
    distinct: dict[str, list[ScoredChunk]] = {}
    for scored in sorted(found, key=lambda scored: (-scored[0], scored[1].chunk_id)):
        distinct.setdefault(scored[1].text_hash, []).append(scored)
    return list(distinct.values())
