"""Measures hybrid retrieval: on real chunks beside the tutorial's way, on many synthetic chunks, and HNSW's recall.

Questions are embedded before anything is timed; their embedding is timed apart. "The tutorial's way" is that of the
study's own repository (ray-project/llm-applications): a connection for each question, register_vector, an exact scan
ordered by distance, and rank_bm25 over all chunks with Python's sort. Its BM25 is built beforehand.
"""

import re
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import psycopg
from pgvector.psycopg import register_vector
from psycopg.sql import SQL
from rank_bm25 import BM25Okapi

from benchmarks.synthetic import COLLECTION, Synthetic
from pipelines.answering.factory import make_embedder
from pipelines.answering.retrieval.retriever import Retriever
from pipelines.answering.retrieval.search import RetrievalSettings, Search
from pipelines.answering.settings import AnswerSettings
from pipelines.lexical import LexicalIndex, lexical_folder
from pipelines.records import Index
from pipelines.store import Store
from pipelines.store.chunks import chunk_table

K = 5
# Cosines that differ by less are equal: many chunks are on several pages.
TIE = 1e-6
Questions = Sequence[tuple[str, np.ndarray]]


class KnownEmbedder:
    """An embedder that has the vectors of its questions ready."""

    def __init__(self, questions: Questions) -> None:
        self._vectors = dict(questions)

    def embed_query(self, text: str) -> np.ndarray:
        return self._vectors[text]

    def embed_chunks(self, texts: Sequence[str]) -> np.ndarray:
        return np.stack([self._vectors[text] for text in texts])


class Hybrid:
    """Our retriever on one collection; `steps` collects the seconds of its steps."""

    def __init__(self, settings: AnswerSettings, store: Store, collection: str, questions: Questions) -> None:
        self.store, self.index = store, store.live_index(collection)
        self.steps: list[dict[str, float]] = []
        self._retriever = Retriever(
            store,
            lambda _: KnownEmbedder(questions),
            lambda index: LexicalIndex(lexical_folder(settings.home, store.url, index.id)),
            collection=collection,
            settings=RetrievalSettings(leg_depth=settings.candidates),
        )
        self._retriever.prepare()

    def __call__(self, question: str, vector: np.ndarray) -> None:
        found = self._retriever.retrieve(Search((question,), k=K))
        assert len(found.hits) == K and not found.degraded, found.degraded
        self.steps.append(found.timings)

    def close(self) -> None:
        self._retriever.close()
        self.store.close()


class Tutorial:
    """The tutorial's way on the chunks of `index`."""

    def __init__(self, url: str, index: Index, texts: Sequence[str]) -> None:
        self._url, self._texts = url, texts
        self._bm25 = BM25Okapi([_words(text) for text in texts])
        self._query = SQL("select text, url from {} order by embedding <=> %s limit %s").format(chunk_table(index.id))

    def __call__(self, question: str, vector: np.ndarray) -> None:
        # Unlike the tutorial's, the table has an HNSW index, which must not be used.
        with psycopg.connect(self._url, options="-c enable_indexscan=off") as connection:
            register_vector(connection)
            found = connection.execute(self._query, [vector, K]).fetchall()
        scores = self._bm25.get_scores(_words(question))
        best = sorted(range(len(scores)), key=lambda n: -scores[n])[:K]
        assert len(found) + len(best) == 2 * K


def _words(text: str) -> list[str]:
    return re.sub(r"[^a-zA-Z0-9]", " ", text).lower().split()


def time_call(call: Callable[..., object], *arguments: object) -> float:
    began = time.perf_counter()
    call(*arguments)
    return time.perf_counter() - began


def recall(hybrid: Hybrid, questions: Questions, chunks: np.ndarray, depth: int = 10) -> float:
    """Return the share of the `depth` nearest, by exact cosines to all `chunks`, that HNSW finds."""
    right = 0
    for _, vector in questions:
        exact = np.partition(chunks @ vector, -depth)[-depth]
        (nearest,) = hybrid.store.search(hybrid.index, [vector], [], depth).nearest
        right += sum(hit.score >= exact - TIE for hit in nearest)
    return float(right / (depth * len(questions)))


