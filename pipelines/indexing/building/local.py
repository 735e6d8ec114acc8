"""Runs the steps in this process, without Ray, which is faster if there is little to embed.

One thread reads and cuts pages (in a child process), another one embeds, and a third one stores. They run at low
priority, like Ray's workers, unless somebody waits for a few pages.
"""

import random
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from itertools import accumulate, chain, groupby
from typing import Any

from pipelines.cluster import JOB_NICENESS
from pipelines.indexing.building import steps
from pipelines.indexing.building.threads import ThreadedIterator
from pipelines.indexing.chunking.page_cutter import PageCutter
from pipelines.indexing.reading.child_process import Child
from pipelines.indexing.reading.layout import Layouts
from pipelines.indexing.reading.read import PageReader
from pipelines.indexing.sources.source import PageSource
from pipelines.store import DATABASE_PATIENCE_S, Store

# Texts that are embedded and stored at once: a kill, or Ctrl-C, loses seconds of embedding. At the end of each slice,
# threads wait for the last batch.
SLICE = 128
# Blocks of texts (up to BLOCK_BYTES, and from up to PAGES_PER_STEP pages) that may wait for the encoder:
# the more wait, the closer their lengths.
BLOCKS_AHEAD = 16
SOURCES_AT_ONCE = 8
# A crawl that is stopped may wait for a site that does not respond; its process ends with this one.
CRAWL_ENDS_S = 1.0
# Factor on the time limit for a single slow page; that limit is already four times the time on an idle machine.
PATIENCE = 4.0


class LocalBuilder:
    """Builds in this process, reads in `child`. Yields what `store_vectors` returns; close it at the end.

    An `urgent` one runs at normal priority, and loads the model while the first page is read.
    """

    def __init__(self, job: steps.BuildJob, child: Child, urgent: bool = False) -> None:
        self._job, self._child, self._urgent = job, child, urgent
        self._niceness = 0 if urgent else JOB_NICENESS
        self._store = Store(job.database_url, pool_size=4, retry_s=DATABASE_PATIENCE_S)
        self._read = PageReader(PageCutter(job.settings, job.layouts), child=child)
        self._stack = ExitStack()
        self._loading: ThreadedIterator[steps.TextModel] | None = None
        self._embed: steps.TextModel | None = None

    def __enter__(self) -> "LocalBuilder":
        return self

    def __exit__(self, *_: object) -> None:
        self._child.close()
        self._stack.close()
        self._store.close()

    def load_model(self) -> None:
        """Begin to load the model in a thread, because texts will come soon."""
        if self._loading is None:
            self._loading = ThreadedIterator([self._loaded()], niceness=self._niceness)
            self._stack.enter_context(self._loading)

    def use(self, layouts: Layouts) -> None:
        """Leave out these layouts from now on."""
        if layouts != self._job.layouts:
            self._read = replace(self._read, read=PageCutter(self._job.settings, layouts))
            self._job = replace(self._job, layouts=layouts)

    def gathered(
        self, sources: Sequence[PageSource], wait_for: int = 0, learn: Callable[[], None] | None = None
    ) -> Iterator[steps.Stored]:
        """Read sources and build at the same time; pages that wait when the last source ends are left to `stored`.

        With `learn`, which may call `use`, building starts once `wait_for` pages have come and `learn` has returned.
        """
        shares = [sources[first::SOURCES_AT_ONCE] for first in range(min(len(sources), SOURCES_AT_ONCE))]
        with ThreadedIterator(
            [self._read_sources(share) for share in shares], drop_rest=True, end_s=CRAWL_ENDS_S
        ) as urls:
            yield from self._build(_after(wait_for, learn, urls) if learn else urls)

    def stored(self, ranges: Iterable[Mapping[str, Any]]) -> Generator[steps.Stored]:
        """Build from stored pages, in ranges {first, last} of URLs."""
        yield from self._build(self._urls(ranges))

    def patiently(self, urls: Iterable[str]) -> Generator[steps.Stored]:
        """Build from stored pages that took too long, one by one, with PATIENCE."""
        reader, self._read = self._read, replace(self._read, patience=PATIENCE)
        try:
            yield from self._build([url] for url in urls)
        finally:
            self._read = reader

    def mixed(self, ranges: Iterable[Mapping[str, Any]]) -> Generator[steps.Stored]:
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

    def _build(self, urls: Iterable[list[str]]) -> Iterator[steps.Stored]:
        if self._urgent:
            self.load_model()
        with (
            ThreadedIterator([self._texts(urls)], ahead=BLOCKS_AHEAD, niceness=self._niceness) as texts,
            ThreadedIterator([self._embedded(texts)], ahead=1, niceness=self._niceness) as vectors,
            ThreadedIterator([self._stored(vectors)], niceness=self._niceness) as done,
        ):
            yield from done

    def _texts(self, urls: Iterable[list[str]]) -> Generator[list[steps.Text]]:
        for batch in urls:
            for texts in steps.chunk_pages(batch, self._job, self._store, self._read):
                yield from in_blocks(texts)

    def _loaded(self) -> Generator[steps.TextModel]:
        yield steps.TextModel(self._job)

    def _loaded_model(self) -> steps.TextModel | None:
        """Return the model once it is loaded, None if the run is stopped before that."""
        self.load_model()
        if self._embed is None and self._loading is not None:
            self._embed = next(iter(self._loading), None)
        return self._embed

    def _embedded(self, texts: ThreadedIterator[list[steps.Text]]) -> Generator[steps.Embedded]:
        """Embed all texts that wait, in slices of similar length; meanwhile the next ones are read."""
        for waiting in texts.together():
            by_length = sorted(chain.from_iterable(waiting), key=lambda text: len(text.embed_text))
            for start in range(0, len(by_length), SLICE):
                if (embed := self._loaded_model()) is None:
                    return
                yield embed(by_length[start : start + SLICE])

    def _stored(self, vectors: Iterable[steps.Embedded]) -> Generator[steps.Stored]:
        for embedded in vectors:
            yield steps.store_vectors(embedded, self._job, self._store)


def in_blocks(texts: Sequence[steps.Text]) -> Iterator[list[steps.Text]]:
    """Divide texts into blocks of about BLOCK_BYTES: pages may be large, and several blocks wait for the encoder."""
    ends = accumulate(len(text.embed_text) for text in texts)
    for _, block in groupby(zip(ends, texts, strict=True), lambda pair: pair[0] // steps.BLOCK_BYTES):
        yield [text for _, text in block]


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
