"""Turns texts into vectors, with any model and engine behind one Embedder.

Chunks and queries are two methods because models want different prefixes. Knows nothing of pages, databases or Ray;
heavy libraries are imported by the one class that needs them.
"""

import warnings
import zlib
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from pipelines.embedding.cpu import multiplies_int8
from pipelines.embedding.tokens import INT8, TokenCounter, hash_words, load_tokenizer
from pipelines.text.cleaning import clean_for_tokenizer

Vectors = NDArray[np.float32]
Backend = Literal["auto", "torch", "onnx"]

# Texts in a batch. CPU: 16 and 32 are equally fast, 8 and 100 slower (Ray docs, 2 threads). GPU: not tuned.
CPU_BATCH = 32
GPU_BATCH = 256


class EmbeddingFailed(RuntimeError):
    """The model returned no usable vector for a text."""


class UnknownBackend(ValueError):
    """There is no backend of that name."""


class Embedder(ABC):
    """Turns texts into float32 vectors of length 1.

    Of a text longer than `max_tokens` only the beginning is read (`are_too_long` names them); the chunker makes no such
    chunk.
    """

    def __init__(self, counter: TokenCounter) -> None:
        self.counter = counter
        self.model = counter.model
        self.dimension = counter.dimension
        self.max_tokens = counter.max_tokens
        self.chunk_prefix = counter.chunk_prefix

    def embed_chunks(self, texts: Sequence[str]) -> Vectors:
        """Return one row for each text, in order. Pass large lists: they are sorted by length and batched.

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

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Return the tokens in each text, as TokenCounter.count_tokens does."""
        return self.counter.count_tokens(texts)

    def are_too_long(self, texts: Sequence[str]) -> list[bool]:
        """Return for each chunk's text whether only its beginning is read."""
        return [count > self.max_tokens for count in self.count_tokens(texts)]

    @abstractmethod
    def _vectors(self, texts: list[str], prefix: str) -> NDArray[Any]:
        """Return one vector of any length for each text, read after `prefix`."""


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
            f"the model gave a vector of length {norms[bad[0], 0]} for {len(bad)} texts, the first beginning "
            f"{texts[bad[0]][:80]!r}: try float32 (device='cpu') or another model"
        )
    return np.ascontiguousarray(vectors / norms)


class TorchEmbedder(Embedder):
    """sentence-transformers on torch, fp16 on a GPU. `threads` sets torch's threads in the whole process."""

    def __init__(self, counter: TokenCounter, device: str, threads: int | None, batch_size: int | None) -> None:
        super().__init__(counter)
        import torch
        from sentence_transformers import SentenceTransformer

        self.device = available_device(device, torch.cuda.is_available())
        if threads:
            torch.set_num_threads(threads)
        self._batch_size = batch_size or (GPU_BATCH if self.device.startswith("cuda") else CPU_BATCH)
        self._encoder = SentenceTransformer(str(counter.folder), device=self.device, local_files_only=True)
        self._encoder.max_seq_length = counter.max_tokens
        if self.device.startswith("cuda"):
            self._encoder.half()

    def _vectors(self, texts: list[str], prefix: str) -> NDArray[Any]:
        return self._encoder.encode(
            texts,
            prompt=prefix,
            batch_size=self._batch_size,
            show_progress_bar=False,
            convert_to_numpy=True,
        )


def available_device(device: str, cuda: bool) -> str:
    """Return the device to use: "auto" takes a GPU if there is one; a GPU that torch can't use becomes "cpu"."""
    if device == "auto":
        return "cuda" if cuda else "cpu"
    if device.startswith("cuda") and not cuda:
        warnings.warn(
            f"device is {device!r}, but torch sees no CUDA: embedding on the CPU instead. "
            "Install a CUDA build of torch and check `nvidia-smi`, or set the device to cpu.",
            RuntimeWarning,
            stacklevel=2,
        )
        return "cpu"
    return device


class HashEmbedder(Embedder):
    """Hashes word counts into a short vector: no model, no meaning. For tests, plumbing and benchmarks only.

    `embedded` counts the texts that it has embedded.
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


def load_embedder(
    model: str,
    *,
    device: str = "auto",
    backend: Backend = "auto",
    threads: int | None = None,
    batch_size: int | None = None,
    base_url: str | None = None,
    api_key: str | None = None,
    cache: Path | None = None,
) -> Embedder:
    """Return the embedder of `model`, named as load_tokenizer takes it.

    An `int8:` model runs in int8 on ONNX Runtime where the CPU has VNNI, else in the precision of its engine: a cosine
    of 0.999 apart. `device` is "auto", "cpu" or "cuda[:n]"; `threads` and `batch_size` None take the engine's
    defaults; `base_url` and `api_key` are for `openai:` models. `cache` is the folder of exported ONNX models: with it,
    and device "cpu", the backend "auto" takes ONNX Runtime. Raises ModelNotFound, ModelUnsupported, UnknownBackend.
    """
    if backend not in ("auto", "torch", "onnx"):
        raise UnknownBackend(f"backend is {backend!r}: choose auto, torch or onnx")
    counter = load_tokenizer(model)
    if model.startswith("hash:"):
        return HashEmbedder(counter)
    if model.startswith("openai:"):
        from pipelines.embedding.openai import OpenAIEmbedder

        return OpenAIEmbedder(counter, base_url, api_key, batch_size)
    if backend == "onnx" or (backend == "auto" and cache and device == "cpu"):
        onnx = _load_onnx(counter, backend, cache, threads, batch_size)
        if onnx:
            return onnx
    return TorchEmbedder(counter, device, threads, batch_size)


def runs_int8(model: str) -> bool:
    """Return whether `model`, on this machine's CPUs, runs in int8."""
    return model.startswith(INT8) and multiplies_int8()


def _load_onnx(
    counter: TokenCounter, backend: str, cache: Path | None, threads: int | None, batch_size: int | None
) -> Embedder | None:
    """Return None if the export fails and "auto" may fall back to torch."""
    from pipelines.embedding.onnx import ExportFailed, OnnxEmbedder

    if cache is None:
        raise UnknownBackend(f"backend {backend!r} needs a folder for the exported model: pass cache=")
    for int8 in (True, False) if runs_int8(counter.model) else (False,):
        try:
            return OnnxEmbedder(counter, cache, threads, batch_size, int8)
        except ExportFailed as error:
            if backend != "auto":
                raise
            warnings.warn(f"embedding slower on a CPU: {error}", RuntimeWarning, stacklevel=2)
    return None
