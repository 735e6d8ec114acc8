"""kill -9 at sixteen points of a reindex, including its publish: the index always equals an undisturbed one.

A run that survives must finish by itself, even if a sink's database session ends. After the death of the driver, the
raylet or the GCS, the next run finishes the work. Nothing stored is embedded twice. RAYDEX_KILL_SEED repeats the kill
times of an earlier run.
"""

import contextlib
import os
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import psycopg
import pytest
from kit.kill_bench import BLOCK, PAGES, RUN_S, Bench, Kill, Run, kill_bench, report, stored_hashes
from kit.processes import eventually, keeper, kill_9, postmaster
from psycopg import sql

pytestmark = [pytest.mark.exhaustive, pytest.mark.timeout(900)]

Victim = Callable[[Run], int]


@pytest.fixture(scope="module")
def bench(local_ray: None, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[Bench]:
    with kill_bench(tmp_path_factory, request.config) as bench:
        yield bench


# ------------------------------------------------------------------------------------------------ victims


def driver(run: Run) -> int:
    return run.process.pid


def process(name: str) -> Victim:
    """Return a function that waits for a process whose command line contains `name`, and returns its pid."""

    def find(run: Run) -> int:
        eventually(lambda: bool(run.processes(name)), f"{name} runs", 60)
        return run.processes(name)[0]

    return find


def back_end(run: Run) -> int:
    """Return the pid of a back end that works, or waits for a lock, for the run."""
    found: list[int] = []

    def busy() -> bool:
        query = ("select pid from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid() "
                 "and state = 'active' order by wait_event_type is not distinct from 'Lock' desc")  # fmt: skip
        with psycopg.connect(run.database, autocommit=True) as connection:
            found[:] = [pid for (pid,) in connection.execute(query)]
        return bool(found)

    eventually(busy, "a back end works for the run", 60)
    return found[0]


def the_postmaster(run: Run) -> int:
    return postmaster(run.bench.home)


def the_keeper(run: Run) -> int:
    return keeper(run.bench.home)


# ------------------------------------------------------------------------------------------------ moments


@contextlib.contextmanager
def reading(run: Run) -> Iterator[None]:
    """Run the block while files are read into pages."""

    def pages() -> int:
        with contextlib.suppress(psycopg.Error), psycopg.connect(run.database) as connection:
            row = connection.execute("select count(*) from page").fetchone()
            return row[0] if row else 0
        return 0

    eventually(lambda: pages() > 0, "the first pages are stored", RUN_S)
    yield


@contextlib.contextmanager
def embedding(run: Run, least: float = 0.1, most: float = 0.6) -> Iterator[None]:
    """Run the block while a share of the vectors between these two is stored."""
    run.until(least, most)
    yield


@contextlib.contextmanager
def waiting_for(run: Run, table: str) -> Iterator[None]:
    """Run the block while the run waits for a table."""
    waiting = "select count(*) from pg_locks where not granted and relation = %s::regclass"
    with psycopg.connect(run.database) as blocker, psycopg.connect(run.database, autocommit=True) as watcher:
        blocker.execute(sql.SQL("lock table {} in share mode").format(sql.Identifier(table)))
        eventually(lambda: watcher.execute(waiting, [table]).fetchone() != (0,), f"it waits for {table}", RUN_S)
        yield
        with contextlib.suppress(psycopg.Error):  # killed together with the server
            blocker.rollback()


@contextlib.contextmanager
def storing(run: Run, least: float = 0.1, most: float = 0.6) -> Iterator[None]:
    """Run the block while a sink has vectors to store: one more block comes for it."""
    run.until(least, most)
    run.bench.model.rest_after(len(set(run.bench.model.hashes(run.began))) + BLOCK, run.began)
    with waiting_for(run, "staged_vector"):
        yield


def publishing(table: str) -> Callable[[Run], contextlib.AbstractContextManager[None]]:
    """Return a context in which the publish waits for a table that it needs next."""

    @contextlib.contextmanager
    def held(run: Run) -> Iterator[None]:
        run.until(0.3, 0.6)
        run.bench.model.go_on()
        with waiting_for(run, table):
            yield

    return held


@dataclass(frozen=True)
class Place:
    name: str
    when: Callable[..., contextlib.AbstractContextManager[None]]
    whom: Victim
    survived: bool
    end: Callable[[int], None] = kill_9


def end_session(pid: int) -> None:
    """End the session like an administrator or a broken network: no other session ends with it."""
    os.kill(pid, signal.SIGTERM)


BEGIN, BEFORE_COMMIT = publishing("index"), publishing("indexed_page")
PLACES = [
    Place("reading: driver", reading, driver, False),
    Place("reading: raylet", reading, process("raylet/raylet"), False),
    Place("reading: back end", reading, back_end, True),
    Place("embedding: driver", embedding, driver, False),
    Place("embedding: raylet", embedding, process("raylet/raylet"), False),
    Place("embedding: GCS", embedding, process("gcs_server"), False),
    Place("embedding: actor", embedding, process("EmbedTexts"), True),
    Place("embedding: back end", embedding, back_end, True),
    Place("embedding: sink's session", storing, back_end, True, end_session),
    Place("embedding: postmaster", embedding, the_postmaster, True),
    Place("embedding: keeper", embedding, the_keeper, True),
    Place("publish begins: driver", BEGIN, driver, False),
    Place("publish begins: postmaster", BEGIN, the_postmaster, True),
    Place("publish, index built: driver", BEFORE_COMMIT, driver, False),
    Place("publish, index built: back end", BEFORE_COMMIT, back_end, True),
    Place("publish, index built: postmaster", BEFORE_COMMIT, the_postmaster, True),
    Place("publish, index built: keeper", BEFORE_COMMIT, the_keeper, True),
]
# Victims that one run survives in turn, and the range of stored vectors in which each one is hit.
SEVERAL = {"embedding: actor", "embedding: sink's session", "embedding: postmaster"}
MOMENTS = (0.05, 0.2), (0.25, 0.4), (0.45, 0.6)


@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.name)
def test_index_equals_the_one_of_an_undisturbed_run(bench, place):
    database = bench.database()
    with Run(bench, database) as run:
        with place.when(run):
            stored, pid = stored_hashes(database), place.whom(run)
            kill = Kill(place.name, pid, stored)
            place.end(pid)
        bench.model.go_on()
        if place.survived:
            run.finish()
            report(bench, database, kill, "the same run")
            return
        run.process.wait(RUN_S)
        assert run.process.returncode != 0
        if place is PLACES[0]:
            eventually(lambda: run.processes() == [], "nothing is left of it: Ray's agents have ended too", 120)
    eventually(lambda: sessions(database) == 0, "its sessions have ended", 60)
    assert bench.reindex(database).chunks["embedded"] <= PAGES - len(stored)
    report(bench, database, kill, "the next run")


def test_run_survives_several_kills_in_any_order(bench):
    hit = [place for place in PLACES if place.name in SEVERAL]
    database, kills = bench.database(), []
    with Run(bench, database) as run:
        for place, moment in zip(bench.random.sample(hit, len(SEVERAL)), MOMENTS, strict=True):
            with place.when(run, *moment):
                kills.append(Kill(place.name, place.whom(run), stored_hashes(database)))
                place.end(kills[-1].pid)
            bench.model.go_on()
        summary = run.finish()
    assert summary["chunks"]["embedded"] == PAGES
    for kill in kills:
        report(bench, database, kill, "the same run")


def sessions(database: str) -> int:
    others = "select count(*) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()"
    with psycopg.connect(database, autocommit=True) as connection:
        row = connection.execute(others).fetchone()
        return int(row[0]) if row else 0
