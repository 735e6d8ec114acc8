"""Where a database is: checks its URL before anything connects, and waits until it answers.

Knows no pool and no statement.
"""

import queue
import re
import threading
import time
from collections.abc import Callable
from contextlib import suppress

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from pipelines.store.database.errors import StoreUnavailable, UnusableDatabase
from pipelines.text.progress import TELL_S, describe_wait

URL_FORM = (
    "It is written postgresql://USER:PASSWORD@HOST:5432/DATABASE, with %40 for @, %2F for / and %25 for % in a password"
)
# Long enough for a restart of Postgres with recovery, or a fail-over; what takes longer needs a person.
DATABASE_PATIENCE_S = 60.0
# Longer than a handshake with TLS takes across the world; a URL may name another `connect_timeout`.
CONNECT_S = 5
# Between a loss and the next attempt: Postgres may accept sessions for a moment while it goes down.
PAUSE_S = 0.5
# A server or a pooler that answers so (it starts, ends, recovers, or is out of connections) may have us in a while.
TEMPORARY = ("the database system is", "connection slots", "too many", "max client conn", "max_client_conn",
             "no more connections", "cannot connect to server", "server_login", "query_wait_timeout")  # fmt: skip
# A refusal of the server, or of the driver: no time changes it.
REFUSALS = ("FATAL", "SSL was required", "certificate", "no password supplied", "channel binding", "requirement",
            "GSSAPI", "invalid ")  # fmt: skip


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
    user, _, rest = url.partition("://")[2].rpartition("@")
    # Parameters, which follow a database's name, may hold any @.
    named, at, _ = re.sub(r"/[^@/?]*\?\w+=.*", "", url.partition("://")[2]).rpartition("@")
    if re.search(r"[@/?]", named) or (at and not named):
        raise BadDatabaseUrl("user or password holds a character that must be escaped")
    try:
        parts = conninfo_to_dict(url)
    except psycopg.ProgrammingError as error:
        quoted = re.sub(r'"([^"]*)"', lambda found: found[0] if found[1] in rest and found[1] not in user else '"…"',
                        str(error).strip())  # fmt: skip
        raise BadDatabaseUrl(quoted) from None
    ports = [port or "5432" for port in str(parts.get("port") or "").split(",")]
    if not all(port.isdecimal() and 0 < int(port) < 1 << 16 for port in ports):
        raise BadDatabaseUrl("its port is no number from 1 to 65535")
    return f"{parts.get('host') or 'a local socket'}:{','.join(ports)}"


def conninfo(url: str) -> str:
    """Return a URL as the driver takes it, with a time in which to connect.

    Texts travel as UTF-8, whatever the URL or PGCLIENTENCODING ask for: others can't hold all that pages hold.
    """
    timeout_s = conninfo_to_dict(url).get("connect_timeout", CONNECT_S)
    return make_conninfo(url, connect_timeout=timeout_s, client_encoding="utf8")


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
    StoreUnavailable after `patience_s`, or when a server answers that it will never have us.
    """
    place, answered = check_url(url), queue.SimpleQueue[psycopg.Error | None]()
    threading.Thread(target=_try_to_connect, args=(url, answered), daemon=True, name="wait-for-database").start()
    began, problem, told = time.monotonic(), "it does not answer", False
    while (elapsed_s := time.monotonic() - began) < patience_s:
        if not told and elapsed_s >= TELL_S:
            tell(describe_wait(f"the database at {place} ({problem})", patience_s))
            told = True
        with suppress(queue.Empty):
            error = answered.get(timeout=0.1)
            if error is None:
                return
            problem = str(error).partition("\n")[0]
            if any(words in problem for words in REFUSALS) and not any(words in problem for words in TEMPORARY):
                break
    raise StoreUnavailable(f"the database at {place} can't be used: {problem}")


def _try_to_connect(url: str, answered: "queue.SimpleQueue[psycopg.Error | None]") -> None:
    """Connect until that succeeds or a minute is over, and pass each outcome on."""
    deadline = time.monotonic() + DATABASE_PATIENCE_S
    while time.monotonic() < deadline:
        try:
            psycopg.connect(conninfo(url)).close()
        except psycopg.Error as error:
            answered.put(error)
            time.sleep(PAUSE_S)
        else:
            answered.put(None)
            return
