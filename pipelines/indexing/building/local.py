"""Runs the steps in this process, without Ray, which is faster if there is little to embed.

One thread reads and cuts pages (in a child process) while another one embeds and stores. Both run at low priority, like
Ray's workers, unless somebody waits for a few pages.
"""

import random
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pipelines.cluster import JOB_NICENESS
from pipelines.indexing.building import steps
from pipelines.indexing.building.threads import ThreadedIterator
from pipelines.indexing.chunking.page_cutter import PageCutter
from pipelines.indexing.reading.child_process import Child
from pipelines.indexing.reading.layout import Layouts
from pipelines.indexing.reading.read import PageReader
from pipelines.indexing.sources.source import PageSource
from pipelines.store import DATABASE_PATIENCE_S, Store

# Texts that are embedded and stored at once: a kill, or Ctrl-C, loses seconds of embedding.
SLICE = 64
# A block that is not full is embedded after this time, so that pages of a slow site do not wait for one another.
GATHER_S = 2.0
SOURCES_AT_ONCE = 8
# A crawl that is stopped may wait for a site that does not respond; its process ends with this one.
CRAWL_ENDS_S = 1.0
# Factor on the time limit for a single slow page; that limit is already four times the time on an idle machine.
PATIENCE = 4.0


class LocalBuilder:
    """Builds in this process, reads in `child`. Yields rows as `store_vectors` returns them; close it at the end.

    An `urgent` one runs at normal priority, and loads the model while the first page is read.
    """

    def __init__(self, job: steps.BuildJob, child: Child, urgent: bool = False) -> None:
        self._job, self._child, self._urgent = job, child, urgent
        self._store = Store(job.database_url, pool_size=4, retry_s=DATABASE_PATIENCE_S)
        self._read = PageReader(PageCutter(job.settings, job.layouts), child=child)
        self._embed: steps.EmbedTexts | None = None

    def __enter__(self) -> "LocalBuilder":
        return self

    def __exit__(self, *_: object) -> None:
        self._child.close()
        self._store.close()

    def use(self, layouts: Layouts) -> None:
        """Leave out these layouts from now on."""
        if layouts != self._job.layouts:
            self._read = replace(self._read, read=PageCutter(self._job.settings, layouts))
            self._job = replace(self._job, layouts=layouts)

    def gathered(
        self, sources: Sequence[PageSource], wait_for: int = 0, learn: Callable[[], None] | None = None
    ) -> Iterator[pa.Table]:
        """Read sources and build at the same time; pages that wait when the last source ends are left to `stored`.

        With `learn`, which may call `use`, building starts once `wait_for` pages have come and `learn` has returned.
        """
        shares = [sources[first::SOURCES_AT_ONCE] for first in range(min(len(sources), SOURCES_AT_ONCE))]
        with ThreadedIterator(
            [self._read_sources(share) for share in shares], drop_rest=True, end_s=CRAWL_ENDS_S
        ) as urls:
            yield from self._build(_after(wait_for, learn, urls) if learn else urls)

    def stored(self, ranges: Iterable[Mapping[str, Any]]) -> Generator[pa.Table]:
        """Build from stored pages, in ranges {first, last} of URLs."""
        yield from self._build(self._urls(ranges))

    def patiently(self, urls: Iterable[str]) -> Generator[pa.Table]:
        """Build from stored pages that took too long, one by one, with PATIENCE."""
        reader, self._read = self._read, replace(self._read, patience=PATIENCE)
        try:
            yield from self._build([url] for url in urls)
        finally:
            self._read = reader

    def mixed(self, ranges: Iterable[Mapping[str, Any]]) -> Generator[pa.Table]:
        """Like `stored`, but in random order, so that the first pages resemble the rest.

        Neighbors in a site don't. The random order allows an early estimate of the end: in URL order, Django's first
        third has a tenth of its text.
        """
        urls = list(chain.from_iterable(self._urls(ranges)))
        random.Random(0).shuffle(urls)
        starts = range(0, len(urls), steps.PAGES_PER_STEP)
        yield from self._build(urls[start : start + steps.PAGES_PER_STEP] for start in starts)

    def _urls(self, ranges: Iterable[Mapping[str, Any]]) -> Iterator[list[str]]:
        return (self._store.urls_in_range(self._job.collection, part["first"], part["last"]) for part in ranges)

    def _read_sources(self, sources: Iterable[PageSource]) -> Generator[list[str]]:
        for source in sources:
            yield from steps.read_source(source, self._job, self._store)

    def _build(self, urls: Iterable[list[str]]) -> Iterator[pa.Table]:
        niceness = 0 if self._urgent else JOB_NICENESS
        with (
            ThreadedIterator([self._gathered(urls)], ahead=1, niceness=niceness) as blocks,
            ThreadedIterator([self._stored_vectors(blocks)], niceness=niceness) as done,
        ):
            yield from done

    def _gathered(self, urls: Iterable[list[str]]) -> Generator[pa.Table]:
        """Yield blocks of texts: the first texts at once, then full blocks or the texts of GATHER_S."""
        began, parts, least = time.monotonic(), [steps.TEXTS.empty_table()], 1
        for batch in urls:
            for texts in steps.chunk_pages(batch, self._job, self._store, self._read):
                parts.append(texts)
                if sum(part.nbytes for part in parts) >= least or time.monotonic() - began >= GATHER_S:
                    yield pa.concat_tables(parts)
                    began, parts, least = time.monotonic(), [steps.TEXTS.empty_table()], steps.BLOCK_BYTES
        yield pa.concat_tables(parts)

    def _stored_vectors(self, blocks: Iterable[pa.Table]) -> Generator[pa.Table]:
        if self._urgent and self._embed is None:
            self._embed = steps.EmbedTexts(self._job)
        for block in blocks:
            if len(block) and self._embed is None:
                self._embed = steps.EmbedTexts(self._job)
            by_length = block.take(pc.sort_indices(pc.utf8_length(block["embed_text"])))
            for start in range(0, len(block), SLICE):
                assert self._embed is not None
                vectors = self._embed(by_length.slice(start, SLICE))
                yield steps.store_vectors(vectors, self._job, self._store)


def _after(wait_for: int, learn: Callable[[], None], batches: Iterable[list[str]]) -> Iterator[list[str]]:
    """Yield `batches` once they have `wait_for` items together and `learn` is done; none if they end before."""
    held, coming = list[list[str]](), iter(batches)
    while sum(map(len, held)) < wait_for:
        batch = next(coming, None)
        if batch is None:
            return
        held.append(batch)
    learn()
    yield from held
    yield from coming
