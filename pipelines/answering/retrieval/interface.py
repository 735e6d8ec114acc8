"""Defines the interfaces of retrievers and legs, and waits until a collection is loaded."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol, runtime_checkable

import numpy as np

from pipelines.answering.retrieval.search import Retrieval, Search
from pipelines.llm.session import LOADING, Status
from pipelines.records import Hit, Index
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


@runtime_checkable
class Leg(Protocol):
    """Finds hits for a query: a search engine, a database, a file. `FusionRetriever` merges several legs.

    `name` is the key in the ranks and scores of hits; `weight` is the weight of the leg's list in the fusion.
    """

    name: str
    weight: float

    def search(self, query: str, k: int) -> Sequence[Hit] | Awaitable[Sequence[Hit]]:
        """Return at most `k` hits, best first, each with a score; higher is better.

        A plain function is called in a thread, a coroutine function in the event loop; a returned awaitable is awaited.
        If it raises, the question is answered without this leg.
        """
        ...


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
