"""The interface of a reranker: hits in a new order with a further score, or RerankFailed.

Knows hits and questions; no model and no endpoint.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Protocol

from pydantic import BaseModel, Field

from pipelines.answering.hits import heading
from pipelines.page.stored import plain_text
from pipelines.records import Hit

DEVICE = "cpu"


class RerankFailed(RuntimeError):
    """A reranker gave no order and changes nothing."""


class Reranker(Protocol):
    """One method. `name` is the kind of its score, and the key of its rank and score on a hit."""

    name: str

    async def rerank(self, question: str, hits: Sequence[Hit]) -> tuple[Hit, ...]:
        """Return `hits` by falling relevance to `question`, with their earlier scores. Raises RerankFailed."""
        ...


class RerankerOptions(BaseModel):
    """Values that a reranker may be made from."""

    model: str = ""  # folder or hub name; the endpoint's model
    url: str = ""
    key: Annotated[str, Field(repr=False)] = ""
    device: str = DEVICE
    threshold: Annotated[float, Field(ge=0, le=1)] | None = None  # of the tag classifier; None: its own


def with_score(hit: Hit, name: str, rank: int, score: float) -> Hit:
    """Return `hit` with a reranker's rank and score beside its earlier ones."""
    return replace(
        hit,
        score=score,
        score_kind=name,
        ranks={**hit.ranks, name: rank},
        scores={**hit.scores, hit.score_kind: hit.score, name: score},
    )


def by_score(hits: Sequence[Hit], scores: Sequence[float], name: str) -> tuple[Hit, ...]:
    """Return `hits` by falling score, ties in their order. Raises RerankFailed for a score that is not finite."""
    if not all(math.isfinite(score) for score in scores):
        raise RerankFailed(f"the {name} gave a score that is not a finite number: {list(scores)[:8]}")
    order = sorted(range(len(hits)), key=lambda place: -scores[place])
    return tuple(with_score(hits[place], name, rank, float(scores[place])) for rank, place in enumerate(order, start=1))


def document(hit: Hit) -> str:
    """Return the text of a hit that a reranking model reads: its headings and its passage."""
    return f"{heading(hit)}\n{plain_text(hit.passage)}"
