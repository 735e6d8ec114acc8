"""Finds the sides of a comparison, each for itself: the best of "merge vs rebase" are seldom of both.

Knows the words of a question and texts, not how BM25 searched.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from pipelines.answering.retrieval.legs import BM25, ScoredIds
from pipelines.answering.retrieval.ranking.texts import LEARNED, rank
from pipelines.records import Hit
from pipelines.text.phrases import read_phrases

SIDE_DEPTH = 20  # texts of BM25 among which the best of a side is; benchmarks/results/comparisons.md has 5, 10 and 20
_PLACES = 30  # of ranks, as in reciprocal rank fusion

_PHRASES = read_phrases(__name__)


def compared(question: str) -> tuple[str, ...]:
    """Return the two sides of a comparison, such as "merge" and "rebase"; none of another question."""
    found = _PHRASES["compared"].search(question)
    return tuple(side.strip() for side in found.groups() if side) if found else ()


def put_sides(hits: Sequence[Hit], sides: Mapping[str, ScoredIds], texts: Mapping[str, Hit], k: int) -> list[Hit]:
    """Return the `k` best hits with the best one of what BM25 found for each side of a comparison."""
    best = [hit for side, found in sides.items() for hit in best_of_side(side, found, texts)]
    return with_sides(hits, best, k)


def best_of_side(side: str, found: ScoredIds, texts: Mapping[str, Hit]) -> list[Hit]:
    """Return the one of what BM25 `found` whose text fits `side` best; none if it found nothing."""
    hits = [
        replace(texts[name], score=1 / (_PLACES + n), ranks={BM25: n}, scores={BM25: score})
        for n, (name, score) in enumerate(found, start=1)
        if name in texts
    ]
    return rank(side, hits, [1.0] * len(hits), 1)


def with_sides(hits: Sequence[Hit], sides: Sequence[Hit], k: int) -> list[Hit]:
    """Return the `k` best hits: behind the first one the `sides` that none of the first three is, as good as that."""
    first, shown = hits[:1], {hit.source for hit in hits[:3]}
    new = {
        side.source: replace(
            side, score=best.score, scores={**side.scores, LEARNED: best.score}, sources=(side.source,)
        )
        for best in first
        for side in sides
        if side.source not in shown
    }
    return [*first, *new.values(), *(hit for hit in hits[1:] if hit.source not in new)][:k]
