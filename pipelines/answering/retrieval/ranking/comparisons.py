"""Finds the sides of a comparison separately: the best hits of "merge vs rebase" rarely cover both.

This module uses texts and the words of a question; it doesn't know how BM25 searches.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from pipelines.answering.retrieval.legs import BM25, ScoredIds
from pipelines.answering.retrieval.ranking.fusion import FusedText
from pipelines.answering.retrieval.ranking.texts import LEARNED, rank
from pipelines.records import Hit
from pipelines.text.phrases import read_phrases

SIDE_DEPTH = 20  # BM25 hits from which a side's best is chosen; benchmarks/results/comparisons.md compares 5, 10 and 20
_PLACES = 30  # added to ranks, as in reciprocal rank fusion

_PHRASES = read_phrases(__name__)


def compared(question: str) -> tuple[str, ...]:
    """Return the two sides of a comparison, such as "merge" and "rebase"; empty for other questions."""
    found = _PHRASES["compared"].search(question)
    return tuple(side.strip() for side in found.groups() if side) if found else ()


def put_sides(hits: Sequence[Hit], sides: Mapping[str, ScoredIds], chunks: Mapping[str, Hit], k: int) -> list[Hit]:
    """Return the `k` best hits, including the best BM25 hit for each side of a comparison."""
    best = [text for side, found in sides.items() for text in best_of_side(side, found, chunks)]
    return with_sides(hits, [text.to_hit(text.chunk) for text in best], k)


def best_of_side(side: str, found: ScoredIds, chunks: Mapping[str, Hit]) -> list[FusedText]:
    """Return the chunk in `found`, from BM25, whose text fits `side` best; empty if there is none."""
    texts = [
        FusedText(chunk, n, 1.0, score=1 / (_PLACES + n), ranks={BM25: n}, scores={BM25: score})
        for n, (name, score) in enumerate(found, start=1)
        if (chunk := chunks.get(name))
    ]
    return [best for best, _ in rank(side, texts, [1.0] * len(texts), 1)]


def with_sides(hits: Sequence[Hit], sides: Sequence[Hit], k: int) -> list[Hit]:
    """Return the `k` best hits, with new `sides` after the first one and with its score.

    A side is new if it is not among the first three hits.
    """
    first, shown = hits[:1], {hit.source for hit in hits[:3]}
    new = {
        side.source: replace(
            side,
            score=best.score,
            score_kind=best.score_kind,
            scores={leg: side.scores[leg] for leg in side.ranks} | {LEARNED: best.score},
            sources=(side.source,),
        )
        for best in first
        for side in sides
        if side.source not in shown
    }
    return [*first, *new.values(), *(hit for hit in hits[1:] if hit.source not in new)][:k]
