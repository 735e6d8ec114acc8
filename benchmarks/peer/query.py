"""Measures each library's time from a question to its hits, its memory, and the quality of the hits."""

import statistics
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import common
from benchmarks.peer.client import Worker
from benchmarks.peer.corpus import Corpus
from benchmarks.peer.setup import OURS, OURS_FP32, OURS_MODELS, PEERS, Bench
from pipelines.evaluation.dataset import read_dataset
from pipelines.evaluation.metrics import HitSources, retrieval_score

K = 9
# Hits from each leg of a peer for the fusion.
DEPTH = 10
# Questions per round by number of clients. Every round has its own.
ASKED = {1: 100, 8: 160}
# Vectors from the model, or known vectors, which exclude the model's time.
EMBEDDED, KNOWN = "embedded", "known"


class Searches:
    """All libraries' searches over one corpus, each in its worker."""

    def __init__(self, bench: Bench, corpus: Corpus, modes: Sequence[str], depth: int = DEPTH) -> None:
        self._bench, self._corpus, self._modes, self._depth = bench, corpus, modes, depth
        self._stack = ExitStack()
        self.workers: dict[str, Worker] = {}

    def __enter__(self) -> "Searches":
        with ExitStack() as stack:
            for name in [*(OURS_MODELS if EMBEDDED in self._modes else [OURS]), *PEERS]:
                self.workers[name] = stack.enter_context(self._bench.start(name))
                self._open(name)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *error: Any) -> None:
        self._stack.__exit__(*error)

    def _open(self, name: str) -> None:
        given: dict[str, Any] = {"corpus": str(self._corpus.folder), "clients": max(ASKED), "k": K}
        if name in PEERS:
            model = self._bench.model
            given |= {"url": self._bench.loaded_database(name, self._corpus.folder), "depth": self._depth}
        else:
            model = OURS_MODELS[name]
            given |= {"url": self._corpus.url, "home": str(self._bench.home), "collection": self._corpus.collection}
        for mode in self._modes:
            self.workers[name].call("open", name=mode, model=model if mode == EMBEDDED else "", **given)

    def measure(self, rounds: int) -> dict[str, Any]:
        """Return the figures of each mode and number of clients by library, and each library's memory."""
        questions = iter(self._corpus.questions)
        figures: dict[str, Any] = {}
        for mode in self._modes:
            for clients, count in ASKED.items():
                parts = [[next(questions) for _ in range(count)] for _ in range(rounds + 1)]
                figures[f"{mode} {clients}"] = self._rounds(mode, clients, parts)
                print(mode, clients, figures[f"{mode} {clients}"], file=sys.stderr, flush=True)
        figures["memory"] = {name: worker.memory() for name, worker in self.workers.items()}
        return figures

    def _rounds(self, mode: str, clients: int, parts: Sequence[Sequence[str]]) -> dict[str, Any]:
        """Ask every library each part of the questions in turn, except the first part, which only warms them up.

        No question is asked twice, because a library may remember what it read.
        """
        asked, (warming, *parts) = [name for name in self.workers if mode == EMBEDDED or name != OURS_FP32], parts
        for name in asked:
            self.workers[name].call("ask", name=mode, questions=warming, clients=max(ASKED))
        turns = {name: iter(parts) for name in asked}

        def turn(name: str) -> dict[str, Any]:
            part = next(turns[name])
            return dict(self.workers[name].call("ask", name=mode, questions=part, clients=clients))

        found = common.interleave({name: lambda name=name: turn(name) for name in asked}, len(parts))
        return {name: _summary(rounds) for name, rounds in found.items()}

    def scores(self, dataset: Path) -> dict[str, float]:
        """Return each library's retrieval score at K."""
        examples = read_dataset(dataset)
        asked = [example.question for example in examples]
        return {
            name: statistics.mean(
                retrieval_score(example, HitSources(tuple((source,) for source in found), ()), K)
                for example, found in zip(examples, worker.call("hits", name=EMBEDDED, questions=asked), strict=True)
            )
            for name, worker in self.workers.items()
        }


def _summary(rounds: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return medians over rounds (ms per question, questions per second), and the p50 of each round."""
    p50 = [float(np.quantile(one["seconds"], 0.5)) * 1000 for one in rounds]
    p95 = [float(np.quantile(one["seconds"], 0.95)) * 1000 for one in rounds]
    rate = [len(one["seconds"]) / one["wall"] for one in rounds]
    return {
        "p50": statistics.median(p50),
        "p95": statistics.median(p95),
        "rate": statistics.median(rate),
        "rounds": p50,
    }
