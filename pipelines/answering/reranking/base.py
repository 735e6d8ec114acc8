"""Defines the interface of a reranker: it returns reordered and rescored hits, or raises RerankFailed.

This module knows about hits and questions, but nothing about models or endpoints.
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
    """A reranker returned no order, so the hits stay unchanged."""


class Reranker(Protocol):
    """Reorders hits; `name` is the kind of its score, and the key of its rank and score in a hit."""

    name: str

    async def rerank(self, question: str, hits: Sequence[Hit]) -> tuple[Hit, ...]:
        """Return `hits` by descending relevance to `question`, keeping their earlier scores. Raises RerankFailed."""
        ...


class RerankerOptions(BaseModel):
    """The options of all rerankers."""

    model: str = ""  # folder or hub name, or the endpoint's model
    url: str = ""
    key: Annotated[str, Field(repr=False)] = ""
    device: str = DEVICE
    threshold: Annotated[float, Field(ge=0, le=1)] | None = None  # for the tag classifier; None: its own


def with_score(hit: Hit, name: str, rank: int, score: float) -> Hit:
    """Return `hit` with a reranker's rank and score in addition to its earlier ones."""
    return replace(
        hit,
        score=score,
        score_kind=name,
        ranks={**hit.ranks, name: rank},
        scores={**hit.scores, hit.score_kind: hit.score, name: score},
    )


def by_score(hits: Sequence[Hit], scores: Sequence[float], name: str) -> tuple[Hit, ...]:
    """Return `hits` by descending score; ties keep their order. Raises RerankFailed for a score that isn't finite."""
    if not all(math.isfinite(score) for score in scores):
        raise RerankFailed(f"the {name} gave a score that is not a finite number: {list(scores)[:8]}")
    order = sorted(range(len(hits)), key=lambda place: -scores[place])
    return tuple(with_score(hits[place], name, rank, float(scores[place])) for rank, place in enumerate(order, start=1))


def document(hit: Hit) -> str:
    """Return the text of a hit for a reranking model: its headings and its passage."""
    return f"{heading(hit)}\n{plain_text(hit.passage)}"
