"""Reads the state of a database without changing it: server, pgvector, schema, rights of the role."""

import re
from dataclasses import dataclass
from pathlib import Path

from pipelines.store.database.connection import Database, is_pooled, statement
from pipelines.store.database.errors import translate_errors
from pipelines.store.migrations.migrate import FOLDER, OLDEST_PGVECTOR, RECORD, created_tables, pending, read_migrations


@dataclass(frozen=True, slots=True)
class DatabaseState:
    """A database as a role sees it. `pgvector` is the installed version, `pgvector_offered` the server's newest.

    `pending` are the migrations not yet applied, all of them in an empty database. `closed` are the tables that the
    role may not read and write. `pooled` says that the URL leads to a connection pooler.
    """

    version: str
    role: str
    standby: bool
    read_only: bool
    pgvector: str | None
    pgvector_offered: str | None
    may_create_tables: bool
    may_create_extensions: bool
    may_create_temporary: bool
    most_connections: int
    connections: int
    bytes: int
    pending: tuple[str, ...]
    empty: bool
    closed: tuple[str, ...]
    pooled: bool = False

    @property
    def pgvector_suffices(self) -> bool:
        """Whether pgvector is new enough: the installed one, or the server's newest if none is installed."""
        return version_of(self.pgvector or self.pgvector_offered or "0") >= OLDEST_PGVECTOR


def version_of(text: str) -> tuple[int, ...]:
    """Return a version as numbers."""
    return tuple(int(part) for part in re.findall(r"\d+", text)[:3])


def read_state(url: str, folder: Path = FOLDER) -> DatabaseState:
    """Return the state of the database at `url`, compared with the migrations of `folder`.

    Raises BadDatabaseUrl, StoreUnavailable, and UnusableDatabase if a newer Raydex has changed it.
    """
    migrations = read_migrations(folder)
    with translate_errors(), Database(url).connect() as connection:
        row, pooled = connection.execute(statement("database_state")).fetchone() or {}, is_pooled(connection)
        closed = connection.execute(
            statement("closed_tables"), {"tables": [RECORD, *created_tables(migrations)]}
        ).fetchall()
        may_look = RECORD not in [each["name"] for each in closed]
        missing = pending(connection, migrations) if may_look else []
    return DatabaseState(
        **row,
        pending=tuple(map(str, missing)),
        empty=len(missing) == len(migrations),
        closed=tuple(each["name"] for each in closed),
        pooled=pooled,
    )
