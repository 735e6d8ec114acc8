"""The Ray Data chain: pages become chunks, chunks become vectors, vectors are stored.

Progress is kept in the database, not in Ray: a stage that runs twice changes nothing, and the run after a killed one
continues where that one stopped. Only URLs, and texts that lack a vector, travel between stages. No other file of
indexing knows Ray.
"""

import functools
import logging
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow as pa
import ray.data
from ray.data import ActorPoolStrategy, DataContext, Dataset, TaskPoolStrategy

from pipelines.embedding.embedder import load_embedder
from pipelines.indexing.chunking.page_cutter import PageChunks, PageCutter
from pipelines.indexing.chunking.url_rules import UrlRules
from pipelines.indexing.crawling.crawl import CrawlFailed, CrawlReport, CrawlSettings, crawl
from pipelines.indexing.folders.folder import FolderSettings, Listing
from pipelines.indexing.pools import Pools
from pipelines.indexing.reading.read import PageReader
from pipelines.indexing.reading.text import UnreadablePage
from pipelines.records import Chunk, IndexSettings
from pipelines.store import DATABASE_PATIENCE_S, READ_ATTEMPTS, PageToIndex, StagedPage, Store

TEXTS = pa.schema({"embed_hash": pa.string(), "embed_text": pa.string()})

# Ray Data passes on the output of a task in blocks of this size. About 400 texts: enough for the encoder to sort by
# length, and few enough that a kill loses only seconds of embedding.
BLOCK_BYTES = 384 << 10
# Pages of one task over stored pages, and of one step within any task (it limits the bodies held in memory).
PAGES_PER_TASK, PAGES_PER_STEP = 200, 32
# A GPU stage must name its batch size; this many texts keep a small encoder busy.
GPU_BATCH = 512


@dataclass(frozen=True)
class BuildJob:
    """The settings of every stage of one run; small, because Ray copies them into each task."""

    database_url: str
    collection: str
    run: int
    index: int | None
    settings: IndexSettings
    rules: UrlRules
    pools: Pools
    backend: str = "auto"
    embedding_url: str | None = None
    embedding_key: str | None = None
    model_cache: str | None = None  # folder on each machine where an exported model is kept
    read_attempts: int = READ_ATTEMPTS


def build(pages: Dataset, job: BuildJob) -> Dataset:
    """Chain pages → chunks → vectors → store: URLs in, one row per stored batch out (see store_vectors)."""
    pools = job.pools
    chunked = pages.map_batches(
        cast(Any, chunk_pages),
        batch_size=None,
        batch_format="pyarrow",
        fn_kwargs={"job": job},
        num_cpus=pools.task_cpus,
    )
    embedded = chunked.map_batches(
        EmbedTexts,
        batch_size=GPU_BATCH if pools.gpus else None,
        batch_format="pyarrow",
        fn_constructor_kwargs={"job": job},
        compute=ActorPoolStrategy(size=pools.embedders),
        num_cpus=pools.cpus,
        num_gpus=pools.gpus,
    )
    return embedded.map_batches(
        cast(Any, store_vectors),
        batch_size=None,
        batch_format="pyarrow",
        fn_kwargs={"job": job},
        num_cpus=pools.light_cpus,
    )


# ---------------------------------------------------------------------------------------------- sources


def stored_pages(ranges: Sequence[Mapping[str, Any]], job: BuildJob) -> Dataset:
    """Return the URLs of stored pages, one task for each range {first, last}."""
    rows = [{"first": part["first"], "last": part["last"]} for part in ranges]
    source = ray.data.from_items(rows, override_num_blocks=len(rows))
    return source.map_batches(
        cast(Any, urls_of_ranges),
        batch_size=None,
        batch_format="pyarrow",
        fn_kwargs={"job": job},
        num_cpus=job.pools.task_cpus,
    )


