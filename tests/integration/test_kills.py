"""kill -9 in mid-run, of each process that a reindex consists of: nothing is lost, doubled or embedded twice.

Each case runs `python -m jobs.reindex` over a thousand pages with a Ray of its own, kills at a random moment while
it embeds, and compares the index with that of an undisturbed run. The model is an endpoint that counts what it is
asked. RAYDEX_KILL_SEED repeats the moments of an earlier run.
"""

import contextlib
import itertools
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import numpy as np
import psycopg
import pytest
import yaml
from kit.counting_model import DIMENSION, MODEL, CountingModel
from kit.reindexing import BASE, html_page
from pgvector.psycopg import register_vector
from psycopg import sql
from psycopg.rows import dict_row

from pipelines import embedded
from pipelines.store import Store

pytestmark = pytest.mark.timeout(600)

ROOT = Path(__file__).parents[2]
PAGES = 1_000  # five blocks of 200 pages: some are stored and some are not when the kill comes
SECONDS_PER_TEXT = 0.006
RUN_S = 240.0
_numbers = itertools.count(1)


@dataclass
class Kill:
    """What was killed when, and how the run went on."""

    what: str
    pid: int
    stored: set[str]
    at: float = field(default_factory=time.monotonic)


@dataclass
class Bench:
    """All that the cases share: corpus, model, server, the undisturbed index, the table that is printed."""

    folder: Path
    home: Path
    server_url: str
    model: CountingModel
    random: random.Random
    table: list[tuple[str, ...]] = field(default_factory=list)
    undisturbed: dict[str, dict] = field(default_factory=dict)
    killed: list["Run"] = field(default_factory=list)

    def database(self) -> str:
        name = f"kills_{next(_numbers)}"
        with psycopg.connect(self.server_url, autocommit=True) as connection:
            connection.execute(sql.SQL("create database {}").format(sql.Identifier(name)))
        return urlunsplit(urlsplit(self.server_url)._replace(path=f"/{name}"))


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[Bench]:
    folder, home = tmp_path_factory.mktemp("corpus"), tmp_path_factory.mktemp("home")
    for page in range(PAGES):
        text = f"Subject {page * 7919 % 100_003} is treated on this page, and so is matter {page * 104_729 % 99_991}."
        (folder / f"p{page:04}.html").write_text(html_page(f"Page {page}", {"usage": text}))
    file = {
        "folders": [{"path": str(folder), "base_url": BASE}],
        "index": {"model": MODEL, "dimension": DIMENSION},
    }
    (folder / "docs.yaml").write_text(yaml.safe_dump(file))
    seed = int(os.environ.get("RAYDEX_KILL_SEED") or random.randrange(10**6))
    with embedded.running(home) as url, CountingModel(SECONDS_PER_TEXT) as model:
        bench = Bench(folder, home, url, model, random.Random(seed))
        database = bench.database()
        with Run(bench, database) as run:
            assert run.finish()["chunks"]["embedded"] == PAGES
        bench.undisturbed = index_of(database)
        assert len(bench.undisturbed) == PAGES
        yield bench
        for run in bench.killed:
            with run:
                eventually(lambda run=run: run.processes() == [], "nothing is left of a killed run", 120)
    capture = request.config.pluginmanager.getplugin("capturemanager")
    with capture.global_and_fixture_disabled():
        print("\n" + table(bench.table, f"kills (RAYDEX_KILL_SEED={seed}, {PAGES} pages)"))


def table(rows: list[tuple[str, ...]], title: str) -> str:
    head = (
        "killed",
        "when",
        "really killed",
        "finished by",
        "embedded again",
        "index, compared with undisturbed",
    )
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in [head, *rows]]
    return "\n".join([title, *lines])


