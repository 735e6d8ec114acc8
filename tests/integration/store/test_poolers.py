"""Everything works through a connection pooler in front of the database, as with hosted Postgres."""

import threading
from collections.abc import Iterator
from contextlib import ExitStack

import psycopg
import pytest
from kit.poolers import needs_pgbouncer, run_pooler
from kit.workshop import Workshop, small_site

from pipelines.store import LostCollection, RunLock, Store, StoreUnavailable, UnusableDatabase
from pipelines.store.migrations.state import read_state

pytestmark = needs_pgbouncer

END_HOLDERS = """select pg_terminate_backend(pid) from pg_locks where locktype = 'advisory'
    and database = (select oid from pg_database where datname = current_database())"""


@pytest.fixture(params=["transaction", "session"])
def pooled_url(request: pytest.FixtureRequest, database_url: str) -> Iterator[str]:
    with run_pooler(database_url, request.param) as url:
        yield url


@pytest.fixture
def transaction_url(database_url: str) -> Iterator[str]:
    with run_pooler(database_url) as url:
        yield url


def test_lock_is_held_while_other_clients_take_turns(transaction_url: str) -> None:
    with Store(transaction_url) as store, ExitStack() as sessions:
        lock, second = RunLock(store, "docs"), RunLock(store, "docs")
        assert lock.try_acquire()
        run = lock.begin("reindex", {})
        others = [sessions.enter_context(psycopg.connect(transaction_url, autocommit=True)) for _ in range(8)]
        for other in others:  # each gets the most recently returned session
            other.execute("select pg_sleep(0)")
            assert not second.try_acquire()
        assert store.last_runs("docs", 1)[0]["alive"]
        with lock.transaction(run) as connection:
            connection.execute("select")
        lock.release()
        assert second.try_acquire()
        second.release()


def test_dead_client_frees_the_collection(transaction_url: str) -> None:
    with Store(transaction_url) as store:
        lock, second = RunLock(store, "docs"), RunLock(store, "docs")
        assert lock.try_acquire()
        lock._connection.close()  # like a killed process: without a goodbye
        for _ in range(100):
            if second.try_acquire():
                break
            threading.Event().wait(0.05)
        assert second._connection is not None
        second.release()


def test_run_that_lost_its_lock_publishes_nothing(transaction_url: str, database_url: str) -> None:
    with Store(transaction_url) as store:
        lock, second = RunLock(store, "docs"), RunLock(store, "docs")
        assert lock.try_acquire()
        run = lock.begin("reindex", {})
        with psycopg.connect(database_url) as server:
            server.execute(END_HOLDERS)
        assert second.try_acquire()
        second.begin("reindex", {})
        with pytest.raises(LostCollection), lock.transaction(run):
            pass
        second.release()


def test_next_run_waits_for_a_transaction_of_the_previous_one(transaction_url: str) -> None:
    """The run's row is fenced, so losing a lock during a publish does no harm."""
    with Store(transaction_url) as store, Store(transaction_url) as other:
        lock, second = RunLock(store, "docs"), RunLock(other, "docs")
        assert lock.try_acquire()
        run = lock.begin("reindex", {})
        began = threading.Event()
        with lock.transaction(run) as connection:
            lock._connection.close()
            while not second.try_acquire():
                threading.Event().wait(0.05)
            thread = threading.Thread(target=lambda: (second.begin("reindex", {}), began.set()))
            thread.start()
            assert not began.wait(0.5)
            connection.execute("select")
        thread.join(30)
        assert began.is_set() and [row["state"] for row in store.last_runs("docs", 2)] == ["running", "abandoned"]
        second.release()


def test_pages_are_indexed_and_found(pooled_url: str, database_url: str) -> None:
    with Store(pooled_url) as store:
        store.migrate()
        workshop = Workshop(store)
        workshop.reindex(small_site(10))
        changed = {**small_site(10), "p03": {"s0": "Another text."}}
        workshop.reindex(changed)
        vector = workshop.embedder.embed_query("Another text")
        for _ in range(12):  # psycopg prepares a repeated statement in a private session
            found = store.read_index(workshop.live(), lambda chunks: chunks.search([vector], [], 5))
            assert len(found.nearest[0]) == 5 and found.nearest[0][0][1].url.endswith("p03")
        with store.scan_chunks(workshop.live().id) as (_, chunks):
            assert len(list(chunks)) == 28
        store.vacuum("page")
    assert read_state(pooled_url).pooled and not read_state(database_url).pooled


def test_shared_sessions_are_left_clean(database_url: str) -> None:
    """All clients share one server session, so each would see another's leftovers."""
    look = """select current_setting('jit'), (select count(*) from pg_prepared_statements),
        (select count(*) from pg_locks where locktype = 'advisory'),
        (select count(*) from pg_class where relpersistence = 't')"""
    with run_pooler(database_url, default_pool_size=1) as url, psycopg.connect(url, autocommit=True) as other:
        before = other.execute(look).fetchone()
        with Store(url) as store:
            store.migrate()
            for _ in range(10):
                store.collections()
        assert other.execute(look).fetchone() == before


def test_pool_too_small_for_a_run_is_reported(database_url: str) -> None:
    with run_pooler(database_url, default_pool_size=1) as url, Store(url, timeout_s=1.0) as store:
        lock = RunLock(store, "docs")
        assert lock.try_acquire()
        with pytest.raises(StoreUnavailable, match="needs two sessions of the server"):
            lock.begin("reindex", {})
        lock.release()


def test_pooler_without_transactions_is_refused_in_one_line(database_url: str) -> None:
    with run_pooler(database_url, "statement") as url, Store(url, retry_s=60.0) as store:
        for use in (store.migrate, lambda: read_state(url)):
            with pytest.raises(UnusableDatabase, match=r"allows no transactions .*pool_mode") as caught:
                use()
            assert "\n" not in str(caught.value)
