"""A leg of your own: anything that finds hits for a query."""

from collections.abc import Awaitable, Sequence
from typing import Protocol, runtime_checkable

from pipelines.records import Hit


@runtime_checkable
class Leg(Protocol):
    """Finds hits for a query: a search engine, a database, a file. `FusionRetriever` joins what several find.

    `name` stands in the ranks and scores of hits, `weight` is that of its list in the fusion.
    """

    name: str
    weight: float

    def search(self, query: str, k: int) -> Sequence[Hit] | Awaitable[Sequence[Hit]]:
        """Return at most `k` hits, best first, each with a score; higher is better.

        It is called in a thread unless it is a coroutine function; an awaitable that it returns is awaited. If it
        raises, the question is answered without it.
        """
        ...
