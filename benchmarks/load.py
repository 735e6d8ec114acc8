"""Measures questions under load from 1, 8 and 32 clients that search through the classes, and their CPU time by part.

    python -m benchmarks.load [--quick] [--home DIR] [--json FILE] [--write PAGE]

The clients, the classes and the encoder share this process, like the steps of a replica. Postgres is separate. Each
client asks again as soon as it is answered. Nothing is cached, so earlier questions do not affect a question's cost.
Figures are medians over rounds that include every number of clients. CPU times of threads and processes come from the
kernel's clock. Takes about 2 minutes.
"""

import asyncio
import itertools
import json
import os
import statistics
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TypeVar

from benchmarks import common, tables
from pipelines.answering import factory
from pipelines.answering.engine import QueryEngine
from pipelines.answering.question import Question
from pipelines.answering.retrieval.retriever import Retriever
from pipelines.answering.settings import AnswerSettings
from pipelines.embedding.cpu import multiplies_int8
from pipelines.embedding.embedder import Embedder
from pipelines.lexical import LexicalIndex
from pipelines.store import Store

CLIENTS = (1, 8, 32)
# The index may have been built with either model: searching costs the same.
MODELS = {"fp32": "all-MiniLM-L6-v2", "int8": "int8:all-MiniLM-L6-v2"}
T = TypeVar("T")


class Meter:
    """Sums CPU seconds by part: calls in this process, threads of native libraries, Postgres."""

    def __init__(self, postmaster: int) -> None:
        self._postmaster = postmaster
        self._seconds = {"embedding": 0.0, "BM25": 0.0}
        self._walls: list[float] = []
        self._lock = threading.Lock()

    def metered(self, part: str, call: Callable[..., T]) -> Callable[..., T]:
        """Return `call` with its thread's CPU time counted under `part`."""

        def metered_call(*arguments: object) -> T:
            cpu, began = time.thread_time(), time.perf_counter()
            try:
                return call(*arguments)
            finally:
                with self._lock:
                    self._seconds[part] += time.thread_time() - cpu
                    if part == "embedding":
                        self._walls.append(time.perf_counter() - began)

        return metered_call

    def read(self) -> dict[str, float]:
        """Return CPU seconds so far by part. "rest" is the Python code of retrieval, the event loop and the clients."""
        parts = dict(self._seconds)
        parts["embedding"] += _native_threads()
        parts["rest"] = time.process_time() - sum(parts.values())
        parts["Postgres"] = sum(map(_cpu_of, _children(self._postmaster)))
        return parts

    def take_embedding_walls(self) -> list[float]:
        """Return the seconds of each question embedded since the last call, including waiting."""
        walls, self._walls = self._walls, []
        return walls


@dataclass(frozen=True)
class Cell:
    """One round with one number of clients and one embedding model."""

    model: str
    clients: int
    per_second: float
    p50_ms: float
    p95_ms: float
    embedding_ms: float
    cpu_ms: dict[str, float]


def _cpu_of(pid: int, thread: int | None = None) -> float:
    try:
        return int(Path(f"/proc/{pid}/task/{thread or pid}/schedstat").read_text().split()[0]) / 1e9
    except OSError:  # it has ended
        return 0.0


def _children(pid: int) -> list[int]:
    return list(map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split()))


def _native_threads() -> float:
    """Return the CPU seconds of a native library's threads, here the encoder's."""
    ours = {thread.native_id for thread in threading.enumerate()}
    threads = {int(folder.name) for folder in Path("/proc/self/task").iterdir()}
    return sum(_cpu_of(os.getpid(), thread) for thread in threads - ours)


