"""Runs the steps on Ray: one chain of Ray Data with a pool of embedding actors.

A task that runs twice changes nothing (see steps.py), so Ray may repeat any of them. No other file of indexing knows
Ray.
"""

import functools
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, cast

import numpy as np
import pyarrow as pa
import ray.data
from ray.data import ActorPoolStrategy, Dataset, TaskPoolStrategy
from ray.exceptions import ActorUnschedulableError, StreamingGeneratorReplayInconsistentError

from pipelines.cluster import leave_to_others, quiet_context
from pipelines.indexing.building import steps
from pipelines.indexing.building.pools import Node, held_by_others
from pipelines.indexing.chunking.page_cutter import PageChunks, PageCutter
from pipelines.indexing.reading.layout import Layouts
from pipelines.indexing.reading.read import PageReader
from pipelines.indexing.sources.source import PageSource
from pipelines.records import IndexSettings
from pipelines.store import DATABASE_PATIENCE_S, Store

SOURCES_AT_ONCE = 8  # sources whose pages are embedded afterwards
# A GPU stage must have a batch size; this many texts keep a small encoder busy.
GPU_BATCH = 512


class DatasetLost(RuntimeError):
    """The death of a node ended the whole dataset; the remaining work can start again at once.

    In Ray 2.60, this happens if a repeated task has less output than the lost one, because its stored results remain.
    It also happens if an earlier run left Ray Data's own actor on a node that just died.
    """


class RayBuilder:
    """Builds on the `free` resources of the connected Ray, as `LocalBuilder` does in one process."""

    def __init__(self, job: steps.BuildJob, free: Iterable[Node]) -> None:
        self._job, self.embedders = job, job.pools.embedders
        total = ray.cluster_resources()
        self._held = held_by_others(total, free)

    def gathered(self, sources: Sequence[PageSource]) -> Iterator[steps.Stored]:
        """Read sources and build at the same time."""
        configure(slow_source=True, held=self._held)
        yield from run_dataset(build(gathered_pages(sources, self._job), self._job))

    def stored(self, ranges: Sequence[Mapping[str, Any]]) -> Iterator[steps.Stored]:
        """Build from stored pages, in ranges {first, last} of URLs."""
        configure(slow_source=False, held=self._held)
        yield from run_dataset(build(stored_pages(ranges, self._job), self._job))


def gather_alone(sources: Sequence[PageSource], job: steps.BuildJob) -> None:
    """Read sources on the nodes of the connected Ray, SOURCES_AT_ONCE at a time, and store their pages.

    Ray counts no CPU for a crawl, which mostly waits, so it runs even if others hold all CPUs.
    """
    read, coming = ray.remote(num_cpus=0)(read_to_end), iter(sources)
    under_way = [read.remote(source, job) for source in islice(coming, SOURCES_AT_ONCE)]
    while under_way:
        [ended, *_], under_way = ray.wait(under_way)
        ray.get(ended)
        under_way += [read.remote(source, job) for source in islice(coming, 1)]


def run_dataset(dataset: Dataset) -> Iterator[steps.Stored]:
    """Run a dataset, yield its rows. Raises DatasetLost."""
    try:
        for batch in cast(Any, dataset.iter_batches(batch_size=None, batch_format="pyarrow")):
            yield from stored_of(batch)
    except (ActorUnschedulableError, StreamingGeneratorReplayInconsistentError) as error:
        raise DatasetLost(str(error)) from error


def build(pages: Dataset, job: steps.BuildJob) -> Dataset:
    """Chain pages → chunks → vectors → store: URLs in, one row per stored batch out (see store_vectors)."""
    pools = job.pools
    chunked = _in_tasks(pages, chunk_batch, pools.task_cpus, pools.tasks, job=job)
    embedded = chunked.map_batches(
        EmbedTexts,
        batch_size=GPU_BATCH if pools.gpus else None,
        batch_format="pyarrow",
        fn_constructor_kwargs={"job": job},
        compute=ActorPoolStrategy(min_size=pools.least, max_size=pools.most, initial_size=pools.embedders),
        num_cpus=pools.cpus,
        num_gpus=pools.gpus,
    )
    return _in_tasks(embedded, store_batch, pools.light_cpus, pools.tasks, job=job)


