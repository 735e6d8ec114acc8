"""Reindexes a site in one process, like a run, but without Ray, a crawler or HTML.

A site is {path: {anchor: text}}. A page's body is its sections as JSON. The section "a/b" is below "a"; "/b" has no
anchor. A path whose value is a state ("gone", "failed") is a page in that state.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
from psycopg import sql

from pipelines.embedding.load import load_embedder, load_tokenizer
from pipelines.fetched import FetchedPage
from pipelines.indexing.chunking.url_rules import UrlRules
from pipelines.indexing.lock import hold_collection
from pipelines.indexing.publish import find_base_index, publish_run
from pipelines.page.cut.chunker import Chunker
from pipelines.page.tree import Document, Section
from pipelines.records import Chunk, Filters, Hit, Index, IndexSettings, Page
from pipelines.store import (
    BuildResources,
    Publication,
    RunLock,
    SearchResult,
    StagedPage,
    Store,
    promote_index,
    restore,
)
from pipelines.store.chunks import chunk_table
from tests.kit.blocks import Block, nodes_of

BASE = "https://docs.test/"
Sections = Mapping[str, str]
Site = Mapping[str, Sections | str]
SMALL_BUILD = BuildResources("64MB", 0)


def search_index(
    store: Store, index: Index, vectors: Sequence[np.ndarray], ids: Sequence[str], k: int,
    filters: Filters = Filters(), timeout_s: float | None = None,
) -> SearchResult:  # fmt: skip
    """Return the result of a search in one snapshot."""
    return store.read_index(index, lambda chunks: chunks.search(vectors, ids, k, filters), timeout_s)


def nearest_hits(store: Store, index: Index, vector: np.ndarray, k: int) -> list[Hit]:
    """Return the chunks nearest to a vector, with their cosines."""

    (nearest,) = search_index(store, index, [vector], [], k).nearest
    return [replace(chunk, score=score, score_kind="cosine") for score, chunk in nearest]


def rows_of(store: Store, index: Index) -> dict[str, tuple[str, str]]:
    """Return each chunk's position and writer in the table. Both change when the row is rewritten."""
    rows = sql.SQL("select id, ctid::text, xmin::text from {}").format(chunk_table(index.id))
    with psycopg.connect(store.url) as connection:
        return {name: (ctid, xmin) for name, ctid, xmin in connection.execute(rows)}


