"""Defines the steps that benchmarks/scale.py times: load, publish, search, change, replica, with the real classes.

Each returns figures by name: seconds, bytes, milliseconds or shares.
"""

import itertools
import os
import shutil
import statistics
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.scale_meters import Figures, Stopwatch, cpu_counted, statements_timed
from benchmarks.synthetic import (
    COLLECTION,
    RARE,
    RARE_TAG,
    SITE,
    MadePage,
    Synthetic,
    publish,
    stage_all,
    synthetic_settings,
)
from pipelines.answering.retrieval.retriever import Retriever
from pipelines.answering.retrieval.search import RetrievalSettings, Search
from pipelines.fetched import FetchedPage
from pipelines.indexing.lock import hold_collection, record_run
from pipelines.lexical import LexicalIndex
from pipelines.records import Filters, VectorType
from pipelines.store import BuildResources, Store, build_index, promote_index
from pipelines.store.indexes import IndexSnapshot, ScoredChunk

K, DEPTH = 5, 10
CLIENTS = 8
# Cosines with a smaller difference are equal.
TIE = 1e-6
FILES_AT_ONCE = 256  # as in indexing/folders/files.py
Questions = Sequence[tuple[str, np.ndarray]]


class ReadyEmbedder:
    """An embedder that knows its questions' vectors. Any other text gets the vector of the first."""

    def __init__(self, questions: Questions) -> None:
        self._vectors, self._other = dict(questions), questions[0][1]

    def embed_query(self, text: str) -> np.ndarray:
        return self._vectors.get(text, self._other)

    def embed_chunks(self, texts: Sequence[str]) -> np.ndarray:
        return np.stack([self.embed_query(text) for text in texts])


# ---------------------------------------------------------------------------------------------- load and change


def load(store: Store, synthetic: Synthetic, vector_type: VectorType) -> Figures:
    """Stage all chunks and publish them. Generating the pages is not counted."""
    watch, figures = Stopwatch(), Figures()
    with hold_collection(store, COLLECTION) as lock, record_run(lock, "reindex", {}) as record:
        with cpu_counted(store.url, figures, "stage"):
            stage_all(store, record.run, synthetic.pages(), watch)
        with statements_timed(store.url, figures), cpu_counted(store.url, figures, "publish"), watch("publish"):
            publish(store, lock, record.run, synthetic_settings(vector_type))
    return watch.figures() | figures


def change_in_place(store: Store, synthetic: Synthetic) -> Figures:
    """Change one page in a hundred, and publish the change into the live index."""
    watch, figures = Stopwatch(), Figures()
    with hold_collection(store, COLLECTION) as lock, record_run(lock, "reindex", {}) as record:
        stage_all(store, record.run, _changed(synthetic, record.run), watch)
        with cpu_counted(store.url, figures, "publish"), watch("publish"):
            made = publish(store, lock, record.run, store.live_index(COLLECTION).settings)
    assert made.in_place and made.written, made
    named = {f"in_place_{name}": value for name, value in (watch.figures() | figures).items()}
    return named | {"in_place_chunks": made.written}


def change_by_rebuild(store: Store, synthetic: Synthetic) -> Figures:
    """Change one page in a hundred, build a new index next to the live one, and drop the old one."""
    watch, figures = Stopwatch(), Figures()
    live = store.live_index(COLLECTION)
    with hold_collection(store, COLLECTION) as lock, record_run(lock, "reindex", {}) as record:
        stage_all(store, record.run, _changed(synthetic, record.run), watch)
        with statements_timed(store.url, figures), cpu_counted(store.url, figures, "publish"), watch("publish"):
            made = build_index(lock, record.run, live.settings, live, True, BuildResources())
            promote_index(lock, record.run, made.index)
        with watch("prune"):
            store.prune(COLLECTION)
    return {f"rebuild_{name}": value for name, value in (watch.figures() | figures).items()}


