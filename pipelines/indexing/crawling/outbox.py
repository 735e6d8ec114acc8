"""Pages on their way into the ledger: committed in batches, and only then named as good.

Knows the ledger and the listener as callables and runs them in a thread: a slow database, or a reader that is
busy, holds up the next pages but not the answers to requests that are already out.
"""

import asyncio
from collections.abc import Callable

from pipelines.records import FetchedPage

# A batch is committed early when it holds so many bytes, however few pages they are.
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
        # Short, so that a slow ledger slows the crawl instead of filling memory.
        self._queue: asyncio.Queue[FetchedPage | None] = asyncio.Queue(maxsize=8)

    async def put(self, page: FetchedPage) -> None:
        await self._queue.put(page)

    async def close(self) -> None:
        """No page follows; `run` returns when all are committed."""
        await self._queue.put(None)

    async def run(self) -> None:
        """Commit batches until closed. Raises what the ledger raises."""
        more = True
        while more and (first := await self._queue.get()) is not None:
            batch, more = await self._batch(first)
            await asyncio.to_thread(self._commit, batch)

    def _commit(self, batch: list[FetchedPage]) -> None:
        self._save(batch)
        if urls := [page.url for page in batch if page.state == "ok"]:
            self._announce(urls)

    async def _batch(self, first: FetchedPage) -> tuple[list[FetchedPage], bool]:
        """A batch that begins with `first`, and whether more may follow."""
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
