"""What is still to be visited, in which order, and when it is enough.

Holds both budgets exactly under concurrency: a page is handed out only while all in hand still fit, and
where depth is bounded a level begins when the one before it is done. Knows no network and no ledger.
"""

import asyncio
from collections import deque
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Entry:
    """A URL to visit: its links from a seed, and how many redirects led here."""

    url: str
    depth: int = 0
    hops: int = 0


class Frontier:
    """Breadth first; each URL is handed out once, at the least depth known by then."""

    def __init__(self, max_pages: int | None = None, max_depth: int | None = None):
        self._max_pages, self._max_depth = max_pages, max_depth
        self._levels: dict[int, deque[Entry]] = {}
        self._depths: dict[str, int] = {}
        self._taken: set[str] = set()
        self._in_hand: dict[str, int] = {}
        self._changed = asyncio.Condition()
        self.ok_pages = 0
        self.cut_by_depth = self._stopped = False

    @property
    def exhausted(self) -> bool:
        """Whether the page budget is spent."""
        return self._max_pages is not None and self.ok_pages >= self._max_pages

    def stop(self) -> None:
        """Hand out nothing more."""
        self._levels.clear()
        self._stopped = True

    def seen(self, url: str) -> bool:
        return url in self._depths

    def add(self, entry: Entry) -> None:
        """Queue a URL unless it is known at this depth or less, or lies too deep."""
        if self._stopped or entry.url in self._taken or self._depths.get(entry.url, entry.depth + 1) <= entry.depth:
            return
        if self._max_depth is not None and entry.depth > self._max_depth:
            self.cut_by_depth = True
            return
        self._depths[entry.url] = entry.depth
        self._levels.setdefault(entry.depth, deque()).append(entry)

    async def take(self) -> Entry | None:
        """The next URL, waiting for one if pages in hand may still bring some; None when all is done."""
        async with self._changed:
            while True:
                entry = self._next()
                if entry is not None:
                    self._taken.add(entry.url)
                    self._in_hand[entry.url] = entry.depth
                    return entry
                if not self._in_hand:
                    return None
                await self._changed.wait()

    async def done(self, entry: Entry, ok: bool) -> None:
        """The page of `entry` is decided and its links are added."""
        async with self._changed:
            del self._in_hand[entry.url]
            self.ok_pages += ok
            self._changed.notify_all()

    def _next(self) -> Entry | None:
        if self._max_pages is not None and self.ok_pages + len(self._in_hand) >= self._max_pages:
            return None
        depth = self._lowest_level()
        if depth is None or (self._max_depth is not None and self._shallower_in_hand(depth)):
            return None
        return self._levels[depth].popleft()

    def _lowest_level(self) -> int | None:
        for depth in sorted(self._levels):
            level = self._levels[depth]
            while level and level[0].url in self._taken:
                level.popleft()
            if level:
                return depth
            del self._levels[depth]
        return None

    def _shallower_in_hand(self, depth: int) -> bool:
        return any(other < depth for other in self._in_hand.values())
