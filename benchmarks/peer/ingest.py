"""Measures each library's time from documents to a searchable index, and for a second run without changes."""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks import common
from benchmarks.peer.client import peak_memory
from benchmarks.peer.corpus import Corpus, export
from benchmarks.peer.setup import MODEL, PEERS, Bench

Figures = dict[str, float]


def ingest_figures(
    bench: Bench, pages: Path, ours: Mapping[str, Sequence[str]], count: int
) -> dict[str, dict[str, Any]]:
    """Return each library's medians over `count` rounds, and the seconds of every round.

    `ours` are flags of `raydex index` by their name in the table. Seconds are from a process's start to its end.
    """
    corpus = cut(bench, pages)
    ways: dict[str, Callable[[], Figures]] = {}
    for name, flags in ours.items():
        ways[name] = lambda flags=flags: ours_once(bench, pages, flags)
    for name in PEERS:
        ways[name] = lambda name=name: peer_once(bench, name, corpus)
    for name, way in ways.items():
        ways[name] = lambda name=name, way=way: _told(name, way())
    found = common.interleave(ways, count)
    return {
        name: {
            **{key: statistics.median(figures[key] for figures in rounds) for key in rounds[0]},
            "rounds": [figures["seconds"] for figures in rounds],
        }
        for name, rounds in found.items()
    }


def cut(bench: Bench, pages: Path) -> Corpus:
    """Return the chunks that Raydex makes of a folder of pages, by indexing them."""
    collection = f"peers-{pages.name}"
    index(bench, bench.owner, pages, collection, ("--model", MODEL))
    return export(bench.folder, bench.owner, collection, lambda: bench.embed(["nothing is asked of it"]))


def ours_once(bench: Bench, pages: Path, flags: Sequence[str]) -> Figures:
    """Index a folder into a fresh database, and again."""
    with bench.fresh_database() as url:
        seconds, memory, chunks = index(bench, url, pages, "peers", flags)
        again, _, _ = index(bench, url, pages, "peers", flags)
    return {"seconds": seconds, "again": again, "memory": memory, "chunks": chunks}


def index(bench: Bench, url: str, pages: Path, collection: str, flags: Sequence[str]) -> tuple[float, float, int]:
    """Run `raydex index`, and return its seconds, its peak memory in MB and the number of chunks."""
    where = ["--collection", collection, "--path", str(pages), "--base-url", common.BASE_URL, "--json"]
    environment = {**os.environ, "RAYDEX_HOME": str(bench.home), "DATABASE_URL": url, "PYTHONPATH": str(common.ROOT)}
    began = time.perf_counter()
    with (
        subprocess.Popen(
            [sys.executable, "-m", "jobs", "index", *where, *flags],
            env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        ) as process,
        peak_memory(process.pid) as samples,
    ):  # fmt: skip
        said, _ = process.communicate()
    seconds = time.perf_counter() - began
    if process.returncode:
        raise RuntimeError(f"`raydex index` ended with {process.returncode}: {said[-2000:]}")
    return seconds, max(samples, default=0.0), json.loads(said.splitlines()[-1])["chunks"]["total"]


def peer_once(bench: Bench, name: str, corpus: Corpus) -> Figures:
    """Ingest a corpus with a peer into a fresh database, and again."""
    with bench.fresh_database() as url, tempfile.TemporaryDirectory() as scratch:
        given = {"url": url, "corpus": str(corpus.folder), "model": bench.model, "state": f"{scratch}/state"}
        seconds, memory, chunks = _call(bench, name, given)
        again, _, embedded = _call(bench, name, given)
    if embedded:
        raise RuntimeError(f"{name} embedded {embedded} chunks again")
    return {"seconds": seconds, "again": again, "memory": memory, "chunks": chunks}


def _call(bench: Bench, name: str, given: Mapping[str, str]) -> tuple[float, float, int]:
    began = time.perf_counter()
    with bench.start(name) as worker, peak_memory(worker.pid) as samples:
        chunks = worker.call("ingest", **given)
    return time.perf_counter() - began, max(samples, default=0.0), chunks


def _told(name: str, figures: Figures) -> Figures:
    print(name, {key: round(value, 1) for key, value in figures.items()}, file=sys.stderr, flush=True)
    return figures
