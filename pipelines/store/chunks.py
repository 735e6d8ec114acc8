"""Declares the columns of a chunk once, and creates the chunk table of each index.

To store another value per chunk, add a Column to CHUNK_COLUMNS. The staging table, the chunk tables of old and new
indexes, publishing, searching, dumps and restores get their columns from there. This module opens no transaction.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, LiteralString

from psycopg import sql

from pipelines.records import Hit
from pipelines.store.database.connection import Connection, Database, own_sql, statement
from pipelines.text.cleaning import clean_value


@dataclass(frozen=True, slots=True)
class Column:
    """One column of every chunk table.

    Its value is the attribute `name` of the chunk or of its page (`of`). `hit` names the field of Hit that reads it; ""
    if none does. `fixed` columns decide the chunk's id, so they never change in a stored chunk. `default` is SQL: the
    value in chunks that were stored before the column was added. The columns of 0.1.0 have none; every
    later column needs one ("null" will do if it is `nullable`).
    """

    name: str
    type: LiteralString
    of: Literal["chunk", "page"] = "chunk"
    hit: str = ""
    fixed: bool = False
    nullable: bool = False
    default: LiteralString | None = None

    @property
    def definition(self) -> sql.Composed:
        """The column definition for `create table` and `alter table`."""
        null: LiteralString = "" if self.nullable else " not null"
        default: LiteralString = "" if self.default is None else f" default {self.default}"
        return sql.Identifier(self.name) + sql.SQL(f" {self.type}{null}{default}")


def _listed(names: Iterable[str], table: str = "") -> sql.Composed:
    """Return column names as an SQL list, qualified by `table` if given."""
    return sql.SQL(", ").join([sql.Identifier(table, name) if table else sql.Identifier(name) for name in names])


def _defaults(columns: Iterable[Column]) -> sql.Composed:
    """Return an SQL expression for a JSON object with the default of each later column."""
    later = [(column.name, column.default) for column in columns if column.default is not None]
    parts = [sql.Literal(name) + sql.SQL(f", {default}") for name, default in later]
    return sql.SQL("jsonb_build_object({})").format(sql.SQL(", ").join(parts))


class ChunkColumns:
    """The columns of a chunk table except its embedding, and the SQL parts made from them.

    `parts` fills the placeholders of statements: {columns}, {definitions} and {hit} (the columns for `read_hit`, of a
    chunk table called c). Updating a row in place uses {variable}, {current} (of c) and {staged} (of a staged chunk s).
    Restoring a row from its JSON uses {columns_of_old} (of a row o) and {defaults} for columns that it may lack.
    """

    def __init__(self, columns: Sequence[Column]) -> None:
        self._columns = tuple(columns)
        variable = [column.name for column in columns if not column.fixed]
        self.parts: dict[str, sql.Composable] = {
            "columns": _listed(self.names),
            "definitions": sql.SQL(", ").join([column.definition for column in columns]),
            "hit": _listed((column.name for column in columns if column.hit), "c"),
            "variable": _listed(variable),
            "current": _listed(variable, "c"),
            "staged": _listed(variable, "s"),
            "columns_of_old": _listed(self.names, "o"),
            "defaults": _defaults(columns),
        }
        self._read = [(column.name, column.hit, column.type.endswith("[]")) for column in columns if column.hit]

    def extended(self, *columns: Column) -> "ChunkColumns":
        """Return these columns followed by `columns`."""
        return ChunkColumns((*self._columns, *columns))

    @property
    def names(self) -> list[str]:
        """The names, in column order."""
        return [column.name for column in self._columns]

    @property
    def types(self) -> list[str]:
        """The SQL types, in column order."""
        return [column.type for column in self._columns]

    def definition(self, name: str) -> sql.Composed:
        """Return the definition of the column `name`."""
        return next(column.definition for column in self._columns if column.name == name)

    def values(self, page: object, chunk: object) -> list[Any]:
        """Return the stored values of a page's chunk, in column order."""
        return [clean_value(getattr(page if column.of == "page" else chunk, column.name)) for column in self._columns]

    def read_hit(self, row: Mapping[str, Any]) -> Hit:
        """Return a row of {hit} as a Hit without a score."""
        fields: dict[str, Any] = {field: tuple(row[name]) if many else row[name] for name, field, many in self._read}
        return Hit(score_kind="none", **fields)