def stored_pages(ranges: Sequence[Mapping[str, Any]], job: steps.BuildJob) -> Dataset:
    """Return the URLs of stored pages, one task for each range {first, last}."""
    rows = [{"first": part["first"], "last": part["last"]} for part in ranges]
    source = ray.data.from_items(rows, override_num_blocks=len(rows))
    return _in_tasks(source, urls_of_ranges, job.pools.task_cpus, job.pools.tasks, job=job)


def gathered_pages(sources: Sequence[PageSource], job: steps.BuildJob) -> Dataset:
    """Return the URLs of pages as they are read, one task for each source (for a site, one crawler process)."""
    rows = [{"source": number} for number in range(len(sources))]
    numbers = ray.data.from_items(rows, override_num_blocks=len(rows))
    return _in_tasks(numbers, read_batch, job.pools.light_cpus, job.pools.crawls, job=job, sources=list(sources))


def _in_tasks(source: Dataset, function: Any, cpus: float, most: int | None, **arguments: Any) -> Dataset:
    """Apply `function` to each block, in tasks of `cpus` CPUs, at most `most` at once."""
    return source.map_batches(
        function,
        batch_size=None,
        batch_format="pyarrow",
        fn_kwargs=arguments,
        num_cpus=cpus,
        compute=TaskPoolStrategy(size=most),
    )


def configure(slow_source: bool, held: Node) -> None:
    """Set the options of Ray Data's context: block size, no timeout for a slow source, quiet output."""
    context = quiet_context()
    leave_to_others(context, held)
    context.target_max_block_size = steps.BLOCK_BYTES
    context.execution_no_progress_timeout_s = -1 if slow_source else 1800
    # If all actors have a batch and another one waiting, there is enough work to start one more, if a node has room.
    context.autoscaling_config.actor_pool_util_upscaling_threshold = 1.0
    warnings.filterwarnings("ignore", message="The maximum number of concurrent tasks")


# ---------------------------------------------------------------------------------------------- tasks


def urls_of_ranges(batch: pa.Table, job: steps.BuildJob) -> Iterator[pa.Table]:
    store = _store(job)
    for part in batch.to_pylist():
        urls = store.urls_in_range(job.collection, part["first"], part["last"])
        yield pa.table({"url": pa.array(urls, pa.string())})


def read_to_end(source: PageSource, job: steps.BuildJob) -> None:
    for _ in steps.read_source(source, job, _store(job)):
        pass


