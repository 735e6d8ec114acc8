"""Reads indexes: the live one, searches in its chunks, its changes.

Every read is one snapshot, so that a publish is seen whole or not at all.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, fields, replace
from functools import lru_cache
from typing import Any, Literal, TypeVar

import numpy as np
import psycopg
from psycopg import sql
from psycopg.rows import DictRow, RowFactory, dict_row, tuple_row

from pipelines.records import Filters, Hit, Index, IndexSettings
from pipelines.store.chunks import ChunkColumns, ChunkTables, RankableChunk, chunk_table, drop_index
from pipelines.store.database.connection import EF_SEARCH, HUGE_EF_SEARCH, HUGE_GRAPH, Connection, snapshot, statement
from pipelines.store.database.errors import UnusableDatabase
from pipelines.text.cleaning import clean_parameters

T = TypeVar("T")

# A search is exact if its filter keeps at most this share of the chunks, but never more than EXACT_MOST chunks.
# Measured on 50,000 clustered chunks of 384 dimensions, k = 50, on two busy cores, by share kept: exactly, with the
# filters' own indexes, 1 % 2.5 ms, 5 % 4 ms, 20 % 12 ms; through the graph 1 % 92 ms (recall 0.94), 5 % 33 ms (0.89),
# 20 % 15 ms (0.91), 40 % 9 ms (0.98).
EXACT_SHARE, EXACT_LEAST, EXACT_MOST = 0.05, 1_000, 20_000

MOST_EF_SEARCH = 1000  # what pgvector allows

# The condition for each field of Filters.
CONDITIONS = {
    "tags": "kept_by_tags",
    "version": "kept_by_version",
    "language": "kept_by_language",
    "url_prefix": "kept_by_url_prefix",
}

# A BM25 replica that is more than this many revisions behind is rebuilt.
CHANGES_KEPT = 100


class NoLiveIndex(LookupError):
    """The collection has no published index."""


class NoSuchIndex(LookupError):
    """No index is in the state that a command needs, or the index was pruned."""


class ChangesPruned(LookupError):
    """The changes since that revision are no longer stored: build from the whole index."""


ScoredChunk = tuple[float, RankableChunk]  # higher is better


@dataclass(frozen=True, slots=True)
class SearchResult:
    """The result of one search: a list of chunks (by cosine, best first) per vector, and the chunks asked for by id.

    `live` says what is live now: name, is_default, index and revision of each collection, or of the one asked for. With
    `too_slow` the search for the nearest was given up, and their lists are empty.
    """

    revision: int
    nearest: list[list[ScoredChunk]]
    by_id: dict[str, RankableChunk]
    too_slow: bool = False
    live: Sequence[Mapping[str, Any]] = ()


@dataclass(frozen=True, slots=True)
class IndexSnapshot:
    """Reads one state of `index`, in the pipelined transaction of `connection`: what ranking needs, then hits.

    A statement is given up after `timeout_s` (None: without limit).
    """

    connection: Connection
    index: Index
    columns: ChunkColumns
    timeout_s: float | None

    def search(
        self,
        vectors: Sequence[np.ndarray],
        ids: Sequence[str],
        k: int,
        filters: Filters = Filters(),
        *,
        collection: str | None = None,
    ) -> SearchResult:
        """Return the `k` chunks nearest to each of `vectors` (cosine), and those with `ids`.

        Only chunks that `filters` keep; `k` of them if they keep that many. A search that takes too long is done again
        without vectors. Raises NoSuchIndex if the index was pruned.
        """
        kept = {name: value for name, value in asdict(filters).items() if value not in (None, (), [])}
        try:
            return self._search(vectors, ids, k, kept, collection)
        except psycopg.errors.QueryCanceled:
            self._break_off()
            found = self._search((), ids, k, kept, collection)
            return replace(found, nearest=[[] for _ in vectors], too_slow=True)

    def page(self, url: str) -> list[RankableChunk]:
        """Return the chunks of a page in reading order. If that takes too long, what is read later is a newer state."""
        try:
            rows = self._send("page_rankable", {"url": url}).fetchall()
        except psycopg.errors.QueryCanceled:
            self._break_off()
            raise
        return [RankableChunk(*row) for row in rows]

    def hits(self, ids: Sequence[str]) -> dict[str, Hit]:
        """Return the chunks with these ids; unknown ids are left out."""
        cursor = self._send("get_chunks", {"ids": list(ids)}, row_factory=dict_row)
        return {row["id"]: self.columns.read_hit(row) for row in cursor.fetchall()}

    def _search(
        self, vectors: Sequence[np.ndarray], ids: Sequence[str], k: int, kept: Mapping[str, Any], name: str | None
    ) -> SearchResult:
        """Send all that can be sent, then read the results in the same order."""
        self._tune(k)
        collections = self._send("live_revisions", {"index": self.index.id, "collection": name}, row_factory=dict_row)
        named = self._send("get_rankable", {"ids": list(ids)}, kept) if ids else None
        few = self._keeps_few(kept) if kept and vectors else False
        way = "search_exactly" if few else "search_chunks"
        nearest = [self._send(way, {"vector": vector}, kept, k) for vector in vectors]
        live = collections.fetchall()
        revision = next((row["searched"] for row in live if row["searched"] is not None), None)
        if revision is None:
            raise NoSuchIndex(f"index {self.index.id} of collection {self.index.collection!r} was pruned")
        by_id = {row[0]: RankableChunk(*row) for row in named.fetchall()} if named else {}
        found = [_scored(cursor.fetchall()) for cursor in nearest]
        if way == "search_chunks":  # the graph may end before the filter has kept enough
            again = [self._send("search_exactly", {"vector": vector}, kept, k) if len(one) < k else None
                     for one, vector in zip(found, vectors, strict=True)]  # fmt: skip
            found = [_scored(more.fetchall()) if more else one for one, more in zip(found, again, strict=True)]
        return SearchResult(revision, found, by_id, live=live)

    def _break_off(self) -> None:
        """End the transaction of a statement that took too long; those that were sent behind it have failed with it."""
        with suppress(psycopg.errors.PipelineAborted):
            self.connection.rollback()
        self.connection.rollback()

    def _tune(self, k: int) -> None:
        """Until the transaction ends, visit enough of the graph for `k`, and give up a statement after some time."""
        timeout_ms = max(1, int(self.timeout_s * 1000)) if self.timeout_s else 0
        lists = {"k": k, "most": MOST_EF_SEARCH, "ef": EF_SEARCH, "huge_ef": HUGE_EF_SEARCH, "huge": HUGE_GRAPH}
        self._send("tune_search", {**lists, "table": self._table, "timeout_ms": str(timeout_ms)})

    @property
    def _table(self) -> str:
        return f"chunk_{self.index.id:d}"

    def _keeps_few(self, kept: Mapping[str, Any]) -> bool:
        bounds = {"share": EXACT_SHARE, "least": EXACT_LEAST, "most": EXACT_MOST}
        (row,) = self._send("keeps_few", {"table": self._table, **bounds}, kept).fetchall()
        return bool(row[0])

    def _send(
        self,
        name: str,
        values: Mapping[str, Any],
        kept: Mapping[str, Any] = {},
        k: int = 0,
        row_factory: RowFactory[Any] = tuple_row,
    ) -> psycopg.Cursor[Any]:
        """Send a statement. Its plan is kept, unless the values of filters decide what is best."""
        text = _search_statement(name, self.index.id, self.index.settings.vector_type, tuple(kept), k, self.columns)
        cursor = self.connection.cursor(binary=True, row_factory=row_factory)
        return cursor.execute(text, clean_parameters({**kept, **values}), prepare=not kept)


@lru_cache(maxsize=1_000)
def _search_statement(
    name: str, index: int, vector_type: str, kept: tuple[str, ...], k: int, columns: ChunkColumns
) -> bytes:
    """Return the text of a statement: putting it together takes as long as a look-up."""
    parts: dict[str, sql.Composable] = {
        **columns.parts,
        "chunk": chunk_table(index),
        "ranked": statement("ranked"),
        "rules": statement("answering_rules"),
        "kept": sql.SQL(" and ").join([statement(CONDITIONS[one]) for one in kept]) if kept else sql.SQL("true"),
        "vector": sql.SQL("halfvec" if vector_type == "halfvec" else "vector"),
        "k": sql.Literal(k),
    }
    return statement(name, **parts).as_bytes(None)


def _scored(rows: Sequence[Sequence[Any]]) -> list[ScoredChunk]:
    """Return rows of {ranked}, distance and score, best first: an iterative scan's order is slightly wrong."""
    scored = [(float(row[-1]), RankableChunk(*row[:-2])) for row in rows]
    return sorted(scored, key=lambda one: (-one[0], one[1].chunk_id))


