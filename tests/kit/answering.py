"""Provides a store in memory and an embedder by word counts for tests of answering."""

import asyncio
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from pipelines.answering.retrieval.evidence import Evidence
from pipelines.answering.synthesis.base import Task
from pipelines.answering.synthesis.candidates import Candidates
from pipelines.answering.synthesis.quotes import fill, in_order, write
from pipelines.answering.writing.agents import AgentResult, ExtractiveAgent
from pipelines.lexical import terms
from pipelines.records import Filters, Hit, Index, IndexSettings, digest
from pipelines.store import NoLiveIndex, NoSuchIndex, Place, StoreUnavailable
from pipelines.store.indexes import ScoredChunk, SearchResult
from tests.kit.archives import KeptArchives

T = TypeVar("T")

DIMENSION = 64


def make_hit(source: str, text: str, headings: Sequence[str] = ("Guide",), score: float = 0.0, **fields: Any) -> Hit:
    """Return a hit at `url#anchor`."""
    url, _, anchor = source.partition("#")
    anchors = (anchor,) if anchor else ()
    return Hit(
        digest(source, text), url, anchors, "Guide", tuple(headings), text, digest(text), score, "cosine", **fields
    )


def extract(
    question: str, *hits: Hit, embed: Any = None, evidence: Evidence | None = None
) -> tuple[str, AgentResult, Task]:
    """Return the text of an extractive answer, its result, and its task with the hits in order."""

    async def run() -> tuple[str, AgentResult, Task]:
        agent = ExtractiveAgent(embed)
        task = await agent.prepare(Task(question, hits, evidence=evidence))
        text, result = [part async for part in agent.answer(task)]
        assert isinstance(text, str) and isinstance(result, AgentResult)
        return text, result, task

    return asyncio.run(run())


def quote(question: str, *hits: Hit) -> str:
    """Return the quotation of the section with the best words, as shown for a certain answer."""
    candidates = Candidates(question, hits)
    quotes, ordered = in_order(fill([candidates.best_of(candidates.rank_telling())], hits), hits)
    return write(quotes, ordered)


class WordEmbedder:
    """Embeds texts as word counts. `fails` makes it raise; `calls` counts its calls."""

    def __init__(self, dimension: int = DIMENSION) -> None:
        self.dimension, self.calls, self.fails = dimension, 0, False

    def embed_query(self, text: str) -> np.ndarray:
        self.calls += 1
        if self.fails:
            raise RuntimeError("the model broke")
        vector = np.full(self.dimension, 1e-3, np.float32)
        for term in terms(text):
            vector[zlib.crc32(term.encode()) % self.dimension] += 1
        return vector / np.linalg.norm(vector)

    def embed_chunks(self, texts: Sequence[str]) -> np.ndarray:
        return np.stack([self.embed_query(text) for text in texts])


class Alike:
    """Embeds every text as the same vector."""

    async def __call__(self, texts: Sequence[str], collection: str | None = None) -> np.ndarray:
        return np.ones((len(texts), 1), np.float32)


