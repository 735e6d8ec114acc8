"""Measures what Serve adds to the classes: /search and the first delta of /query/stream, beside a QueryEngine here.

In every round 1, 8 and 32 clients ask each way in turn, and the language model alone; each waits for its answer before
it asks again. The clients and the classes share this process but never run at a time. Serve, the model and Postgres are
processes of their own.
"""

import asyncio
import itertools
import json
import os
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import aiohttp
from answering_server import PLACEMENTS

from pipelines.answering.chain import Delta
from pipelines.answering.engine import QueryEngine, Question
from pipelines.answering.factory import make_engine, make_retriever
from pipelines.store import Store
from serve.settings import Settings

HERE = Path(__file__).resolve().parent
CLIENTS = (1, 8, 32)
# A model that sends a word every 20 ms: 50 tokens a second.
DELAY_S, REPLY = 0.02, "To read it, call ray.data.read_csv [1]."
# Set explicitly, so that the variables of the shell do not count.
OFF = {"RAY_SERVE_THROUGHPUT_OPTIMIZED": "0", "RAY_SERVE_ENABLE_HA_PROXY": "0"}
# Without HAProxy the optimised settings would bind every replica to a port of its own and start no proxy at all.
VARIANTS = {
    "default": OFF,
    "throughput": {**OFF, "RAY_SERVE_THROUGHPUT_OPTIMIZED": "1", "RAY_SERVE_ENABLE_DIRECT_INGRESS": "0"},
    "haproxy": {**OFF, "RAY_SERVE_ENABLE_HA_PROXY": "1"},
    "haproxy+throughput": {"RAY_SERVE_THROUGHPUT_OPTIMIZED": "1", "RAY_SERVE_ENABLE_HA_PROXY": "1"},
}

# No request is under way when a variant ends: HAProxy's replicas need not wait half a minute for late ones.
QUIET = {"RAY_SERVE_LOG_TO_STDERR": "0", "RAY_SERVE_DIRECT_INGRESS_MIN_DRAINING_PERIOD_S": "0"}

Call = Callable[[str], Awaitable[float]]  # asks a question and returns the seconds until the answer or its first delta
Figures = dict[str, Any]


# ---------------------------------------------------------------------------------------------- the other processes


@contextmanager
def scripted_llm() -> Iterator[str]:
    """Yield the base URL of a scripted model in a process of its own."""
    script = HERE.parent / "tests" / "kit" / "scripted_llm.py"
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


def free_port() -> int:
    """Return a free port of this machine: Serve would share one silently with another Serve."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def server(variant: str, port: int, settings: dict[str, Any], log: Path) -> Iterator[str]:
    """Yield the URL of Serve under a variant's environment."""
    with log.open("w") as errors:
        process = subprocess.Popen(
            [sys.executable, HERE / "answering_server.py", str(port), json.dumps(settings)],
            env=os.environ | VARIANTS[variant] | QUIET,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )
        assert process.stdout is not None and process.stdin is not None
        try:
            if not any(line.startswith("serving") for line in process.stdout):
                raise SystemExit(f"Serve did not start; see {log}")
            yield f"http://127.0.0.1:{port}"
        finally:
            process.stdin.close()
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


# ---------------------------------------------------------------------------------------------- the ways to ask


def classes(engine: QueryEngine) -> dict[str, Call]:
    """Return calls of the classes in this process."""

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

    return {"search": search, "first delta": stream}


def http(session: aiohttp.ClientSession, url: str) -> dict[str, Call]:
    """Return calls of an application behind Serve."""

    async def search(question: str) -> float:
        began = time.perf_counter()
        async with session.post(f"{url}/search", json={"question": question}) as reply:
            body = await reply.read()
        assert reply.status == 200, body
        return time.perf_counter() - began

    async def stream(question: str) -> float:
        return await _first(session, f"{url}/query/stream", {"question": question}, b"event: delta")

    return {"search": search, "first delta": stream}


def model(session: aiohttp.ClientSession, url: str, prompt: str) -> dict[str, Call]:
    """Return calls of the language model alone, with a prompt as long as ours."""
    messages = [{"role": "user", "content": prompt}]
    body = {"model": "scripted", "stream": True, "stream_options": {"include_usage": True}, "messages": messages}

    async def stream(question: str) -> float:
        return await _first(session, f"{url}/chat/completions", body, b'"delta": {"content": "')

    return {"first delta": stream}