CHUNK_COLUMNS = ChunkColumns(
    (
        Column("id", "text", hit="chunk_id", fixed=True),
        Column("url", "text", hit="url", fixed=True),
        Column("anchor", "text", fixed=True),
        Column("anchors", "text[]", hit="anchors"),
        Column("title", "text", hit="title"),
        Column("headings", "text[]", hit="headings"),
        Column("ordinal", "int4", hit="ordinal"),
        Column("text", "text", hit="text"),
        Column("text_hash", "text", hit="text_hash", fixed=True),
        Column("embed_hash", "text"),
        Column("tokens", "int4"),
        Column("tags", "text[]", "page", hit="tags"),
        Column("version", "text", "page", hit="version", nullable=True),
        Column("language", "text", "page", hit="language"),
        Column("plain", "text", hit="plain"),
    )
)


VECTOR_TYPES = ("vector", "halfvec")


class ChunkTables(Database):
    """A database whose chunk tables have `columns`."""

    columns: ClassVar[ChunkColumns] = CHUNK_COLUMNS


def chunk_table(index: int) -> sql.Identifier:
    """Return the name of an index's chunk table."""
    return sql.Identifier(f"chunk_{index:d}")


def create_chunk_table(
    connection: Connection, index: int, vector_type: str, dimension: int, columns: ChunkColumns = CHUNK_COLUMNS
) -> None:
    """Create the empty chunk table of an index, without keys and indexes.

    Raises ValueError for a vector type other than `vector` and `halfvec`, since settings may come from a file.
    """
    if vector_type not in VECTOR_TYPES:
        raise ValueError(f"{vector_type!r} is not a vector type: {' or '.join(VECTOR_TYPES)}")
    vector = sql.SQL(own_sql(f"{vector_type}({dimension:d})"))
    connection.execute(statement("create_chunks", chunk=chunk_table(index), vector=vector, **columns.parts))


def missing_columns(connection: Connection, columns: ChunkColumns) -> list[tuple[str, str]]:
    """Return (table, column) for each of `columns` that a chunk table or the staging table lacks."""
    rows = connection.execute(statement("missing_columns"), {"columns": columns.names}).fetchall()
    return [(row["table"], row["column"]) for row in rows]


def add_missing_columns(connection: Connection, columns: ChunkColumns) -> None:
    """Add columns to every chunk table and the staging table that were declared after the table was created."""
    for table, name in missing_columns(connection, columns):
        connection.execute(statement("add_column", table=sql.Identifier(table), definition=columns.definition(name)))


def vectors_of(connection: Connection) -> sql.Composable:
    """Return the query for all stored vectors by embed_hash: the staged ones and those in every index.

    Until the transaction ends, none of these indexes can be dropped, even in other collections.
    """
    tables = [chunk_table(row["id"]) for row in connection.execute(statement("index_tables")).fetchall()]
    selects = [statement("vectors_of_index", chunk=table) for table in tables]
    return sql.SQL("({})").format(sql.SQL(" union all ").join([statement("vectors_staged"), *selects]))


def drop_index(connection: Connection, index: int) -> None:
    """Drop an index; its row goes first, which waits for transactions that read its vectors (see vectors_of).

    To drop several, go in the order of their ids, in a transaction that has not called vectors_of: otherwise two runs
    can deadlock.
    """
    connection.execute(statement("delete_index"), {"index": index})
    connection.execute(statement("drop_chunks", chunk=chunk_table(index)))