class MemoryStore(KeptArchives):
    """Stores indexes in memory, with one live index per collection.

    `searches` counts searches, `looks` counts look-ups of the live index. `away` makes every call raise
    StoreUnavailable. `slow` makes a search return without its nearest chunks.
    """

    def __init__(self, *hits: Hit, collection: str = "docs") -> None:
        super().__init__()
        self.indexes: dict[int, Index] = {}
        self.chunks: dict[int, list[Hit]] = {}
        self.live: dict[str, int] = {}
        self.default: str | None = None
        self.changes: dict[int, list[tuple[int, str]]] = {}
        self.away, self.slow, self.searches, self.looks = False, False, 0, 0
        if hits:
            self.publish_index(1, *hits, collection=collection)

    def publish_index(self, number: int, *hits: Hit, collection: str = "docs", model: str = "words") -> Index:
        """Make a new index live."""
        self.indexes[number] = Index(number, collection, IndexSettings(model, dimension=DIMENSION), "live", 1)
        self.chunks[number], self.changes[number], self.live[collection] = list(hits), [], number
        return self.indexes[number]

    def publish(self, number: int, *hits: Hit) -> None:
        """Replace the chunks of an index in place."""
        index = self.indexes[number]
        self.indexes[number] = replace(index, revision=index.revision + 1)
        changed = {hit.chunk_id for hit in (*self.chunks[number], *hits)}
        self.changes[number] += [(index.revision + 1, chunk_id) for chunk_id in sorted(changed)]
        self.chunks[number] = list(hits)

    def collections(self) -> list[dict[str, Any]]:
        self._reach()
        return [
            {"name": name, "is_default": name == self.default, "index": number,
             "revision": self.indexes[number].revision, "published_at": None, "stats": {}}
            for name, number in self.live.items()
        ]  # fmt: skip

    def live_index(self, collection: str) -> Index:
        self._reach()
        self.looks += 1
        if collection not in self.live:
            raise NoLiveIndex(f"collection {collection!r} has no published index: run `raydex index` first")
        return self.indexes[self.live[collection]]

    def read_index(self, index: Index, read: Callable[["MemorySnapshot"], T], timeout_s: float | None = None) -> T:
        self._reach()
        if index.id not in self.indexes:
            raise NoSuchIndex(f"index {index.id} was pruned")
        self.searches += 1
        return read(MemorySnapshot(self, self.indexes[index.id], self.chunks[index.id]))

    def chunks_of_pages(self, index: int, urls: Sequence[str]) -> list[Hit]:
        self._reach()
        return sorted((hit for hit in self.chunks[index] if hit.url in urls), key=lambda hit: hit.ordinal)

    def find_place(self, index: Index, urls: Sequence[str], anchor: str = "") -> Place | None:
        for url in urls:
            for hit in self.chunks_of_pages(index.id, [url]):
                heading = next((one.headings[-1] for one in self.chunks[index.id] if one.anchors == (anchor,)), "")
                return Place(url, hit.title, hit.version, hit.language, heading)
        self._reach()
        return None

    def neighbours(self, index: int, ids: Sequence[str], reach: int) -> dict[str, list[Hit]]:
        self._reach()
        chunks = sorted(self.chunks[index], key=lambda chunk: chunk.ordinal)
        return {
            hit.chunk_id: [
                c
                for c in chunks
                if c.url == hit.url
                and -reach <= c.ordinal - hit.ordinal <= 2 * reach
                and (c.source == hit.source or c.headings[:-1] == hit.headings)
            ]
            for hit in chunks
            if hit.chunk_id in set(ids)
        }

    @contextmanager
    def scan_chunks(self, index: int) -> Iterator[tuple[int, Iterator[Hit]]]:
        self._reach()
        yield self.indexes[index].revision, iter(self.chunks[index])

    def changes_since(self, index: int, revision: int) -> tuple[int, list[tuple[str, Hit | None]]]:
        self._reach()
        now = {chunk.chunk_id: chunk for chunk in self.chunks[index]}
        changed = dict.fromkeys(chunk_id for at, chunk_id in self.changes[index] if at > revision)
        return self.indexes[index].revision, [(chunk_id, now.get(chunk_id)) for chunk_id in changed]

    def _reach(self) -> None:
        if self.away:
            raise StoreUnavailable("the database can't be reached")


class MemorySnapshot:
    """One state of an index in a MemoryStore."""

    def __init__(self, store: MemoryStore, index: Index, chunks: Sequence[Hit]) -> None:
        self._store, self._index, self._chunks, self._words = store, index, chunks, WordEmbedder()

    def search(
        self,
        vectors: Sequence[np.ndarray],
        ids: Sequence[str],
        k: int,
        filters: Filters = Filters(),
        *,
        collection: str | None = None,
    ) -> SearchResult:
        slow, chunks = self._store.slow, [chunk for chunk in self._chunks if filters.keep(chunk)]
        named = {chunk.chunk_id: chunk for chunk in chunks if chunk.chunk_id in set(ids)}
        nearest = [[] if slow else self._nearest(chunks, vector)[:k] for vector in vectors]
        return SearchResult(self._index.revision, nearest, named, slow, self._store.collections())

    def search_while(
        self, find_ids: Callable[[], Sequence[str]], vectors: Sequence[np.ndarray], k: int, *args: Any, **options: Any
    ) -> SearchResult:
        return self.search(vectors, find_ids(), k, *args, **options)

    def page(self, url: str) -> list[Hit]:
        return self._store.chunks_of_pages(self._index.id, [url])

    def _nearest(self, chunks: Sequence[Hit], vector: np.ndarray) -> list[ScoredChunk]:
        scored = [(float(self._words.embed_query(chunk.text) @ vector), chunk) for chunk in chunks]
        return sorted(scored, key=lambda one: (-one[0], one[1].chunk_id))
