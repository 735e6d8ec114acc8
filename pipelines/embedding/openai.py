"""Embeds with an OpenAI-compatible endpoint (OpenAI, vLLM, Ollama and others).

Knows only the protocol and its limits.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipelines import tracing
from pipelines.embedding.embedder import Embedder, EmbeddingFailed
from pipelines.embedding.families import family_of
from pipelines.embedding.tokens import ModelNotFound, TokenCounter
from pipelines.proxies import direct_mounts
from pipelines.text.cleaning import clean_for_tokenizer
from pipelines.text.counts import counted
from pipelines.text.phrases import read_table
from pipelines.text.server_errors import message_of

# OpenAI refuses requests of more than 2,048 inputs or 300,000 tokens (embeddings API reference). Fewer inputs keep a
# response at about 10 MB. The token budget counts bytes, because a token has at least one byte.
BATCH = 256
BATCH_TOKENS = 300_000
DIMENSIONS: dict[str, str] = read_table(__name__)["dimensions"]
OPENAI_MAX_TOKENS = 8191  # per input, OpenAI's embeddings guide
# Statuses of servers that refuse too many inputs or tokens in a request: text-embeddings-inference accepts 32 inputs,
# Cohere 96, Azure 2,048, and each words its refusal differently.
TOO_MUCH = (400, 413, 422)
TIMEOUT_S = 60.0
RETRIES = 6  # the client waits 0.5 to 8 s between them, or as long as Retry-After says


def count_for_openai(model: str) -> TokenCounter:
    """Return the counter of `openai:<model>`. Raises ModelNotFound."""
    name = model.partition(":")[2]
    if not name:
        raise ModelNotFound(f"{model} names no model: write openai:<model>, for example openai:text-embedding-3-small")
    limit = family_of(model).tokens or OPENAI_MAX_TOKENS
    return TokenCounter(model, model, int(DIMENSIONS.get(name, 0)), limit, count_bytes)


def count_bytes(texts: list[str]) -> list[int]:
    """Return UTF-8 bytes + 2, an upper bound of the tokens of every tokenizer in use."""
    return [len(clean_for_tokenizer(text).encode()) + 2 for text in texts]


class EmbeddingKeyMissing(EmbeddingFailed, ValueError):
    """The endpoint needs an API key, and none is set."""


class OpenAIEmbedder(Embedder):
    """A model behind `base_url` (None: OpenAI's). An unknown dimension is found by embedding one word.

    Connection errors, 408, 409, 429 and 5xx are retried with backoff. A refused batch is sent in halves, and later
    batches are no larger. Raises EmbeddingFailed.
    """

    def __init__(
        self, counter: TokenCounter, base_url: str | None, api_key: str | None, retries: int = RETRIES
    ) -> None:
        super().__init__(counter)
        from openai import DefaultHttpxClient, OpenAI

        # A local server often needs no key, but the client requires one.
        key = api_key or ("none" if base_url else None)
        if key is None:
            raise EmbeddingKeyMissing(
                f"{counter.model} needs an API key: set OPENAI_API_KEY, or OPENAI_BASE_URL if your server needs none"
            )
        http = DefaultHttpxClient(mounts=direct_mounts(base_url or ""))
        self._client = OpenAI(base_url=base_url, api_key=key, timeout=TIMEOUT_S, max_retries=retries, http_client=http)
        self._name, self._batch = counter.model.partition(":")[2], BATCH
        self.dimension = self.dimension or self._request(["dimension"]).shape[1]

    def _vectors(self, texts: list[str], prefix: str) -> NDArray[Any]:
        texts = [prefix + text for text in texts]
        return np.concatenate([self._request(texts[start:end]) for start, end in self._batches(texts)])

    def _batches(self, texts: list[str]) -> Iterator[tuple[int, int]]:
        """Yield the bounds of batches within both limits, with at least one text each."""
        start = tokens = 0
        for place, count in enumerate(self.counter.count(texts)):
            if place > start and (place - start >= self._batch or tokens + count > BATCH_TOKENS):
                yield start, place
                start, tokens = place, 0
            tokens += count
        yield start, len(texts)

    def _request(self, texts: list[str]) -> NDArray[Any]:
        """Return the vectors of `texts`; if the server refuses the request, send one half and then the other."""
        from openai import OpenAIError

        sent = tracing.GEN_AI | {"gen_ai.operation.name": "embeddings", "gen_ai.request.model": self._name}
        try:
            with tracing.span(f"embeddings {self._name}", sent, kind="CLIENT"):
                answer = self._client.embeddings.create(
                    model=self._name, input=texts, encoding_format="float", extra_headers=tracing.headers()
                )
        except (OpenAIError, ValueError) as error:  # ValueError is raised for a reply that is not JSON
            if getattr(error, "status_code", 0) in TOO_MUCH and len(texts) > 1:
                self._batch = half = len(texts) // 2
                return np.concatenate([self._request(texts[:half]), self._request(texts[half:])])
            raise self._failed(texts, f"{type(error).__name__}: {message_of(error)}") from error
        data = getattr(answer, "data", None)
        rows = data if isinstance(data, list) else []
        by_place = {getattr(row, "index", None): getattr(row, "embedding", None) for row in rows}
        vectors: list[Any] = [by_place.get(place) for place in range(len(texts))]
        whole = len(rows) == len(texts) and all(isinstance(vector, list) for vector in vectors)
        if not whole or len({len(vector) for vector in vectors}) != 1:
            why = f"vectors are missing, doubled or of unequal length: it sent {str(answer)[:200]!r}"
            raise self._failed(texts, f"{why}; check that {self._name} is served with OpenAI's embeddings protocol")
        return np.array(vectors, np.float32)

    def _failed(self, texts: list[str], why: str) -> EmbeddingFailed:
        return EmbeddingFailed(
            f"{self._client.base_url} returned no embeddings for {counted(len(texts), 'text')}, the first beginning "
            f"{texts[0][:80]!r}: {why}"
        )
