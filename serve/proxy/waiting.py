"""Counts connections that wait for their clients, by address, and ends the oldest beyond a limit.

Knows no HTTP.
"""

from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

T = TypeVar("T", bound=Hashable)


class Waiting(Generic[T]):
    """Items that wait, with their addresses, in the order in which they began.

    If more than `of_address` wait for clients of one address, `end` is called with the oldest of them. If more than
    `all` wait, it is called with the oldest of the address that has the most. Honest clients are waited for only
    briefly.
    """

    def __init__(self, end: Callable[[T], None], of_address: int, all: int) -> None:
        self._end, self._of_address, self._all = end, of_address, all
        self._addresses: dict[T, str] = {}
        self._waiting: dict[str, dict[T, None]] = {}

    def add(self, one: T, address: str) -> None:
        """Count `one` as the newest of `address`, and end an item above the limit."""
        self.remove(one)
        self._addresses[one] = address
        same = self._waiting.setdefault(address, {})
        same[one] = None
        if len(same) > self._of_address:
            self._end_oldest(same)
        elif len(self._addresses) > self._all:
            self._end_oldest(max(self._waiting.values(), key=len))

    def remove(self, one: T) -> None:
        """Stop counting `one`, if it was counted."""
        address = self._addresses.pop(one, None)
        if address is not None:
            del self._waiting[address][one]
            if not self._waiting[address]:
                del self._waiting[address]

    def _end_oldest(self, those: dict[T, None]) -> None:
        oldest = next(iter(those))
        self.remove(oldest)
        self._end(oldest)