class Run:
    """`python -m jobs.reindex` in a process of its own. Leaving kills whatever it has left behind."""

    def __init__(self, bench: Bench, database: str, file: str = "docs.yaml") -> None:
        self.bench, self.database, self.mark = bench, database, f"run-{os.getpid()}-{next(_numbers)}"
        environment = os.environ | {"DATABASE_URL": database, "OPENAI_BASE_URL": bench.model.url}
        command = [sys.executable, "-m", "jobs.reindex", str(bench.folder / file), "--parallel-workers", "0",
                   "--maintenance-work-mem", "64MB", "--json"]  # fmt: skip
        self.process = subprocess.Popen(
            command, cwd=ROOT, env=environment | {"RAYDEX_TEST_RUN": self.mark}, text=True, start_new_session=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip

    def __enter__(self) -> "Run":
        return self

    def __exit__(self, *_: object) -> None:
        for pid in self.processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait()

    def finish(self) -> dict:
        """Wait for its end; returns the summary."""
        out, said = self.process.communicate(timeout=RUN_S)
        assert self.process.returncode == 0, said
        return json.loads(out.strip().splitlines()[-1])

    def die(self) -> None:
        """kill -9 of the driver; returns when its workers are gone. Two of Ray's idle agents stay for a minute."""
        self.bench.killed.append(self)
        self.process.kill()
        self.process.wait()
        agents = {"ray::DashboardAgent", "ray::RuntimeEnvAgent"}
        eventually(lambda: not set(self.processes()) - {p for a in agents for p in self.processes(a)},
                   "the driver's workers have ended too")  # fmt: skip

    def processes(self, command: str = "") -> list[int]:
        """The pids of this run, driver and Ray, whose command line holds `command`."""
        found = []
        for entry in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if f"RAYDEX_TEST_RUN={self.mark}".encode() in (entry / "environ").read_bytes():
                    line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                    if command in line and alive(int(entry.name)):
                        found.append(int(entry.name))
        return found

    def until(self, share: float, of: int = PAGES) -> None:
        """Wait until that share of the vectors is stored."""
        eventually(lambda: self.process.poll() is not None or len(stored(self.database)) >= share * of,
                   f"{share:.0%} of the vectors are stored", RUN_S)  # fmt: skip
        assert self.process.poll() is None, "the run ended before it could be killed"


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def eventually(holds: Callable[[], bool], what: str, within_s: float = 30.0) -> None:
    deadline = time.monotonic() + within_s
    while not holds():
        assert time.monotonic() < deadline, f"not within {within_s} s: {what}"
        time.sleep(0.02)


def stored(database: str) -> set[str]:
    """The hashes of all vectors that are committed."""
    try:
        with psycopg.connect(database, autocommit=True) as connection:
            return {name for (name,) in connection.execute("select embed_hash from staged_vector")}
    except (psycopg.errors.UndefinedTable, psycopg.OperationalError):
        return set()


def index_of(database: str) -> dict[str, dict]:
    """The live index: every column of every chunk by id."""
    with Store(database) as store, psycopg.connect(database, row_factory=dict_row) as connection:
        register_vector(connection)
        name = sql.Identifier(f"chunk_{store.live_index('docs').id}")
        return {row["id"]: row for row in connection.execute(sql.SQL("select * from {}").format(name))}


def compared(expected: dict[str, dict], database: str) -> str:
    """Assert that the index is the undisturbed one; returns the comparison in words."""
    index = index_of(database)
    assert index.keys() == expected.keys()
    cosines = []
    for name, row in index.items():
        mine, theirs = (
            np.asarray(row.pop("embedding").to_numpy()),
            np.asarray(expected[name]["embedding"].to_numpy()),
        )
        cosines.append(float(mine @ theirs / np.linalg.norm(mine) / np.linalg.norm(theirs)))
        assert row == {key: value for key, value in expected[name].items() if key != "embedding"}
    assert min(cosines) >= 0.9999
    return f"{len(index)} of {len(expected)} ids, texts and metadata equal, least cosine {min(cosines):.6f}"


def again(bench: Bench, kill: Kill, since: float) -> int:
    """How many texts whose vectors were stored when the kill came were embedded once more."""
    return len(kill.stored & set(bench.model.hashes(since=max(since, kill.at))))


def report(bench: Bench, database: str, kill: Kill, finished: str, began: float) -> None:
    twice = again(bench, kill, began)
    bench.table.append((
        f"{kill.what} ({kill.pid})", f"{len(kill.stored)} of {PAGES} vectors stored", "yes: gone", finished,
        f"{twice} of {len(kill.stored)}", compared(bench.undisturbed, database),
    ))  # fmt: skip
    assert twice == 0
    with psycopg.connect(database) as connection:
        left = connection.execute("select count(*) from staged_chunk").fetchone()
        states = connection.execute("select state, count(*) from index group by state").fetchall()
    assert left == (0,)
    assert states == [("live", 1)]


def test_kill_9_of_an_embedding_actor(bench):
    database, began = bench.database(), time.monotonic()
    with Run(bench, database) as run:
        run.until(bench.random.uniform(0.1, 0.7))
        time.sleep(bench.random.uniform(0, 0.6))
        [pid, *_] = run.processes("EmbedTexts")
        os.kill(pid, signal.SIGKILL)
        eventually(lambda: not alive(pid), "the actor is gone")
        kill = Kill("embedding actor", pid, stored(database))
        summary = run.finish()
    assert summary["chunks"]["embedded"] == PAGES
    report(bench, database, kill, "Ray's retry", began)


def test_the_end_of_a_sinks_session(bench):
    database, began = bench.database(), time.monotonic()
    storing = (
        "select pid, pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() "
        "and pid <> pg_backend_pid() and state <> 'idle' and query like '%incoming_vector%'"
    )
    with Run(bench, database) as run:
        run.until(bench.random.uniform(0.1, 0.6))
        time.sleep(bench.random.uniform(0, 0.6))
        ended: list[tuple] = []
        with psycopg.connect(database, autocommit=True) as connection:
            while not ended and run.process.poll() is None:
                ended = connection.execute(storing).fetchall()
            [(pid, done), *_] = ended
            assert done is True
            gone = "select count(*) from pg_stat_activity where pid = %s"
            eventually(lambda: connection.execute(gone, [pid]).fetchone() == (0,), "the session is gone")
        kill = Kill("sink's session", pid, stored(database))
        summary = run.finish()
    assert summary["chunks"]["embedded"] == PAGES
    report(bench, database, kill, "the same task, again", began)


def test_kill_9_of_postgres(bench):
    database, began = bench.database(), time.monotonic()
    with Run(bench, database) as run:
        run.until(bench.random.uniform(0.1, 0.7))
        time.sleep(bench.random.uniform(0, 0.6))
        kill = Kill("Postgres", 0, stored(database))
        kill.pid = int((bench.home / "postgres" / "postmaster.pid").read_text().split("\n")[0])
        os.kill(kill.pid, signal.SIGKILL)
        eventually(lambda: not alive(kill.pid), "the server is gone")
        summary = run.finish()
    assert summary["chunks"]["embedded"] == PAGES
    report(bench, database, kill, "the same run, after the restart", began)


def test_kill_9_of_the_driver(bench):
    database, began = bench.database(), time.monotonic()
    run = Run(bench, database)
    run.until(bench.random.uniform(0.1, 0.7))
    time.sleep(bench.random.uniform(0, 0.6))
    run.die()
    kill = Kill("driver", run.process.pid, stored(database))
    with Run(bench, database) as next_run:
        summary = next_run.finish()
    assert summary["chunks"]["embedded"] == PAGES - len(kill.stored)
    assert summary["chunks"]["reused"] == len(kill.stored)
    report(bench, database, kill, "the next run", began)
    with Store(database) as store:
        states = [run["state"] for run in store.status("docs")["runs"]]
    assert states == ["done", "abandoned"]


def test_kill_9_of_the_driver_with_a_real_model(bench):
    """Vectors of a real model depend on what else was in their batch: hardly, though."""
    pages = 400
    file = {"folders": [{"path": str(bench.folder / "p0[0-3]*.html"), "base_url": BASE}]}
    (bench.folder / "real.yaml").write_text(yaml.safe_dump(file | {"name": "docs"}))
    undisturbed, database = bench.database(), bench.database()
    with Run(bench, undisturbed, "real.yaml") as run:
        assert run.finish()["chunks"]["embedded"] == pages
    run = Run(bench, database, "real.yaml")
    run.until(0.1, pages)
    run.die()
    kill = Kill("driver, MiniLM", run.process.pid, stored(database))
    with Run(bench, database, "real.yaml") as next_run:
        summary = next_run.finish()
    assert summary["chunks"]["embedded"] == pages - len(kill.stored)
    bench.table.append((
        f"{kill.what} ({kill.pid})", f"{len(kill.stored)} of {pages} vectors stored", "yes: gone", "the next run",
        f"0 of {len(kill.stored)}", compared(index_of(undisturbed), database),
    ))  # fmt: skip
