"""Runs short database calls in a few separate threads, outside the event loop."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from pipelines.store import StoreUnavailable

T = TypeVar("T")


class DatabaseThreads:
    """A small thread pool for database calls; each call ends within `timeout_s`, including the wait for a thread.

    The event loop's own threads are not used: while the database is unavailable, calls that wait for it must not block
    other answers.
    """

    def __init__(self, threads: int = 4, timeout_s: float = 5.0) -> None:
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="database")
        self._timeout_s = timeout_s

    async def run(self, call: Callable[..., T], *arguments: object) -> T:
        """Return `call(*arguments)`. Raises StoreUnavailable after `timeout_s`."""
        try:
            async with asyncio.timeout(self._timeout_s):
                return await asyncio.get_running_loop().run_in_executor(self._threads, call, *arguments)
        except TimeoutError as error:
            raise StoreUnavailable(f"the database did not answer in {self._timeout_s:g} s") from error
