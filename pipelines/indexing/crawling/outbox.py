"""Commits pages to the ledger in batches, then announces the good ones.

Ledger and listener are callables that run in a thread. A slow database or a busy listener delays the next pages, but
not the replies to requests that were already sent.
"""

import asyncio
from collections.abc import Callable

from pipelines.fetched import FetchedPage

# A batch with this many bytes is committed early, even if it has few pages.
FLUSH_BYTES = 16 * 1024 * 1024


class Outbox:
    """Collects pages until there are `flush_pages` of them or the first is `flush_s` seconds old."""

    def __init__(
        self,
        save: Callable[[list[FetchedPage]], None],
        announce: Callable[[list[str]], None],
        flush_pages: int,
        flush_s: float,
    ):
        self._save, self._announce = save, announce
        self._flush_pages, self._flush_s = flush_pages, flush_s
        # Short, so that a slow ledger slows down the crawl instead of filling the memory.
        self._queue: asyncio.Queue[FetchedPage | None] = asyncio.Queue(maxsize=8)

    async def put(self, page: FetchedPage) -> None:
        await self._queue.put(page)

    async def close(self) -> None:
        """Signal that no more pages follow; `run` then returns once all are committed."""
        await self._queue.put(None)

    async def run(self) -> None:
        """Commit batches until closed. Errors of the ledger propagate."""
        more = True
        while more and (first := await self._queue.get()) is not None:
            batch, more = await self._batch(first)
            await asyncio.to_thread(self._commit, batch)

    def _commit(self, batch: list[FetchedPage]) -> None:
        self._save(batch)
        if urls := [page.url for page in batch if page.state == "ok"]:
            self._announce(urls)

    async def _batch(self, first: FetchedPage) -> tuple[list[FetchedPage], bool]:
        """Return a batch that begins with `first`, and whether more pages may follow."""
        batch, size = [first], len(first.body or b"")
        deadline = asyncio.get_running_loop().time() + self._flush_s
        while len(batch) < self._flush_pages and size < FLUSH_BYTES:
            try:
                async with asyncio.timeout_at(deadline):
                    page = await self._queue.get()
            except TimeoutError:
                break
            if page is None:
                return batch, False
            batch.append(page)
            size += len(page.body or b"")
        return batch, True
