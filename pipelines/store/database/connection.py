"""Connects to Postgres: a pool that survives an outage, and named statements.

This is the base of the store's parts; it knows none of their tables.
"""

import functools
import logging
import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from operator import itemgetter
from pathlib import Path
from typing import Any, LiteralString, Self, TypeVar, cast

import psycopg
import tenacity
from pgvector.psycopg import register_vector
from psycopg import sql
from psycopg.pq import PipelineStatus
from psycopg.rows import DictRow, dict_row
from psycopg_pool import ConnectionPool

from pipelines.store.database.address import PAUSE_S, check_url, conninfo
from pipelines.store.database.errors import (
    StoreUnavailable,
    TransactionConflict,
    UnusableDatabase,
    is_worth_waiting,
    translate_errors,
)
from pipelines.text.cleaning import clean_parameters
from pipelines.text.progress import TELL_S, describe_wait

log = logging.getLogger(__name__)
T = TypeVar("T")
ENCODING = "UTF8"
Connection = psycopg.Connection[DictRow]

# A build that crashes the server each time (out of memory) must not repeat forever.
REPETITIONS = 5
# A repeated attempt waits this long for a connection, in which the pool tries to connect once.
ATTEMPT_S = 1.0
# pgvector's `hnsw.ef_search`, and its value for more than HUGE_GRAPH chunks; publish.py sets the `ef_construction` of
# graphs, 64, and 128 for large ones. Recall of the 10 nearest over 200 questions, with ef_construction 64 and ef_search
# 100: 0.999 among 10,000 chunks, 0.968 among 100,000, 0.86 among 1,000,000. Among 1,000,000: 0.93 with 200, 0.95 with
# 300; with ef_construction 128, 0.94 with 100, 0.96 with 150, 0.97 with 200. A build with 128 takes twice as long; the
# time of a search is proportional to ef_search.
EF_SEARCH, HUGE_EF_SEARCH, HUGE_GRAPH = 100, 220, 300_000


def own_sql(text: str) -> LiteralString:
    """Return SQL that this package wrote or checked, which is as safe as a literal in the code."""
    return cast(LiteralString, text)


@functools.cache
def statements() -> dict[str, LiteralString]:
    """Return the text of every statement in the .sql files, by name."""
    named: dict[str, LiteralString] = {}
    for path in Path(__file__).parents[1].rglob("*.sql"):
        parts = re.split(r"^-- name: (\w+)\n", path.read_text(), flags=re.MULTILINE)[1:]
        named |= {name: own_sql(text) for name, text in zip(parts[::2], parts[1::2], strict=True)}
    return named


def statement(name: str, **parts: sql.Composable) -> sql.Composed:
    """Return the statement `name` with its {placeholders} filled; unused `parts` are ignored."""
    return sql.SQL(statements()[name]).format(**parts)


class Database:
    """A database. Thread-safe and synchronous: call it through `asyncio.to_thread`.

    A call is repeated for `retry_s` seconds while the database is unavailable (0: one attempt, which waits `timeout_s`
    seconds for a connection). After that, every method raises StoreUnavailable. `place` is its HOST:PORT.
    """

    def __init__(self, url: str, pool_size: int = 8, retry_s: float = 0.0, timeout_s: float = 5.0) -> None:
        self.place = check_url(url)
        self.url = url
        self._retry_s = retry_s
        self._pool: ConnectionPool[Connection] = ConnectionPool(
            conninfo(url),
            kwargs={"row_factory": dict_row},
            min_size=0,
            max_size=pool_size,
            timeout=min(timeout_s, ATTEMPT_S) if retry_s else timeout_s,
            reconnect_timeout=1.0,
            configure=_configure,
            check=ConnectionPool.check_connection,
            open=False,
        )
        self._opening = threading.Lock()

    def close(self) -> None:
        """Close every connection of the pool."""
        self._pool.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextmanager
    def _connection(self) -> Iterator[Connection]:
        """Yield a pooled connection in one transaction; lost connections raise StoreUnavailable."""
        with self._opening:
            if self._pool.closed:
                self._pool.open()
        with translate_errors(), self._pool.connection() as connection:
            yield connection

    def in_transaction(self, work: Callable[[Connection], T]) -> T:
        """Run `work` in one transaction, without repeating it."""
        with self._connection() as connection:
            return work(connection)

    def repeat(self, work: Callable[[], T]) -> T:
        """Do `work` of any length; if the database was unavailable and is back within `retry_s`, start over.

        Raises StoreUnavailable.
        """
        for _ in range(REPETITIONS if self._retry_s else 0):
            try:
                return work()
            except StoreUnavailable as error:
                if not is_worth_waiting(error):
                    raise
                log.warning("%s: waiting for it, then trying again", error)
                time.sleep(PAUSE_S)
                self._do(lambda connection: connection.execute("select"))
        return work()

    def connect(self, **options: Any) -> Connection:
        """Return a connection outside the pool, which the caller closes; like every call, wait for the database.

        Raises UnusableDatabase for a database that is not UTF8, or a pooler without transactions.
        """

        def attempt() -> Connection:
            with translate_errors():
                connection = Connection.connect(conninfo(self.url), row_factory=dict_row, autocommit=True, **options)
                try:
                    open_session(connection)
                    _check_transactions(connection)
                except BaseException:
                    connection.close()
                    raise
                return connection

        return self._while_away(attempt)

    def _do(self, work: Callable[[Connection], T]) -> T:
        """Run `work` in one transaction; repeat it from the start while the database is unavailable (see `retry_s`).

        A transaction that Postgres aborted because of a conflict is repeated at once.
        """
        return self._while_away(lambda: self._despite_conflicts(work))

    def _while_away(self, work: Callable[[], T]) -> T:
        if not self._retry_s:
            return work()
        attempts = tenacity.Retrying(
            retry=tenacity.retry_if_exception(is_worth_waiting),
            stop=tenacity.stop_after_delay(self._retry_s),
            wait=tenacity.wait_exponential_jitter(initial=0.1, max=2.0),
            before_sleep=self._tell_once(),
            reraise=True,
        )
        return attempts(work)

    def _tell_once(self) -> Callable[[tenacity.RetryCallState], None]:
        """Return a function to call before each pause: after TELL_S seconds, it logs the wait once."""
        told = False

        def tell(state: tenacity.RetryCallState) -> None:
            nonlocal told
            if not told and (state.seconds_since_start or 0.0) >= TELL_S:
                told = True
                log.warning("%s", describe_wait(f"the database at {self.place}, which does not answer", self._retry_s))

        return tell

    def _despite_conflicts(self, work: Callable[[Connection], T]) -> T:
        for _ in range(REPETITIONS):
            with suppress(TransactionConflict):
                return self.in_transaction(work)
        return self.in_transaction(work)

    def _for_each(self, connection: Connection, statement: sql.Composed, rows: Iterable[dict[str, Any]]) -> None:
        """Run `statement` once for each row, ordered by URL, so that concurrent tasks can't deadlock."""
        with connection.cursor() as cursor:
            cursor.executemany(statement, sorted(map(clean_parameters, rows), key=itemgetter("url")))

    def _all(self, name: str, parameters: Mapping[str, Any] | None = None, **parts: sql.Composable) -> list[DictRow]:
        values = parameters and clean_parameters(parameters)

        def work(connection: Connection) -> list[DictRow]:
            with autocommit(connection):  # no round trips for BEGIN and COMMIT
                return connection.execute(statement(name, **parts), values).fetchall()

        return self._do(work)

    def _one(self, name: str, parameters: Mapping[str, Any], **parts: sql.Composable) -> DictRow | None:
        rows = self._all(name, parameters, **parts)
        return rows[0] if rows else None

    def _run(self, name: str, parameters: Mapping[str, Any]) -> int:
        return self._do(lambda c: c.execute(statement(name), clean_parameters(parameters)).rowcount)