def questions(count: int) -> list[str]:
    """Return every n-th real question."""
    rows = json.loads(common.data("embedding_qa.json").read_text())
    return [row["question"] for row in rows[:: len(rows) // count]][:count]


async def ask(engine: QueryEngine, clients: int, seconds: float, texts: Iterator[str]) -> list[float]:
    """Return the latencies of `clients` that ask for `seconds`."""
    until, seen = time.perf_counter() + seconds, list[float]()

    async def client() -> None:
        while time.perf_counter() < until:
            began = time.perf_counter()
            found = await engine.asearch(Question(next(texts)))
            assert not found.degraded, found.degraded
            seen.append(time.perf_counter() - began)

    await asyncio.gather(*(client() for _ in range(clients)))
    return seen


async def measure(
    engine: QueryEngine, meter: Meter, cell: tuple[str, int], seconds: float, texts: Iterator[str]
) -> Cell:
    """Return the figures of one round with a model and a number of clients."""
    meter.take_embedding_walls()
    before, began = meter.read(), time.perf_counter()
    seen = await ask(engine, cell[1], seconds, texts)
    lasted, after = time.perf_counter() - began, meter.read()
    p95 = statistics.quantiles(seen, n=20, method="inclusive")[-1]
    walls = meter.take_embedding_walls()
    spent = {part: (after[part] - before[part]) / len(seen) * 1000 for part in after}
    return Cell(*cell, len(seen) / lasted, _ms(seen), p95 * 1000, _ms(walls), spent)


def _ms(seconds: Sequence[float]) -> float:
    return statistics.median(seconds) * 1000


def metered_retriever(settings: AnswerSettings, store: Store, meter: Meter, model: str) -> Retriever:
    """Return a ready, metered retriever that embeds questions with `model`."""
    make_embedder = factory.make_embedder

    def metered_embedder(settings: AnswerSettings, _: str) -> Embedder:
        embedder = make_embedder(settings, model)
        embedder.embed_query = meter.metered("embedding", embedder.embed_query)  # type: ignore[method-assign]
        return embedder

    factory.make_embedder = metered_embedder
    try:
        retriever = factory.make_retriever(settings, store)
        retriever.prepare()
    finally:
        factory.make_embedder = make_embedder
    return retriever


async def run_rounds(engines: dict[str, QueryEngine], meter: Meter, rounds: int, seconds: float) -> list[Cell]:
    """Return the figures of all rounds. Each round includes every model with every number of clients."""
    texts = itertools.cycle(questions(200))
    for engine in engines.values():
        await ask(engine, 4, 1.0, texts)
    return [
        await measure(engine, meter, (model, clients), seconds, texts)
        for _ in range(rounds)
        for clients in CLIENTS
        for model, engine in engines.items()
    ]


def medians(cells: Sequence[Cell], model: str, clients: int) -> Cell:
    """Return the medians over the rounds for one model and number of clients."""
    of = [cell for cell in cells if (cell.model, cell.clients) == (model, clients)]
    cpu_ms = {part: statistics.median(cell.cpu_ms[part] for cell in of) for part in of[0].cpu_ms}
    names = ("per_second", "p50_ms", "p95_ms", "embedding_ms")
    return Cell(model, clients, *(statistics.median(getattr(cell, name) for cell in of) for name in names), cpu_ms)


def as_markdown(cells: Sequence[Cell]) -> str:
    """Return the table."""
    parts = list(cells[0].cpu_ms)
    head = [
        "question embedded in",
        "clients",
        "questions/s",
        "p50 ms",
        "p95 ms",
        "embedding p50 ms",
        "CPU ms a question",
    ]
    rows = []
    for cell in cells:
        spent = ", ".join(f"{part} {cell.cpu_ms[part]:.1f}" for part in parts)
        times = [f"{value:.1f}" for value in (cell.p50_ms, cell.p95_ms, cell.embedding_ms)]
        rows.append(
            [cell.model, cell.clients, f"{cell.per_second:.0f}", *times, f"{sum(cell.cpu_ms.values()):.1f}: {spent}"]
        )
    return tables.as_table(head, rows)


def main() -> None:
    parser = common.arguments(__doc__)
    parser.add_argument("--collection", default="raydocs")
    args = common.parse(parser, "load")
    rounds, seconds = (1, 1.0) if args.quick else (5, 3.0)
    common.data("embedding_qa.json")
    with common.indexed_ray_docs(args.home, args.collection) as url, Store(url) as store:
        # Naming a language model omits the neighbors that a quoted answer needs. The model is never called.
        settings = AnswerSettings(
            home=args.home, collection=args.collection, llm_url="http://127.0.0.1:9", llm_model="-"
        )
        meter = Meter(int((args.home / "postgres" / "postmaster.pid").read_text().split()[0]))
        LexicalIndex.search = meter.metered("BM25", LexicalIndex.search)  # type: ignore[method-assign]
        models = {name: model for name, model in MODELS.items() if name == "fp32" or multiplies_int8()}
        retrievers = {name: metered_retriever(settings, store, meter, model) for name, model in models.items()}
        engines = {name: factory.make_engine(settings, retriever) for name, retriever in retrievers.items()}
        cells = asyncio.run(run_rounds(engines, meter, rounds, seconds))
        for retriever in retrievers.values():
            retriever.close()
    summed_up = [medians(cells, model, clients) for clients in CLIENTS for model in engines]
    figures = {"rounds": [asdict(cell) for cell in cells], "medians": [asdict(cell) for cell in summed_up]}
    common.report(args, "load", as_markdown(summed_up), figures, packages=["onnxruntime", "psycopg", "tantivy"])


if __name__ == "__main__":
    main()
