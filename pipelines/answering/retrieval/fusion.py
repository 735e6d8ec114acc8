"""Fuses the ranked lists of several searches into one list of hits.

`Fusion` declares how, and the defaults: method, weights and constants. Equal texts become one hit with all its
sources. Knows ranks, scores and texts, not how a leg searched.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from pipelines.answering.retrieval.legs import BM25, PREVIOUS
from pipelines.answering.retrieval.prior import Prior, no_prior, reference_prior
from pipelines.records import Hit

FUSIONS = ("rrf", "insert")


class UnknownLeg(ValueError):
    """A weight names an unknown leg."""

    def __init__(self, name: str, legs: Sequence[str]) -> None:
        super().__init__(f"there is no leg {name!r} to weigh; the legs are: {', '.join(legs)}")


@dataclass(frozen=True, slots=True)
class RankedList:
    """The hits of one leg for one query, in any order, with the leg's own scores; higher is better."""

    leg: str
    hits: Sequence[Hit]
    weight: float = 1.0

    def __post_init__(self) -> None:
        check_weight(self.leg, self.weight)


@dataclass(frozen=True, slots=True)
class Fusion:
    """How the lists of the legs become one. Raises ValueError for an unknown method or a weight that is none.

    - `method` "rrf" is reciprocal rank fusion (Cormack, Clarke, Büttcher: "Reciprocal Rank Fusion outperforms Condorcet
      and individual Rank Learning Methods", SIGIR 2009): a hit of rank r counts weight / (`rrf_k` + r). "insert" puts
      the first `lexical_k` BM25 hits after the `lexical_k`-th of the others.
    - `weights` are 1 for legs that are not named. A leg of weight 0 is neither searched nor reported.
    - `original_weight` is the weight of the question itself against each other wording of it.
    - `reference_weight` is the prior of reference pages whose object no query names (see prior).
    - With `pages_first` the best hit of every page comes before a second hit of any page.

    docs/decisions/rank-fusion.md has the measurements behind the defaults.
    """

    method: str = "rrf"
    weights: Mapping[str, float] = field(default_factory=dict)
    original_weight: float = 1.0
    rrf_k: int = 30
    lexical_k: int = 5
    reference_weight: float = 0.3
    pages_first: bool = True

    def __post_init__(self) -> None:
        if self.method not in FUSIONS:
            raise ValueError(f"there is no fusion {self.method!r}; the fusions are: {', '.join(FUSIONS)}")
        for name, weight in {**self.weights, "original query": self.original_weight}.items():
            check_weight(name, weight)

    def check(self, legs: Sequence[str]) -> None:
        """Raise UnknownLeg for a weight of no leg, and ValueError if no leg is left that searches."""
        for name in self.weights:
            if name not in legs:
                raise UnknownLeg(name, legs)
        searching = [name for name in legs if name != PREVIOUS]
        if not any(self.uses(name) for name in searching):
            raise ValueError(
                f"the weights of all legs that search are 0 ({', '.join(searching)}); give one more than 0"
            )

    def uses(self, leg: str) -> bool:
        """Return whether the leg counts at all."""
        return self._weight(leg) > 0

    def weigh(self, leg: str, hits: Sequence[Sequence[Hit]]) -> list[RankedList]:
        """Return the hits of a leg for each query, the question itself first, as lists with their weights."""
        weights = [1.0 if leg == PREVIOUS else self.original_weight, *(1.0 for _ in hits[1:])]
        return [RankedList(leg, one, self._weight(leg) * weight) for one, weight in zip(hits, weights, strict=False)]

    def fuse(self, lists: Sequence[RankedList], queries: Sequence[str], further: Prior = no_prior) -> list[Hit]:
        """Return all hits of the lists, which were searched for `queries`, best first; `further` weighs them too."""
        reference = reference_prior(queries, self.reference_weight)
        prior = reference if further is no_prior else lambda hit: reference(hit) * further(hit)
        if self.method == "insert":
            hits = insert(lists, at=self.lexical_k, k=self.rrf_k, prior=prior)
        else:
            hits = fuse(lists, k=self.rrf_k, prior=prior, preferred=further)
        return spread_pages(hits) if self.pages_first else hits

    def _weight(self, leg: str) -> float:
        return float(self.weights.get(leg, 1.0))


def check_weight(name: str, weight: float) -> None:
    """Raise ValueError unless the weight of the leg `name` is a finite number of 0 or more."""
    if not (math.isfinite(weight) and weight >= 0):
        raise ValueError(f"the weight of leg {name!r} is {weight}; it must be a finite number of 0 or more")


