"""Measures how well an index fits a question, on a scale independent of the model's cosines.

An embedding model is measured by its cosines for a few questions and their answers. This module has no index and no
thresholds.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from pipelines.text.phrases import read_table

log = logging.getLogger(__name__)

# Questions, each with a passage that answers it.
PAIRS = tuple(read_table(__name__)["pairs"].items())
LEAST_SPAN = 0.1  # between the two cosines; with less, a model can't tell answers from other passages


class TextEmbedder(Protocol):
    """Embeds texts as vectors of length 1, with shape (texts, dimension)."""

    def embed_chunks(self, texts: Sequence[str]) -> np.ndarray: ...


@dataclass(frozen=True, slots=True)
class Yardstick:
    """A model's mean cosine of a question with its own answer, and with another question's answer."""

    related: float
    unrelated: float

    @classmethod
    def of(cls, model: TextEmbedder) -> "Yardstick | None":
        """Measure a model with PAIRS, in one batch; return None if it fails, so that only words count."""
        try:
            vectors = np.asarray(model.embed_chunks([text for pair in PAIRS for text in pair]))
        except Exception as error:
            log.warning("can't measure the model's cosines: %s: %s", type(error).__name__, error)
            return None
        cosines = vectors[::2] @ vectors[1::2].T
        own = np.eye(len(PAIRS), dtype=bool)
        return cls(float(cosines[own].mean()), float(cosines[~own].mean()))

    def scale(self, cosine: float) -> float | None:
        """Return a cosine scaled to 0 for unrelated texts and 1 for an answer; None if the model has no such scale."""
        span = self.related - self.unrelated
        return (cosine - self.unrelated) / span if span >= LEAST_SPAN else None


@dataclass(frozen=True, slots=True)
class Evidence:
    """How well an index of `texts` chunks fits a question of `terms` distinct terms.

    `words` is the best BM25 score, relative to the score of a chunk that has every term once; None if the pages are in
    another language. `cosine` is the nearest chunk's, scaled by the model's yardstick; None without one.
    """

    terms: int
    texts: int
    words: float | None
    cosine: float | None = None