def read_batch(batch: pa.Table, job: steps.BuildJob, sources: list[PageSource]) -> Iterator[pa.Table]:
    """Read the source of a batch.

    Ray Data holds output back until a block is full. Each batch is padded to a block, so pages reach the next stage
    within a second even from a slow site.
    """
    (number,) = batch["source"].to_pylist()
    for urls in steps.read_source(sources[number], job, _store(job)):
        filler = [b"\0" * (steps.BLOCK_BYTES * 5 // 4 // len(urls))] * len(urls)  # slightly more than a block
        yield pa.table({"url": pa.array(urls, pa.string()), "filler": pa.array(filler, pa.binary())})


def chunk_batch(batch: pa.Table, job: steps.BuildJob) -> Iterator[pa.Table]:
    urls = batch["url"].to_pylist()
    for texts in steps.chunk_pages(urls, job, _store(job), _reader(job.settings, job.layouts)):
        yield table_of_texts(texts)


class EmbedTexts:
    """An actor that embeds batches of texts."""

    def __init__(self, job: steps.BuildJob) -> None:
        steps.begin_work(job.run, job.collection, job.began)
        self._embed = steps.TextModel(job)

    def __call__(self, batch: pa.Table) -> pa.Table:
        return table_of_vectors(self._embed(texts_of(batch)))


def store_batch(batch: pa.Table, job: steps.BuildJob) -> pa.Table:
    return table_of_stored(steps.store_vectors(vectors_of(batch), job, _store(job)))


def _store(job: steps.BuildJob) -> Store:
    return _store_of(job.database_url, job.run, job.collection, job.began)


@functools.cache
def _store_of(url: str, run: int, collection: str, began: str) -> Store:
    """Return the store of this process, which from now on works and logs for a run."""
    steps.begin_work(run, collection, began)
    return Store(url, pool_size=2, retry_s=DATABASE_PATIENCE_S)


@functools.cache
def _reader(settings: IndexSettings, layouts: Layouts) -> PageReader[PageChunks]:
    return PageReader(PageCutter(settings, layouts))


# ---------------------------------------------------------------------------------------------- tables

# Ray divides and joins tables between stages, so each row of texts and vectors carries its share of the work.
WORK = pa.struct([("at", pa.float64()), ("seconds", pa.float64())])
TEXTS = pa.schema([("embed_hash", pa.string()), ("embed_text", pa.string()), ("tokens", pa.int64()), ("read", WORK)])
STORED = pa.schema(
    [("stored", pa.int64()), ("too_long", pa.int64()), ("warning", pa.string())]
    + [(step, WORK) for step in ("read", "embed", "store")]
)


def table_of_texts(texts: Iterable[steps.Text]) -> pa.Table:
    """Return texts as a table."""
    return pa.Table.from_pylist([text._asdict() | {"read": text.read._asdict()} for text in texts], schema=TEXTS)


def texts_of(table: pa.Table) -> list[steps.Text]:
    """Return the texts of a table."""
    return [steps.Text(**row | {"read": steps.Work(**row["read"])}) for row in table.to_pylist()]


def table_of_vectors(embedded: steps.Embedded) -> pa.Table:
    """Return vectors as a table."""
    count = len(embedded.hashes)
    rows = pa.FixedSizeListArray.from_arrays(embedded.vectors.ravel(), embedded.vectors.shape[1])
    columns = {
        "embed_hash": pa.array(embedded.hashes, pa.string()),
        "embedding": rows,
        "too_long": pa.array(embedded.too_long, pa.bool_()),
        "warning": pa.array([embedded.warning] * count, pa.string()),
    }
    for step in ("read", "embed"):
        at, seconds = getattr(embedded, step)
        columns[step] = pa.array([{"at": at, "seconds": seconds / max(1, count)}] * count, WORK)
    return pa.table(columns)


def vectors_of(table: pa.Table) -> steps.Embedded:
    """Return the vectors of a table."""
    hashes = table["embed_hash"].to_pylist()
    flat = table["embedding"].combine_chunks().flatten().to_numpy(zero_copy_only=False)
    vectors = flat.reshape(len(hashes), -1) if hashes else np.zeros((0, 0), np.float32)
    warning = "; ".join(text for text in table["warning"].unique().to_pylist() if text)
    read, embed = (steps.joined(steps.Work(**row) for row in table[step].to_pylist()) for step in ("read", "embed"))
    return steps.Embedded(hashes, vectors, table["too_long"].to_pylist(), warning, read, embed)


def table_of_stored(stored: steps.Stored) -> pa.Table:
    """Return the counts of a batch as a table of one row."""
    row = {step: getattr(stored, step)._asdict() for step in ("read", "embed", "store")}
    return pa.Table.from_pylist([stored._asdict() | row], schema=STORED)


def stored_of(table: pa.Table) -> Iterator[steps.Stored]:
    """Yield the counts of each batch."""
    for row in table.to_pylist():
        yield steps.Stored(**row | {step: steps.Work(**row[step]) for step in ("read", "embed", "store")})
