"""Runs, and the lock on a collection that allows one run at a time to change it.

A run that loses its lock is fenced off. Every publishing transaction first locks the run's row, and the next run marks
that row as abandoned before it begins.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import datetime
from typing import Any, Literal, TypeVar, cast

import psycopg
from pgvector.psycopg import register_vector
from psycopg.types.json import Jsonb

from pipelines.store.chunks import ChunkTables
from pipelines.store.database.connection import Connection, is_alive, is_pooled, statement
from pipelines.store.database.errors import StoreUnavailable, translate_errors

T = TypeVar("T")


class CollectionBusy(RuntimeError):
    """Another run has locked the collection."""


class LostCollection(RuntimeError):
    """The run has lost its collection, and another run may have changed it; it must not publish."""


def run_began(store: ChunkTables, run: int) -> datetime:
    """Return when a run began, to the microsecond; this distinguishes runs of two databases."""
    row = store._one("run_began", {"run": run})
    assert row is not None
    began: datetime = row["started"]
    return began


class RunLock:
    """The lock of one collection: an advisory lock on a dedicated connection.

    Postgres releases the lock when the session ends, so a killed run never blocks the next one. A pooler gives out
    sessions per transaction; there, an open transaction keeps the lock. It reads nothing, so it doesn't block
    vacuuming.
    """

    def __init__(self, store: ChunkTables, collection: str) -> None:
        self.store = store
        self.collection = collection
        self._connection: Connection | None = None

    def try_acquire(self) -> bool:
        """Take the lock if it is free; return whether that worked. Raises StoreUnavailable."""
        connection = self.store.connect(keepalives_idle=10, keepalives_interval=5, keepalives_count=3)
        pooled = is_pooled(connection)
        with translate_errors():
            register_vector(connection)
            if pooled:
                connection.isolation_level = psycopg.IsolationLevel.READ_COMMITTED  # no snapshot between statements
                connection.autocommit = False
            connection.execute(statement("no_time_limits"), {"local": pooled})
            take = statement("try_lock_in_transaction" if pooled else "try_lock")
            row = connection.execute(take, {"collection": self.collection}).fetchone()
        if not (row and row["locked"]):
            connection.close()
            return False
        self._connection = connection
        return True

    def holder(self) -> str:
        """Describe the run that has the collection's lock."""
        row = self.store._one("running_run", {"collection": self.collection})
        return f"run {row['id']} ({row['kind']}, started {row['started']:%Y-%m-%d %H:%M:%S})" if row else "another run"

    def release(self) -> None:
        """End the session, which releases the lock."""
        if self._connection is not None:
            with suppress(psycopg.Error):  # a dead session has no lock; a closed one releases it a little later
                if is_pooled(self._connection):
                    self._connection.rollback()
                else:
                    self._connection.execute(statement("unlock"), {"collection": self.collection})
            self._connection.close()
            self._connection = None

    def begin(self, kind: str, settings: Mapping[str, Any] | None) -> int:
        """Start a run and return its id; earlier runs of the collection that never ended are marked as abandoned.

        Creates the collection if it is new; `settings` None keeps the settings of an existing one.
        """
        values = {"collection": self.collection, "kind": kind, "settings": Jsonb(dict(settings or {}))}
        with self._session() as connection:
            connection.execute(statement("add_collection" if settings is None else "save_collection"), values)
            connection.execute(statement("abandon_runs"), values)
            row = connection.execute(statement("insert_run"), values).fetchone()
            assert row is not None
            return int(row["id"])

    def finish(
        self,
        run: int,
        state: Literal["done", "failed", "interrupted"],
        counts: Mapping[str, Any],
        error: str | None,
        wait: bool = True,
    ) -> None:
        """Record how the run ended; with `wait`, retry while the database is unavailable."""
        values = {"run": run, "state": state, "counts": Jsonb(dict(counts)), "error": error}
        transact = self.store._do if wait else self.store.in_transaction
        transact(lambda connection: connection.execute(statement("finish_run"), values))

    @contextmanager
    def transaction(self, run: int) -> Iterator[Connection]:
        """Check that `run` still has the lock, then yield a transaction during which no other run can take it.

        A dead session (the server was restarted) is replaced if no other run had the collection meanwhile. Raises
        LostCollection.
        """
        if self._connection is None or not is_alive(self._connection):
            self.release()
            self.store._do(lambda _: self._acquire_again(run))
        with self._session() as connection:
            row = connection.execute(statement("own_run"), {"run": run}).fetchone()
            if row is None or row["state"] != "running":
                state = row["state"] if row else "deleted"
                raise LostCollection(
                    f"run {run} is {state}, another run has taken collection {self.collection!r}: nothing was "
                    "published. Run the command again when that run has ended"
                )
            yield connection

    def once(self, run: int, step: str, work: Callable[[Connection], T]) -> T:
        """Do `work` once per run, in a `transaction`; repeat it if the database is unavailable (see Database.repeat).

        The result, which is JSON, is committed with the work. If the step was done before, for example in a commit
        whose confirmation was lost, its stored result is returned.
        """

        def attempt() -> T:
            with self.transaction(run) as connection:
                values = {"run": run, "step": step}
                done = connection.execute(statement("step_result"), values).fetchone()
                if done and done["result"] is not None:
                    return cast(T, done["result"])
                result = work(connection)
                connection.execute(statement("record_step"), values | {"result": Jsonb(result)})
                return result

        return self.store.repeat(attempt)

    def unfinished_steps(self, run: int, kind: str, hours: float) -> dict[str, Any]:
        """Return the steps of the run before `run`, or none.

        That run must be of `kind`, at most `hours` old, and never have ended.
        """
        values = {"collection": self.collection, "run": run, "kind": kind, "seconds": hours * 3600}
        return dict((self.store._one("unfinished_steps", values) or {}).get("steps") or {})

    def _acquire_again(self, run: int) -> None:
        """Take the lock that a dead session of `run` had.

        Raises LostCollection, or StoreUnavailable if a retry may help.
        """
        if self.try_acquire():
            return
        row = self.store._one("running_run", {"collection": self.collection})
        if row and row["id"] == run:
            raise StoreUnavailable(f"the database has not ended the lost session of run {run} yet")
        raise LostCollection(
            f"run {run} lost collection {self.collection!r} to {self.holder()}: nothing was published. "
            "Run the command again when that run has ended"
        )

    @contextmanager
    def _session(self) -> Iterator[Connection]:
        if self._connection is None:
            raise LostCollection(f"collection {self.collection!r} is not locked: acquire the lock first")
        if not is_pooled(self._connection):
            with translate_errors(), self._connection.transaction():
                yield self._connection
            return
        with translate_errors(), self.store._connection() as connection:
            connection.execute(statement("no_time_limits"), {"local": True})  # a build may take any time
            yield connection