def chunks_of(url: str, index: Index) -> tuple[list[str], np.ndarray]:
    """Return texts and vectors of a whole index, rows of length 1."""
    with psycopg.connect(url) as connection:
        register_vector(connection)
        cursor = connection.cursor(binary=True)
        rows = cursor.execute(SQL("select text, embedding from {}").format(chunk_table(index.id))).fetchall()
    vectors = np.stack([row[1].to_numpy() for row in rows])
    return [row[0] for row in rows], vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def embed_questions(settings: AnswerSettings, model: str, texts: Sequence[str]) -> tuple[Questions, list[float]]:
    """Return the questions with their vectors, and the seconds that each took."""
    embedder = make_embedder(settings, model)
    embedder.embed_query("warm")
    vectors, seconds = [], []
    for question in texts:
        began = time.perf_counter()
        vectors.append(embedder.embed_query(question))
        seconds.append(time.perf_counter() - began)
    return list(zip(texts, vectors, strict=True)), seconds


def measure(
    settings: AnswerSettings,
    real: tuple[str, str],
    many: tuple[str, Synthetic],
    questions: Sequence[str],
    rounds: int,
    slow: int,
) -> dict[str, Any]:
    """Measure `real` (database URL, collection) and `many`; the tutorial gets `slow` questions a round."""
    (url, collection), (many_url, synthetic) = real, many
    store = Store(url)
    model = store.live_index(collection).settings.model
    embedded, embedding = embed_questions(settings, model, questions)
    synthetic_questions = synthetic.questions(len(questions))
    ours = Hybrid(settings, store, collection, embedded)
    large = Hybrid(settings, Store(many_url), COLLECTION, synthetic_questions)
    texts, vectors = chunks_of(url, ours.index)
    tutorial = Tutorial(url, ours.index, texts)
    seen: dict[str, list[list[float]]] = {"real": [], "synthetic": [], "tutorial": []}
    for number in range(rounds):
        for hybrid, its, name in ((ours, embedded, "real"), (large, synthetic_questions, "synthetic")):
            hybrid(*its[0])
            seen[name].append([time_call(hybrid, *one) for one in its])
        few = embedded[number * slow :][:slow] or embedded[:slow]
        seen["tutorial"].append([time_call(tutorial, *one) for one in few])
    figures = {
        "chunks": {"real": len(texts), "synthetic": synthetic.chunks},
        "embedding_p50_ms": _ms([embedding]),
        **{f"{name}_p50_ms": _ms(rounds_) for name, rounds_ in seen.items()},
        **{f"{name}_p95_ms": _ms(rounds_, 0.95) for name, rounds_ in seen.items()},
        "steps_p50_ms": {"real": _steps(ours), "synthetic": _steps(large)},
        "tutorial_over_ours": round(_ratio(seen["tutorial"], seen["real"]), 1),
        "recall_at_10": {
            "real": round(recall(ours, embedded, vectors), 4),
            "synthetic": round(recall(large, synthetic_questions, synthetic.vectors), 4),
        },
        "questions": len(questions),
    }
    ours.close()
    large.close()
    return figures


def _ms(rounds: Sequence[Sequence[float]], share: float = 0.5) -> float:
    """Return the median over rounds of a round's quantile."""
    return round(statistics.median(float(np.quantile(seconds, share)) for seconds in rounds) * 1000, 2)


def _ratio(over: Sequence[Sequence[float]], under: Sequence[Sequence[float]]) -> float:
    """Return the median over rounds of the ratio of a round's medians."""
    return statistics.median(statistics.median(a) / statistics.median(b) for a, b in zip(over, under, strict=True))


def _steps(hybrid: Hybrid) -> dict[str, float]:
    return {name: _ms([[step[name] for step in hybrid.steps]]) for name in hybrid.steps[0]}
