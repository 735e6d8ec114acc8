"""A collection of any size that behaves like documentation: clustered vectors, Zipf words, the same for the same seed.

    python benchmarks/synthetic.py --home DIR [--chunks 200000]

Vectors lie around pages, pages around subjects; a page's words are its subject's and everyone's. Loaded by binary COPY
into a database of its own on the server of DIR (or of --database-url), HNSW after the load; a second call finds it.
Knows nothing of what is measured on it.
"""

import argparse
import time
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
import psycopg
from psycopg.types.json import Jsonb

from pipelines import embedded
from pipelines.indexing.lock import hold_collection, record_run
from pipelines.keeper import superuser_url
from pipelines.records import IndexSettings, digest
from pipelines.store import BuildResources, NoLiveIndex, Store, promote_index
from pipelines.store.chunks import CHUNK_COLUMNS, chunk_table, create_chunk_table
from pipelines.store.connection import statement
from pipelines.store.publish import index_chunks, save_stats

COLLECTION = "synthetic"
DIMENSION = 384
CHUNKS_A_PAGE, PAGES_A_SUBJECT = 6, 80
# Of a unit vector: what a chunk shares with its subject, with its page, and what is its own; and in how many dimensions
# these differ. So the local dimension (Levina and Bickel 2004, 50 neighbours), which decides how hard HNSW's task is,
# is 10.7, and the median cosines to the 1st, 10th and 50th neighbour are 0.82, 0.67, 0.55; in the Ray
# documentation 11.5, and 0.88, 0.75, 0.67.
SUBJECT, PAGE, OWN = 0.6, 0.6, 0.5
SUBJECT_DIMENSIONS, OWN_DIMENSIONS = 32, 23
VOCABULARY, SUBJECT_VOCABULARY, WORDS = 50_000, 300, 100
# Zipf-Mandelbrot of English text (Montemurro 2001): p ~ 1 / (rank + 2.7) ** 1.05
SHIFT, EXPONENT = 2.7, 1.05
# Words of a chunk that are its subject's; and how many of the most frequent words no question is about.
SUBJECT_SHARE, STOP_RANKS = 0.3, 100


@dataclass(frozen=True)
class Synthetic:
    """`chunks` chunks by `seed`."""

    chunks: int
    seed: int = 1

    @property
    def database(self) -> str:
        """The name of the database that holds them."""
        return f"synthetic_{self.chunks}_{self.seed}"

    @cached_property
    def subjects(self) -> np.ndarray:
        """The subject of every chunk."""
        return np.arange(self.chunks) // (CHUNKS_A_PAGE * PAGES_A_SUBJECT)

    @cached_property
    def vectors(self) -> np.ndarray:
        """float32 (chunks, 384), rows of length 1."""
        rng = np.random.default_rng([self.seed, 0])
        pages, chunks = np.arange(self.chunks) // CHUNKS_A_PAGE, np.arange(self.chunks)
        subject = SUBJECT * _drawn(rng, self.subjects[-1] + 1, _basis(self.seed, SUBJECT_DIMENSIONS))[self.subjects]
        page = PAGE * _drawn(rng, pages[-1] + 1, _basis(self.seed, OWN_DIMENSIONS))[pages]
        return _unit(subject + page + OWN * _drawn(rng, len(chunks), _basis(self.seed, OWN_DIMENSIONS)))

    @cached_property
    def ranks(self) -> np.ndarray:
        """The words of every chunk (chunks, 100), as ranks in the vocabulary."""
        rng = np.random.default_rng([self.seed, 1])
        ranks = _zipf(rng, VOCABULARY, (self.chunks, WORDS))
        own = rng.integers(STOP_RANKS, VOCABULARY, (self.subjects[-1] + 1, SUBJECT_VOCABULARY))
        chosen = _zipf(rng, SUBJECT_VOCABULARY, (self.chunks, WORDS))
        return np.where(rng.random(ranks.shape) < SUBJECT_SHARE, own[self.subjects[:, None], chosen], ranks)

    @cached_property
    def words(self) -> list[str]:
        """The vocabulary, most frequent first."""
        rng = np.random.default_rng([self.seed, 2])
        syllables = np.array([c + v for c in "bcdfgklmnprtvz" for v in "aeiou"])
        lengths = rng.integers(3, 6, VOCABULARY)
        return ["".join(syllables[rng.integers(0, len(syllables), n)]) + "k" for n in lengths]

    def questions(self, count: int) -> list[tuple[str, np.ndarray]]:
        """Questions, each about one chunk: six of its words that are not everyone's, and a vector near its own."""
        rng = np.random.default_rng([self.seed, 3])
        near = rng.integers(0, self.chunks, count)
        vectors = _unit(self.vectors[near] + OWN * _drawn(rng, count, _basis(self.seed, OWN_DIMENSIONS)))
        return [(self._about(rng, n), vector) for n, vector in zip(near, vectors, strict=True)]

    def _about(self, rng: np.random.Generator, chunk: int) -> str:
        rare = np.unique(self.ranks[chunk][self.ranks[chunk] >= STOP_RANKS])
        return " ".join(self.words[rank] for rank in rng.choice(rare, min(6, len(rare)), replace=False))

    def rows(self) -> Iterator[tuple[object, ...]]:
        """Rows of a chunk table: its columns, then the embedding."""
        for n, (vector, ranks) in enumerate(zip(self.vectors, self.ranks, strict=True)):
            words, name = [self.words[rank] for rank in ranks], digest(str(self.seed), str(n))
            page = f"http://synthetic/{self.subjects[n]}/{n // CHUNKS_A_PAGE}.html"
            title, anchor = " ".join(words[:3]), f"s{n % CHUNKS_A_PAGE}"
            row = {
                "id": name, "url": page, "anchor": anchor, "anchors": [anchor], "title": title, "headings": words[3:6],
                "ordinal": n % CHUNKS_A_PAGE, "text": " ".join(words), "text_hash": name, "embed_hash": name,
                "tokens": WORDS, "tags": [], "version": None, "language": "en",
            }  # fmt: skip
            yield (*(row[column] for column in CHUNK_COLUMNS.names), vector)