def crawled_pages(hosts: Sequence[CrawlSettings], job: BuildJob) -> Dataset:
    """Return the URLs of pages as they are crawled, one task (and crawler process) for each host."""
    rows = [{"host": number} for number in range(len(hosts))]
    source = ray.data.from_items(rows, override_num_blocks=len(rows))
    return source.map_batches(
        cast(Any, crawl_host),
        batch_size=1,
        batch_format="pyarrow",
        fn_kwargs={"job": job, "hosts": list(hosts)},
        num_cpus=job.pools.light_cpus,
        compute=TaskPoolStrategy(size=job.pools.crawls),
    )


def save_files(folder: FolderSettings, listing: Listing, job: BuildJob) -> Dataset:
    """Read the listed files of a folder and commit them as pages; each batch is a row with its number of `pages`."""
    files = ray.data.read_binary_files(
        listing.paths, filesystem=listing.system, include_paths=True, num_cpus=job.pools.task_cpus
    )
    return files.map_batches(
        cast(Any, save_file_batch),
        batch_size=256,
        batch_format="pyarrow",
        fn_kwargs={"job": job, "folder": folder},
        num_cpus=job.pools.task_cpus,
    )


def configure(slow_source: bool) -> None:
    """Set the options of Ray Data's context: block size, no time-out for a slow source, quiet output."""
    context = DataContext.get_current()
    context.target_max_block_size = BLOCK_BYTES
    context.execution_no_progress_timeout_s = -1 if slow_source else 1800
    context.enable_progress_bars = False
    context.print_on_execution_start = False
    logging.getLogger("ray.data").setLevel(logging.CRITICAL)  # an error is raised, and its job reports it once
    warnings.filterwarnings("ignore", "The minimum number of concurrent actors")  # the input is short: no problem
    warnings.filterwarnings("ignore", message="The maximum number of concurrent tasks")


# ---------------------------------------------------------------------------------------------- stages


def urls_of_ranges(batch: pa.Table, job: BuildJob) -> Iterator[pa.Table]:
    store = _store(job.database_url)
    for part in batch.to_pylist():
        urls = store.urls_in_range(job.collection, part["first"], part["last"])
        yield pa.table({"url": pa.array(urls, pa.string())})


def crawl_host(batch: pa.Table, job: BuildJob, hosts: list[CrawlSettings]) -> Iterator[pa.Table]:
    """Crawl one host: yield URLs as they are committed, and store the report at the end.

    Ray Data holds output back until a block is full, so each batch is padded to a block: pages reach the next stage
    within a second, however slow the site is.
    """
    settings = hosts[batch["host"][0].as_py()]
    store, url = _store(job.database_url), settings.start_urls[0]
    report = CrawlReport(complete=False, stopped_by="error: ended without a report")

    def note_queue(urls: int) -> None:
        store.save_crawl(job.run, url, report.complete, report.stopped_by, {"queued": urls})

    pages = crawl(settings, job.database_url, job.collection, job.run, note_queue=note_queue)
    try:
        while True:
            urls = next(pages)
            yield pa.table({"url": pa.array(urls, pa.string()), "filler": _filler(len(urls))})
    except StopIteration as stop:
        report = stop.value
    except CrawlFailed as error:
        report = CrawlReport(complete=False, stopped_by=f"error: {error}")
    finally:
        counts = {**report.counts, "seconds": report.seconds}
        store.save_crawl(job.run, url, report.complete, report.stopped_by, counts)


def save_file_batch(batch: pa.Table, job: BuildJob, folder: FolderSettings) -> pa.Table:
    store = _store(job.database_url)
    paths, bodies = batch["path"].to_pylist(), batch["bytes"].to_pylist()
    files = {folder.url_of(path, body): (path, body) for path, body in zip(paths, bodies, strict=True)}
    known = store.content_hashes(job.collection, list(files))
    pages = [folder.page(path, url, body, known.get(url)) for url, (path, body) in files.items()]
    store.save_pages(job.collection, job.run, pages)
    return pa.table({"pages": [len(pages)]})


def chunk_pages(batch: pa.Table, job: BuildJob) -> Iterator[pa.Table]:
    """Read and cut the pages that the index lacks in their present state, stage them, yield texts to embed."""
    store, urls = _store(job.database_url), batch["url"].to_pylist()
    for start in range(0, len(urls), PAGES_PER_STEP):
        wanted = urls[start : start + PAGES_PER_STEP]
        rules, attempts = job.rules.digest, job.read_attempts
        todo = store.pages_to_index(job.collection, job.run, job.index, rules, wanted, attempts)
        yield _stage(todo, job, store)


