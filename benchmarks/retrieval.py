"""Measures retrieval without embedding: hybrid search with its parts, HNSW only, BM25 only, and HNSW's recall.

    python -m benchmarks.retrieval [--quick] [--home DIR] [--sizes real 200000 1000000] [--json FILE] [--write PAGE]

The real chunks come from the Ray documentation, with real users' questions. The others are synthetic collections
(benchmarks/synthetic.py), created the first time: 200,000 take some minutes, a million takes an hour. A million is
measured if it exists or is named. The vectors of all questions are computed beforehand. All methods and sizes
alternate, and figures are medians over rounds. Every round has its own questions, because Raydex remembers the chunks
that it read. Takes about 2 minutes once the collections exist.
"""

import argparse
import json
import random
import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
from pgvector.psycopg import register_vector
from psycopg.sql import SQL

from benchmarks import common, tables
from benchmarks.synthetic import COLLECTION, Synthetic, prepared
from pipelines import embedded
from pipelines.answering.factory import make_embedder
from pipelines.answering.retrieval.retriever import Retriever
from pipelines.answering.retrieval.search import RetrievalSettings, Search
from pipelines.answering.settings import AnswerSettings
from pipelines.keeper import superuser_url
from pipelines.lexical import LexicalIndex, lexical_folder
from pipelines.records import Index
from pipelines.store import Store
from pipelines.store.chunks import chunk_table
from pipelines.store.database.connection import EF_SEARCH, HUGE_EF_SEARCH, HUGE_GRAPH
from pipelines.store.indexes import IndexSnapshot, ScoredChunk

REAL = "raydocs"
K, DEPTH, NEAREST = 5, RetrievalSettings().leg_depth, 10  # hits, chunks of each leg, chunks of recall
TIE = 1e-6  # cosines with a smaller difference are equal: many chunks are on several pages
PARTS = {
    "spell": "spelling",
    "bm25": "BM25",
    "search": "Postgres",
    "fuse": "fusion",
    "rank": "ranking",
}
Questions = Sequence[tuple[str, np.ndarray]]


class KnownVectors:
    """An embedder that knows its questions' vectors.

    Any other text, such as a corrected spelling, gets the vector of `asked`.
    """

    def __init__(self, questions: Questions) -> None:
        self._vectors, self.asked = dict(questions), questions[0][0]

    def embed_query(self, text: str) -> np.ndarray:
        return self._vectors[text if text in self._vectors else self.asked]

    def embed_chunks(self, texts: Sequence[str]) -> np.ndarray:
        return np.stack([self.embed_query(text) for text in texts])


@dataclass
class Collection:
    """A collection measured with three methods, `count` questions a round."""

    name: str
    store: Store
    index: Index
    questions: Questions
    folder: Path
    count: int
    parts: defaultdict[str, list[float]] = field(default_factory=lambda: defaultdict(list))

    def __post_init__(self) -> None:
        self._vectors, self.lexical = KnownVectors(self.questions), LexicalIndex(self.folder)
        self.chunks = self.store.index_stats(self.index.id)["chunks"]
        self._retriever = Retriever(
            self.store, lambda _: self._vectors, lambda _: self.lexical, collection=self.index.collection
        )
        self._retriever.prepare()
        ef_search = HUGE_EF_SEARCH if self.chunks > HUGE_GRAPH else EF_SEARCH
        self._session = psycopg.connect(
            self.store.url, autocommit=True, options=f"-c hnsw.ef_search={ef_search} -c jit=off"
        )
        register_vector(self._session)
        nearest = "select id from {} order by embedding <=> %s::{} limit {}"
        kind = SQL("halfvec" if self.index.settings.vector_type == "halfvec" else "vector")
        self._nearest = SQL(nearest).format(chunk_table(self.index.id), kind, DEPTH).as_bytes(None)

    def close(self) -> None:
        self._session.close()
        self._retriever.close()
        self.store.close()

    def ways(self) -> dict[str, Callable[[], list[float]]]:
        """The methods of searching it. Each returns the seconds of every question, and takes other ones next time."""
        ways = {"hybrid": self._hybrid, "HNSW": self._hnsw, "BM25": self._bm25}
        rounds = range(0, len(self.questions), self.count)
        parts = [self.questions[at : at + self.count] for at in rounds]
        return {f"{self.name} {way}": partial(self._timed, call, iter(parts)) for way, call in ways.items()}

    def _timed(self, call: Callable[[str, np.ndarray], object], parts: Iterator[Questions]) -> list[float]:
        seconds = []
        for text, vector in next(parts):
            self._vectors.asked = text
            began = time.perf_counter()
            call(text, vector)
            seconds.append(time.perf_counter() - began)
        return seconds

    def _hybrid(self, text: str, vector: np.ndarray) -> None:
        found = self._retriever.retrieve(Search((text,), k=K))
        assert len(found.hits) == K and not found.degraded, found.degraded
        for part, seconds in found.timings.items():
            self.parts[part].append(seconds)

    def _hnsw(self, text: str, vector: np.ndarray) -> None:
        self._session.execute(self._nearest, [vector], prepare=True, binary=True).fetchall()

    def _bm25(self, text: str, vector: np.ndarray) -> None:
        self.lexical.search(text, DEPTH)

    def recall(self, count: int) -> float:
        """Return the share of the nearest chunks (by an exact scan in the database) that the graph finds."""
        exact = SQL("select 1 - (embedding <=> %s::{}) from {} order by 1 desc limit {}").format(
            SQL("halfvec" if self.index.settings.vector_type == "halfvec" else "vector"),
            chunk_table(self.index.id), NEAREST,
        )  # fmt: skip
        right = 0
        self._session.execute("set enable_indexscan = off")
        for _, vector in self.questions[:count]:
            worst = self._session.execute(exact, [vector]).fetchall()[-1][0]
            found = self.store.read_index(self.index, partial(_search, vector))
            right += sum(score >= worst - TIE for score, _ in found[:NEAREST])
        self._session.execute("reset enable_indexscan")
        return right / (NEAREST * len(self.questions[:count]))