def _configure(connection: Connection) -> None:
    """Prepare a new connection of the pool."""
    with autocommit(connection):
        open_session(connection)
    register_vector(connection)


def open_session(connection: Connection) -> None:
    """Check a new connection in autocommit mode, and prepare it.

    A pooler (pgbouncer, Supavisor, ...) may run each transaction in another session of the server, and lends that
    session to other clients in between. Behind a pooler, nothing may remain in a session. A pooler shows by a different
    backend process id than the one announced at connect time. In a direct session, `options` of the connection would
    replace the ones in the URL, so the settings are made here.

    Raises UnusableDatabase for a database that is not UTF8.
    """
    row = connection.execute(statement("open_session"), {"pid": connection.info.backend_pid}).fetchone() or {}
    if row["encoding"] != ENCODING:
        raise UnusableDatabase(
            f"the database {connection.info.dbname!r} has the encoding {row['encoding']}, and pages need {ENCODING}: "
            f"create another one (`createdb --encoding={ENCODING} --template=template0 NAME`), and use it in "
            "DATABASE_URL"
        )
    if not row["direct"]:
        connection.prepare_threshold = None


def is_pooled(connection: Connection) -> bool:
    """Return whether `open_session` found a pooler, so that nothing, not even a statement, may remain in a session."""
    return connection.prepare_threshold is None


def _check_transactions(connection: Connection) -> None:
    """Raise UnusableDatabase if a pooler allows only one statement per transaction (`pool_mode = statement`)."""
    if not is_pooled(connection):
        return
    try:
        with connection.transaction():
            connection.execute("select")
    except psycopg.Error as error:
        if "transaction" not in str(error):
            raise
        cause = str(error).partition("\n")[0]
        raise UnusableDatabase(
            f"the connection pooler at {connection.info.host}:{connection.info.port} allows no transactions ({cause}): "
            "let it pool transactions or sessions (`pool_mode` of pgbouncer), or use the server itself in DATABASE_URL"
        ) from error


@contextmanager
def autocommit(connection: Connection) -> Iterator[None]:
    """Run the body without a transaction around its statements."""
    connection.autocommit = True
    try:
        yield
    finally:
        with suppress(psycopg.Error):  # the connection may be lost
            connection.autocommit = False


@contextmanager
def snapshot(connection: Connection, *, pipelined: bool = False) -> Iterator[None]:
    """Run the body in a read-only transaction in which all statements see the same state.

    If `pipelined`, a statement is sent without waiting for earlier ones; only reading results waits.
    """
    connection.isolation_level, connection.read_only = psycopg.IsolationLevel.REPEATABLE_READ, True
    try:
        with _pipeline(connection) if pipelined else connection.transaction():
            yield
    finally:
        with suppress(psycopg.Error):  # the connection may be lost
            connection.rollback()
            connection.isolation_level = connection.read_only = None


@contextmanager
def _pipeline(connection: Connection) -> Iterator[None]:
    """Run the body in a pipeline, whose first statement begins a transaction; `transaction()` would wait for that.

    The end of the pipeline waits for the end of the transaction; `commit()` would wait for itself before. If the
    body caught the error of a statement, there is nothing to commit.
    """
    with connection.pipeline() as pipeline:
        yield
        if pipeline.status != PipelineStatus.ABORTED:
            connection.execute("commit", prepare=False)


def is_alive(connection: Connection) -> bool:
    """Return whether the session of a connection still answers."""
    try:
        connection.execute("select")
    except psycopg.Error:
        return False
    return True
