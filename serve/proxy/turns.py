"""Gives each address a number of turns per second; further requests wait. Knows no HTTP.

Requests of busy connections wait the longest.
"""

import asyncio
import heapq
import itertools
from collections.abc import Callable

# Recently active addresses; those with all their turns back are forgotten.
MOST_ADDRESSES = 10_000


class Asker:
    """One connection, with its next place in the queue of its address."""

    def __init__(self) -> None:
        self._queue: _Queue | None = None
        self._next = 0.0

    def place_in(self, queue: "_Queue") -> float:
        """Return its place now: behind its previous request; the first time, before all that are waiting."""
        place = max(queue.given, self._next) if self._queue is queue else queue.given - 1
        self._queue, self._next = queue, place + 1
        return place


class AddressTurns:
    """The turns of each address: `a_second`, and `at_once` after a pause.

    Further requests wait, up to `most_waiting` per address. A connection's first request goes before those that are
    waiting, so that many waiting requests do not delay a question. Connections with more turns go later, and if too
    many wait, the last in line is refused.
    """

    def __init__(self, a_second: float, at_once: float, most_waiting: int) -> None:
        self._a_second, self._at_once, self._most_waiting = a_second, at_once, most_waiting
        self._queues: dict[str, _Queue] = {}
        self._most, self._numbers = MOST_ADDRESSES, itertools.count()

    def take(self, address: str, asker: Asker, begin: Callable[[], object], refuse: Callable[[], object]) -> None:
        """Call `begin` at the turn of `asker`, or `refuse` if too many wait before it."""
        queue = self._queue(address)
        place = asker.place_in(queue)
        if not queue.waiting and queue.left >= 1:
            queue.left -= 1
            begin()
            return
        heapq.heappush(queue.waiting, (place, -next(self._numbers), begin, refuse))
        if queue.timer is None:
            self._wait(queue)
        if len(queue.waiting) > self._most_waiting:
            last = max(queue.waiting)
            queue.waiting.remove(last)
            heapq.heapify(queue.waiting)
            last[3]()

    def charge(self, address: str, turns: float = 1.0) -> None:
        """Take `turns` from `address` for work that can't wait; the debt is at most `at_once`."""
        queue = self._queue(address)
        queue.left = max(-self._at_once, queue.left - turns)

    def _queue(self, address: str) -> "_Queue":
        queue = self._queues.get(address)
        if queue is None:
            if len(self._queues) >= self._most:
                self._forget()
            queue = self._queues[address] = _Queue(self._at_once, asyncio.get_running_loop().time())
        self._fill(queue)
        return queue

    def _fill(self, queue: "_Queue") -> None:
        now = asyncio.get_running_loop().time()
        queue.left = min(self._at_once, queue.left + (now - queue.at) * self._a_second)
        queue.at = now

    def _wait(self, queue: "_Queue") -> None:
        missing = max(0.0, 1 - queue.left) / self._a_second
        queue.timer = asyncio.get_running_loop().call_later(missing, self._begin_next, queue)

    def _begin_next(self, queue: "_Queue") -> None:
        queue.timer = None
        self._fill(queue)
        while queue.waiting and queue.left >= 1:
            place, _, begin, _ = heapq.heappop(queue.waiting)
            queue.given = max(queue.given, place)
            queue.left -= 1
            begin()
        if queue.waiting:
            self._wait(queue)

    def _forget(self) -> None:
        for address, queue in list(self._queues.items()):
            self._fill(queue)
            if not queue.waiting and queue.left >= self._at_once:
                del self._queues[address]
        self._most = max(MOST_ADDRESSES, 2 * len(self._queues))


class _Queue:
    """The turns of one address: `left` at the time `at`, and the waiting requests with their places."""

    def __init__(self, left: float, at: float) -> None:
        self.left, self.at = left, at
        self.given = 0.0
        self.waiting: list[tuple[float, int, Callable[[], object], Callable[[], object]]] = []
        self.timer: asyncio.TimerHandle | None = None
