"""Runs `python -m jobs.reindex` in its own process, kills it, and compares the result with an undisturbed run.

Uses a thousand small pages, a model that records every text, and an embedded Postgres with one database per case.
"""

import contextlib
import itertools
import json
import math
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import psycopg
import pytest
import yaml
from kit.counting_model import DIMENSION, MODEL, CountingModel
from kit.databases import new_database
from kit.processes import eventually, kill_seed, marked
from kit.reindexing import html_page
from kit.reporting import leave_table
from kit.workshop import BASE
from pgvector.psycopg import register_vector
from psycopg import sql
from psycopg.rows import dict_row

from pipelines import embedded
from pipelines.indexing.collection import Collection
from pipelines.indexing.run import reindex
from pipelines.indexing.settings import ReindexOptions
from pipelines.indexing.summary import ReindexSummary
from pipelines.store import BuildResources, Store

ROOT = Path(__file__).parents[2]
PAGES, BLOCK = 1_000, 50  # many blocks, so that only some of them are stored when the kill comes
SECONDS_PER_TEXT = 0.006
RUN_S = 240.0
_numbers = itertools.count(1)


@dataclass
class Kill:
    """One kill: the victim, the number of vectors stored by then, and the time."""

    what: str
    pid: int
    stored: set[str]
    at: float = field(default_factory=time.monotonic)


@dataclass
class Bench:
    """State shared by all cases: corpus, server folder, model, the undisturbed index, the rows of the final table."""

    file: Path
    home: Path
    model: CountingModel
    random: random.Random
    table: list[tuple[str, ...]] = field(default_factory=list)
    undisturbed: dict[str, dict] = field(default_factory=dict)

    def database(self) -> str:
        return new_database(self.home, f"kills_{next(_numbers)}")

    def reindex(self, database: str) -> ReindexSummary:
        """Run undisturbed in this process."""
        options = ReindexOptions(resources=BuildResources("64MB", 0), no_ray=True, embedding_url=self.model.url)
        with Store(database) as store:
            store.migrate()
            return reindex(store, Collection(**yaml.safe_load(self.file.read_text())), options)


@contextlib.contextmanager
def kill_bench(tmp_path_factory: pytest.TempPathFactory, config: pytest.Config) -> Iterator[Bench]:
    """Index the corpus undisturbed, yield the bench, and print its table."""
    folder, home = tmp_path_factory.mktemp("corpus"), tmp_path_factory.mktemp("home")
    for page in range(PAGES):
        text = f"Subject {page * 7919 % 100_003} is treated on this page, and so is matter {page * 104_729 % 99_991}."
        (folder / f"p{page:04}.html").write_text(html_page(f"Page {page}", {"usage": text}))
    (folder / "docs.yaml").write_text(yaml.safe_dump({
        "name": "docs",
        "folders": [{"path": str(folder), "base_url": BASE}],
        "index": {"model": MODEL, "dimension": DIMENSION},
    }))  # fmt: skip
    seed = kill_seed()
    with embedded.run_postgres(home), CountingModel(SECONDS_PER_TEXT) as model:
        bench = Bench(folder / "docs.yaml", home, model, random.Random(seed))
        database = bench.database()
        assert bench.reindex(database).chunks["embedded"] == PAGES
        bench.undisturbed = index_of(database)
        assert len(bench.undisturbed) == PAGES
        yield bench
    head = ("killed", "when", "really killed", "finished by", "embedded again", "index, compared with undisturbed")
    leave_table(config, f"kills (RAYDEX_KILL_SEED={seed}, {PAGES} pages)", head, bench.table)


