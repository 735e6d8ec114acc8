"""Checks a database's URL before anything connects, and waits until the database answers.

This module knows no pool and no statement.
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
# Long enough for a restart of Postgres with recovery, or a failover; longer outages need a person.
DATABASE_PATIENCE_S = 60.0
# Longer than a TLS handshake across the world; a URL may set another `connect_timeout`.
CONNECT_S = 5
# Pause between a lost connection and the next attempt: while shutting down, Postgres may accept sessions for a moment.
PAUSE_S = 0.5
# Replies of a server or pooler that starts, stops, recovers, or is out of connections. It may accept us later.
TEMPORARY = ("the database system is", "connection slots", "too many", "max client conn", "max_client_conn",
             "no more connections", "cannot connect to server", "server_login", "query_wait_timeout")  # fmt: skip
# Refusals by the server or the driver that waiting won't change.
REFUSALS = ("FATAL", "SSL was required", "certificate", "no password supplied", "channel binding", "requirement",
            "GSSAPI", "invalid ")  # fmt: skip

# The beginning of the driver's messages, which repeats the place.
_WHERE = re.compile(r"connection failed: (?:connection to server (?:at|on socket) .*? failed: )?")


class BadDatabaseUrl(UnusableDatabase):
    """A database URL can't be used. Neither the message nor a cause contains any part of its password."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"DATABASE_URL can't be used: {reason}. {URL_FORM}")


def check_url(url: str) -> str:
    """Return the HOST:PORT of a database URL (or of libpq's keys and values). Raises BadDatabaseUrl.

    The URL is checked before anything connects. The driver's own messages quote the text that it could not parse,
    including the password, or take a part of the password for the host.
    """
    if url and not re.match(r"postgres(ql)?://|\s*\w+\s*=", url):
        raise BadDatabaseUrl("it does not begin with postgresql://")
    user, _, rest = url.partition("://")[2].rpartition("@")
    # Parameters, which follow the database's name, may contain any @.
    named, at, _ = re.sub(r"/[^@/?]*\?\w+=.*", "", url.partition("://")[2]).rpartition("@")
    if re.search(r"[@/?]", named) or (at and not named):
        raise BadDatabaseUrl("user or password contains a character that must be escaped")
    try:
        parts = conninfo_to_dict(url)
    except psycopg.ProgrammingError as error:
        quoted = re.sub(r'"([^"]*)"', lambda found: found[0] if found[1] in rest and found[1] not in user else '"…"',
                        str(error).strip())  # fmt: skip
        raise BadDatabaseUrl(quoted) from None
    ports = [port or "5432" for port in str(parts.get("port") or "").split(",")]
    if not all(port.isdecimal() and 0 < int(port) < 1 << 16 for port in ports):
        raise BadDatabaseUrl("its port is not a number from 1 to 65535")
    return f"{parts.get('host') or 'a local socket'}:{','.join(ports)}"


def conninfo(url: str) -> str:
    """Return a URL in the driver's form, with a connect timeout.

    The client encoding is always UTF-8, even if the URL or PGCLIENTENCODING set another one: others can't encode every
    page.
    """
    timeout_s = conninfo_to_dict(url).get("connect_timeout", CONNECT_S)
    return make_conninfo(url, connect_timeout=timeout_s, client_encoding="utf8")


def can_connect(url: str) -> bool:
    """Return whether a Postgres answers at `url` now."""
    try:
        psycopg.connect(url, connect_timeout=2).close()
    except psycopg.Error:
        return False
    return True


def wait_for_database(url: str, tell: Callable[[str], None], patience_s: float = DATABASE_PATIENCE_S) -> None:
    """Wait until the database of `url` answers; after TELL_S, call `tell` once with a message about the wait.

    Interrupts of the caller's thread take effect at once, even while the driver is connecting. Raises BadDatabaseUrl.
    Raises StoreUnavailable after `patience_s`, or when a server refuses for good.
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
            problem = _WHERE.sub("", str(error).partition("\n")[0])
            if any(words in problem for words in REFUSALS) and not any(words in problem for words in TEMPORARY):
                break
    raise StoreUnavailable(
        f"the database at {place} can't be used: {problem}. Check that it runs, and that DATABASE_URL is right"
    )


def _try_to_connect(url: str, answered: "queue.SimpleQueue[psycopg.Error | None]") -> None:
    """Try to connect until that succeeds or a minute has passed, and report each result."""
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
