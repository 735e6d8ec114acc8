"""Caches the vectors of questions, so that a repeated report embeds only new questions.

Knows an embedding function; knows no model.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence

import numpy as np

from pipelines.records import EmbeddingModel

# With 384 dimensions they take 30 MB.
MOST_REMEMBERED = 20_000

Embed = Callable[[Sequence[str]], np.ndarray]


class VectorMemory:
    """An LRU cache of vectors by model and text. Thread-safe."""

    def __init__(self, most: int = MOST_REMEMBERED) -> None:
        self._most, self._lock = most, threading.Lock()
        self._vectors: OrderedDict[tuple[EmbeddingModel, str], np.ndarray] = OrderedDict()

    def embed(self, model: EmbeddingModel, texts: Sequence[str], embed: Embed) -> np.ndarray:
        """Return one row for each of `texts`, which must not be empty; call `embed` for texts that are not cached."""
        with self._lock:
            known = {text: self._vectors[model, text] for text in texts if (model, text) in self._vectors}
        new = list(dict.fromkeys(text for text in texts if text not in known))
        if new:
            known |= dict(zip(new, embed(new), strict=True))
        with self._lock:
            for text in texts:
                self._vectors[model, text] = known[text]
                self._vectors.move_to_end((model, text))
            while len(self._vectors) > self._most:
                self._vectors.popitem(last=False)
        return np.stack([known[text] for text in texts])


class RememberingEmbedder:
    """Embeds with `embed`, using the vectors of `model` in `memory`."""

    def __init__(self, model: EmbeddingModel, embed: Embed, memory: VectorMemory) -> None:
        self._model, self._embed, self._memory = model, embed, memory

    def embed_chunks(self, texts: Sequence[str]) -> np.ndarray:
        return self._memory.embed(self._model, texts, self._embed)
