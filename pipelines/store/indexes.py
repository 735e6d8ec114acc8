"""Reads indexes: finds the live one, searches its chunks, and lists its changes.

Every read is one snapshot: it sees all of a publish or none of it.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, fields, replace
from functools import cache, cached_property, lru_cache
from typing import Any, Literal, TypeVar

import numpy as np
import psycopg
from psycopg import sql
from psycopg.rows import DictRow, RowFactory, dict_row, tuple_row

from pipelines.records import Filters, Hit, Index, IndexSettings
from pipelines.store.chunks import ChunkColumns, ChunkTables, chunk_table, drop_index
from pipelines.store.database.connection import EF_SEARCH, HUGE_EF_SEARCH, HUGE_GRAPH, Connection, snapshot, statement
from pipelines.store.database.errors import UnusableDatabase
from pipelines.store.known_chunks import KnownChunks
from pipelines.text.cleaning import clean_parameters

T = TypeVar("T")

# A search is exact if its filter keeps at most this share of the chunks, but never more than EXACT_MOST chunks.
# Measured on 50,000 clustered chunks of 384 dimensions, k = 50, on two busy cores, by share kept. Exact search, with
# the filters' own indexes: 1% 2.5 ms, 5% 4 ms, 20% 12 ms. Through the graph: 1% 92 ms (recall 0.94), 5% 33 ms
# (0.89), 20% 15 ms (0.91), 40% 9 ms (0.98).
EXACT_SHARE, EXACT_LEAST, EXACT_MOST = 0.05, 1_000, 20_000

MOST_EF_SEARCH = 1000  # pgvector's limit

# The SQL condition for each field of Filters.
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
    """The changes since that revision are no longer stored; the replica must be rebuilt from the whole index."""


ScoredChunk = tuple[float, Hit]  # higher is better
_Scored = tuple[str, float]  # the same as a row, with the chunk's id
# Chunks by id, and the cursor that reads further ones, if any.
_Requested = tuple[dict[str, Hit], psycopg.Cursor[DictRow] | None]


@dataclass(frozen=True, slots=True)
class SearchResult:
    """The result of one search: chunks per vector (by cosine, best first), and the chunks with the given ids.

    `live` describes the present live index of each collection, or of the given one: name, is_default, index and
    revision. If `too_slow`, the nearest-neighbor search timed out and its lists are empty.
    """

    revision: int
    nearest: list[list[ScoredChunk]]
    by_id: dict[str, Hit]
    too_slow: bool = False
    live: Sequence[Mapping[str, Any]] = ()


@dataclass(frozen=True, slots=True)
class IndexSnapshot:
    """Reads one state of `index` in the pipelined transaction of `connection`.

    Chunks that are `known` are not read again. A statement is canceled after `timeout_s` (None: no limit).
    """

    connection: Connection
    index: Index
    columns: ChunkColumns
    timeout_s: float | None
    known: KnownChunks

    def search(
        self,
        vectors: Sequence[np.ndarray],
        ids: Sequence[str],
        k: int,
        filters: Filters = Filters(),
        *,
        collection: str | None = None,
    ) -> SearchResult:
        """Return the `k` chunks nearest to each of `vectors` (cosine), and the chunks with `ids`.

        The search of the graph is approximate, but it misses no near chunk with one of `ids`. Only chunks that pass
        `filters` are returned, `k` of them if that many pass. A search that times out is repeated without vectors.
        Raises NoSuchIndex if the index was pruned.
        """
        return self.search_while(lambda: ids, vectors, k, filters, collection=collection)

    def search_while(
        self,
        find_ids: Callable[[], Sequence[str]],
        vectors: Sequence[np.ndarray],
        k: int,
        filters: Filters = Filters(),
        *,
        collection: str | None = None,
    ) -> SearchResult:
        """Return the same as `search` for the ids that `find_ids` returns; the server searches while it runs."""
        filters, find_ids = Filters(**clean_parameters(asdict(filters))), cache(find_ids)
        try:
            return self._search(find_ids, vectors, k, filters, collection)
        except psycopg.errors.QueryCanceled:
            self._break_off()
            found = self._search(find_ids, (), k, filters, collection)
            return replace(found, nearest=[[] for _ in vectors], too_slow=True)

    def page(self, url: str) -> list[Hit]:
        """Return the chunks of a page in reading order. After a timeout, later reads see a newer state."""
        try:
            rows = self._send("chunks_of_pages", {"urls": [url]}, row_factory=dict_row).fetchall()
        except psycopg.errors.QueryCanceled:
            self._break_off()
            raise
        return [self.columns.read_hit(row) for row in rows]

    def _search(
        self,
        find_ids: Callable[[], Sequence[str]],
        vectors: Sequence[np.ndarray],
        k: int,
        filters: Filters,
        name: str | None,
    ) -> SearchResult:
        """Send every statement as soon as it can be sent; read the results in the same order."""
        kept = {name: value for name, value in asdict(filters).items() if value not in (None, (), [])}
        collections = self._begin(k, name)
        few = self._keeps_few(kept) if kept and vectors else False
        way = "search_exactly" if few else "search_chunks"
        nearest = [self._send(way, {"vector": vector}, kept, k) for vector in vectors]
        ids = find_ids()
        may_miss = vectors if ids and way == "search_chunks" else ()
        measured = [self._send("measure_chunks", {"vector": vector, "ids": " ".join(ids)}, kept) for vector in may_miss]
        named = self._request(self.index.revision, ids)
        live = collections.fetchall()
        revision = next((row["searched"] for row in live if row["searched"] is not None), None)
        if revision is None:
            raise NoSuchIndex(f"index {self.index.id} of collection {self.index.collection!r} was pruned")
        if revision != self.index.revision:
            named = self._request(revision, ids)
        found = [cursor.fetchall() for cursor in nearest]
        if way == "search_chunks":  # the graph may be exhausted before enough chunks pass the filter
            again = [self._send("search_exactly", {"vector": vector}, kept, k) if len(one) < k else None
                     for one, vector in zip(found, vectors, strict=True)]  # fmt: skip
            found = [more.fetchall() if more else one for one, more in zip(found, again, strict=True)]
        missed = [cursor.fetchall() for cursor in measured] or [[] for _ in found]
        found = [_nearest([*rows, *more], k) for rows, more in zip(found, missed, strict=True)]
        others = self._request(revision, {row[0] for rows in found for row in rows}.difference(ids))
        chunks = self._receive(revision, named) | self._receive(revision, others)
        by_id = {name: chunks[name] for name in ids if name in chunks and filters.keep(chunks[name])}
        scored = [[(score, chunks[name]) for name, score in rows] for rows in found]
        return SearchResult(revision, scored, by_id, live=live)

    def _request(self, revision: int, ids: Collection[str]) -> _Requested:
        """Return the known chunks of `revision` with these ids, after sending the statement that reads the others."""
        known = self.known.get(self.index.id, revision, ids)
        missing = [name for name in ids if name not in known]
        return known, self._send("get_chunks", {"ids": " ".join(missing)}, row_factory=dict_row) if missing else None

    def _receive(self, revision: int, requested: _Requested) -> dict[str, Hit]:
        """Return the requested chunks by id; ids that the index lacks are left out."""
        chunks, reading = requested
        if reading:
            read = list(map(self.columns.read_hit, reading.fetchall()))
            self.known.add(self.index.id, revision, read)
            chunks |= {chunk.chunk_id: chunk for chunk in read}
        return chunks

    def _break_off(self) -> None:
        """Roll back after a statement timed out; the statements sent after it have failed with it."""
        with suppress(psycopg.errors.PipelineAborted):
            self.connection.rollback()
        self.connection.rollback()

    def _begin(self, k: int, collection: str | None) -> psycopg.Cursor[DictRow]:
        """Send the settings of this transaction, and return the cursor that reads which indexes are live.

        The graph search becomes wide enough for `k`, and statements get their timeout.
        """
        timeout_ms = max(1, int(self.timeout_s * 1000)) if self.timeout_s else 0
        wide = {"k": k, "most": MOST_EF_SEARCH, "ef": EF_SEARCH, "huge_ef": HUGE_EF_SEARCH, "huge": HUGE_GRAPH}
        asked = {"table": self._table, "index": self.index.id, "collection": collection}
        return self._send("begin_search", {**wide, **asked, "timeout_ms": str(timeout_ms)}, row_factory=dict_row)

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
        """Send a statement. Its plan is reused unless there are filters, whose values decide the best plan."""
        text = _search_statement(name, self.index.id, self.index.settings.vector_type, tuple(kept), k, self.columns)
        cursor = self.connection.cursor(binary=True, row_factory=row_factory)
        return cursor.execute(text, clean_parameters({**kept, **values}), prepare=not kept)


@lru_cache(maxsize=1_000)
def _search_statement(
    name: str, index: int, vector_type: str, kept: tuple[str, ...], k: int, columns: ChunkColumns
) -> bytes:
    """Return the text of a statement. Composing it takes as long as a lookup, so it is cached."""
    parts: dict[str, sql.Composable] = {
        **columns.parts,
        "chunk": chunk_table(index),
        "rules": statement("answering_rules"),
        "kept": sql.SQL(" and ").join([statement(CONDITIONS[one]) for one in kept]) if kept else sql.SQL("true"),
        "vector": sql.SQL("halfvec" if vector_type == "halfvec" else "vector"),
        "k": sql.Literal(k),
    }
    return statement(name, **parts).as_bytes(None)


def _nearest(rows: Iterable[_Scored], k: int) -> list[_Scored]:
    """Return the `k` best rows, best first and each chunk once: the order of an iterative scan is slightly wrong."""
    return sorted(dict(rows).items(), key=lambda row: (-row[1], row[0]))[:k]


# Whether a publish deletes vanished pages; a sequence limits that to the pages named in it.
Deleting = bool | Sequence[str]
# Where the text of a vanished page went: another page has most of it ("moved"; "copied" if the page was a copy anyway),
# the page had no text ("empty"), or no other page has it ("lost").
Fate = Literal["moved", "copied", "empty", "lost"]


def deleting(delete: Deleting) -> dict[str, Any]:
    """Return the values for statements that delete pages, or that count the pages they would delete."""
    return {"delete": bool(delete), "only": None if isinstance(delete, bool) else list(delete)}


def _replacing(index: int) -> dict[str, sql.Composable]:
    """Return the parts for statements about the chunks of `index` and the pages that a run replaces in it."""
    return {"chunk": chunk_table(index), "replaced": statement("replaced_urls")}


class Indexes(ChunkTables):
    """Indexes and their chunks."""

    @cached_property
    def _known(self) -> KnownChunks:
        """The chunks that searches have read."""
        return KnownChunks()

    def live_index(self, collection: str) -> Index:
        """Return the index that answers questions now. Raises NoLiveIndex."""
        row = self._one("live_index", {"collection": collection}, rules=statement("answering_rules"))
        if row is None:
            raise NoLiveIndex(f"collection {collection!r} has no published index: run `raydex index` first")
        return _index(row)

    def candidate_index(self, collection: str) -> Index | None:
        """Return the newest index that is built but not published, or None."""
        row = self._one("candidate_index", {"collection": collection}, rules=statement("answering_rules"))
        return _index(row) if row else None

    def publications(self, index: int) -> list[DictRow]:
        """Return the counts of each publish into an index, newest first; old publications are deleted."""
        return self._all("publications", {"index": index})

    def retired_indexes(self, collection: str) -> list[Index]:
        """Return the indexes that were live before and are not pruned, latest first."""
        return [_index(row) for row in self._all("retired_indexes", {"collection": collection})]

    def deletable_pages(self, collection: str, index: int, only: Sequence[str] | None = None) -> dict[str, int]:
        """Count the `pages` of `index`, and the `deletable` ones (limited to `only`) that a publish would delete."""
        values = {"collection": collection, "index": index, "only": None if only is None else list(only)}
        return dict(self._one("deletable_pages", values) or {})

    def leaves_text(self, collection: str, run: int, base: int | None, delete: Deleting) -> bool:
        """Return whether the index that `run` makes from `base` has any text."""
        values: dict[str, Any] = {"collection": collection, "run": run, "index": base, **deleting(delete)}
        if (self._one("stages_text", values) or {})["found"]:
            return True
        return base is not None and bool((self._one("keeps_text", values, **_replacing(base)) or {})["found"])

    def vanished_pages(
        self, collection: str, run: int, index: int, base: int | None, only: Sequence[str] | None = None
    ) -> dict[str, Fate]:
        """Return the pages of `index` that are gone (limited to `only`), each with where its text went.

        `base` is the index that `run` changes, or None if it builds an index from its staged pages only.
        """
        values = {"collection": collection, "run": run, "index": index, "base": base,
                  "only": None if only is None else list(only)}  # fmt: skip
        parts = {"chunk": chunk_table(index), "base": chunk_table(base or index)}
        return {row["url"]: row["fate"] for row in self._all("vanished_pages", values, **parts)}

    def text_sizes(
        self, collection: str, run: int, live: int | None, base: int | None, delete: Deleting
    ) -> tuple[int, int]:
        """Return the bytes of text in the index `live`, and in the index that `run` makes from `base`.

        If `base` is live and loses no text, only the text that the run replaces and stages is read and counted.
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

        This is the number of inserts and new embeddings, or of deletions if that is larger: an edited chunk is one of
        each.
        """
        row = self._one("staged_changes", {"run": run}, chunk=chunk_table(index)) or {}
        return int(row["chunks"])

    def index_stats(self, index: int) -> dict[str, int]:
        """Return how many chunks, pages, sections and listings (pages without a section) `index` has."""
        return dict(self._one("index_counts", {"index": index}, chunk=chunk_table(index)) or {})

    def prune(self, collection: str, keep: int = 0) -> list[int]:
        """Drop all retired indexes except the `keep` newest; return their ids.

        With `keep` 0, no update can be undone.
        """

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
        """Return the result of `read` on one state of `index`; `timeout_s` limits each statement.

        Raises NoSuchIndex if the index was pruned.
        """

        def work(connection: Connection) -> T:
            with _existing(index.id), snapshot(connection, pipelined=True):
                return read(IndexSnapshot(connection, index, self.columns, timeout_s, self._known))

        return self._do(work)

    def neighbours(self, index: int, ids: Sequence[str], reach: int) -> dict[str, list[Hit]]:
        """Return for each chunk itself and the chunks of its section within `reach` places, in reading order.

        One more chunk of the section is included, because a listing may continue there. Chunks of its subsections
        follow, at most twice as far away.
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
        """Return the vectors of an index (float32) by chunk id. Raises NoSuchIndex."""
        with self._connection() as connection, _existing(index), connection.cursor("scan", binary=True) as cursor:
            cursor.itersize = 2_000
            cursor.execute(statement("scan_vectors", chunk=chunk_table(index)))
            return {row["id"]: np.asarray(row["embedding"].to_numpy(), np.float32) for row in cursor}

    def changes_since(self, index: int, revision: int) -> tuple[int, list[tuple[str, Hit | None]]]:
        """Return the newest revision, and the present state of each chunk changed since `revision` (None: deleted).

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
                parts = {**self.columns.parts, "chunk": chunk_table(index)}
                rows = connection.execute(statement("get_chunks", **parts), {"ids": " ".join(ids)}).fetchall()
                chunks = {row["id"]: self.columns.read_hit(row) for row in rows}
                return row["revision"], [(name, chunks.get(name)) for name in ids]

        return self._do(work)


@contextmanager
def _existing(index: int) -> Iterator[None]:
    """Raise NoSuchIndex if the body finds the chunk table of `index` dropped, which a snapshot does not prevent."""
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
    """Return the index of a row. Raises UnusableDatabase if a newer version built it: this one can't search it."""
    if unknown := sorted(set(row["settings"]) - {field.name for field in fields(IndexSettings)}):
        raise UnusableDatabase(
            f"a newer version of Raydex built the index of collection {row['collection']!r} "
            f"(with {', '.join(unknown)}): upgrade this one"
        )
    return Index(row["id"], row["collection"], IndexSettings(**row["settings"]), row["state"], row["revision"],
                 row["fingerprint"], row.get("rules", {}))  # fmt: skip
