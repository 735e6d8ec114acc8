"""Sets up comparisons with other libraries: the database server, environments, the model, workers."""

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
# Raydex's models: the peers' weights in int8, if int8 would be its default here, and as the peers have them.
OURS_MODELS = {OURS: choose_model(AUTO).replace(IndexSettings().model, MODEL), OURS_FP32: MODEL}
PEERS = {"LlamaIndex": "llamaindex", "Haystack": "haystack"}


class Bench:
    """A home folder with its database server at `url`, the peers' environments below it, and the model's folder."""

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
        """Return a database's URL for the server's superuser, who must create the extension's types."""
        return urlsplit(self._server)._replace(path=f"/{database}").geturl()

    def execute(self, statement: str) -> list[Any]:
        """Execute a statement on the server and return its rows."""
        with psycopg.connect(self._server, autocommit=True) as connection:
            cursor = connection.execute(statement)  # type: ignore[call-overload]
            return list(cursor.fetchall()) if cursor.description else []

    @contextmanager
    def fresh_database(self) -> Iterator[str]:
        """Yield the URL of an empty database, and drop it at the end."""
        name = f"peers_{os.getpid()}_{time.monotonic_ns()}"
        self.execute(f"create database {name}")
        try:
            yield self.url(name)
        finally:
            self.execute(f"drop database {name} with (force)")

    def loaded_database(self, name: str, corpus: Path) -> str:
        """Return the URL of the database into which the peer `name` has loaded the corpus. Loads it the first time."""
        database = f"peers_{PEERS[name]}_{corpus.parent.name}_{corpus.name}".replace("-", "_")
        if not self.execute(f"select 1 from pg_database where datname = '{database}'"):
            making = f"{database}_part"
            self.execute(f"drop database if exists {making}")
            self.execute(f"create database {making}")
            # This exceeds their documentation: with the default of 64 MB, building HNSW takes far longer.
            self.execute(f"alter database {making} set maintenance_work_mem = '1GB'")
            print(f"loading {corpus.name} into {name} (once)", file=sys.stderr, flush=True)
            with self.start(name) as worker:
                worker.call("load", url=self.url(making), corpus=str(corpus))
            self.execute(f"alter database {making} rename to {database}")
        return self.url(database)