# Whether a publish deletes pages that have vanished, or those of them that are named here.
Deleting = bool | Sequence[str]
# What becomes of a page's text when the page is gone: another page has most of it ("moved"; "copied" if the page was a
# copy anyway), it had none ("empty"), or no other page has it.
Fate = Literal["moved", "copied", "empty", "lost"]


def deleting(delete: Deleting) -> dict[str, Any]:
    """Return the values of statements that delete pages, or count what they would delete."""
    return {"delete": bool(delete), "only": None if isinstance(delete, bool) else list(delete)}


def _replacing(index: int) -> dict[str, sql.Composable]:
    """Return the parts of statements about the chunks of `index` and the pages that a run replaces in it."""
    return {"chunk": chunk_table(index), "replaced": statement("replaced_urls")}


class Indexes(ChunkTables):
    """Indexes and their chunks."""

    def live_index(self, collection: str) -> Index:
        """Return the index that answers questions now. Raises NoLiveIndex."""
        row = self._one("live_index", {"collection": collection}, rules=statement("answering_rules"))
        if row is None:
            raise NoLiveIndex(f"collection {collection!r} has no published index: run `raydex index` first")
        return _index(row)

    def candidate_index(self, collection: str) -> Index | None:
        """Return the newest built index that was not published, if there is one."""
        row = self._one("candidate_index", {"collection": collection}, rules=statement("answering_rules"))
        return _index(row) if row else None

    def publications(self, index: int) -> list[DictRow]:
        """Return what each publish into an index replaced, as counts, newest first; older ones are forgotten."""
        return self._all("publications", {"index": index})

    def retired_indexes(self, collection: str) -> list[Index]:
        """Return the indexes that were live before and are not pruned, the last one first."""
        return [_index(row) for row in self._all("retired_indexes", {"collection": collection})]

    def deletable_pages(self, collection: str, index: int, only: Sequence[str] | None = None) -> dict[str, int]:
        """Count the `pages` of `index`, and as `deletable` those (of `only` these) that a publish would delete."""
        values = {"collection": collection, "index": index, "only": None if only is None else list(only)}
        return dict(self._one("deletable_pages", values) or {})

    def leaves_text(self, collection: str, run: int, base: int | None, delete: Deleting) -> bool:
        """Return whether the index holds any text that `run` makes of `base`."""
        values: dict[str, Any] = {"collection": collection, "run": run, "index": base, **deleting(delete)}
        if (self._one("stages_text", values) or {})["found"]:
            return True
        return base is not None and bool((self._one("keeps_text", values, **_replacing(base)) or {})["found"])

    def vanished_pages(
        self, collection: str, run: int, index: int, base: int | None, only: Sequence[str] | None = None
    ) -> dict[str, Fate]:
        """Return the pages of `index` that are gone (`only` these), and what becomes of the text of each.

        `base` is the index that `run` changes, None if it builds one of what it has staged alone.
        """
        values = {"collection": collection, "run": run, "index": index, "base": base,
                  "only": None if only is None else list(only)}  # fmt: skip
        parts = {"chunk": chunk_table(index), "base": chunk_table(base or index)}
        return {row["url"]: row["fate"] for row in self._all("vanished_pages", values, **parts)}

    def text_sizes(
        self, collection: str, run: int, live: int | None, base: int | None, delete: Deleting
    ) -> tuple[int, int]:
        """Return how many bytes of text the index `live` has, and how many one has that `run` makes of `base`.

        If `base` is live and loses no text, only what the run replaces and stages is read, and counted.
        """
        values: dict[str, Any] = {"collection": collection, "run": run, "index": base, **deleting(delete)}
        staged = (self._one("staged_text", values) or {})["size"]
        if base is not None and base == live:
            replaced = (self._one("replaced_text", values, **_replacing(base)) or {})["size"]
            if replaced <= staged:
                return replaced, staged
        before = after = 0
        if live is not None:
            before = (self._one("text_before", values, chunk=chunk_table(live)) or {})["size"]
        if base is not None:
            after = (self._one("text_after", values, **_replacing(base)) or {})["size"]
        return before, after + staged

    def staged_changes(self, run: int, index: int) -> int:
        """Return how many chunks of `index` a publish of `run` would change.

        Those that it inserts or re-embeds, or those that it deletes, if these are more: an edited one is both.
        """
        row = self._one("staged_changes", {"run": run}, chunk=chunk_table(index)) or {}
        return int(row["chunks"])

    def index_stats(self, index: int) -> dict[str, int]:
        """Return how many chunks, pages, sections and listings (pages without a section) `index` holds."""
        return dict(self._one("index_counts", {"index": index}, chunk=chunk_table(index)) or {})

    def prune(self, collection: str, keep: int = 0) -> list[int]:
        """Drop all retired indexes but the `keep` newest; return their ids. With none kept no update can be undone."""

        values = {"collection": collection, "keep": keep}

        def work(connection: Connection) -> list[int]:
            pruned = sorted(row["id"] for row in connection.execute(statement("prunable_indexes"), values))
            for index in pruned:
                drop_index(connection, index)
            if not keep:
                connection.execute(statement("forget_replaced"), values)
            return pruned

        return self._do(work)

    def read_index(self, index: Index, read: Callable[[IndexSnapshot], T], timeout_s: float | None = None) -> T:
        """Return what `read` makes of one state of `index`; `timeout_s` bounds each statement.

        Raises NoSuchIndex if the index was pruned.
        """

        def work(connection: Connection) -> T:
            with _existing(index.id), snapshot(connection, pipelined=True):
                return read(IndexSnapshot(connection, index, self.columns, timeout_s))

        return self._do(work)

    def neighbours(self, index: int, ids: Sequence[str], reach: int) -> dict[str, list[Hit]]:
        """Return for each chunk those of its section at most `reach` places away and itself, in reading order.

        One more of its section, in which a listing may go on, is among them. Behind them stand those of the sections
        below its own, at most twice as far away.
        """
        values = {"ids": list(ids), "reach": reach}
        with _existing(index):
            rows = self._all("neighbours", values, chunk=chunk_table(index), **self.columns.parts)
        neighbours: dict[str, list[Hit]] = {}
        for row in rows:
            neighbours.setdefault(row["of"], []).append(self.columns.read_hit(row))
        return neighbours

    def chunks_of_pages(self, index: int, urls: Collection[str]) -> list[Hit]:
        """Return the chunks of these pages, page by page in reading order. Raises NoSuchIndex."""
        values = {"urls": list(urls)}
        with _existing(index):
            rows = self._all("chunks_of_pages", values, chunk=chunk_table(index), **self.columns.parts)
        return [self.columns.read_hit(row) for row in rows]

    @contextmanager
    def scan_chunks(self, index: int) -> Iterator[tuple[int, Iterator[Hit]]]:
        """Yield one snapshot of a whole index: its revision and its chunks, streamed through a server-side cursor."""
        with self._connection() as connection, _existing(index), snapshot(connection):
            row = index_row(connection, index)
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
                row = index_row(connection, index)
                if not row["revision"] - CHANGES_KEPT <= revision <= row["revision"]:
                    raise ChangesPruned(
                        f"index {index}: changes from revision {revision} to {row['revision']} are no longer stored"
                    )
                values = {"index": index, "revision": revision}
                ids = [row["chunk_id"] for row in connection.execute(statement("changes_since"), values)]
                parts = {**self.columns.parts, "chunk": chunk_table(index), "kept": sql.SQL("true")}
                rows = connection.execute(statement("get_chunks", **parts), {"ids": ids}).fetchall()
                chunks = {row["id"]: self.columns.read_hit(row) for row in rows}
                return row["revision"], [(name, chunks.get(name)) for name in ids]

        return self._do(work)


@contextmanager
def _existing(index: int) -> Iterator[None]:
    """Raise NoSuchIndex if the body finds the chunk table of `index` dropped, which no snapshot prevents."""
    try:
        yield
    except psycopg.errors.UndefinedTable as error:
        raise NoSuchIndex(f"index {index} was pruned") from error


def index_row(connection: Connection, index: int) -> DictRow:
    """Return the row of an index. Raises NoSuchIndex if it was pruned."""
    row = connection.execute(statement("get_index"), {"index": index}).fetchone()
    if row is None:
        raise NoSuchIndex(f"index {index} was pruned")
    return row


def _index(row: Mapping[str, Any]) -> Index:
    """Return the index of a row. Raises UnusableDatabase for one of a newer version: how to search it is not known."""
    if unknown := sorted(set(row["settings"]) - {field.name for field in fields(IndexSettings)}):
        raise UnusableDatabase(
            f"a newer version of Raydex built the index of collection {row['collection']!r} "
            f"(with {', '.join(unknown)}): upgrade this one"
        )
    return Index(row["id"], row["collection"], IndexSettings(**row["settings"]), row["state"], row["revision"],
                 row["fingerprint"], row.get("rules", {}))  # fmt: skip
