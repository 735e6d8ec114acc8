"""The steps of every run: pages become chunks, chunks become vectors, vectors are stored.

Progress is kept in the database: a step that runs twice changes nothing, and a run continues where a killed one
stopped. Only URLs, and texts that lack a vector, are passed between steps. This module knows no Ray.
"""

import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipelines.cluster import JOB_NICENESS
from pipelines.embedding.load import Backend, load_embedder
from pipelines.indexing.building.pools import Pools
from pipelines.indexing.building.threads import give_way_whole
from pipelines.indexing.chunking.page_cutter import PageChunks
from pipelines.indexing.chunking.url_rules import UrlRules
from pipelines.indexing.reading.layout import NO_LAYOUTS, Layouts
from pipelines.indexing.reading.text import UnreadablePage
from pipelines.indexing.sources.source import PageSource, SourceReading
from pipelines.logs import log_work_of
from pipelines.records import Chunk, IndexSettings
from pipelines.store import READ_ATTEMPTS, PageToIndex, StagedPage, Store

TEXTS = pa.schema(
    {"embed_hash": pa.string(), "embed_text": pa.string(), "read_at": pa.float64(), "read_s": pa.float64()}
)

# About 400 texts: enough for the encoder to sort by length, and few enough that a kill loses only seconds of embedding.
BLOCK_BYTES = 384 << 10
# Pages per step, which limits the bodies in memory.
PAGES_PER_STEP = 16


@dataclass(frozen=True)
class BuildJob:
    """The settings of every step of one run; small, because Ray copies them into each task."""

    database_url: str
    collection: str
    run: int
    began: str
    index: int | None
    settings: IndexSettings
    rules: UrlRules
    pools: Pools
    layouts: Layouts = NO_LAYOUTS
    backend: Backend = "auto"
    embedding_url: str | None = None
    embedding_key: str | None = None
    model_cache: str | None = None  # folder on each machine for exported models
    read_attempts: int = READ_ATTEMPTS

    @property
    def input_rules(self) -> str:
        """The rules that determine a page's chunks besides its bytes; the index stores them with each page."""
        return self.rules.digest + self.layouts.digest


def begin_work(run: int, collection: str, began: str) -> None:
    """Set up this Ray worker for a run: it logs for the run, and yields the CPU to a service on the same machine."""
    give_way_whole(JOB_NICENESS)
    log_work_of(run, collection, began)


def read_source(source: PageSource, job: BuildJob, store: Store) -> Iterator[list[str]]:
    """Read a source: yield the URLs of its pages as they are committed."""
    yield from source.read(SourceReading(store, job.database_url, job.collection, job.run))


def chunk_pages(
    urls: Sequence[str], job: BuildJob, store: Store, read: Callable[..., PageChunks]
) -> Iterator[pa.Table]:
    """Read, cut and stage the pages that the index lacks in their present state; yield the texts to embed."""
    for start in range(0, len(urls), PAGES_PER_STEP):
        wanted = urls[start : start + PAGES_PER_STEP]
        rules, attempts = job.input_rules, job.read_attempts
        began = time.time()
        todo = store.pages_to_index(job.collection, job.run, job.index, rules, wanted, attempts)
        texts = _stage(todo, job, store, read)
        yield pa.table(texts | _times("read", began, len(texts["embed_hash"])), schema=TEXTS)


class EmbedTexts:
    """Embeds tables of texts; it loads the model once. On Ray it is an actor.

    The embedder's warnings (a missing GPU), and which texts were too long, are returned with the vectors, because
    nobody reads the log of an actor.
    """

    def __init__(self, job: BuildJob, on_ray: bool = False) -> None:
        if on_ray:
            begin_work(job.run, job.collection, job.began)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", RuntimeWarning)
            self.embedder = load_embedder(
                job.settings.embedding,
                device="cuda" if job.pools.gpus else "cpu",
                backend=job.backend,
                threads=job.pools.threads,
                base_url=job.embedding_url,
                api_key=job.embedding_key,
                cache=Path(job.model_cache) if job.model_cache else None,
            )
        self.warning = "; ".join(str(warning.message) for warning in caught if warning.category is RuntimeWarning)

    def __call__(self, batch: pa.Table) -> pa.Table:
        began = time.time()
        texts = batch["embed_text"].to_pylist()
        vectors = self.embedder.embed_chunks(texts)
        rows = pa.FixedSizeListArray.from_arrays(vectors.ravel(), vectors.shape[1])
        columns = {"embed_hash": batch["embed_hash"], "embedding": rows} | _times("embed", began, len(vectors))
        columns |= {"read_at": batch["read_at"], "read_s": batch["read_s"]}
        columns |= {"too_long": pa.array(self.embedder.are_too_long(texts), pa.bool_())}
        return pa.table(columns | {"warning": pa.array([self.warning] * len(vectors), pa.string())})


def store_vectors(batch: pa.Table, job: BuildJob, store: Store) -> pa.Table:
    """Stage vectors; return a row with their number, when and how long each step worked, and any warning."""
    began = time.time()
    hashes = batch["embed_hash"].to_pylist()
    if hashes:
        flat = batch["embedding"].combine_chunks().flatten().to_numpy(zero_copy_only=False)
        store.stage_vectors(job.run, hashes, flat.reshape(len(hashes), -1))
    warning = "; ".join(text for text in batch["warning"].unique().to_pylist() if text)
    times = {f"{step}_at": [pc.min(batch[f"{step}_at"]).as_py()] for step in ("read", "embed")}
    times |= {f"{step}_s": [pc.sum(batch[f"{step}_s"], min_count=0).as_py()] for step in ("read", "embed")}
    counts = {"stored": [len(hashes)], "too_long": [sum(batch["too_long"].to_pylist())]}
    return pa.table({**counts, **times, **_times("store", began, 1), "warning": [warning]})


def _times(step: str, began: float, rows: int) -> dict[str, Any]:
    """Return columns with a step's start (Unix time) and its seconds, divided equally among the rows."""
    each = max(0.0, time.time() - began) / max(1, rows)
    return {f"{step}_at": np.full(rows, began), f"{step}_s": np.full(rows, each)}


def _stage(
    todo: Sequence[PageToIndex], job: BuildJob, store: Store, read: Callable[..., PageChunks]
) -> dict[str, list[str]]:
    staged, failures = [], []
    for entry in todo:
        try:
            staged.append(_staged_page(entry, job, read))
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
    return {"embed_hash": mine, "embed_text": [chunks[name].embed_text for name in mine]}


def _staged_page(entry: PageToIndex, job: BuildJob, read: Callable[..., PageChunks]) -> StagedPage:
    page = read(entry.page)
    url = entry.page.url
    tags, version = job.rules.tags_of(url), job.rules.version_of(url)
    return StagedPage(url=url, input_hash=entry.input_hash, tags=tags, version=version, **page._asdict())