def _changed(synthetic: Synthetic, run: int) -> Iterator[MadePage]:
    """Generate one page in a hundred, with a sentence that names the run."""
    return synthetic.pages(lambda number: number % RARE == 1, f"This sentence is new in run {run}. ")


def run_unchanged(store: Store, synthetic: Synthetic) -> Figures:
    """Do the database work of a run over an unchanged folder. Reading the files is not counted."""
    watch, figures, index = Stopwatch(), Figures(), store.live_index(COLLECTION)
    pages = synthetic.pages()
    with (
        cpu_counted(store.url, figures, "unchanged"),
        hold_collection(store, COLLECTION) as lock,
        record_run(lock, "reindex", {}) as record,
    ):
        while batch := list(itertools.islice(pages, FILES_AT_ONCE)):
            with watch("unchanged"):
                store.content_hashes(COLLECTION, [page.staged.url for page in batch])
                store.save_pages(COLLECTION, record.run, [FetchedPage(page.staged.url, "ok") for page in batch])
        with watch("unchanged"):
            store.mark_unseen(COLLECTION, record.run, SITE, "gone")
            store.mark_duplicates(COLLECTION, record.run, {})
            store.ranges_to_index(COLLECTION, record.run, index.id, "", 200)
            store.mark_duplicates(COLLECTION, record.run, {})
            store.page_counts(COLLECTION, record.run)
            store.deletable_pages(COLLECTION, index.id)
            made = publish(store, lock, record.run, index.settings)
            store.index_stats(index.id)
    assert not made.changed, made
    return watch.figures() | figures


# ---------------------------------------------------------------------------------------------- BM25


def build_words(store: Store, folder: Path) -> Figures:
    """Build BM25 in `folder`, like a replica that starts on a new machine."""
    shutil.rmtree(folder, ignore_errors=True)
    watch, cpu = Stopwatch(), time.process_time()
    with watch("bm25_build"):
        LexicalIndex(folder).sync(store, store.live_index(COLLECTION))
    return watch.figures() | {"bm25_cpu_s": time.process_time() - cpu, "bm25_bytes": float(size_of(folder))}


def follow_words(store: Store, folder: Path) -> Figures:
    """Bring BM25 to the live index's revision by applying its changes."""
    watch, lexical = Stopwatch(), LexicalIndex(folder)
    before = store.live_index(COLLECTION)
    with watch("bm25_follow"):
        lexical.sync(store, before)
    return watch.figures()


def start_replica(store: Store, folder: Path, questions: Questions, cold: bool) -> Figures:
    """Open an earlier process's BM25 folder and search once."""
    if cold:
        drop_from_memory(folder)
    watch, name = Stopwatch(), "replica_cold" if cold else "replica_warm"
    with watch(name):
        lexical = LexicalIndex(folder)
        lexical.sync(store, store.live_index(COLLECTION))
        lexical.search(questions[0][0], 50)
    return watch.figures()


def size_of(folder: Path) -> int:
    """Return the total size of the files in a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def drop_from_memory(folder: Path) -> None:
    """Drop a folder's files from the page cache."""
    os.sync()
    for path in folder.rglob("*"):
        if path.is_file():
            with path.open("rb") as file:
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


# ---------------------------------------------------------------------------------------------- search


