"""What the measurements beside other libraries share: the database server, environments, the model, workers."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import psycopg

from benchmarks import common
from benchmarks.peer.client import HERE, Worker, make_environment
from benchmarks.peer.corpus import Questions
from pipelines.embedding.load import load_embedder
from pipelines.indexing.collection import AUTO
from pipelines.indexing.settings import choose_model
from pipelines.keeper import superuser_url
from pipelines.records import IndexSettings

MODEL = "all-MiniLM-L6-v2"
OURS, OURS_FP32 = "Raydex", "Raydex, fp32"
# The models of Raydex: the peers' weights, in int8 where it would take them so by default, and as the peers have them.
OURS_MODELS = {OURS: choose_model(AUTO).replace(IndexSettings().model, MODEL), OURS_FP32: MODEL}
PEERS = {"LlamaIndex": "llamaindex", "Haystack": "haystack"}


class Bench:
    """A home with its running database server at `url`, the peers' environments below it, and the model's folder."""

    def __init__(self, home: Path, url: str) -> None:
        self.home, self.owner = home, url
        self.folder = home / "peers"
        self._server = superuser_url(home)
        self._embedder = load_embedder(MODEL, device="cpu", cache=home / "models")
        self.model = str(self._embedder.counter.folder)
        self._pythons = {name: self._environment(short) for name, short in PEERS.items()}

    def _environment(self, short: str) -> Path:
        try:
            return make_environment(self.folder / short, HERE / f"{short}.txt")
        except subprocess.CalledProcessError as error:
            said = str(error.stderr or error).strip().splitlines()
            common.cannot_run(f"the environment of {short} can't be made: {said[-1]}")

    def start(self, name: str) -> Worker:
        """Start the worker of a library."""
        if name not in PEERS:
            return Worker(Path(sys.executable), HERE / "raydex_worker.py")
        return Worker(self._pythons[name], HERE / f"{PEERS[name]}_worker.py")

    def embed(self, texts: Sequence[str]) -> Questions:
        """Return questions with their vectors, rows of length 1."""
        return list(texts), np.stack([self._embedder.embed_query(text) for text in texts])

    # -- databases

    def url(self, database: str) -> str:
        """Return the URL of a database for the server's superuser: the extension's types have to be created."""
        return urlsplit(self._server)._replace(path=f"/{database}").geturl()

    def execute(self, statement: str) -> list[Any]:
        """Execute a statement on the server; return its rows."""
        with psycopg.connect(self._server, autocommit=True) as connection:
            cursor = connection.execute(statement)  # type: ignore[call-overload]
            return list(cursor.fetchall()) if cursor.description else []

    @contextmanager
    def fresh_database(self) -> Iterator[str]:
        """Yield the URL of an empty database; drop it at the end."""
        name = f"peers_{os.getpid()}_{time.monotonic_ns()}"
        self.execute(f"create database {name}")
        try:
            yield self.url(name)
        finally:
            self.execute(f"drop database {name} with (force)")

    def loaded_database(self, name: str, corpus: Path) -> str:
        """Return the URL of the database in which the peer `name` holds the corpus; load it the first time."""
        database = f"peers_{PEERS[name]}_{corpus.parent.name}_{corpus.name}".replace("-", "_")
        if not self.execute(f"select 1 from pg_database where datname = '{database}'"):
            making = f"{database}_part"
            self.execute(f"drop database if exists {making}")
            self.execute(f"create database {making}")
            # More than their documentation does: with the default of 64 MB the build of HNSW takes far longer.
            self.execute(f"alter database {making} set maintenance_work_mem = '1GB'")
            print(f"loading {corpus.name} into {name} (once)", file=sys.stderr, flush=True)
            with self.start(name) as worker:
                worker.call("load", url=self.url(making), corpus=str(corpus))
            self.execute(f"alter database {making} rename to {database}")
        return self.url(database)
