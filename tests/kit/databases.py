"""Creates databases in one Postgres per test session, as copies of a template.

No data outlives the session, so the server never waits for the disk. Tests that kill a Postgres start their own
(`pipelines.embedded.run_postgres`).
"""

import itertools
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import psycopg
from psycopg import sql
from psycopg.rows import dict_row

from pipelines.keeper import OWNER, read_url, superuser_url
from pipelines.store import Store, give_database

# All three take effect without a restart.
UNSAFE = ("fsync", "full_page_writes", "synchronous_commit")
TABLES, EMPTY = "raydex_tables", "template1"


def url_of(server: str, name: str) -> str:
    """Return the URL of another database of the server."""
    return urlunsplit(urlsplit(server)._replace(path=f"/{name}"))


def new_database(home: Path, name: str) -> str:
    """Create a database without tables on the embedded Postgres of `home`, and return its owner's URL."""
    superuser, owner = superuser_url(home), read_url(home) or ""
    with closing(psycopg.connect(superuser, autocommit=True)) as connection:
        connection.execute(sql.SQL("create database {}").format(sql.Identifier(name)))
    parts = urlsplit(owner)
    give_database(url_of(superuser, name), parts.username or "", parts.password or "")
    return url_of(owner, name)


def end_sessions(url: str) -> int:
    """End all other sessions of a database and return their number."""
    query = """select count(pg_terminate_backend(pid)) from pg_stat_activity
               where datname = current_database() and pid <> pg_backend_pid() and backend_type = 'client backend'"""
    with psycopg.connect(url, autocommit=True) as connection:
        return connection.execute(query).fetchone()[0]


def evaluation_row(store: Store, id: int) -> dict[str, Any]:
    """Return the row of an evaluation."""
    with psycopg.connect(store.url, row_factory=dict_row) as connection:
        return connection.execute("select * from evaluation where id = %s", [id]).fetchone()


class DatabaseServer:
    """The embedded Postgres of `home` with durability switched off. `url` is the superuser's URL."""

    def __init__(self, home: Path) -> None:
        self.home, self.url, self._numbers = home, superuser_url(home), itertools.count(1)
        self._connection = psycopg.connect(self.url, autocommit=True)
        for name in UNSAFE:
            self._do("alter system set {} = off", name)
        self._connection.execute("select pg_reload_conf()")
        self._owner = new_database(home, TABLES)
        with Store(self._owner) as store:
            store.migrate()

    def close(self) -> None:
        self._connection.close()

    @contextmanager
    def database(self, template: str = TABLES) -> Iterator[str]:
        """Yield the URL of a copy of `template` (a name or a URL of this server), and drop the copy at the end.

        The URL is that of the owner of Raydex's tables, or the superuser's for a database without tables. Nobody may be
        connected to the template during the copy.
        """
        name = f"test_{next(self._numbers)}"
        empty = template == EMPTY
        self._do("create database {} template {} strategy file_copy", name, template.rpartition("/")[2])
        if not empty:
            self._do("alter database {} owner to {}", name, OWNER)
        try:
            yield url_of(self.url if empty else self._owner, name)
        finally:
            self._do("drop database {} with (force)", name)

    def _do(self, command: str, *names: str) -> None:
        self._connection.execute(sql.SQL(command).format(*map(sql.Identifier, names)))