def search(store: Store, folder: Path, questions: Questions, rounds: int = 3) -> Figures:
    """Search with 1 client, with 8, and with a filter that keeps one page in a hundred."""
    retriever = Retriever(
        store,
        lambda _: ReadyEmbedder(questions),
        lambda _: LexicalIndex(folder),
        collection=COLLECTION,
        settings=RetrievalSettings(),
    )
    texts, rare = [question for question, _ in questions], Filters(tags=(RARE_TAG,))
    one, many, kept = (Asking(retriever, filters) for filters in (Filters(), Filters(), rare))
    try:
        retriever.prepare()
        _ = [Asking(retriever, Filters())(text) for text in texts]
        rates, cpu = [], Figures()
        for _ in range(rounds):
            with cpu_counted(store.url, cpu, "one", own=True):
                one.rounds.append([one(text) for text in texts])
            one.cpu.append(cpu["one_cpu_s"] / len(texts))
            began = time.perf_counter()
            with ThreadPoolExecutor(CLIENTS) as clients:
                many.rounds.append(list(clients.map(many, texts)))
            rates.append(len(texts) / (time.perf_counter() - began))
            with cpu_counted(store.url, cpu, "filter", own=True):
                kept.rounds.append([kept(text) for text in texts])
            kept.cpu.append(cpu["filter_cpu_s"] / len(texts))
    finally:
        retriever.close()
    named = one.figures("one") | many.figures("eight") | kept.figures("filter")
    return named | {"eight_per_s": statistics.median(rates)}


class Asking:
    """Queries a retriever and collects seconds: whole `rounds`, `steps` of each question, `cpu` of one by rounds."""

    def __init__(self, retriever: Retriever, filters: Filters) -> None:
        self._retriever, self._filters = retriever, filters
        self.rounds: list[list[float]] = []
        self.cpu: list[float] = []
        self.steps: defaultdict[str, list[float]] = defaultdict(list)

    def __call__(self, question: str) -> float:
        began = time.perf_counter()
        found = self._retriever.retrieve(Search((question,), k=K, filters=self._filters))
        seconds = time.perf_counter() - began
        assert len(found.hits) == K and not found.degraded, found.degraded
        for step, taken in found.timings.items():
            self.steps[step].append(taken)
        return seconds

    def figures(self, name: str) -> Figures:
        """Return medians over rounds of quantiles, and medians of the steps, in milliseconds."""
        whole = {
            f"{name}_{p}_ms": statistics.median(float(np.quantile(seconds, share)) for seconds in self.rounds) * 1000
            for p, share in {"p50": 0.5, "p95": 0.95}.items()
        }
        if self.cpu:
            whole[f"{name}_cpu_ms"] = statistics.median(self.cpu) * 1000
        return whole | {f"{name}_{step}_ms": float(np.median(taken)) * 1000 for step, taken in self.steps.items()}


def recall(store: Store, synthetic: Synthetic, questions: Questions) -> Figures:
    """Return the share of the 10 nearest chunks (by exact cosines) that the store finds, of all and with a filter."""
    asked = np.stack([vector for _, vector in questions])
    best, kept = (np.full((len(asked), 0), -1, np.float32) for _ in range(2))
    for subject in range(synthetic.subjects):
        pages = synthetic.pages_of(subject)
        cosines = asked @ np.concatenate([page.vectors for page in pages]).T
        best = _largest(np.concatenate([best, cosines], axis=1))
        for page in pages:
            if page.number % RARE == 0:
                kept = _largest(np.concatenate([kept, asked @ page.vectors.T], axis=1))
    return {
        "recall": _found(store, questions, best, Filters()),
        "recall_filter": _found(store, questions, kept, Filters(tags=(RARE_TAG,))),
    }


def _largest(cosines: np.ndarray) -> np.ndarray:
    depth = min(DEPTH, cosines.shape[1])
    return np.partition(cosines, -depth, axis=1)[:, -depth:]


def _found(store: Store, questions: Questions, best: np.ndarray, filters: Filters) -> float:
    index, right = store.live_index(COLLECTION), 0
    tie = 1e-3 if index.settings.vector_type == "halfvec" else TIE
    for (_, vector), exact in zip(questions, best, strict=True):
        (nearest,) = store.read_index(index, partial(_nearest, vector, filters))
        right += sum(score >= exact.min() - tie for score, _ in nearest)
    return right / (best.shape[1] * len(questions))


def _nearest(vector: np.ndarray, filters: Filters, chunks: IndexSnapshot) -> list[list[ScoredChunk]]:
    return chunks.search([vector], [], DEPTH, filters).nearest
