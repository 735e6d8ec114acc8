"""Connects to Postgres: a pool that survives an outage, named statements, translated errors.

The base of the store's parts; knows none of their tables.
"""

import functools
import json
import logging
import math
import queue
import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from datetime import datetime
from operator import itemgetter
from pathlib import Path
from typing import Any, Self, TypeVar

import psycopg
import tenacity
from pgvector.psycopg import register_vector
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict
from psycopg.rows import DictRow, dict_row
from psycopg.types.json import Jsonb
from psycopg_pool import ConnectionPool, PoolTimeout

from pipelines.text.cleaning import clean_for_storage

log = logging.getLogger(__name__)
T = TypeVar("T")
Connection = psycopg.Connection[DictRow]
_trusts_sessions: ContextVar[bool] = ContextVar("trusts_sessions", default=False)

URL_FORM = (
    "It is written postgresql://USER:PASSWORD@HOST:5432/DATABASE, with %40 for @, %2F for / and %25 for % in a password"
)
# Long enough for a restart of Postgres with recovery, or a fail-over; what takes longer needs a person.
DATABASE_PATIENCE_S = 60.0
# Whoever waits longer for a database wants to know what for.
TELL_S = 3.0
# A build that ends the server each time (out of memory) must not go on for ever.
REPETITIONS = 5
# Between a loss and the next attempt: Postgres may accept sessions for a moment while it goes down.
PAUSE_S = 0.5
# An attempt that is repeated waits no longer for a connection: the pool tries to connect once in that time.
ATTEMPT_S = 1.0
# pgvector's `ef_construction`, and that of graphs of more than LARGE_GRAPH chunks; `hnsw.ef_search`, and that for more
# than HUGE_GRAPH. Found of the 10 nearest to 200 questions by 64 and 100: 0.999 among 10,000 chunks, 0.968 among
# 100,000, 0.86 among 1,000,000; there 0.93 with 200, 0.95 with 300, and by 128 0.94 with 100, 0.96 with 150, 0.97 with
# 200. A build by 128 takes twice as long, a search as long as its list.
EF_CONSTRUCTION, LARGE_EF_CONSTRUCTION, LARGE_GRAPH = 64, 128, 50_000
EF_SEARCH, HUGE_EF_SEARCH, HUGE_GRAPH = 100, 220, 300_000


class StoreUnavailable(ConnectionError):
    """The database can't be reached, or ended the session; the same call may succeed later."""


class TransactionConflict(StoreUnavailable):
    """Postgres broke a transaction off in favour of another one; nothing was changed."""


class DatabaseFull(StoreUnavailable):
    """The database has no room; nothing was changed. To wait does not help."""


class UnusableDatabase(RuntimeError):
    """The database can be reached but not used: pgvector is missing or too old, or the schema does not fit."""


