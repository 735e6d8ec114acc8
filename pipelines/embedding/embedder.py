"""The interface of every embedder, for any model and engine.

Chunks and queries have separate methods because models want different prefixes. Knows no engine, page, database or Ray.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipelines.embedding.tokens import TokenCounter
from pipelines.text.cleaning import clean_for_tokenizer
from pipelines.text.counts import counted

Vectors = NDArray[np.float32]


class EmbeddingFailed(RuntimeError):
    """The model returned no usable vector for a text."""


class Embedder(ABC):
    """Turns texts into float32 vectors of length 1.

    Only the beginning of a text longer than the counter's `max_tokens` is read; the chunker makes no chunks that long.
    """

    def __init__(self, counter: TokenCounter) -> None:
        self.counter = counter
        self.model = counter.model
        self.dimension = counter.dimension

    def embed_chunks(self, texts: Sequence[str]) -> Vectors:
        """Return one row per text, in order. Pass large lists: they are sorted by length and batched.

        Raises EmbeddingFailed.
        """
        if not texts:
            return np.zeros((0, self.dimension), np.float32)
        texts = [clean_for_tokenizer(text) for text in texts]
        return normalised(self._vectors(texts, self.counter.chunk_prefix), texts, self.dimension)

    def embed_query(self, text: str) -> Vectors:
        """Return the vector of a question, (dimension,). Raises EmbeddingFailed."""
        texts = [clean_for_tokenizer(text)]
        return normalised(self._vectors(texts, self.counter.query_prefix), texts, self.dimension)[0]

    @abstractmethod
    def _vectors(self, texts: list[str], prefix: str) -> NDArray[Any]:
        """Return one vector per text, of any length, computed with `prefix` before the text."""


def normalised(vectors: NDArray[Any], texts: list[str], dimension: int) -> Vectors:
    """Return `vectors` with length 1. Raises EmbeddingFailed for a wrong shape, zero, infinity or NaN."""
    vectors = np.ascontiguousarray(vectors, np.float32)
    if vectors.shape != (len(texts), dimension):
        raise EmbeddingFailed(
            f"the model gave vectors of shape {vectors.shape}, expected {(len(texts), dimension)}: "
            "an index keeps one model and dimension; index again with the right model (`raydex index --model …`)"
        )
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    bad = np.flatnonzero(~(np.isfinite(norms) & (norms > 0)))
    if len(bad):
        raise EmbeddingFailed(
            f"the model gave a vector of length {norms[bad[0], 0]} for {counted(len(bad), 'text')}, the first "
            f"beginning {texts[bad[0]][:80]!r}: try float32 (device='cpu') or another model"
        )
    return np.ascontiguousarray(vectors / norms)
