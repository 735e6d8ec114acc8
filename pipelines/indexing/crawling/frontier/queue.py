"""The queue of URLs to visit: their order, and the budgets of pages and depth.

It keeps both budgets exactly under concurrency. A page is handed out only while all pages in progress still fit. If
depth is limited, a level begins when the level before it is done. If pages are limited, the same site gives the same
pages each time, regardless of which responds first. This module knows no network and no ledger.
"""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import count

# Pages of a crawl without a limit: Ray's documentation has 3,300, a large cloud's 50,000.
DEFAULT_MAX_PAGES = 50_000


@dataclass(frozen=True, slots=True)
class FrontierEntry:
    """A URL to visit; `depth` counts links from a seed, `hops` the redirects that led here from the page `finder`.

    It is visited once, and a second time if an entry has `again`.
    """

    url: str
    depth: int = 0
    hops: int = 0
    finder: str = ""
    again: bool = False

    @property
    def key(self) -> str:
        """The key of the visit; no URL contains a space."""
        return f"{self.url} again" if self.again else self.url


class Frontier:
    """First in, first out; each URL is handed out once, at its least depth if depth is limited.

    Without `max_pages`, DEFAULT_MAX_PAGES is the budget, and slow pages don't delay others.
    """

    def __init__(self, max_pages: int | None = None, max_depth: int | None = None):
        self._max_pages, self._max_depth = max_pages or DEFAULT_MAX_PAGES, max_depth
        self._in_order = max_pages is not None
        # a heap ordered by depth, if that is limited, and arrival
        self._queue: list[tuple[int, int, FrontierEntry]] = []
        self._arrivals = count()
        self._depths: dict[str, int] = {}
        self._in_hand: dict[str, tuple[int, FrontierEntry]] = {}
        self._taken: set[str] = set()
        self._waiting: dict[int, tuple[FrontierEntry, ...]] = {}
        self._next_number = 0
        self._changed = asyncio.Condition()
        self.ok_pages = 0
        self.cut_by_depth = self._stopped = False

    @property
    def exhausted(self) -> bool:
        """Whether the page budget is used up."""
        return self.ok_pages >= self._max_pages

    @property
    def queued(self) -> int:
        """How many URLs wait to be handed out, within the page budget."""
        waiting = len(self._depths) - len(self._taken)
        return max(0, min(waiting, self._max_pages - self.ok_pages - len(self._in_hand)))

    def stop(self) -> None:
        """Hand out no more URLs."""
        self._queue.clear()
        self._stopped = True

    def add(self, entry: FrontierEntry) -> None:
        """Queue a URL unless it is known at this depth or less, or is too deep."""
        if self._stopped or entry.key in self._taken:
            return
        if self._max_depth is not None and entry.depth > self._max_depth:
            self.cut_by_depth |= entry.key not in self._depths
        elif self._depths.get(entry.key, entry.depth + 1) > entry.depth:
            self._depths[entry.key] = entry.depth
            heappush(self._queue, (0 if self._max_depth is None else entry.depth, next(self._arrivals), entry))

    def seen(self, url: str) -> bool:
        """Return whether `url` was handed out, or is queued at depth 0, so that no shorter path exists."""
        return url in self._taken or self._depths.get(url) == 0

    async def take(self) -> FrontierEntry | None:
        """Return the next URL; wait while pages in progress may bring one; None when all are done."""
        async with self._changed:
            while (entry := self._next()) is None:
                if not self._in_hand:
                    return None
                await self._changed.wait()
            self._in_hand[entry.key] = len(self._taken), entry
            self._taken.add(entry.key)
            return entry

    async def done(self, entry: FrontierEntry, ok: bool, found: Iterable[FrontierEntry] = ()) -> None:
        """Mark `entry` as done; `ok` counts against the page budget, and its page led to `found`."""
        async with self._changed:
            number, _ = self._in_hand.pop(entry.key)
            self.ok_pages += ok
            self._add_found(number, tuple(found))
            self._changed.notify_all()

    def _add_found(self, number: int, found: tuple[FrontierEntry, ...]) -> None:
        """Queue the links of the `number`th page; if pages are limited, after the links of all earlier pages."""
        self._waiting[number] = found
        if not self._in_order:
            self._next_number = number
        while self._next_number in self._waiting:
            for entry in self._waiting.pop(self._next_number):
                self.add(entry)
            self._next_number += 1

    def _next(self) -> FrontierEntry | None:
        while self._queue and self._queue[0][-1].key in self._taken:  # handed out at a lesser depth
            heappop(self._queue)
        if not self._queue or self.ok_pages + len(self._in_hand) >= self._max_pages:
            return None
        depth = self._queue[0][0]
        if any(other.depth < depth for _, other in self._in_hand.values()):
            return None
        return heappop(self._queue)[-1]
