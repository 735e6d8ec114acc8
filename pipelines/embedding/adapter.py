"""Applies a trained linear map to the vectors of questions.

The stored vectors stay unchanged. Reads a trained folder with only numpy. Does not know how the map was trained or its
scores, only whether its card accepts it.
"""

import zipfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pipelines.embedding.embedder import Embedder, EmbeddingFailed
from pipelines.files.model_cards import BadCard, read_card
from pipelines.text.counts import counted

WEIGHTS_FILE = "adapter.npz"
KIND = "query-adapter"

Matrix = NDArray[np.float32]


class NotAnAdapter(ValueError):
    """A folder has no query adapter, or one that must not be used."""

    def __init__(self, folder: Path, problem: str) -> None:
        super().__init__(f"{folder}: {problem}. Train it with `raydex train adapter`, or unset retrieval.query_adapter")


class AdapterMismatch(ValueError):
    """An adapter was trained for the vectors of another model."""


class QueryAdapter:
    """A map of one embedding model's question vectors: rows times `matrix`, of shape (dimension, dimension).

    It helps if readers use words that the documentation lacks and the search uses only vectors. Within the complete
    retrieval on the Ray documentation it gained nothing. `identity` names the vectors it was trained on, as
    TokenCounter.identity does.
    """

    def __init__(self, matrix: Matrix, identity: str) -> None:
        self.matrix = np.ascontiguousarray(matrix, np.float32)
        self.identity = identity
        self.dimension = len(matrix)

    def __call__(self, vectors: Matrix) -> Matrix:
        """Return `vectors`, (dimension,) or (n, dimension), mapped and normalized. Raises EmbeddingFailed."""
        mapped = vectors @ self.matrix
        lengths = np.linalg.norm(mapped, axis=-1, keepdims=True)
        if not (np.isfinite(lengths) & (lengths > 0)).all():
            raise EmbeddingFailed("the query adapter maps a question to a zero or infinite vector: train it again")
        return np.asarray(mapped / lengths, np.float32)

    def save(self, folder: Path) -> None:
        """Write the weights; the folder can be loaded once it also has a card."""
        np.savez(folder / WEIGHTS_FILE, matrix=self.matrix)

    @classmethod
    def load(cls, folder: Path) -> "QueryAdapter":
        """Return the adapter in a trained folder. Raises NotAnAdapter, also for one that was not accepted."""
        base = _read_base(folder)
        matrix = _read_matrix(folder)
        if matrix.shape != (base.get("dimension"),) * 2 or not np.isfinite(matrix).all():
            raise NotAnAdapter(folder, f"weights of shape {matrix.shape} do not fit the card, or are not finite")
        return cls(matrix, str(base.get("identity")))


class AdaptedEmbedder:
    """An embedder that applies an adapter to questions but not to chunks. Raises AdapterMismatch."""

    def __init__(self, embedder: Embedder, adapter: QueryAdapter) -> None:
        identity = embedder.counter.identity
        if identity != adapter.identity or embedder.dimension not in (0, adapter.dimension):
            raise AdapterMismatch(
                f"the query adapter was trained for {counted(adapter.dimension, 'dimension')} of "
                f"{adapter.identity!r}, the index has {embedder.dimension} of {identity!r}: train one for this index, "
                "or unset retrieval.query_adapter"
            )
        self._embedder, self._adapter = embedder, adapter

    def embed_query(self, text: str) -> Matrix:
        """Return the adapted vector of a question, (dimension,). Raises EmbeddingFailed."""
        return self._adapter(self._embedder.embed_query(text))

    def embed_chunks(self, texts: Sequence[str]) -> Matrix:
        """Return the vectors of chunks, without the adapter."""
        return self._embedder.embed_chunks(texts)


def _read_base(folder: Path) -> dict[str, object]:
    """Return the card's entry for the model whose vectors the adapter maps. Raises NotAnAdapter."""
    try:
        card = read_card(folder, KIND)
    except BadCard as error:
        raise NotAnAdapter(folder, str(error)) from error
    if card.get("accepted") is not True:
        raise NotAnAdapter(folder, "it had no certain gain on held-out questions and was not accepted")
    if not isinstance(card.get("base"), dict):
        raise NotAnAdapter(folder, f"its card names no base model (base is {card.get('base')!r})")
    return dict(card["base"])


def _read_matrix(folder: Path) -> Matrix:
    try:
        with np.load(folder / WEIGHTS_FILE, allow_pickle=False) as file:
            return np.asarray(file["matrix"], np.float32)
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        raise NotAnAdapter(folder, f"{WEIGHTS_FILE} cannot be read ({type(error).__name__}: {error})") from error
