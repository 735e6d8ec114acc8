"""kill -9 of each process of a running reindex: nothing is lost, doubled or embedded twice.

`python -m jobs.reindex` indexes a thousand pages with its own Ray and is hit at random moments while it embeds. One
run must survive the end of its actor, of a sink's database session and of Postgres, in any order; after the end of the
driver the next run must finish the work. Each index is compared with that of an undisturbed run. The model is an
endpoint that records every text. RAYDEX_KILL_SEED repeats the moments of an earlier run.
"""

import time
from collections.abc import Callable, Iterator, Sequence

import psycopg
import pytest
from kit.kill_bench import BLOCK, PAGES, Bench, Kill, Run, kill_bench, report, stored_hashes
from kit.processes import eventually, kill_9, postmaster

from pipelines.store import Store

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[Bench]:
    with kill_bench(tmp_path_factory, request.config) as bench:
        yield bench


# ---------------------------------------------------------------------------------------------- what a run survives


def kill_actor(run: Run) -> Kill:
    [pid, *_] = run.processes("EmbedTexts")
    kill_9(pid)
    return Kill("embedding actor", pid, stored_hashes(run.database))


def end_session(run: Run) -> Kill:
    """End the session of a sink that is storing vectors: it has to wait, or it might be done before it is seen."""
    storing = (
        "select pid, pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() "
        "and wait_event_type = 'Lock' and query like '%incoming_vector%' limit 1"
    )
    ended: list[tuple] = []
    with psycopg.connect(run.database) as holder, psycopg.connect(run.database, autocommit=True) as connection:
        holder.execute("lock table staged_vector in exclusive mode")
        run.bench.model.rest_after(len(set(run.bench.model.hashes(run.began))) + BLOCK, run.began)
        while not ended and run.process.poll() is None:
            ended = connection.execute(storing).fetchall()
        assert ended, f"the run ended before its sink had to wait: {run.process.communicate()}"
        [(pid, done)] = ended
        assert done is True
        holder.rollback()
        gone = "select count(*) from pg_stat_activity where pid = %s"
        eventually(lambda: connection.execute(gone, [pid]).fetchone() == (0,), "the session is gone")
    return Kill("sink's session", pid, stored_hashes(run.database))


def kill_postgres(run: Run) -> Kill:
    before, pid = stored_hashes(run.database), postmaster(run.bench.home)
    at = time.monotonic()
    kill_9(pid)
    return Kill("Postgres", pid, before, at)


SURVIVED = {
    kill_actor: "Ray's retry",
    end_session: "the same task, again",
    kill_postgres: "the same run, after the restart",
}


def survive(bench: Bench, kills: Sequence[Callable[[Run], Kill]], moments: Sequence[tuple[float, float]]) -> None:
    """Assert that one run, hit by `kills` in turn, stores every text once and builds the undisturbed index."""
    database = bench.database()
    done = []
    with Run(bench, database) as run:
        for hit, (least, most) in zip(kills, moments, strict=True):
            run.until(least, most)
            done.append(hit(run))
            bench.model.go_on()
        summary = run.finish()
    assert summary["chunks"]["embedded"] == PAGES
    for kill, hit in zip(done, kills, strict=True):
        report(bench, database, kill, SURVIVED[hit])


@pytest.mark.exhaustive
def test_a_run_survives_its_actor_a_sinks_session_and_postgres(bench):
    kills = bench.random.sample(list(SURVIVED), len(SURVIVED))
    survive(bench, kills, [(0.05, 0.2), (0.25, 0.4), (0.45, 0.6)])


@pytest.mark.exhaustive
@pytest.mark.parametrize("hit", [kill_actor, end_session, kill_postgres])
def test_a_run_survives_one_kill_at_any_moment(bench, hit):
    survive(bench, [hit], [(0.05, 0.7)])


# ---------------------------------------------------------------------------------------------- after the driver


def kill_driver(bench: Bench) -> Run:
    """Kill a driver and let the next run finish its index; return the killed run."""
    database = bench.database()
    run = Run(bench, database)
    run.until(0.1, 0.7)
    run.die()
    bench.model.go_on()
    kill = Kill("driver", run.process.pid, stored_hashes(database))
    summary = bench.reindex(database)
    assert summary.chunks["embedded"] == PAGES - len(kill.stored)
    assert summary.chunks["reused"] == len(kill.stored)
    report(bench, database, kill, "the next run")
    with Store(database) as store:
        states = [run["state"] for run in store.status("docs")["runs"]]
    assert states == ["done", "abandoned"]
    return run


@pytest.mark.exhaustive
def test_the_next_run_finishes_what_a_killed_driver_left(bench):
    with kill_driver(bench):
        pass


@pytest.mark.exhaustive
def test_nothing_is_left_of_a_killed_run(bench):
    with kill_driver(bench) as run:
        eventually(lambda: run.processes() == [], "Ray's agents have ended too", 120)