def fuse(lists: Iterable[RankedList], *, k: int, prior: Prior = no_prior, preferred: Prior = no_prior) -> list[Hit]:
    """Return all hits, best first, by the sum over the lists of weight / (k + rank / prior), ranks from 1.

    Hits of equal `text_hash` become the most `preferred` one, then that of the best rank, with the sources of all. Each
    leg's rank and score stay on the hit (the best of them where a leg has lists of several queries), and the sum is the
    score "rrf". Ties go to the best single rank, then to the id.
    """
    texts: dict[str, _Text] = {}
    for one in lists:
        for rank, hits in enumerate(group_by_text(one.hits), start=1):
            best_first = hits if preferred is no_prior else sorted(hits, key=lambda hit: -preferred(hit))
            first = best_first[0]
            text = texts.setdefault(first.text_hash, _Text())
            text.add(one.leg, rank, best_first, one.weight / (k + rank / prior(first)), preferred(first))
    return [text.hit() for text in sorted(texts.values(), key=_Text.place)]


def insert(lists: Iterable[RankedList], *, at: int, k: int, inserted: str = BM25, prior: Prior = no_prior) -> list[Hit]:
    """Return the hits of the other legs, fused, with the first `at` of the leg `inserted` behind the `at`-th.

    "Building RAG-based LLM Applications for Production" (Anyscale, 2023) inserted lexical hits into the list of vector
    hits in this way; here an equal text keeps its first place. The score "insert" is 1 / place.
    """
    lists = list(lists)
    main = fuse((one for one in lists if one.leg != inserted), k=k, prior=prior)
    extra = fuse((one for one in lists if one.leg == inserted), k=k, prior=prior)
    whole = {hit.text_hash: hit for hit in fuse(lists, k=k, prior=prior)}
    order = dict.fromkeys(hit.text_hash for hit in [*main[:at], *extra[:at], *main[at:], *extra[at:]])
    return [_with_score(whole[text], "insert", 1 / place) for place, text in enumerate(order, start=1)]


def take_diverse(hits: Iterable[Hit], k: int, max_per_page: int | None = None) -> list[Hit]:
    """Return the first `k` of `hits` with at most `max_per_page` of any page (None or 0: any number)."""
    taken: list[Hit] = []
    pages: Counter[str] = Counter()
    for hit in hits:
        if len(taken) >= k:
            break
        if not max_per_page or pages[hit.url] < max_per_page:
            pages[hit.url] += 1
            taken.append(hit)
    return taken


def spread_pages(hits: Iterable[Hit]) -> list[Hit]:
    """Return `hits` in their order, but the best hit of every page before a second hit of any, and so on."""
    seen: Counter[str] = Counter()
    placed = []
    for hit in hits:
        placed.append((seen[hit.url], hit))
        seen[hit.url] += 1
    return [hit for _, hit in sorted(placed, key=lambda place: place[0])]


def group_by_text(hits: Iterable[Hit]) -> list[list[Hit]]:
    """Return the hits of each text, by falling score; ties go by chunk id."""
    distinct: dict[str, list[Hit]] = {}
    for hit in sorted(hits, key=lambda hit: (-hit.score, hit.chunk_id)):
        distinct.setdefault(hit.text_hash, []).append(hit)
    return list(distinct.values())


@dataclass(slots=True)
class _Text:
    """Ranks and scores of one text so far. A Hit is made only at the end, as copying hits would cost most."""

    score: float = 0.0
    best: tuple[int, str] = (0, "")  # rank and chunk id
    first: Hit | None = None
    preference: float = 0.0  # of the first hit
    ranks: dict[str, int] = field(default_factory=dict)
    scores: dict[str, float] = field(default_factory=dict)
    hits: list[Hit] = field(default_factory=list)

    def add(self, leg: str, rank: int, hits: Sequence[Hit], score: float, preference: float = 1.0) -> None:
        """Add the hits that a leg has of the text, best first; `preference` is that of the first one."""
        self.score += score
        self.hits += hits
        if (-preference, rank, hits[0].chunk_id) < (-self.preference, *self.best):
            self.best, self.first, self.preference = (rank, hits[0].chunk_id), hits[0], preference
        if leg not in self.ranks or (rank, -hits[0].score) < (self.ranks[leg], -self.scores[leg]):
            self.ranks[leg], self.scores[leg] = rank, hits[0].score

    def place(self) -> tuple[float, int, str, str]:
        """Return the sort key. 12 digits: sums that differ only by the order of their terms are equal."""
        return (-float(f"{self.score:.11e}"), *self.best, self.first.text_hash if self.first else "")

    def hit(self) -> Hit:
        """Return the best hit of the text, with the ranks, scores and sources of all."""
        assert self.first is not None
        score, sources = -self.place()[0], {self.first.source: None}
        others = {hit.source for hit in self.hits}.union(*(hit.sources for hit in self.hits))
        return replace(
            self.first,
            score=score,
            score_kind="rrf",
            ranks=self.ranks,
            scores={**self.scores, "rrf": score},
            sources=tuple(sources | dict.fromkeys(sorted(others))),
        )


def _with_score(hit: Hit, kind: str, score: float) -> Hit:
    return replace(hit, score=score, score_kind=kind, scores={**hit.scores, kind: score})
