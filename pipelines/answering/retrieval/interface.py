"""Defines the retriever interface for the engine, and waits until a retriever has loaded a collection."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np

from pipelines.answering.retrieval.search import Retrieval, Search
from pipelines.llm.session import LOADING, Status
from pipelines.records import Index
from pipelines.store import Place

WORTH_SAYING_S = 0.5  # a shorter wait sends no event

Matrix = np.ndarray[tuple[int, ...], np.dtype[np.float32]]


class AsyncRetriever(Protocol):
    """A retriever, in this process or elsewhere."""

    def has_loaded(self, collection: str | None = None) -> bool: ...

    async def aload(self, collection: str | None = None) -> None: ...

    async def aretrieve(self, search: Search) -> Retrieval: ...

    async def aplace(self, url: str, collection: str | None = None) -> Place | None: ...

    async def aready(self, collection: str | None = None) -> Index: ...

    async def aembed(self, texts: Sequence[str], collection: str | None = None) -> Matrix: ...


async def load(retriever: AsyncRetriever, collection: str | None, tell: Callable[[Status], None]) -> None:
    """Wait until `collection` is loaded; call `tell` if that takes long. Raises the errors of `aload`."""
    if retriever.has_loaded(collection):
        return
    loading = asyncio.ensure_future(retriever.aload(collection))
    try:
        done, _ = await asyncio.wait([loading], timeout=WORTH_SAYING_S)
        if not done:
            tell(Status(LOADING))
        await loading
    finally:
        loading.cancel()