class Run:
    """`python -m jobs.reindex` in its own process. Kills everything that is left of it on exit."""

    def __init__(self, bench: Bench, database: str) -> None:
        self.bench, self.database, self.mark = bench, database, f"run-{os.getpid()}-{next(_numbers)}"
        self.began = time.monotonic()
        environment = os.environ | {"DATABASE_URL": database, "OPENAI_BASE_URL": bench.model.url}
        command = [sys.executable, "-m", "jobs.reindex", str(bench.file), "--parallel-workers", "0",
                   "--maintenance-work-mem", "64MB", "--json"]  # fmt: skip
        self.process = subprocess.Popen(
            command, cwd=ROOT, env=environment | {"RAYDEX_TEST_RUN": self.mark}, text=True, start_new_session=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip

    def __enter__(self) -> "Run":
        return self

    def __exit__(self, *_: object) -> None:
        self.bench.model.go_on()
        for pid in self.processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait()

    def finish(self) -> dict:
        """Wait for the run to end and return its summary."""
        out, said = self.process.communicate(timeout=RUN_S)
        assert self.process.returncode == 0, said
        return json.loads(out.strip().splitlines()[-1])

    def processes(self, command: str = "") -> list[int]:
        """Return the pids of this run (driver and Ray) whose command line contains `command`."""
        return marked(f"RAYDEX_TEST_RUN={self.mark}", command)

    def until(self, least: float, most: float) -> None:
        """Wait until a random share of the vectors between `least` and `most` is stored, and a little longer.

        The model pauses a few blocks before the last text, so there is still work to do when the kill comes, even if
        this process is slow or the vectors wait for Postgres.
        """
        share = self.bench.random.uniform(least, most)
        # One block more than `most`: the block of a killed actor may have been embedded in vain.
        blocks = min(math.ceil(most * PAGES / BLOCK) + 1, PAGES // BLOCK - 1)
        self.bench.model.rest_after(blocks * BLOCK, self.began)
        eventually(lambda: self.process.poll() is not None or len(stored_hashes(self.database)) >= share * PAGES,
                   f"{share:.0%} of the vectors are stored", RUN_S)  # fmt: skip
        time.sleep(self.bench.random.uniform(0, 0.6))  # so that the kill comes in the middle of a block
        assert self.process.poll() is None, "the run ended before it could be killed"


def stored_hashes(database: str) -> set[str]:
    """Return the hashes of all committed vectors."""
    try:
        with psycopg.connect(database, autocommit=True) as connection:
            return {name for (name,) in connection.execute("select embed_hash from staged_vector")}
    except (psycopg.errors.UndefinedTable, psycopg.OperationalError):
        return set()


def index_of(database: str) -> dict[str, dict]:
    """Return every column of every chunk of the live index, by id."""
    with Store(database) as store, psycopg.connect(database, row_factory=dict_row) as connection:
        register_vector(connection)
        name = sql.Identifier(f"chunk_{store.live_index('docs').id}")
        return {row["id"]: row for row in connection.execute(sql.SQL("select * from {}").format(name))}


def compare(expected: dict[str, dict], database: str) -> str:
    """Assert that the index equals the undisturbed one, and return the comparison in words."""
    index = index_of(database)
    assert index.keys() == expected.keys()
    cosines = []
    for name, row in index.items():
        mine, theirs = (np.asarray(row.pop("embedding").to_numpy()), np.asarray(expected[name]["embedding"].to_numpy()))
        cosines.append(float(mine @ theirs / np.linalg.norm(mine) / np.linalg.norm(theirs)))
        assert row == {key: value for key, value in expected[name].items() if key != "embedding"}
    assert min(cosines) >= 0.9999
    return f"{len(index)} of {len(expected)} ids, texts and metadata equal, least cosine {min(cosines):.6f}"


def report(bench: Bench, database: str, kill: Kill, finished: str) -> None:
    """Assert that nothing was lost, duplicated or embedded twice, and add a row to the table."""
    twice = len(kill.stored & set(bench.model.hashes(since=kill.at)))
    bench.table.append((
        f"{kill.what} ({kill.pid})", f"{len(kill.stored)} of {PAGES} vectors stored", "yes: gone", finished,
        f"{twice} of {len(kill.stored)}", compare(bench.undisturbed, database),
    ))  # fmt: skip
    assert twice == 0
    with psycopg.connect(database) as connection:
        left = connection.execute("select count(*) from staged_chunk").fetchone()
        states = connection.execute("select state, count(*) from index group by state").fetchall()
    assert left == (0,)
    assert states == [("live", 1)]