async def _first(session: aiohttp.ClientSession, url: str, body: dict[str, Any], mark: bytes) -> float:
    """Return the seconds until the first line of a stream with `mark`; the stream is read to its end."""
    began, first = time.perf_counter(), 0.0
    async with session.post(url, json=body) as reply:
        assert reply.status == 200, await reply.read()
        async for line in reply.content:
            if not first and mark in line:
                first = time.perf_counter() - began
    assert first, f"{url} sent no delta"
    return first


async def latencies(call: Call, clients: int, seconds: float, questions: Iterator[str]) -> list[float]:
    """Return the latencies of `clients` that each ask again as soon as they are answered, for `seconds`."""
    until, seen = time.perf_counter() + seconds, list[float]()

    async def client() -> None:
        while time.perf_counter() < until:
            seen.append(await call(next(questions)))

    await asyncio.gather(*(client() for _ in range(clients)))
    return seen


# ---------------------------------------------------------------------------------------------- rounds


@asynccontextmanager
async def open_ways(settings: Settings, url: str, llm: str, prompt: str) -> AsyncIterator[dict[str, dict[str, Call]]]:
    """Yield each way to ask, by name."""
    store = Store(settings.database_url, settings.database_connections)
    retriever = make_retriever(settings, store)
    await asyncio.to_thread(retriever.prepare)
    limits = aiohttp.TCPConnector(limit=0, force_close=False)
    async with aiohttp.ClientSession(connector=limits, timeout=aiohttp.ClientTimeout(60)) as session:
        for placement in PLACEMENTS:
            await _wait_until_ready(session, f"{url}/{placement}")
        over_http = {placement: http(session, f"{url}/{placement}") for placement in PLACEMENTS}
        yield {"model": model(session, llm, prompt), "classes": classes(make_engine(settings, retriever)), **over_http}
    retriever.close()
    store.close()


async def _wait_until_ready(session: aiohttp.ClientSession, url: str) -> None:
    for _ in range(300):
        async with session.get(f"{url}/health/ready") as reply:
            if reply.status == 200:
                return
        await asyncio.sleep(0.1)
    raise SystemExit(f"{url} did not get ready")


async def measure(
    settings: Settings, url: str, llm: str, texts: Sequence[str], rounds: int, seconds: float
) -> list[Figures]:
    """Return, by kind, way and number of clients, medians over the rounds and of the difference within each round."""
    questions = itertools.cycle(texts)
    cells: dict[tuple[str, str, int], list[list[float]]] = {}
    async with open_ways(settings, url, llm, " ".join(texts[:60])) as ways:
        for calls in ways.values():
            for call in calls.values():
                await latencies(call, 4, 0.3, questions)
        for _ in range(rounds):
            for clients in CLIENTS:
                for kind in ("search", "first delta"):
                    for way, calls in ways.items():
                        if kind in calls:
                            lasts = seconds * (2 if clients == 1 else 1)  # one client alone asks fewest
                            seen = await latencies(calls[kind], clients, lasts, questions)
                            cells.setdefault((kind, way, clients), []).append(seen)
    return [_sum_up(cells, *cell) for cell in cells]


def _sum_up(cells: dict[tuple[str, str, int], list[list[float]]], kind: str, way: str, clients: int) -> Figures:
    of, base = cells[kind, way, clients], cells[kind, "classes" if kind == "search" else "model", clients]
    figures: Figures = {
        "kind": kind,
        "way": way,
        "clients": clients,
        "answers": sum(map(len, of)),
        "p50_ms": _ms(statistics.median(map(p50, of))),
        "p95_ms": _ms(statistics.median(map(p95, of))),
        "added_p50_ms": _ms(statistics.median(p50(a) - p50(b) for a, b in zip(of, base, strict=True))),
    }
    return figures


def p50(seconds: Sequence[float]) -> float:
    return statistics.median(seconds)


def p95(seconds: Sequence[float]) -> float:
    return statistics.quantiles(seconds, n=20, method="inclusive")[-1] if len(seconds) > 1 else seconds[0]


def _ms(seconds: float) -> float:
    return round(seconds * 1000, 2)
