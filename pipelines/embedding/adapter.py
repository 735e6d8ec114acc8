"""A linear map on the question's side: what was learned from questions, without touching a single stored vector.

Reads a trained folder and applies it; numpy alone. Knows neither how it was trained nor what was measured, only
whether its card says that it was accepted.
"""

import json
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipelines.embedding.embedder import Embedder, EmbeddingFailed

WEIGHTS_FILE, CARD_FILE = "adapter.npz", "card.json"
KIND, VERSION = "query-adapter", 1

Matrix = NDArray[np.float32]


class NotAnAdapter(ValueError):
    """A folder that holds no query adapter, or one that must not be used."""

    def __init__(self, folder: Path, wrong: str) -> None:
        super().__init__(
            f"{folder}: {wrong}. Train it with «python -m jobs.train_adapter», or leave query_adapter empty"
        )


class AdapterMismatch(ValueError):
    """An adapter was trained for the vectors of another model."""


class QueryAdapter:
    """The map of one embedding model's question vectors: `matrix` of shape (dimension, dimension), rows times matrix.

    `identity` names the vectors it was trained on, as TokenCounter.identity does.
    """

    def __init__(self, matrix: Matrix, identity: str) -> None:
        self.matrix = np.ascontiguousarray(matrix, np.float32)
        self.identity = identity
        self.dimension = len(matrix)

    def __call__(self, vectors: Matrix) -> Matrix:
        """`vectors`, (dimension,) or (n, dimension), mapped and of length 1. Raises EmbeddingFailed."""
        mapped = vectors @ self.matrix
        lengths = np.linalg.norm(mapped, axis=-1, keepdims=True)
        if not (np.isfinite(lengths) & (lengths > 0)).all():
            raise EmbeddingFailed("the query adapter maps a question to nothing: train it again")
        return np.asarray(mapped / lengths, np.float32)

    def save(self, folder: Path) -> None:
        """Write the weights. The folder is an adapter only once its card stands beside them."""
        np.savez(folder / WEIGHTS_FILE, matrix=self.matrix)

    @classmethod
    def load(cls, folder: Path) -> "QueryAdapter":
        """The adapter of a folder that training wrote. Raises NotAnAdapter, also for one that was not accepted."""
        card = _card(folder)
        matrix = _matrix(folder)
        base = card["base"]
        if matrix.shape != (base.get("dimension"),) * 2 or not np.isfinite(matrix).all():
            raise NotAnAdapter(folder, f"weights of shape {matrix.shape} do not fit the card, or are not finite")
        return cls(matrix, str(base.get("identity")))


class AdaptedEmbedder:
    """An embedder whose questions go through an adapter; chunks do not. Raises AdapterMismatch."""

    def __init__(self, embedder: Embedder, adapter: QueryAdapter) -> None:
        identity = embedder.counter.identity
        if identity != adapter.identity or embedder.dimension not in (0, adapter.dimension):
            raise AdapterMismatch(
                f"the query adapter was trained for {adapter.dimension} dimensions of {adapter.identity!r}, the index "
                f"has {embedder.dimension} of {identity!r}: train one for this index, or leave query_adapter empty"
            )
        self._embedder, self._adapter = embedder, adapter

    def embed_query(self, text: str) -> Matrix:
        """The adapted vector of a question, (dimension,). Raises EmbeddingFailed."""
        return self._adapter(self._embedder.embed_query(text))

    def embed_chunks(self, texts: Sequence[str]) -> Matrix:
        """As the embedder's own."""
        return self._embedder.embed_chunks(texts)


def _card(folder: Path) -> dict[str, Any]:
    try:
        card = json.loads((folder / CARD_FILE).read_text("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise NotAnAdapter(folder, f"{CARD_FILE} cannot be read ({error})") from error
    if not isinstance(card, dict) or card.get("kind") != KIND or not isinstance(card.get("base"), dict):
        raise NotAnAdapter(folder, f"{CARD_FILE} is not that of a query adapter")
    if card.get("version") != VERSION:
        raise NotAnAdapter(folder, f"it was saved in version {card.get('version')!r}; this program reads {VERSION}")
    if card.get("accepted") is not True:
        raise NotAnAdapter(folder, "it brought no certain gain on held-out questions and was not accepted")
    return card


def _matrix(folder: Path) -> Matrix:
    try:
        with np.load(folder / WEIGHTS_FILE, allow_pickle=False) as file:
            return np.asarray(file["matrix"], np.float32)
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        raise NotAnAdapter(folder, f"{WEIGHTS_FILE} cannot be read ({type(error).__name__}: {error})") from error
