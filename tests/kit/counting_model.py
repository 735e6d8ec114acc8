"""Serves an embedding endpoint that returns word counts at a known pace, and texts to index with it."""

import json
import math
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import yaml
from kit.reindexing import html_page
from kit.web import Answer, Handler, Server, json_answer
from kit.workshop import BASE

from pipelines.embedding.load import load_embedder
from pipelines.records import digest

DIMENSION = 64
MODEL = "openai:counting"


def counted_pages(folder: Path, pages: int, name: str = "docs") -> Path:
    """Write a collection of `pages` pages with one text each below `folder`, and return its file."""
    (site := folder / name).mkdir()
    for page in range(pages):
        text = html_page(f"Page {page}", {"usage": f"Subject {page * 7919} is here."})
        (site / f"p{page:05}.html").write_text(text)
    index = {"model": MODEL, "dimension": DIMENSION}
    collection = {"name": name, "folders": [{"path": str(site), "base_url": BASE}], "index": index}
    (file := folder / f"{name}.yaml").write_text(yaml.safe_dump(collection))
    return file


class IndexRun:
    """A run in its own process that indexes a collection file. Kills the run if it is still running at the end.

    `enter` is the command prefix that runs it on another host.
    """

    def __init__(self, file: Path, environment: Mapping[str, str], enter: Sequence[str] = ()) -> None:
        command = [*enter, sys.executable, "-m", "jobs.reindex", str(file), "--parallel-workers", "0", "--json"]
        self._log = file.with_suffix(".log")
        with self._log.open("wb") as said:
            self.process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=said, text=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with self.process:
            self.process.kill()

    def finish(self, within_s: float | None = None) -> dict[str, Any]:
        """Wait for the run to end and return its summary."""
        out, _ = self.process.communicate(timeout=within_s)
        assert self.process.returncode == 0, self._log.read_text()
        return json.loads(out.splitlines()[-1])


class CountingModel(Server):
    """Serves at `url`. `requests` has (monotonic time, embed_hash) of each embedded text.

    After `rest_after` texts it pauses: requests with other texts wait until `go_on`.
    """

    def __init__(self, seconds_per_text: float) -> None:
        super().__init__()
        self.url += "/v1"
        self.seconds_per_text = seconds_per_text
        self.requests: list[tuple[float, str]] = []
        self.going = threading.Event()
        self.going.set()
        self._limit, self._since = math.inf, 0.0
        self.embedder = load_embedder(f"hash:{DIMENSION}")

    def answer(self, handler: Handler) -> Answer:
        vectors = self.embed(json.loads(handler.body)["input"])
        rows = [{"object": "embedding", "index": n, "embedding": vector} for n, vector in enumerate(vectors)]
        usage = {"prompt_tokens": 0, "total_tokens": 0}
        return json_answer({"object": "list", "model": "counting", "data": rows, "usage": usage})

    def embed(self, texts: list[str]) -> list[list[float]]:
        names = [digest(MODEL, text) for text in texts if text != "dimension"]
        # A text is requested again if its client died. If that request waited, nobody could store the text.
        if not set(names) <= set(self.hashes(self._since)):
            self.going.wait()
        time.sleep(self.seconds_per_text * len(texts))
        now = time.monotonic()
        self.requests += [(now, name) for name in names]
        if len(set(self.hashes(self._since))) >= self._limit:
            self.going.clear()
        return [vector.tolist() for vector in self.embedder.embed_chunks(texts)]

    def rest_after(self, texts: int, since: float) -> None:
        """Continue, and pause again once that many different texts have been embedded since a moment."""
        self._limit, self._since = texts, since
        self.going.set()

    def go_on(self) -> None:
        """End the pause."""
        self._limit = math.inf
        self.going.set()

    def hashes(self, since: float = 0.0) -> list[str]:
        """Return the hashes embedded since a moment."""
        return [name for at, name in self.requests if since <= at]
