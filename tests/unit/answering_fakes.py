"""A store in memory and an embedder by word counts, for the answering tests."""

import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

from pipelines.lexical import terms
from pipelines.records import Hit, Index, IndexSettings, digest
from pipelines.store import NoLiveIndex, NoSuchIndex, StoreUnavailable

DIMENSION = 64


def make_hit(source: str, text: str, headings: Sequence[str] = ("Guide",), score: float = 0.0) -> Hit:
    """A chunk at `url#anchor`."""
    url, _, anchor = source.partition("#")
    anchors = (anchor,) if anchor else ()
    return Hit(digest(source, text), url, anchors, "Guide", tuple(headings), text, digest(text), score, "cosine")


class WordEmbedder:
    """Vectors by word counts; `fails` makes it raise, `calls` counts."""

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


class MemoryStore:
    """Indexes in memory with one live a collection; `away` makes every call raise StoreUnavailable."""

    def __init__(self, *hits: Hit, collection: str = "docs") -> None:
        self.indexes: dict[int, Index] = {}
        self.chunks: dict[int, list[Hit]] = {}
        self.live: dict[str, int] = {}
        self.changes: dict[int, list[tuple[int, str]]] = {}
        self.away, self.searches, self._words = False, 0, WordEmbedder()
        if hits:
            self.publish_index(1, *hits, collection=collection)

    def publish_index(self, number: int, *hits: Hit, collection: str = "docs", model: str = "words") -> Index:
        """A new index becomes live."""
        self.indexes[number] = Index(number, collection, IndexSettings(model, dimension=DIMENSION), "live", 1)
        self.chunks[number], self.changes[number], self.live[collection] = list(hits), [], number
        return self.indexes[number]

    def publish(self, number: int, *hits: Hit) -> None:
        """The chunks of an index are replaced in place."""
        index = self.indexes[number]
        self.indexes[number] = replace(index, revision=index.revision + 1)
        changed = {hit.chunk_id for hit in (*self.chunks[number], *hits)}
        self.changes[number] += [(index.revision + 1, chunk_id) for chunk_id in sorted(changed)]
        self.chunks[number] = list(hits)

    def ping(self) -> None:
        self._reach()

    def collections(self) -> list[dict[str, Any]]:
        self._reach()
        return [
            {
                "name": name,
                "index": number,
                "revision": self.indexes[number].revision,
                "published_at": None,
                "stats": {},
            }
            for name, number in self.live.items()
        ]

    def live_index(self, collection: str) -> Index:
        self._reach()
        if collection not in self.live:
            raise NoLiveIndex(f"collection {collection!r} has no published index: run «python -m jobs.reindex» first")
        return self.indexes[self.live[collection]]

    def search(
        self, index: Index, vector: np.ndarray | None, ids: Sequence[str], k: int
    ) -> tuple[int, list[Hit], dict[str, Hit]]:
        self._reach()
        if index.id not in self.indexes:
            raise NoSuchIndex(f"index {index.id} was pruned")
        self.searches += 1
        chunks = self.chunks[index.id]
        scored = [] if vector is None else [replace(c, score=self._cosine(c, vector)) for c in chunks]
        nearest = sorted(scored, key=lambda hit: (-hit.score, hit.chunk_id))[:k]
        return self.indexes[index.id].revision, nearest, {c.chunk_id: c for c in chunks if c.chunk_id in set(ids)}

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
            raise StoreUnavailable("the database is away")

    def _cosine(self, chunk: Hit, vector: np.ndarray) -> float:
        return float(self._words.embed_query(chunk.text) @ vector)
