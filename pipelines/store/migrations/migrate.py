"""Brings the schema of a database up to date.

Each migration runs and is recorded in one transaction, under one advisory lock. So processes that migrate at the same
time apply each migration once, and a failed migration leaves no trace. A database that is up to date is only read, so a
role without the right to create tables can use it.
"""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import LiteralString

import psycopg

from pipelines.store.chunks import ChunkColumns, ChunkTables, add_missing_columns, missing_columns
from pipelines.store.database.connection import Connection, own_sql, statement
from pipelines.store.database.errors import UnusableDatabase, translate_errors
from pipelines.version import raydex_version

FOLDER = Path(__file__).parent
FILE_NAME = re.compile(r"(\d{3})_(\w+)\.sql")
RECORD = "schema_version"  # the table of the migrations that were applied
# Tables in every version of Raydex. Versions before 0.1.0 recorded their migrations in another table.
OLDEST_TABLES = {"collection", "page", "run"}

# pgvector 0.8.2 fixes CVE-2026-3172 (buffer overflow in parallel HNSW builds, 0.6.0 to 0.8.1).
OLDEST_PGVECTOR = (0, 8, 2)
# Debian 13 has 0.8.0, Ubuntu 24.04 has 0.6.0.
NEWER_PGVECTOR = (
    "the packages of many systems are older: apt.postgresql.org and yum.postgresql.org have newer ones "
    "(`postgresql-NN-pgvector`, `pgvector_NN`), https://github.com/pgvector/pgvector#installation has other ways"
)


class MigrationFailed(UnusableDatabase):
    """A migration could not be applied; the database is as it was before it."""


@dataclass(frozen=True, slots=True)
class Migration:
    """One step of the schema: the number and name of its file, and its SQL."""

    number: int
    name: str
    text: LiteralString

    def __str__(self) -> str:
        return f"{self.number:03}_{self.name}"


class Schema(ChunkTables):
    """The schema of a database."""

    def migrate(self, folder: Path = FOLDER) -> None:
        """Apply the migrations of `folder` that the database lacks, in order, and add new chunk columns.

        Raises UnusableDatabase without pgvector ≥ 0.8.2, if a newer Raydex has changed the schema, or if the database
        has the tables but no record of them. Raises MigrationFailed.
        """
        migrations = read_migrations(folder)
        with translate_errors(), self.connect() as connection:
            missing = pending(connection, migrations)
            if _has_pgvector(connection) and not missing:
                if missing_columns(connection, self.columns):
                    _add_columns(connection, self.columns)
                return
            _create_pgvector(connection)
            for migration in migrations:
                _apply(connection, migration, migrations)
            _add_columns(connection, self.columns)


def read_migrations(folder: Path = FOLDER) -> list[Migration]:
    """Return the migrations of `folder` in order. Raises ValueError for two files with the same number."""
    found: dict[int, Migration] = {}
    for path in sorted(folder.glob("*.sql")):
        if match := FILE_NAME.fullmatch(path.name):
            migration = Migration(int(match[1]), match[2], own_sql(path.read_text()))
            if other := found.get(migration.number):
                raise ValueError(f"migrations {other} and {migration} have the same number: renumber the later one")
            found[migration.number] = migration
    return list(found.values())


def created_tables(migrations: Sequence[Migration]) -> list[str]:
    """Return the names of the tables that the migrations create."""
    return [name for each in migrations for name in re.findall(r"create (?:unlogged )?table (\w+) \(", each.text)]


def _has_pgvector(connection: Connection) -> bool:
    """Return whether pgvector is installed. Raises UnusableDatabase if it is too old."""
    row = connection.execute(statement("pgvector_version")).fetchone()
    if row is None:
        return False
    version = row["extversion"]
    if tuple(int(part) for part in re.findall(r"\d+", version)[:3]) < OLDEST_PGVECTOR:
        raise UnusableDatabase(
            f"pgvector {version} is too old (0.8.2 or newer is needed): install a newer one on the database server "
            f"and run `alter extension vector update` in the database; {NEWER_PGVECTOR}"
        )
    return True


def _create_pgvector(connection: Connection) -> None:
    try:
        with connection.transaction():
            connection.execute(statement("schema_lock"))
            connection.execute(statement("create_extension"))
    except psycopg.Error as error:
        if connection.closed:  # the database became unavailable
            raise
        raise UnusableDatabase(
            f"the database has no pgvector extension and it can't be created: {error}. "
            "Run `create extension vector` in the database as a superuser, or install pgvector on the database server; "
            f"{NEWER_PGVECTOR}"
        ) from error
    _has_pgvector(connection)


def pending(connection: Connection, migrations: Sequence[Migration]) -> list[Migration]:
    """Return the migrations that were not applied yet.

    Raises UnusableDatabase if the database has migrations unknown to this version, or tables that no migration created.
    """
    names = {"record": RECORD, "tables": created_tables(migrations)}
    found = connection.execute(statement("recorded_tables"), names).fetchone() or {}
    if not found["recorded"]:
        _refuse_tables(found["tables"])
        return list(migrations)
    rows = {row["number"]: row for row in connection.execute(statement("applied_migrations"))}
    newest = max((migration.number for migration in migrations), default=0)
    if unknown := [row for number, row in rows.items() if number > newest]:
        said = ", ".join(str(Migration(row["number"], row["name"], "")) for row in unknown)
        raise UnusableDatabase(
            f"a newer Raydex ({unknown[-1]['raydex']}) has changed this database ({said}; this version, "
            f"{raydex_version()}, knows migrations up to {newest:03}): upgrade Raydex, or set DATABASE_URL to another "
            "database"
        )
    return [migration for migration in migrations if migration.number not in rows]


def _refuse_tables(tables: Sequence[str]) -> None:
    """Raise UnusableDatabase if the database has `tables` but no recorded migration."""
    if set(tables) >= OLDEST_TABLES:
        raise UnusableDatabase(
            "this database was made by a Raydex older than 0.1.0 and can't be upgraded: name an empty database in "
            "DATABASE_URL, or another folder in RAYDEX_HOME, and index again (or write each collection with "
            "`raydex dump` of the older Raydex, and load it into the new database with `raydex restore`)"
        )
    if tables:
        raise UnusableDatabase(
            f"another program's tables in this database have names that Raydex needs ({', '.join(tables)}): name a "
            "database for Raydex in DATABASE_URL (`createdb raydex`)"
        )


def _apply(connection: Connection, migration: Migration, migrations: Sequence[Migration]) -> None:
    """Apply and record `migration`, unless it is already applied."""
    with _step(connection, f"migration {migration}"):
        if migration in pending(connection, migrations):
            connection.execute(statement("create_migrations"))
            connection.execute(migration.text)
            record = {"number": migration.number, "name": migration.name, "raydex": raydex_version()}
            connection.execute(statement("record_migration"), record)


def _add_columns(connection: Connection, columns: ChunkColumns) -> None:
    with _step(connection, "adding columns to chunks"):
        add_missing_columns(connection, columns)


@contextmanager
def _step(connection: Connection, name: str) -> Iterator[None]:
    """Run the body in one transaction that excludes all other migrating processes. Raises MigrationFailed."""
    try:
        with connection.transaction():
            connection.execute(statement("schema_lock"))
            yield
    except psycopg.Error as error:
        if connection.closed:  # the database became unavailable
            raise
        cause = error.diag.message_primary or error
        raise MigrationFailed(
            f"{name} failed and was rolled back: {cause}. Fix the cause and run the command again; "
            "a role that may not create or change tables must leave this to the owner of the database"
        ) from error
