"""Serves an embedding endpoint in a thread: word counts as vectors, at a known pace. Makes what it is to embed."""

import json
import math
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import yaml
from kit.reindexing import html_page
from kit.workshop import BASE

from pipelines.embedding.load import load_embedder
from pipelines.records import digest

DIMENSION = 64
MODEL = "openai:counting"


def index_command(folder: Path, pages: int, name: str = "docs") -> list[str]:
    """Write a collection of so many pages of one text each below `folder`; return the command that indexes it."""
    (site := folder / name).mkdir()
    for page in range(pages):
        text = html_page(f"Page {page}", {"usage": f"Subject {page * 7919} is here."})
        (site / f"p{page:05}.html").write_text(text)
    index = {"model": MODEL, "dimension": DIMENSION}
    collection = {"name": name, "folders": [{"path": str(site), "base_url": BASE}], "index": index}
    (file := folder / f"{name}.yaml").write_text(yaml.safe_dump(collection))
    return [sys.executable, "-m", "jobs.reindex", str(file), "--parallel-workers", "0"]


class CountingModel:
    """Serves `url`; `requests` has (monotonic time, embed_hash) of each text that was embedded.

    `rest_after` has it rest once so many texts have been embedded: requests with other texts wait until `go_on`.
    """

    def __init__(self, seconds_per_text: float) -> None:
        self.seconds_per_text = seconds_per_text
        self.requests: list[tuple[float, str]] = []
        self.going = threading.Event()
        self.going.set()
        self._limit, self._since = math.inf, 0.0
        self.embedder = load_embedder(f"hash:{DIMENSION}")
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), type("Bound", (_Handler,), {"model": self}))
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}/v1"

    def __enter__(self) -> "CountingModel":
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def embed(self, texts: list[str]) -> list[list[float]]:
        names = [digest(MODEL, text) for text in texts if text != "dimension"]
        # A text comes again when its client died: were it to wait, nobody could store it.
        if not set(names) <= set(self.hashes(self._since)):
            self.going.wait()
        time.sleep(self.seconds_per_text * len(texts))
        now = time.monotonic()
        self.requests += [(now, name) for name in names]
        if len(set(self.hashes(self._since))) >= self._limit:
            self.going.clear()
        return [vector.tolist() for vector in self.embedder.embed_chunks(texts)]

    def rest_after(self, texts: int, since: float) -> None:
        """Go on, and rest once so many different texts have been embedded since a moment."""
        self._limit, self._since = texts, since
        self.going.set()

    def go_on(self) -> None:
        """Rest no more."""
        self._limit = math.inf
        self.going.set()

    def hashes(self, since: float = 0.0, until: float = float("inf")) -> list[str]:
        """Return what was embedded between two moments."""
        return [name for at, name in self.requests if since <= at < until]


class _Handler(BaseHTTPRequestHandler):
    model: CountingModel
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        vectors = self.model.embed(request["input"])
        rows = [{"object": "embedding", "index": n, "embedding": vector} for n, vector in enumerate(vectors)]
        usage = {"prompt_tokens": 0, "total_tokens": 0}
        body = json.dumps({"object": "list", "model": "counting", "data": rows, "usage": usage}).encode()
        try:
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True  # the client was killed

    def log_message(self, *_: object) -> None:
        pass
