"""The steps of every run: pages become chunks, chunks become vectors, vectors are stored.

Progress is kept in the database: a step that runs twice changes nothing, and a run continues where a killed one
stopped. Only URLs, and texts that lack a vector, are passed between steps. This module knows neither Ray nor Arrow,
which imports pandas for its first table (1 s of CPU).
"""

import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

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

# About 400 texts: enough for the encoder to sort by length, and few enough that a kill loses only seconds of embedding.
BLOCK_BYTES = 384 << 10
# Pages per step, which limits the bodies in memory.
PAGES_PER_STEP = 16


class Work(NamedTuple):
    """When a step began (Unix time, 0 for never), and how many seconds it worked."""

    at: float = 0.0
    seconds: float = 0.0


class Text(NamedTuple):
    """A text to embed, with its number of tokens; `read` is its share of the time in which its page was read."""

    embed_hash: str
    embed_text: str
    tokens: int
    read: Work


class Embedded(NamedTuple):
    """The vectors (float32, one row per hash) of some texts.

    `too_long` says which texts the model reads only the beginning of. `warning` is the embedder's, or "".
    """

    hashes: Sequence[str]
    vectors: NDArray[np.float32]
    too_long: Sequence[bool]
    warning: str
    read: Work
    embed: Work


class Stored(NamedTuple):
    """How many vectors were stored, how many of their texts were too long, a warning, and each step's work."""

    stored: int
    too_long: int
    warning: str
    read: Work
    embed: Work
    store: Work


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
) -> Iterator[list[Text]]:
    """Read, cut and stage the pages that the index lacks in their present state; yield the texts to embed."""
    for start in range(0, len(urls), PAGES_PER_STEP):
        wanted = urls[start : start + PAGES_PER_STEP]
        rules, attempts = job.input_rules, job.read_attempts
        began = time.time()
        todo = store.pages_to_index(job.collection, job.run, job.index, rules, wanted, attempts)
        texts = _stage(todo, job, store, read)
        each = Work(began, _since(began) / max(1, len(texts)))
        yield [Text(chunk.embed_hash, chunk.embed_text, chunk.tokens, each) for chunk in texts]


class TextModel:
    """Embeds texts; it loads the model once.

    The embedder's warnings (a missing GPU), and which texts were too long, are returned with the vectors, because
    nobody reads the log of a Ray actor.
    """

    def __init__(self, job: BuildJob) -> None:
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

    def __call__(self, texts: Sequence[Text]) -> Embedded:
        began = time.time()
        vectors = self.embedder.embed_chunks([text.embed_text for text in texts])
        work = Work(began, _since(began))
        too_long = [text.tokens > self.embedder.counter.max_tokens for text in texts]
        hashes = [text.embed_hash for text in texts]
        return Embedded(hashes, vectors, too_long, self.warning, joined(text.read for text in texts), work)


def store_vectors(embedded: Embedded, job: BuildJob, store: Store) -> Stored:
    """Stage vectors."""
    began = time.time()
    if embedded.hashes:
        store.stage_vectors(job.run, embedded.hashes, embedded.vectors)
    work = Work(began, _since(began))
    count, too_long = len(embedded.hashes), sum(embedded.too_long)
    return Stored(count, too_long, embedded.warning, embedded.read, embedded.embed, work)


def joined(parts: Iterable[Work]) -> Work:
    """Return the first begin of some work and all of its seconds."""
    done = [part for part in parts if part.at]
    return Work(min(part.at for part in done), sum(part.seconds for part in done)) if done else Work()


def _since(began: float) -> float:
    return max(0.0, time.time() - began)


def _stage(todo: Sequence[PageToIndex], job: BuildJob, store: Store, read: Callable[..., PageChunks]) -> list[Chunk]:
    """Stage pages; return one chunk for each text that nobody else embeds."""
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
    return [chunks[name] for name in mine]


def _staged_page(entry: PageToIndex, job: BuildJob, read: Callable[..., PageChunks]) -> StagedPage:
    page = read(entry.page)
    url = entry.page.url
    tags, version = job.rules.tags_of(url), job.rules.version_of(url)
    return StagedPage(url=url, input_hash=entry.input_hash, tags=tags, version=version, **page._asdict())
