"""Embeds by hashing words: no model, no meaning. Only for tests, plumbing and benchmarks."""

import re
import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipelines.embedding.embedder import Embedder
from pipelines.embedding.tokens import ModelNotFound, TokenCounter

HASH_MAX_TOKENS = 256  # the default model's, so that tests without a model see chunks of the usual size


class HashEmbedder(Embedder):
    """Hashes word counts into a short vector.

    `embedded` counts the embedded texts.
    """

    def __init__(self, counter: TokenCounter) -> None:
        super().__init__(counter)
        self.embedded = 0

    def _vectors(self, texts: list[str], prefix: str) -> NDArray[Any]:
        self.embedded += len(texts)
        vectors = np.zeros((len(texts), self.dimension), np.float32)
        for row, text in zip(vectors, texts, strict=True):
            for word in hash_words(prefix + text) or [text]:
                row[zlib.crc32(word.encode()) % self.dimension] += 1
        return vectors


def count_for_hash(model: str) -> TokenCounter:
    """Return the counter of `hash:<dimension>`. Raises ModelNotFound."""
    dimension = model.partition(":")[2]
    if not dimension.isdecimal() or not int(dimension):
        raise ModelNotFound(f"{model} names no dimension: write hash:<dimension>, for example hash:64")
    return TokenCounter(model, model, int(dimension), HASH_MAX_TOKENS, _count_words)


def _count_words(texts: list[str]) -> list[int]:
    return [len(hash_words(text)) for text in texts]


def hash_words(text: str) -> list[str]:
    """Return the words of the `hash:` model: runs of up to 16 letters or digits, and single other characters."""
    return re.findall(r"\w{1,16}|[^\w\s]", text.lower())
