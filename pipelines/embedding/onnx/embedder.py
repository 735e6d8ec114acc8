"""Embeds with ONNX Runtime: same vectors as torch, faster on a CPU, and without importing torch.

The model is exported once into a cache folder (export.py). Knows no GPU and no endpoint.
"""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipelines.embedding.cpu import count_cpus
from pipelines.embedding.embedder import Embedder, Vectors, normalised
from pipelines.embedding.onnx.export import open_export, open_session
from pipelines.embedding.onnx.question_sessions import WIDEST, QuestionSessions
from pipelines.embedding.tokens import TokenCounter, untruncated_tokenizer
from pipelines.text.cleaning import clean_for_tokenizer

# Tokens in a batch, padding included. A longer text forms its own batch, so its activations (166 tokens: 1 MB) stay in
# a core's cache. In batches of 16 a chunk costs 53 ms of CPU, by itself 35 (Ray docs, fp32, two threads).
BATCH_TOKENS = 256


class OnnxEmbedder(Embedder):
    """A sentence-transformers model on ONNX Runtime. `cache` is the folder of exported models.

    Embeds `threads` batches at once, each on one thread (None: as many as CPUs), because threads that share a batch
    wait for each other at every matrix product. `int8` uses quantized products (see int8.py). Raises ExportFailed.
    """

    def __init__(self, counter: TokenCounter, cache: Path, threads: int | None, int8: bool = False) -> None:
        super().__init__(counter)
        assert counter.folder is not None
        path, self._session = open_export(counter, cache, int8)
        # In int8 a question takes 2.5 ms on one thread and 3.5 on two, which spend most time waiting for each other.
        wide = 1 if int8 else min(threads or count_cpus(), WIDEST)
        self._questions = QuestionSessions(self._session, (lambda: open_session(path, wide)) if wide > 1 else None)
        self._tokenizer = untruncated_tokenizer(counter.folder)
        self._tokenizer.enable_truncation(counter.max_tokens)
        self._threads = ThreadPoolExecutor(threads or count_cpus(), "raydex-embed")

    def embed_query(self, text: str) -> Vectors:
        """Return the vector of a question, (dimension,). Raises EmbeddingFailed."""
        texts = [clean_for_tokenizer(text)]
        ids = self._encode(texts, self.counter.query_prefix)
        with self._questions.take() as session:
            return normalised(self._run(ids, session), texts, self.dimension)[0]

    def _encode(self, texts: list[str], prefix: str) -> list[list[int]]:
        encodings = self._tokenizer.encode_batch_fast([prefix + text for text in texts])
        return [encoding.ids for encoding in encodings]

    def _vectors(self, texts: list[str], prefix: str) -> NDArray[Any]:
        ids = self._encode(texts, prefix)
        batches = list(batch_by_tokens([len(line) for line in ids], BATCH_TOKENS))
        run = self._threads.map if len(batches) > 1 else map
        vectors = np.empty((len(ids), self.dimension), np.float32)
        for places, rows in zip(batches, run(lambda batch: self._run([ids[n] for n in batch]), batches), strict=True):
            vectors[places] = rows
        return vectors

    def _run(self, ids: list[list[int]], session: Any = None) -> NDArray[Any]:
        """Return the vectors of a batch; padding is masked, so its tokens do not matter."""
        padded = np.zeros((len(ids), max(map(len, ids))), np.int64)
        mask = np.zeros_like(padded)
        for row, line in enumerate(ids):
            padded[row, : len(line)] = line
            mask[row, : len(line)] = 1
        return (session or self._session).run(None, {"input_ids": padded, "attention_mask": mask})[0]


def batch_by_tokens(lengths: Sequence[int], tokens: int) -> Iterator[list[int]]:
    """Yield the indices of texts in batches, the longest first, so that no thread finishes with a long one.

    A batch has at most `tokens`, including padding to its longest text, but always at least one text.
    """
    batch: list[int] = []
    for place in sorted(range(len(lengths)), key=lambda place: -lengths[place]):
        if batch and (len(batch) + 1) * lengths[batch[0]] > tokens:
            yield batch
            batch = []
        batch.append(place)
    if batch:
        yield batch
