"""Measures how well an index fits a question, whatever the scale of its model's cosines.

Knows an embedding model by what it makes of a few questions and their answers; no index and no threshold.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from pipelines.text.phrases import read_table

log = logging.getLogger(__name__)

# Questions with a passage that answers each.
PAIRS = tuple(read_table(__name__)["pairs"].items())
LEAST_SPAN = 0.1  # between the two cosines: a model with less can't tell an answer from another text


class TextEmbedder(Protocol):
    """Embeds texts: vectors of length 1, of shape (texts, dimension)."""

    def embed_chunks(self, texts: Sequence[str]) -> np.ndarray: ...


@dataclass(frozen=True, slots=True)
class Yardstick:
    """The mean cosines that a model gives to a question and its answer, and to a question and another's answer."""

    related: float
    unrelated: float

    @classmethod
    def of(cls, model: TextEmbedder) -> "Yardstick | None":
        """Measure a model by PAIRS, in one batch. Without a measure, words decide."""
        try:
            vectors = np.asarray(model.embed_chunks([text for pair in PAIRS for text in pair]))
        except Exception as error:
            log.warning("the model's cosines have no measure: %s: %s", type(error).__name__, error)
            return None
        cosines = vectors[::2] @ vectors[1::2].T
        own = np.eye(len(PAIRS), dtype=bool)
        return cls(float(cosines[own].mean()), float(cosines[~own].mean()))

    def scale(self, cosine: float) -> float | None:
        """Return 0 for a cosine of unrelated texts and 1 for that of an answer; None if the model has no such scale."""
        span = self.related - self.unrelated
        return (cosine - self.unrelated) / span if span >= LEAST_SPAN else None


@dataclass(frozen=True, slots=True)
class Evidence:
    """How well an index of `texts` chunks fits a question of `terms` distinct terms.

    `words` is the best BM25 score as a multiple of what a chunk would have that holds every term once, None where the
    pages are in another language; `cosine` is that of the nearest chunk, scaled by the model's yardstick, None without
    one.
    """

    terms: int
    texts: int
    words: float | None
    cosine: float | None = None
