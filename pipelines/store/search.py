"""Reads indexes: the live one, searches in its chunks, its changes.

Every read is one snapshot, so that a publish is seen whole or not at all.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import psycopg
from psycopg import sql
from psycopg.rows import DictRow

from pipelines.characters import clean_for_storage
from pipelines.records import Filters, Hit, Index, IndexSettings
from pipelines.store.chunks import CHUNK_COLUMNS, ChunkColumns, ChunkTables, chunk_table, drop_index
from pipelines.store.connection import Connection, snapshot, statement

# A search is exact if its filter keeps at most this share of the chunks, but never more than EXACT_MOST chunks.
# Measured on 50,000 clustered chunks of 384 dimensions, k = 50, on two busy cores, by share kept: exactly, with the
# filters' own indexes, 1 % 2.5 ms, 5 % 4 ms, 20 % 12 ms; through the graph 1 % 92 ms (recall 0.94), 5 % 33 ms (0.89),
# 20 % 15 ms (0.91), 40 % 9 ms (0.98).
EXACT_SHARE, EXACT_LEAST, EXACT_MOST = 0.05, 1_000, 20_000

# The size of the list that a search of the graph keeps: at least k, at most what pgvector allows.
EF_SEARCH, MOST_EF_SEARCH = 100, 1000

# The condition for each field of Filters.
CONDITIONS = {
    "tags": "kept_by_tags",
    "version": "kept_by_version",
    "language": "kept_by_language",
    "url_prefix": "kept_by_url_prefix",
}

# A BM25 replica that is more than this many revisions behind is built anew.
CHANGES_KEPT = 100


class NoLiveIndex(LookupError):
    """The collection has no published index."""


class NoSuchIndex(LookupError):
    """No index is in the state that a command needs, or the index was pruned."""


class ChangesPruned(LookupError):
    """The changes since that revision are no longer stored: build from the whole index."""


@dataclass(frozen=True, slots=True)
class SearchResult:
    """The result of one search: a list of hits (cosine, best first) per vector, and the chunks asked for by id.

    With `too_slow` the search for the nearest was given up, and their lists are empty.
    """

    revision: int
    nearest: list[list[Hit]]
    by_id: dict[str, Hit]
    too_slow: bool = False


class ChunkSearch:
    """Searches the chunks of `index` that `filters` keep, in the transaction of `cursor`."""

    def __init__(
        self,
        cursor: psycopg.Cursor[DictRow],
        index: int,
        vector_type: str = "vector",
        filters: Filters = Filters(),
        columns: ChunkColumns = CHUNK_COLUMNS,
    ) -> None:
        self._cursor = cursor
        self._columns = columns
        self._table = f"chunk_{index:d}"
        self._kept = _parameters(filters)
        self._parts: dict[str, sql.Composable] = {
            **columns.parts,
            "chunk": chunk_table(index),
            "kept": _conditions(self._kept),
            "vector": sql.SQL("halfvec" if vector_type == "halfvec" else "vector"),
        }

    def tune(self, k: int, timeout_s: float | None) -> None:
        """Until the transaction ends, visit enough of the graph for `k`, and give up a statement after `timeout_s`."""
        values = {
            "ef_search": str(min(max(k, EF_SEARCH), MOST_EF_SEARCH)),
            "timeout_ms": str(max(1, int(timeout_s * 1000)) if timeout_s else 0),
        }
        self._cursor.execute(statement("tune_search"), values)

    def get(self, ids: Sequence[str]) -> dict[str, Hit]:
        """Return the chunks with these ids; unknown ids are left out."""
        rows = self._rows("get_chunks", ids=list(ids)) if ids else []
        return {row["id"]: self._columns.read_hit(row) for row in rows}

    def nearest(self, vectors: Sequence[np.ndarray], k: int) -> list[list[Hit]]:
        """Return the `k` chunks nearest to each vector."""
        name = "search_exactly" if vectors and self._keeps_few() else "search_chunks"
        return [self._nearest(name, vector, k) for vector in vectors]

    def _nearest(self, name: str, vector: np.ndarray, k: int) -> list[Hit]:
        rows = self._rows(name, vector=vector, k=k)
        if len(rows) < k and name != "search_exactly":  # the graph ended before the filter had kept enough
            rows = self._rows("search_exactly", vector=vector, k=k)
        hits = [self._columns.read_hit(row, "cosine") for row in rows]
        return sorted(hits, key=lambda hit: (-hit.score, hit.chunk_id))  # an iterative scan's order is slightly wrong

    def _keeps_few(self) -> bool:
        if not self._kept:
            return False
        bounds = {"share": EXACT_SHARE, "least": EXACT_LEAST, "most": EXACT_MOST}
        (row,) = self._rows("keeps_few", table=self._table, **bounds)
        return bool(row["few"])

    def _rows(self, name: str, **values: Any) -> list[DictRow]:
        return self._cursor.execute(statement(name, **self._parts), {**self._kept, **values}).fetchall()


class Indexes(ChunkTables):
    """Indexes and their chunks."""

    def live_index(self, collection: str) -> Index:
        """Return the index that answers questions now. Raises NoLiveIndex."""
        row = self._one("live_index", {"collection": collection})
        if row is None:
            raise NoLiveIndex(f"collection {collection!r} has no published index: run `raydex index` first")
        return _index(row)

    def candidate_index(self, collection: str) -> Index | None:
        """Return the newest built index that was not published, if there is one."""
        row = self._one("candidate_index", {"collection": collection})
        return _index(row) if row else None

    def previous_index(self, collection: str) -> Index | None:
        """Return the index that was live before, unless it was pruned."""
        row = self._one("previous_index", {"collection": collection})
        return _index(row) if row else None

    def deletable_pages(self, collection: str, index: int) -> tuple[int, int]:
        """Return how many pages of `index` a publish would delete as gone, and how many it holds."""
        row = self._one("deletable_pages", {"collection": collection, "index": index}) or {}
        return row["deletable"], row["pages"]

    def staged_changes(self, run: int, index: int) -> int:
        """Return how many chunks of `index` a publish of `run` would insert, re-embed or delete."""
        row = self._one("staged_changes", {"run": run}, chunk=chunk_table(index)) or {}
        return int(row["chunks"])

    def index_stats(self, index: int) -> dict[str, int]:
        """Return how many chunks, pages, sections and listings (pages without a section) `index` holds."""
        return dict(self._one("index_counts", {"index": index}, chunk=chunk_table(index)) or {})

    def prune(self, collection: str, keep: int = 0) -> list[int]:
        """Drop all retired indexes but the `keep` newest; return their ids."""

        values = {"collection": collection, "keep": keep}

        def work(connection: Connection) -> list[int]:
            pruned = sorted(row["id"] for row in connection.execute(statement("prunable_indexes"), values))
            for index in pruned:
                drop_index(connection, index)
            return pruned

        return self._do(work)

    def search(
        self,
        index: Index,
        vectors: Sequence[np.ndarray],
        ids: Sequence[str],
        k: int,
        filters: Filters = Filters(),
        timeout_s: float | None = None,
    ) -> SearchResult:
        """Return, in one snapshot, the `k` chunks nearest to each of `vectors` (cosine), and those with `ids`.

        Only chunks that `filters` keep; `k` of them if they keep that many. `timeout_s` bounds each statement: a search
        that takes longer is given up, anything else raises StoreUnavailable. Raises NoSuchIndex for a pruned index.
        """

        def work(connection: Connection) -> SearchResult:
            with _existing(index.id), snapshot(connection), connection.cursor(binary=True) as cursor:
                row = cursor.execute(statement("get_index"), {"index": index.id}).fetchone()
                if row is None:
                    raise NoSuchIndex(f"index {index.id} of collection {index.collection!r} was pruned")
                scope = ChunkSearch(cursor, index.id, row["settings"]["vector_type"], filters, self.columns)
                scope.tune(k, timeout_s)
                by_id = scope.get(ids)
                try:
                    return SearchResult(row["revision"], scope.nearest(vectors, k), by_id)
                except psycopg.errors.QueryCanceled:  # the transaction is over, what it returned so far is kept
                    return SearchResult(row["revision"], [[] for _ in vectors], by_id, too_slow=True)

        return self._do(work)

    def neighbours(self, index: int, ids: Sequence[str], reach: int) -> dict[str, list[Hit]]:
        """Return for each chunk those of its section at most `reach` places away and itself, in reading order."""
        values = {"ids": list(ids), "reach": reach}
        with _existing(index):
            rows = self._all("neighbours", values, chunk=chunk_table(index), **self.columns.parts)
        neighbours: dict[str, list[Hit]] = {}
        for row in rows:
            neighbours.setdefault(row["of"], []).append(self.columns.read_hit(row))
        return neighbours

    def chunks_of_pages(self, index: int, urls: Collection[str]) -> list[Hit]:
        """Return the chunks of these pages, page by page in reading order. Raises NoSuchIndex."""
        values = {"urls": list(map(clean_for_storage, urls))}
        with _existing(index):
            rows = self._all("chunks_of_pages", values, chunk=chunk_table(index), **self.columns.parts)
        return [self.columns.read_hit(row) for row in rows]

    @contextmanager
    def scan_chunks(self, index: int) -> Iterator[tuple[int, Iterator[Hit]]]:
        """Yield one snapshot of a whole index: its revision and its chunks, streamed through a server-side cursor."""
        with self._connection() as connection, _existing(index), snapshot(connection):
            row = connection.execute(statement("get_index"), {"index": index}).fetchone()
            if row is None:
                raise NoSuchIndex(f"index {index} was pruned")
            with connection.cursor("scan") as cursor:
                cursor.itersize = 2_000
                cursor.execute(statement("scan_chunks", chunk=chunk_table(index), **self.columns.parts))
                yield row["revision"], map(self.columns.read_hit, cursor)

    def vectors(self, index: int) -> dict[str, np.ndarray]:
        """Return the vector of each chunk of an index (float32) by chunk id. Raises NoSuchIndex."""
        with self._connection() as connection, _existing(index), connection.cursor("scan", binary=True) as cursor:
            cursor.itersize = 2_000
            cursor.execute(statement("scan_vectors", chunk=chunk_table(index)))
            return {row["id"]: np.asarray(row["embedding"].to_numpy(), np.float32) for row in cursor}

    def changes_since(self, index: int, revision: int) -> tuple[int, list[tuple[str, Hit | None]]]:
        """Return the newest revision, and each chunk changed since `revision` as it is now (None: deleted).

        Raises ChangesPruned if changes that old are no longer stored, NoSuchIndex if the index was pruned.
        """

        def work(connection: Connection) -> tuple[int, list[tuple[str, Hit | None]]]:
            with _existing(index), snapshot(connection):
                row = connection.execute(statement("get_index"), {"index": index}).fetchone()
                if row is None:
                    raise NoSuchIndex(f"index {index} was pruned")
                if not row["revision"] - CHANGES_KEPT <= revision <= row["revision"]:
                    raise ChangesPruned(
                        f"index {index}: changes from revision {revision} to {row['revision']} are no longer stored"
                    )
                values = {"index": index, "revision": revision}
                ids = [row["chunk_id"] for row in connection.execute(statement("changes_since"), values)]
                chunks = ChunkSearch(connection.cursor(), index, columns=self.columns).get(ids)
                return row["revision"], [(name, chunks.get(name)) for name in ids]

        return self._do(work)


@contextmanager
def _existing(index: int) -> Iterator[None]:
    """Raise NoSuchIndex if the body finds the chunk table of `index` dropped, which no snapshot prevents."""
    try:
        yield
    except psycopg.errors.UndefinedTable as error:
        raise NoSuchIndex(f"index {index} was pruned") from error


def _index(row: Mapping[str, Any]) -> Index:
    return Index(row["id"], row["collection"], IndexSettings(**row["settings"]), row["state"], row["revision"],
                 row["fingerprint"])  # fmt: skip


def _parameters(filters: Filters) -> dict[str, Any]:
    """Return the filters that are set, as parameters."""
    values = {**asdict(filters), "tags": [clean_for_storage(tag) for tag in filters.tags]}
    given = {name: value for name, value in values.items() if value not in (None, [])}
    return {name: clean_for_storage(value) if isinstance(value, str) else value for name, value in given.items()}


def _conditions(kept: Mapping[str, Any]) -> sql.Composable:
    """Return the conditions of the filters that are set."""
    return sql.SQL(" and ").join([statement(CONDITIONS[name]) for name in kept]) if kept else sql.SQL("true")
