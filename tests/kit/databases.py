"""Databases of a test session: one Postgres that forgets when the power goes, and cheap copies of what it holds.

Nothing here outlives the session, so the server writes no byte to disk for safety's sake. Tests that kill a Postgres
start one of their own (`pipelines.embedded.run_postgres`).
"""

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit, urlunsplit

import psycopg
from psycopg import sql

from pipelines.store import Store

# All three take effect without a restart.
UNSAFE = ("fsync", "full_page_writes", "synchronous_commit")
TABLES = "raydex_tables"


class DatabaseServer:
    """The Postgres at `url` (its superuser's), without durability."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._numbers = itertools.count(1)
        self._connection = psycopg.connect(url, autocommit=True)
        for name in UNSAFE:
            self._do("alter system set {} = off", name)
        self._connection.execute("select pg_reload_conf()")
        self._do("create database {}", TABLES)
        with Store(self.url_of(TABLES)) as store:
            store.migrate()

    def close(self) -> None:
        self._connection.close()

    def url_of(self, name: str) -> str:
        return urlunsplit(urlsplit(self.url)._replace(path=f"/{name}"))

    @contextmanager
    def database(self, template: str = TABLES) -> Iterator[str]:
        """The URL of a copy of `template` (a name or a URL of this server), dropped at the end.

        Nobody may be connected to the template meanwhile.
        """
        name = f"test_{next(self._numbers)}"
        self._do("create database {} template {}", name, template.rpartition("/")[2])
        try:
            yield self.url_of(name)
        finally:
            self._do("drop database {} with (force)", name)

    def _do(self, command: str, *names: str) -> None:
        self._connection.execute(sql.SQL(command).format(*map(sql.Identifier, names)))