class BadDatabaseUrl(UnusableDatabase):
    """The URL of a database can't be used; no part of its password is in the message, nor in a cause of it."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"DATABASE_URL can't be used: {reason}. {URL_FORM}")


def check_url(url: str) -> str:
    """Return where the database of a URL (or of libpq's keys and values) is, as HOST:PORT. Raises BadDatabaseUrl.

    It is checked before anything connects: the driver's own messages quote what they could not read, password and all,
    or take a part of a password for the host.
    """
    if url and not re.match(r"postgres(ql)?://|\s*\w+\s*=", url):
        raise BadDatabaseUrl("it does not begin with postgresql://")
    user, at, rest = url.partition("://")[2].rpartition("@")
    if re.search(r"[@/?]", user) or (at and not user):
        raise BadDatabaseUrl("user or password holds a character that must be escaped")
    try:
        parts = conninfo_to_dict(url)
    except psycopg.ProgrammingError as error:
        quoted = re.sub(r'"([^"]*)"', lambda found: found[0] if found[1] in rest and found[1] not in user else '"…"',
                        str(error).strip())  # fmt: skip
        raise BadDatabaseUrl(quoted) from None
    ports = str(parts.get("port") or 5432)
    if not all(port.isdecimal() and 0 < int(port) < 1 << 16 for port in ports.split(",")):
        raise BadDatabaseUrl("its port is no number from 1 to 65535")
    return f"{parts.get('host') or 'a local socket'}:{ports}"


def can_connect(url: str) -> bool:
    """Return whether a Postgres answers at `url` right now."""
    try:
        psycopg.connect(url, connect_timeout=2).close()
    except psycopg.Error:
        return False
    return True


def wait_for_database(url: str, tell: Callable[[str], None], patience_s: float = DATABASE_PATIENCE_S) -> None:
    """Return when the database of `url` answers; `tell` hears after TELL_S that it is waited for.

    What interrupts the caller's thread is heard at once, whatever the driver is at. Raises BadDatabaseUrl, and
    StoreUnavailable after `patience_s`, or when a server answers that it will not have us.
    """
    place, answered = check_url(url), queue.SimpleQueue[psycopg.Error | None]()
    threading.Thread(target=_try_to_connect, args=(url, answered), daemon=True, name="wait-for-database").start()
    began, problem, told = time.monotonic(), "it does not answer", False
    while (elapsed_s := time.monotonic() - began) < patience_s:
        if not told and elapsed_s >= TELL_S:
            tell(f"waiting for the database at {place} ({problem}), at most {patience_s:.0f} s")
            told = True
        with suppress(queue.Empty):
            error = answered.get(timeout=0.1)
            if error is None:
                return
            problem = str(error).partition("\n")[0]
            if "FATAL" in problem and "starting up" not in problem:
                break
    raise StoreUnavailable(f"the database at {place} can't be used: {problem}")


def _try_to_connect(url: str, answered: "queue.SimpleQueue[psycopg.Error | None]") -> None:
    """Connect until that succeeds or a minute is over, and pass each outcome on."""
    deadline = time.monotonic() + DATABASE_PATIENCE_S
    while time.monotonic() < deadline:
        try:
            psycopg.connect(url, connect_timeout=5).close()
        except psycopg.Error as error:
            answered.put(error)
            time.sleep(PAUSE_S)
        else:
            answered.put(None)
            return


def check_connection(connection: Connection) -> None:
    """Raise an error of psycopg if a session of the pool has ended, unless the caller will notice that itself."""
    if not _trusts_sessions.get():
        ConnectionPool.check_connection(connection)


@functools.cache
def statements() -> dict[str, str]:
    """Return the text of every statement in the .sql files by its name."""
    named: dict[str, str] = {}
    for path in Path(__file__).parent.rglob("*.sql"):
        parts = re.split(r"^-- name: (\w+)\n", path.read_text(), flags=re.MULTILINE)[1:]
        named |= dict(zip(parts[::2], parts[1::2], strict=True))
    return named


def statement(name: str, **parts: sql.Composable) -> sql.Composed:
    """Return the statement `name` with its {placeholders} filled; `parts` may hold more than it needs."""
    return sql.SQL(statements()[name]).format(**parts)


class Database:
    """A database. Thread-safe and synchronous: call it through `asyncio.to_thread`.

    A call is repeated for `retry_s` seconds while the database is away (0: one attempt, which waits `timeout_s` seconds
    for a connection). After that every method raises StoreUnavailable. `place` is its HOST:PORT.
    """

    def __init__(self, url: str, pool_size: int = 8, retry_s: float = 0.0, timeout_s: float = 5.0) -> None:
        self.place = check_url(url)
        self.url = url
        self._retry_s = retry_s
        self._pool: ConnectionPool[Connection] = ConnectionPool(
            url,
            kwargs={
                "row_factory": dict_row,
                "options": f"-c hnsw.iterative_scan=relaxed_order -c hnsw.ef_search={EF_SEARCH} -c jit=off",
                "connect_timeout": 5,
            },
            min_size=0,
            max_size=pool_size,
            timeout=min(timeout_s, ATTEMPT_S) if retry_s else timeout_s,
            reconnect_timeout=1.0,
            configure=register_vector,
            check=check_connection,
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
        """Yield a pooled connection in one transaction; lost connections become StoreUnavailable."""
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
        """Do `work`, of any length; do it again from the start if the database went away and is back in `retry_s`.

        Raises StoreUnavailable.
        """
        for _ in range(REPETITIONS if self._retry_s else 0):
            try:
                return work()
            except StoreUnavailable as error:
                if not is_worth_waiting(error):
                    raise
                log.warning("%s: waiting for it, then doing it again", error)
                time.sleep(PAUSE_S)
                self._do(lambda connection: connection.execute("select"))
        return work()

    def _do(self, work: Callable[[Connection], T]) -> T:
        """Run `work` in one transaction; repeat it from the start while the database is away (see `retry_s`).

        A transaction that Postgres broke off for another one is repeated at once.
        """
        if not self._retry_s:
            return self._despite_conflicts(work)
        attempts = tenacity.Retrying(
            retry=tenacity.retry_if_exception(is_worth_waiting),
            stop=tenacity.stop_after_delay(self._retry_s),
            wait=tenacity.wait_exponential_jitter(initial=0.1, max=2.0),
            reraise=True,
        )

        return attempts(self._despite_conflicts, work)

    def _despite_conflicts(self, work: Callable[[Connection], T]) -> T:
        for _ in range(REPETITIONS):
            with suppress(TransactionConflict):
                return self.in_transaction(work)
        return self.in_transaction(work)

    def _for_each(self, connection: Connection, statement: sql.Composed, rows: Iterable[dict[str, Any]]) -> None:
        """Run `statement` once for each row, in the order of their URLs: tasks that do so at once can't deadlock."""
        with connection.cursor() as cursor:
            cursor.executemany(statement, sorted(rows, key=itemgetter("url")))

    def _read(self, work: Callable[[Connection], T]) -> T:
        """Run `work`, which only reads, in one transaction; a session that has ended is noticed by using it.

        That saves the round trip in which the pool asks whether it has. Then as `_do`.
        """
        used: list[Connection] = []

        def watched(connection: Connection) -> T:
            used.append(connection)
            return work(connection)

        trusting = _trusts_sessions.set(True)
        try:
            return self.in_transaction(watched)
        except StoreUnavailable:
            if not (self._retry_s or (used and used[0].closed)):
                raise
        finally:
            _trusts_sessions.reset(trusting)
        return self._do(work)

    def _all(self, name: str, parameters: Mapping[str, Any] | None = None, **parts: sql.Composable) -> list[DictRow]:
        def work(connection: Connection) -> list[DictRow]:
            connection.autocommit = True  # one statement is a transaction: no round trips for BEGIN and COMMIT
            try:
                return connection.execute(statement(name, **parts), parameters).fetchall()
            finally:
                with suppress(psycopg.Error):  # the connection may be lost
                    connection.autocommit = False

        return self._do(work)

    def _one(self, name: str, parameters: Mapping[str, Any], **parts: sql.Composable) -> DictRow | None:
        rows = self._all(name, parameters, **parts)
        return rows[0] if rows else None

    def _run(self, name: str, parameters: Mapping[str, Any]) -> int:
        return self._do(lambda c: c.execute(statement(name), parameters).rowcount)

    def ping(self) -> None:
        """Raise StoreUnavailable unless the database answers."""
        with self._connection() as connection:
            connection.execute("select")


def is_worth_waiting(error: BaseException) -> bool:
    """Return whether the same call may succeed in a while."""
    return isinstance(error, StoreUnavailable) and not isinstance(error, DatabaseFull)


@contextmanager
def translate_errors() -> Iterator[None]:
    """Raise StoreUnavailable for errors of a database that can't be reached, DatabaseFull for those of a full one."""
    try:
        yield
    except psycopg.errors.ProgramLimitExceeded:
        raise  # it would be exceeded again
    except psycopg.errors.DiskFull as error:
        raise DatabaseFull(
            f"the disk of the database is full: {error.diag.message_primary}. Nothing is lost: free space there (old "
            "indexes go with `raydex prune`), then do the same again"
        ) from error
    except PoolTimeout as error:
        raise StoreUnavailable(f"no database connection in time: {error}") from error
    except (psycopg.errors.DeadlockDetected, psycopg.errors.SerializationFailure) as error:
        raise TransactionConflict(f"transactions were in each other's way: {error}; do the same again") from error
    except (psycopg.OperationalError, psycopg.InterfaceError) as error:
        raise StoreUnavailable(f"the database is away: {error}") from error


@contextmanager
def snapshot(connection: Connection, *, pipelined: bool = False) -> Iterator[None]:
    """Run the body in a read-only transaction of its own, in which all statements see the same state.

    If it is `pipelined`, a statement is sent without waiting for those before it: only reading results waits.
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
    """Run the body in a pipeline, whose first statement begins a transaction. `transaction()` would wait for that."""
    with connection.pipeline():
        yield
        connection.commit()


def is_alive(connection: Connection) -> bool:
    """Return whether the session of a connection still answers."""
    try:
        connection.execute("select")
    except psycopg.Error:
        return False
    return True


def to_jsonb(value: Any) -> Jsonb:
    """Return `value` as a parameter of type jsonb.

    Texts are cleaned for storage, NaN and infinities become null, times ISO 8601, numpy's numbers plain ones.
    """
    return Jsonb(_storable(value), dumps=_to_json)


def _storable(value: Any) -> Any:
    if isinstance(value, str):
        return clean_for_storage(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {clean_for_storage(str(name)): _storable(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_storable(inner) for inner in value]
    return value


def _to_json(value: Any) -> str:
    return json.dumps(value, default=lambda v: v.isoformat() if isinstance(v, datetime) else _storable(float(v)))
