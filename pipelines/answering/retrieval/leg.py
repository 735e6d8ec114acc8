"""Defines the interface of custom legs: anything that finds hits for a query."""

from collections.abc import Awaitable, Sequence
from typing import Protocol, runtime_checkable

from pipelines.records import Hit


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