def _search(vector: np.ndarray, chunks: IndexSnapshot) -> list[ScoredChunk]:
    return chunks.search([vector], [], DEPTH).nearest[0]


def real_questions(model: str, home: Path, count: int) -> Questions:
    """Return every n-th real question with its vector."""
    rows = json.loads(common.data("embedding_qa.json").read_text())
    texts = list(dict.fromkeys(row["question"] for row in rows[:: len(rows) // count]))[:count]
    embedder = make_embedder(AnswerSettings(home=home), model)
    return [(text, embedder.embed_query(text)) for text in texts]


def open_real(home: Path, url: str, count: int, rounds: int) -> Collection:
    """Open the Ray documentation, with `count` questions a round."""
    store = Store(url)
    index = store.live_index(REAL)
    questions = real_questions(index.settings.model, home, count * rounds)
    return Collection(REAL, store, index, questions, lexical_folder(home, url, index.id), count)


def open_synthetic(home: Path, chunks: int, count: int, rounds: int) -> Collection:
    """Open a synthetic collection, created the first time, with `count` questions a round."""
    synthetic = Synthetic(chunks, cache=home)
    url = prepared(superuser_url(home), synthetic)
    store = Store(url)
    index = store.live_index(COLLECTION)
    folder = lexical_folder(home, url, index.id)
    questions = synthetic.questions(count * rounds)
    random.Random(1).shuffle(questions)  # they are generated by subject
    return Collection(f"{chunks:,} synthetic", store, index, questions, folder, count)


def has_million(home: Path) -> bool:
    """Return whether the server of `home` already has a million synthetic chunks."""
    name = Synthetic(1_000_000).database
    with psycopg.connect(superuser_url(home)) as connection:
        return bool(connection.execute("select from pg_database where datname = %s", [name]).fetchall())


def measure(collections: Sequence[Collection], rounds: int, exact: int) -> dict[str, Any]:
    """Return the figures of all collections."""
    ways = {name: way for one in collections for name, way in one.ways().items()}
    _ = [way() for way in ways.values()]
    for one in collections:
        one.parts.clear()
    seen = common.interleave(ways, rounds)
    return {
        one.name: {
            "chunks": one.chunks,
            "recall_at_10": round(one.recall(max(100, exact * 20_000 // max(one.chunks, 20_000))), 4),
            "parts_p50_ms": {part: _ms([one.parts[part]]) for part in PARTS},
            **{f"{way}_{p}_ms": _ms(seen[f"{one.name} {way}"], share)
               for way in ("hybrid", "HNSW", "BM25") for p, share in (("p50", 0.5), ("p95", 0.95))},
        }
        for one in collections
    }  # fmt: skip


def _ms(rounds: Sequence[Sequence[float]], share: float = 0.5) -> float:
    """Return the median over rounds of a round's quantile in milliseconds."""
    return round(statistics.median(float(np.quantile(seconds, share)) for seconds in rounds) * 1000, 2)


def as_rows(figures: dict[str, Any]) -> list[list[object]]:
    """Return the table with a row per method and a column per collection."""
    found = figures.values()
    rows: list[list[object]] = [["chunks", *(f"{one['chunks']:,}" for one in found)]]
    for way, label in (("hybrid", "hybrid"), ("HNSW", "only HNSW"), ("BM25", "only BM25")):
        rows.append([f"{label}, p50 (p95), ms", *(f"{one[f'{way}_p50_ms']} ({one[f'{way}_p95_ms']})" for one in found)])
    rows[2:2] = [[f"· {label}, p50", *(one["parts_p50_ms"][part] for one in found)] for part, label in PARTS.items()]
    return [*rows, ["recall@10 of HNSW against an exact scan", *(one["recall_at_10"] for one in found)]]


def main() -> None:
    parser = common.arguments(__doc__)
    parser.add_argument("--sizes", nargs="+", help="real, or the number of synthetic chunks")
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    args = common.parse(parser, "retrieval")
    count, rounds, exact = (50, 2, 50) if args.quick else (200, 5, 200)
    sizes = args.sizes or ["real", "20000" if args.quick else "200000"]
    server = common.indexed_ray_docs if "real" in sizes else embedded.run_postgres
    with server(args.home) as url, ExitStack() as opened:
        if not args.sizes and not args.quick and has_million(args.home):
            sizes.append("1000000")
        collections = []
        for size in sizes:
            asked = count, rounds + 1  # one round to warm up
            made = open_real(args.home, url, *asked) if size == "real" else open_synthetic(args.home, int(size), *asked)
            opened.callback(made.close)
            collections.append(made)
        figures = measure(collections, rounds, exact)
    table = tables.as_table(["", *figures], as_rows(figures))
    common.report(args, "retrieval", table, figures, packages=["psycopg", "pgvector", "tantivy"])


if __name__ == "__main__":
    main()
