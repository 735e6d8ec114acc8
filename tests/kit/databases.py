"""Hands out databases of one Postgres per test session, as copies of a template.

Nothing in it outlives the session, so the server never waits for the disk. Tests that kill a Postgres start their own
(`pipelines.embedded.run_postgres`).
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
    """The Postgres at `url` (a superuser's URL), with durability switched off."""

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
        """Yield the URL of a copy of `template` (a name or a URL of this server); drop the copy at the end.

        Nobody may be connected to the template while it is copied.
        """
        name = f"test_{next(self._numbers)}"
        self._do("create database {} template {}", name, template.rpartition("/")[2])
        try:
            yield self.url_of(name)
        finally:
            self._do("drop database {} with (force)", name)

    def _do(self, command: str, *names: str) -> None:
        self._connection.execute(sql.SQL(command).format(*map(sql.Identifier, names)))
