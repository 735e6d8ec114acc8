"""Several ranked lists become one, by reciprocal rank fusion; equal texts become one hit with all its sources.

Knows ranks, scores and texts; not what a leg is or how it searched.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from pipelines.records import Hit

# Cormack, Clarke, Büttcher: "Reciprocal Rank Fusion outperforms Condorcet and individual Rank Learning
# Methods", SIGIR 2009. They fixed it in a pilot study and found the result insensitive to it.
RRF_K = 60


@dataclass(frozen=True, slots=True)
class Leg:
    """What one retriever found for one query, in any order: `hits` with its own scores, higher is better."""

    name: str
    hits: Sequence[Hit]
    weight: float = 1.0

    def __post_init__(self) -> None:
        if not self.weight >= 0:
            raise ValueError(f"the weight of leg {self.name!r} is {self.weight}; it must be 0 or more")


def fuse(legs: Iterable[Leg], *, k: int = RRF_K) -> list[Hit]:
    """All hits of all legs, best first: the sum over legs of weight / (k + rank), ranks from 1.

    Hits of equal `text_hash` are one hit: that of the best rank, with the sources of all. Each leg's rank and
    score stay on the hit (the best, where legs share a name). Ties go to the best single rank, then the id.
    """
    fused: dict[str, Hit] = {}
    for leg in legs:
        for rank, hit in enumerate(ranked(leg.hits), start=1):
            found = replace(
                hit,
                score=leg.weight / (k + rank),
                score_kind="rrf",
                ranks={leg.name: rank},
                scores={leg.name: hit.score},
            )
            earlier = fused.get(hit.text_hash)
            fused[hit.text_hash] = _joined(earlier, found) if earlier else found
    return sorted(fused.values(), key=lambda hit: (-round(hit.score, 12), *_preference(hit)))


def ranked(hits: Iterable[Hit]) -> list[Hit]:
    """`hits` by falling score, each text once, its other sources with it; ties by chunk id."""
    distinct: dict[str, Hit] = {}
    for hit in sorted(hits, key=lambda hit: (-hit.score, hit.chunk_id)):
        first = distinct.get(hit.text_hash, hit)
        distinct[hit.text_hash] = replace(first, sources=_sources(first, hit))
    return list(distinct.values())


def _joined(one: Hit, other: Hit) -> Hit:
    best, rest = sorted((one, other), key=_preference)
    ranks, scores = dict(one.ranks), dict(one.scores)
    for name, rank in other.ranks.items():
        if rank < ranks.get(name, rank + 1):
            ranks[name], scores[name] = rank, other.scores[name]
    return replace(best, score=one.score + other.score, ranks=ranks, scores=scores, sources=_sources(best, rest))


def _preference(hit: Hit) -> tuple[int, str]:
    return min(hit.ranks.values()), hit.chunk_id


def _sources(first: Hit, other: Hit) -> tuple[str, ...]:
    """All sources of both, the first hit's own in front, the others in alphabetical order."""
    others = {*first.sources, *other.sources, other.source} - {first.source}
    return (first.source, *sorted(others))
