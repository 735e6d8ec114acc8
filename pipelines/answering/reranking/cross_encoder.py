"""Reranks hits with a cross-encoder, a small model that reads question and passage together.

This module doesn't know how hits are found or how many are kept.
"""

import asyncio
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipelines.answering.reranking.base import DEVICE, RerankFailed, by_score, document
from pipelines.files.model_cards import may_be_used
from pipelines.records import Hit
from pipelines.text.cleaning import clean_for_tokenizer
from pipelines.text.counts import counted

# BERT-like cross-encoders read 512 tokens of question and passage together; chunks have about that size.
MAX_LENGTH = 512
BATCH = 32
CHARACTERS = 16  # the most per token; text beyond the limit would be tokenized only to be cut off


class CrossEncoderReranker:
    """A sentence_transformers.CrossEncoder (Reimers, Gurevych 2019) with one score, from a folder or hub name.

    Pairs are cut to `max_length` tokens, the longer part first. Raises RerankFailed if the model can't be loaded.
    """

    name = "cross-encoder"

    def __init__(
        self, model: str, *, device: str = DEVICE, max_length: int = MAX_LENGTH, batch_size: int = BATCH
    ) -> None:
        self.model, self.batch_size = model, batch_size
        self._encoder = _load_cross_encoder(model, device, max_length)
        self._lock = threading.Lock()  # a model is not re-entrant
        # A separate thread, so that questions waiting for the model don't block the event loop's threads.
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="cross-encoder")

    def score(self, pairs: Sequence[tuple[str, str]]) -> NDArray[np.float32]:
        """Return one relevance score per (question, passage), float32; questions may be mixed."""
        if not pairs:
            return np.empty(0, np.float32)
        longest = CHARACTERS * self._encoder.max_seq_length
        texts = [[clean_for_tokenizer(text[:longest]) for text in pair] for pair in pairs]
        with self._lock:
            scores = self._encoder.predict(texts, batch_size=self.batch_size, show_progress_bar=False)
        return np.asarray(scores, np.float32)

    def pairs(self, question: str, hits: Sequence[Hit]) -> list[tuple[str, str]]:
        """Return the pairs of `question` and `hits` for `score`."""
        return [(question, document(hit)) for hit in hits]

    async def rerank(self, question: str, hits: Sequence[Hit]) -> tuple[Hit, ...]:
        """Return all hits ordered by the model's score. Raises RerankFailed."""
        loop = asyncio.get_running_loop()
        try:
            scores = await loop.run_in_executor(self._thread, self.score, self.pairs(question, hits))
        except RuntimeError as error:  # from torch, such as out of memory
            raise RerankFailed(
                f"the cross-encoder {self.model} failed on {counted(len(hits), 'passage')}: {error}"
            ) from error
        return by_score(hits, scores.tolist(), self.name)


def _load_cross_encoder(model: str, device: str, max_length: int) -> Any:
    from sentence_transformers import CrossEncoder

    if not may_be_used(Path(model)):
        raise RerankFailed(f"the cross-encoder in {model} was not accepted in training: see its card")
    try:
        encoder = CrossEncoder(model, device=device)
    except Exception as error:  # the library may raise anything: OSError, ValueError, KeyError …
        raise RerankFailed(
            f"{model!r} does not load as a cross-encoder: give a folder or a model's name on the hub "
            f"({type(error).__name__}: {error})"
        ) from error
    if encoder.num_labels != 1:
        raise RerankFailed(f"{model!r} gives {counted(encoder.num_labels, 'score')} for a pair; a reranker gives one")
    bare = [name for name in getattr(encoder.config, "architectures", None) or () if name.endswith("Model")]
    if bare:  # the library would put a random head on it
        raise RerankFailed(f"{model!r} is not a cross-encoder but a bare {bare[0]}, as embedding models are")
    encoder.max_seq_length = min(max_length, encoder.max_seq_length or max_length)
    return encoder
