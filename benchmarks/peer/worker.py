"""Answers calls as JSON lines over pipes, with one library in its own process and environment.

A call is `{"do": NAME, …arguments}`, and its reply `{"result": …}` or `{"error": TRACEBACK}`. The library's output goes
to standard error. Uses only the standard library and numpy, because it runs in the environments of other libraries.
"""

import json
import os
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

# Returns a question's hits: their sources, best first.
Search = Callable[[str], list[str]]


def serve(functions: Mapping[str, Callable[..., Any]]) -> None:
    """Answer calls to `functions` until standard input ends."""
    replies = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    for line in sys.stdin:
        call = json.loads(line)
        try:
            reply = {"result": functions[call.pop("do")](**call)}
        except Exception:
            reply = {"error": traceback.format_exc()}
        print(json.dumps(reply), file=replies, flush=True)


def ask(searches: Sequence[Search], questions: Sequence[str], pool: ThreadPoolExecutor) -> dict[str, Any]:
    """Ask `questions` with as many clients as there are `searches`, each again as soon as it is answered.

    Returns each question's seconds, and the total seconds.
    """
    queue = iter(questions)
    began = time.perf_counter()
    if len(searches) == 1:
        seconds = [_seconds(searches[0], question) for question in queue]
    else:
        clients = [pool.submit(_client, search, questions[n :: len(searches)]) for n, search in enumerate(searches)]
        seconds = [second for client in clients for second in client.result()]
    return {"seconds": seconds, "wall": time.perf_counter() - began}


def _client(search: Search, questions: Sequence[str]) -> list[float]:
    return [_seconds(search, question) for question in questions]


def _seconds(search: Search, question: str) -> float:
    began = time.perf_counter()
    search(question)
    return time.perf_counter() - began


class Opened:
    """The opened searches by name, and a worker's functions `ask`, `hits` and `memory`."""

    def __init__(self) -> None:
        self._searches: dict[str, list[Search]] = {}
        self._pool = ThreadPoolExecutor(64)

    def add(self, name: str, searches: Sequence[Search]) -> None:
        """Add `searches`, one for each concurrent client."""
        self._searches[name] = list(searches)

    def ask(self, name: str, questions: Sequence[str], clients: int) -> dict[str, Any]:
        return ask(self._searches[name][:clients], questions, self._pool)

    def hits(self, name: str, questions: Sequence[str]) -> list[list[str]]:
        return [self._searches[name][0](question) for question in questions]

    @property
    def functions(self) -> dict[str, Callable[..., Any]]:
        return {"ask": self.ask, "hits": self.hits}


def read_chunks(folder: Path) -> Iterator[dict[str, str]]:
    """Return the chunks of a corpus: id, text as the model reads it, source."""
    with (folder / "chunks.jsonl").open(encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def read_vectors(folder: Path) -> np.ndarray:
    """Return the chunks' vectors in order."""
    return np.load(folder / "vectors.npy", mmap_mode="r")


def read_questions(folder: Path) -> dict[str, list[float]]:
    """Return a corpus's questions with their vectors."""
    texts = json.loads((folder / "questions.json").read_text(encoding="utf-8"))
    return dict(zip(texts, np.load(folder / "question_vectors.npy").tolist(), strict=True))