def _unit(vectors: np.ndarray) -> np.ndarray:
    return np.asarray(vectors / np.linalg.norm(vectors, axis=-1, keepdims=True), np.float32)


def _basis(seed: int, dimensions: int) -> np.ndarray:
    return np.random.default_rng([seed, 4, dimensions]).standard_normal((dimensions, DIMENSION), np.float32)


def _drawn(rng: np.random.Generator, count: int, basis: np.ndarray) -> np.ndarray:
    """`count` unit vectors in the span of `basis`."""
    return _unit(rng.standard_normal((count, len(basis)), np.float32) @ basis)


def _zipf(rng: np.random.Generator, most: int, shape: tuple[int, ...]) -> np.ndarray:
    weights = (np.arange(most) + 1 + SHIFT) ** -EXPONENT
    return np.searchsorted(np.cumsum(weights / weights.sum()), rng.random(shape)).clip(max=most - 1)


def prepared(server: str, synthetic: Synthetic) -> str:
    """The URL of the database that holds `synthetic`, on `server`; loaded if it is not there."""
    with psycopg.connect(server, autocommit=True) as connection:
        found = connection.execute("select from pg_database where datname = %s", [synthetic.database]).fetchone()
        if found is None:
            connection.execute(f"create database {synthetic.database}")  # type: ignore[arg-type]
    url = urlsplit(server)._replace(path=f"/{synthetic.database}").geturl()
    with Store(url) as store:
        store.migrate()
        try:
            store.live_index(COLLECTION)
        except NoLiveIndex:
            _load(store, synthetic)
    return url


def _load(store: Store, synthetic: Synthetic) -> None:
    settings = IndexSettings("none", "none", DIMENSION, vector_type="vector")
    with hold_collection(store, COLLECTION) as lock, record_run(lock, "restore", {}) as record:
        with lock.transaction(record.run) as connection:
            named = {"collection": COLLECTION, "fingerprint": settings.fingerprint, "settings": Jsonb(asdict(settings))}
            index = int((connection.execute(statement("insert_index"), named).fetchone() or {})["id"])
            chunk = chunk_table(index)
            create_chunk_table(connection, index, "vector", DIMENSION)
            names = psycopg.sql.SQL(", ").join(map(psycopg.sql.Identifier, CHUNK_COLUMNS.names))
            with connection.cursor().copy(statement("restore_chunks", chunk=chunk, names=names)) as copy:
                copy.set_types([*CHUNK_COLUMNS.types, "vector"])
                for row in synthetic.rows():
                    copy.write_row(row)
            index_chunks(connection, chunk, "vector", BuildResources("2GB", 2))
            save_stats(connection, index)
        promote_index(lock, record.run, index)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--home", type=Path, required=True, help="folder of the embedded Postgres")
    parser.add_argument("--database-url", help="instead of the embedded one")
    parser.add_argument("--chunks", type=int, default=200_000)
    args = parser.parse_args()
    with nullcontext() if args.database_url else embedded.run_postgres(args.home):
        began, server = time.perf_counter(), args.database_url or superuser_url(args.home)
        print(prepared(server, Synthetic(args.chunks)).rsplit("/", 1)[-1], f"{time.perf_counter() - began:.0f} s")


if __name__ == "__main__":
    main()
