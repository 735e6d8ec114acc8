"""What every reranker gives: hits in a new order with a score beside those that they had, or an error.

Knows hits and questions; no model, no endpoint.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from pipelines.answering.synthesis.extractive import heading
from pipelines.records import Exchange, Hit, Usage


class RerankFailed(RuntimeError):
    """The reranker gave no order; the message says which one and why, `usage` and `exchanges` what was asked."""

    def __init__(self, message: str, usage: Usage | None = None, exchanges: tuple[Exchange, ...] = ()) -> None:
        super().__init__(message)
        self.usage, self.exchanges = usage or Usage(), exchanges


@dataclass(frozen=True, slots=True)
class Reranking:
    """Hits in their new order, and what language models were asked on the way."""

    hits: tuple[Hit, ...]
    usage: Usage = field(default_factory=Usage)
    exchanges: tuple[Exchange, ...] = ()


class Reranker(Protocol):
    """One method. `name` is the kind of its score, and the key of its rank and score on a hit."""

    name: str

    async def rerank(self, question: str, hits: Sequence[Hit]) -> Reranking:
        """`hits` by falling relevance to `question`, earlier scores kept on them. Raises RerankFailed."""
        ...


def scored(hit: Hit, name: str, rank: int, score: float) -> Hit:
    """`hit` with a reranker's rank and score beside all that were given before."""
    return replace(
        hit,
        score=score,
        score_kind=name,
        ranks={**hit.ranks, name: rank},
        scores={**hit.scores, hit.score_kind: hit.score, name: score},
    )


def by_score(hits: Sequence[Hit], scores: Sequence[float], name: str) -> tuple[Hit, ...]:
    """`hits` by falling score, ties as they were. Raises RerankFailed for a score that is no finite number."""
    if not all(math.isfinite(score) for score in scores):
        raise RerankFailed(f"the {name} gave a score that is no finite number: {list(scores)[:8]}")
    order = sorted(range(len(hits)), key=lambda place: -scores[place])
    return tuple(scored(hits[place], name, rank, float(scores[place])) for rank, place in enumerate(order, start=1))


def document(hit: Hit) -> str:
    """What a reranking model reads of a hit: where it stands and what it says."""
    return f"{heading(hit)}\n{hit.passage}"