class EmbedTexts:
    """An actor that embeds; it loads the model once and takes whole blocks as batches.

    Warnings of the embedder (a missing GPU) travel with the vectors, because nobody reads the log of an actor.
    """

    def __init__(self, job: BuildJob) -> None:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", RuntimeWarning)
            self.embedder = load_embedder(
                job.settings.model,
                device="cuda" if job.pools.gpus else "cpu",
                backend=job.backend,  # type: ignore[arg-type]
                threads=job.pools.threads,
                base_url=job.embedding_url,
                api_key=job.embedding_key,
                cache=Path(job.model_cache) if job.model_cache else None,
            )
        self.warning = "; ".join(str(warning.message) for warning in caught if warning.category is RuntimeWarning)

    def __call__(self, batch: pa.Table) -> pa.Table:
        began = time.perf_counter()
        vectors = self.embedder.embed_chunks(batch["embed_text"].to_pylist())
        each = (time.perf_counter() - began) / max(1, len(vectors))
        rows = pa.FixedSizeListArray.from_arrays(vectors.ravel(), vectors.shape[1])
        columns = {"embed_hash": batch["embed_hash"], "embedding": rows, "embed_s": np.full(len(vectors), each)}
        return pa.table(columns | {"warning": pa.array([self.warning] * len(vectors), pa.string())})


def store_vectors(batch: pa.Table, job: BuildJob) -> pa.Table:
    """Stage vectors; return a row with their number, the seconds of embedding and storing, and warnings."""
    began = time.perf_counter()
    hashes = batch["embed_hash"].to_pylist()
    if hashes:
        flat = batch["embedding"].combine_chunks().flatten().to_numpy(zero_copy_only=False)
        _store(job.database_url).stage_vectors(job.run, hashes, flat.reshape(len(hashes), -1))
    embed_s = float(np.sum(batch["embed_s"].to_numpy()))
    warning = "; ".join(text for text in batch["warning"].unique().to_pylist() if text)
    seconds = {"embed_s": [embed_s], "store_s": [time.perf_counter() - began]}
    return pa.table({"stored": [len(hashes)], **seconds, "warning": [warning]})


def _stage(todo: Sequence[PageToIndex], job: BuildJob, store: Store) -> pa.Table:
    staged, failures = [], []
    for entry in todo:
        try:
            staged.append(_read(entry, job))
        except UnreadablePage as error:
            failures.append((entry.page.url, str(error)))
    store.fail_pages(job.collection, failures)
    if staged:
        store.stage_pages(job.run, staged)
    chunks: dict[str, Chunk] = {}
    for page in staged:
        for chunk in page.chunks:
            chunks.setdefault(chunk.embed_hash, chunk)
    mine = sorted(store.claim(job.run, {name: chunk.url for name, chunk in chunks.items()}))
    return pa.table([mine, [chunks[name].embed_text for name in mine]], schema=TEXTS)


def _read(entry: PageToIndex, job: BuildJob) -> StagedPage:
    page = _reader(job.settings)(entry.page)
    url = entry.page.url
    return StagedPage(
        url=url,
        input_hash=entry.input_hash,
        title=page.title,
        language=page.language,
        tags=job.rules.tags_of(url),
        version=job.rules.version_of(url),
        sections=page.sections,
        chunks=page.chunks,
    )


def _filler(rows: int) -> pa.Array:
    """Return bytes that make `rows` rows slightly larger than one block."""
    return pa.array([b"\0" * (BLOCK_BYTES * 5 // 4 // rows)] * rows, pa.binary())


@functools.cache
def _store(url: str) -> Store:
    return Store(url, pool_size=2, retry_s=DATABASE_PATIENCE_S)


@functools.cache
def _reader(settings: IndexSettings) -> PageReader[PageChunks]:
    return PageReader(PageCutter(settings))
