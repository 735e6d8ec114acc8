"""Several ranked lists become one, in which equal texts are one hit with all its sources.

By reciprocal rank fusion, or by inserting the hits of one list into the other. Knows ranks, scores and texts; not
what a leg is or how it searched.
"""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from pipelines.answering.retrieval.prior import Prior, no_prior
from pipelines.records import Hit

# Cormack, Clarke, Büttcher: "Reciprocal Rank Fusion outperforms Condorcet and individual Rank Learning
# Methods", SIGIR 2009. They fixed it in a pilot study and found the result insensitive to it.
RRF_K = 60


@dataclass(frozen=True, slots=True)
class RankedList:
    """What one retriever found for one query, in any order: `hits` with its own scores, higher is better."""

    name: str
    hits: Sequence[Hit]
    weight: float = 1.0

    def __post_init__(self) -> None:
        check_weight(self.name, self.weight)


def check_weight(name: str, weight: float) -> None:
    """Raise ValueError unless the weight of the leg `name` is a finite number of 0 or more."""
    if not (math.isfinite(weight) and weight >= 0):
        raise ValueError(f"the weight of leg {name!r} is {weight}; it must be a finite number of 0 or more")


def fuse(legs: Iterable[RankedList], *, k: int = RRF_K, prior: Prior = no_prior) -> list[Hit]:
    """All hits of all legs, best first: the sum over legs of weight / (k + rank / prior), ranks from 1.

    Hits of equal `text_hash` are one hit: that of the best rank, with the sources of all. Each leg's rank and
    score stay on the hit (the best, where legs share a name, as those of several queries do), and the sum as score
    "rrf". Ties go to the best single rank, then the id.
    """
    texts: dict[str, _Text] = {}
    for leg in legs:
        for rank, hits in enumerate(ranked(leg.hits), start=1):
            text = texts.setdefault(hits[0].text_hash, _Text())
            text.add(leg.name, rank, hits, leg.weight / (k + rank / prior(hits[0])))
    return [text.hit() for text in sorted(texts.values(), key=_Text.place)]


def insert(
    legs: Iterable[RankedList], *, at: int, inserted: str = "bm25", k: int = RRF_K, prior: Prior = no_prior
) -> list[Hit]:
    """The first `at` hits of the leg `inserted`, put after the `at`-th hit of the others, which RRF fuses first.

    The way of "Building RAG-based LLM Applications for Production" (Anyscale, 2023), whose lexical hits went so
    into the list of vector hits; here an equal text keeps its first place alone. The score "insert" is 1 / place.
    """
    legs = list(legs)
    main = fuse((leg for leg in legs if leg.name != inserted), k=k, prior=prior)
    extra = fuse((leg for leg in legs if leg.name == inserted), k=k, prior=prior)
    whole = {hit.text_hash: hit for hit in fuse(legs, k=k, prior=prior)}
    order = dict.fromkeys(hit.text_hash for hit in [*main[:at], *extra[:at], *main[at:], *extra[at:]])
    return [_labelled(whole[text], "insert", 1 / place) for place, text in enumerate(order, start=1)]


FUSIONS = ("rrf", "insert")


def diverse(hits: Iterable[Hit], k: int, max_per_page: int | None = None) -> list[Hit]:
    """The first `k` of `hits` with at most `max_per_page` of any one page (None or 0: as many as come)."""
    taken: list[Hit] = []
    pages: Counter[str] = Counter()
    for hit in hits:
        if len(taken) >= k:
            break
        if not max_per_page or pages[hit.url] < max_per_page:
            pages[hit.url] += 1
            taken.append(hit)
    return taken


def pages_first(hits: Iterable[Hit]) -> list[Hit]:
    """`hits` in their order, but the best one of every page before a second one of any, and so on."""
    seen: Counter[str] = Counter()
    placed = []
    for hit in hits:
        placed.append((seen[hit.url], hit))
        seen[hit.url] += 1
    return [hit for _, hit in sorted(placed, key=lambda place: place[0])]


def ranked(hits: Iterable[Hit]) -> list[list[Hit]]:
    """The hits of each text, by falling score; ties by chunk id."""
    distinct: dict[str, list[Hit]] = {}
    for hit in sorted(hits, key=lambda hit: (-hit.score, hit.chunk_id)):
        distinct.setdefault(hit.text_hash, []).append(hit)
    return list(distinct.values())


@dataclass(slots=True)
class _Text:
    """What legs have said of one text so far. A Hit is made of it in the end alone: copying them would cost most."""

    score: float = 0.0
    best: tuple[int, str] = (0, "")  # rank and chunk id
    first: Hit | None = None
    ranks: dict[str, int] = field(default_factory=dict)
    scores: dict[str, float] = field(default_factory=dict)
    hits: list[Hit] = field(default_factory=list)

    def add(self, leg: str, rank: int, hits: Sequence[Hit], score: float) -> None:
        """What a leg has found of it, best first."""
        self.score += score
        self.hits += hits
        if self.first is None or (rank, hits[0].chunk_id) < self.best:
            self.best, self.first = (rank, hits[0].chunk_id), hits[0]
        if leg not in self.ranks or (rank, -hits[0].score) < (self.ranks[leg], -self.scores[leg]):
            self.ranks[leg], self.scores[leg] = rank, hits[0].score

    def place(self) -> tuple[float, int, str]:
        """What the result is sorted by. 12 digits: sums that differ by the order of their terms are the same score."""
        return (-float(f"{self.score:.11e}"), *self.best)

    def hit(self) -> Hit:
        """The best of its hits, with all that is known."""
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


def _labelled(hit: Hit, kind: str, score: float) -> Hit:
    return replace(hit, score=score, score_kind=kind, scores={**hit.scores, kind: score})