class Workshop:
    """Reindexes one collection. `embedded` counts the texts embedded by the model."""

    def __init__(self, store: Store, name: str = "docs", model: str = "hash:64", **settings: Any) -> None:
        self.store, self.name, self.rules = store, name, UrlRules()
        self.use(model, **settings)

    def use(self, model: str, **settings: Any) -> None:
        """Use other settings from now on."""
        counter = load_tokenizer(model)
        self.settings = IndexSettings(model, counter.identity, counter.dimension, **settings)
        self.chunker = Chunker(counter, self.settings.chunk_size, self.settings.chunk_overlap)
        self.embedder = load_embedder(model)

    @property
    def embedded(self) -> int:
        return int(self.embedder.embedded)  # type: ignore[attr-defined]

    def base(self) -> Index | None:
        return find_base_index(self.store, self.name, self.settings)

    def lock(self) -> RunLock:
        """Acquire the collection's lock and return it."""
        lock = RunLock(self.store, self.name)
        assert lock.try_acquire()
        return lock

    def reindex(self, site: Site, **publishing: Any) -> Publication:
        """Do a whole run: pages, chunks, vectors, publish."""
        lock = self.lock()
        try:
            run = self.prepare(lock, site)
            publication = self.publish(lock, run, **publishing)
            lock.finish(run, "done", {}, None)
        finally:
            lock.release()
        return publication

    def prepare(self, lock: RunLock, site: Site) -> int:
        """Do everything except publishing, and return the run."""
        run = lock.begin("reindex", {})
        self.save(run, site)
        self.stage(run)
        return run

    def publish(
        self, lock: RunLock, run: int, delete: bool = True, publish: bool = True, base: Index | None = None
    ) -> Publication:
        base = base or self.base()
        return publish_run(self.store, lock, run, self.settings, base, delete, SMALL_BUILD, publish)

    def save(self, run: int, site: Site) -> None:
        """Save the pages as a crawler would commit them."""
        self.store.save_pages(self.name, run, [fetched(path, content) for path, content in site.items()])

    def stage(self, run: int) -> None:
        """Chunk the pages that the index lacks, and embed texts without a vector."""
        base = self.base()
        urls = self.store.known_urls(self.name)
        todo = self.store.pages_to_index(self.name, run, base.id if base else None, self.rules.digest, urls)
        staged = [self.read(entry.page, entry.input_hash) for entry in todo]
        if not staged:
            return
        self.store.stage_pages(run, staged)
        chunks = {chunk.embed_hash: chunk for page in staged for chunk in page.chunks}
        mine = sorted(self.store.claim(run, {name: chunk.url for name, chunk in chunks.items()}))
        if mine:
            vectors = self.embedder.embed_chunks([chunks[name].embed_text for name in mine])
            self.store.stage_vectors(run, mine, vectors)

    def read(self, page: Page, input_hash: str) -> StagedPage:
        chunks = self.chunks(page.url, json.loads(page.body))
        return StagedPage(
            page.url, input_hash, "Title", "en", self.rules.tags_of(page.url), self.rules.version_of(page.url),
            len(json.loads(page.body)), chunks,
        )  # fmt: skip

    def chunks(self, url: str, sections: Sections) -> list[Chunk]:
        parts = tuple(
            Section(
                url,
                (anchor,)[anchor[:1] == "/" :],
                ("Title", *filter(None, anchor.split("/"))),
                nodes_of(Block("prose", text)),
            )
            for anchor, text in sections.items()
        )
        return self.chunker(Document(url, "Title", "en", parts))

    def live(self) -> Index:
        return self.store.live_index(self.name)

    def search(self, text: str, k: int = 10, index: Index | None = None) -> list[Hit]:
        """Return the nearest chunks of the live index."""
        return nearest_hits(self.store, index or self.live(), self.embedder.embed_query(text), k)

    def texts(self, index: Index | None = None) -> dict[str, list[str]]:
        """Return the whole content of the live index: the texts under each source, sorted."""
        found: dict[str, list[str]] = {}
        with self.store.scan_chunks((index or self.live()).id) as (_, hits):
            for hit in hits:
                found.setdefault(hit.source.removeprefix(BASE), []).append(hit.text)
        return {source: sorted(texts) for source, texts in sorted(found.items())}

    def ids(self) -> set[str]:
        with self.store.scan_chunks(self.live().id) as (_, hits):
            return {hit.chunk_id for hit in hits}


def fetched(path: str, content: Sections | str, **fields: Any) -> FetchedPage:
    """Return a page with these sections or in this state."""
    if isinstance(content, str):
        return FetchedPage(BASE + path, content, error=f"is {content}", **fields)  # type: ignore[arg-type]
    return FetchedPage(BASE + path, "ok", 200, body=json.dumps(content).encode(), **fields)


def restored(store: Store, name: str, path: Path, publish: bool = True) -> None:
    """Restore a dump as an index of a collection."""
    with hold_collection(store, name) as lock:
        run = lock.begin("restore", None)
        index, _ = restore(lock, run, path, SMALL_BUILD)
        if publish:
            promote_index(lock, run, index)
        lock.finish(run, "done", {}, None)


def small_site(pages: int = 20, sections: int = 3) -> dict[str, Sections]:
    """Return pages whose sections all differ."""
    return {
        f"p{page:02}": {
            f"s{part}": f"The {_word(page)} of part {part} on page {page} is {_word(page * sections + part + 100)}."
            for part in range(sections)
        }
        for page in range(pages)
    }


def _word(number: int) -> str:
    """Return a word for a number, different for each number."""
    letters = "bcdfghklmnprstvz"
    return "".join(letters[(number >> shift) % 16] + "aeio"[(number >> shift) % 4] for shift in (0, 4, 8))
