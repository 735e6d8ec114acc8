"""The Store: pages, runs, indexes and chunks in Postgres + pgvector. The only file that speaks psycopg.

Statements live by name in queries.sql, tables in schema.sql. Every method is one transaction; those that load
staging tables may be repeated after any failure without storing anything twice. Knows no Ray, no HTTP and no
command line.
"""

import functools
import re
import threading
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any, Literal, LiteralString, TypeVar, cast

import numpy as np
import psycopg
import tenacity
from pgvector.psycopg import register_vector
from psycopg import sql
from psycopg.rows import DictRow, dict_row
from psycopg.types.json import Jsonb
from psycopg_pool import ConnectionPool, PoolTimeout

from pipelines.records import Chunk, FetchedPage, Hit, Index, IndexSettings, KnownPage, Page, content_hash

T = TypeVar("T")
Connection = psycopg.Connection[DictRow]

# pgvector 0.8.2 fixes CVE-2026-3172 (buffer overflow in parallel HNSW builds, 0.6.0 to 0.8.1).
OLDEST_PGVECTOR = (0, 8, 2)
# pgvector's limits of an HNSW index: 2,000 dimensions of `vector`, 4,000 of `halfvec`.
MOST_VECTOR_DIMENSIONS, MOST_HALFVEC_DIMENSIONS = 2_000, 4_000
# Half the memory per vector at the same recall (measured by others on 1 M vectors): worth it once the graph is large.
LARGE_INDEX_CHUNKS = 1_000_000
# Rows per second into a table with HNSW, and of copying and building it anew, on 2 cores with 384 dimensions
# (benchmarks/indexing.py); only their ratio decides whether a publish changes an index in place.
INSERT_ROWS_PER_S, BUILD_ROWS_PER_S = 1_100.0, 1_900.0
# A BM25 replica that is further behind than this many revisions is built anew.
CHANGES_KEPT = 100
# A page that could not be read is tried so often (the machine may have been busy), then only on request.
READ_ATTEMPTS = 3
CHUNK_TYPES = [
    "int8",
    *["text"] * 3,
    "text[]",
    "text",
    "text[]",
    "int4",
    *["text"] * 3,
    "int4",
    "text[]",
    *["text"] * 2,
]


class StoreUnavailable(ConnectionError):
    """The database can't be reached, or ended the session; the same call may succeed later."""


class UnusableDatabase(RuntimeError):
    """The database is there but lacks pgvector, or has one that is too old."""


class CollectionBusy(RuntimeError):
    """Another run holds the collection."""


class LostCollection(RuntimeError):
    """The run's lock on its collection is gone and another run may have had it: it must not publish."""


class NoLiveIndex(LookupError):
    """The collection has no published index."""


class NoSuchIndex(LookupError):
    """There is no index in the state that a verb needs, or it was pruned."""


class ChangesPruned(LookupError):
    """The changes since that revision are no longer kept: build from the whole index."""


class VectorsMissing(RuntimeError):
    """Some staged chunks have no vector; nothing was published."""


@dataclass(frozen=True, slots=True)
class PageToIndex:
    """A stored page whose present input (`input_hash`: body and metadata rules) an index does not hold yet."""

    page: Page
    input_hash: str


@dataclass(frozen=True, slots=True)
class StagedPage:
    """A page as a run has read it, with its chunks and the metadata that its URL stands for."""

    url: str
    input_hash: str
    title: str
    language: str
    tags: tuple[str, ...]
    version: str | None
    sections: int
    chunks: Sequence[Chunk]


@dataclass(frozen=True, slots=True)
class Publication:
    """What a build or an in-place publish did to the chunks."""

    index: int
    revision: int
    published: bool
    changed: bool
    written: int
    deleted: int
    pages_deleted: int
    in_place: bool


@dataclass(frozen=True, slots=True)
class BuildResources:
    """What one HNSW build may use: memory for its graph and worker processes beside the leader."""

    maintenance_work_mem: str = "1GB"
    parallel_workers: int = 2


def can_connect(url: str) -> bool:
    """Whether a Postgres answers at `url` right now."""
    try:
        psycopg.connect(url, connect_timeout=2).close()
    except psycopg.Error:
        return False
    return True


@functools.cache
def _statements() -> dict[str, str]:
    text = Path(__file__).with_name("queries.sql").read_text()
    parts = re.split(r"^-- name: (\w+)\n", text, flags=re.MULTILINE)[1:]
    return dict(zip(parts[::2], parts[1::2], strict=True))


def _sql(name: str, **parts: sql.Composable) -> sql.Composed:
    return sql.SQL(_statements()[name]).format(**parts)


def _chunk_table(index_id: int) -> sql.Identifier:
    return sql.Identifier(f"chunk_{index_id:d}")


class Store:
    """Pages, indexes and their chunks in one database. Thread-safe; sync: call it through `asyncio.to_thread`.

    `retry_s` is how long a call goes on trying while the database is away (0: a single try), `timeout_s` how
    long one try waits for a connection. Every method raises StoreUnavailable when that was not enough.
    """

    def __init__(self, url: str, pool_size: int = 8, retry_s: float = 0.0, timeout_s: float = 5.0) -> None:
        self.url = url
        self._retry_s = retry_s
        self._pool: ConnectionPool[Connection] = ConnectionPool(
            url,
            kwargs={
                "row_factory": dict_row,
                "options": "-c hnsw.iterative_scan=relaxed_order -c hnsw.ef_search=100",
                "connect_timeout": 5,
            },
            min_size=0,
            max_size=pool_size,
            timeout=timeout_s,
            reconnect_timeout=1.0,
            configure=register_vector,
            check=ConnectionPool.check_connection,
            open=False,
        )
        self._opening = threading.Lock()

    def close(self) -> None:
        """Close every connection of the pool."""
        self._pool.close()

    def __enter__(self) -> "Store":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # ------------------------------------------------------------------------------------------ connections

    @contextmanager
    def _connection(self) -> Iterator[Connection]:
        """One transaction on a pooled connection; driver errors that mean «away» become StoreUnavailable."""
        with self._opening:
            if self._pool.closed:
                self._pool.open()
        with _translated(), self._pool.connection() as connection:
            yield connection

    def _do(self, work: Callable[[Connection], T]) -> T:
        """Run `work` in one transaction, again from its start while the database is away (see `retry_s`)."""
        attempts = tenacity.Retrying(
            retry=tenacity.retry_if_exception_type(StoreUnavailable),
            stop=tenacity.stop_after_delay(self._retry_s),
            wait=tenacity.wait_exponential_jitter(initial=0.1, max=2.0),
            reraise=True,
        )

        def once() -> T:
            with self._connection() as connection:
                return work(connection)

        return attempts(once)

    def _all(self, name: str, parameters: Mapping[str, Any] | None = None, **parts: sql.Composable) -> list[DictRow]:
        return self._do(lambda c: c.execute(_sql(name, **parts), parameters).fetchall())

    def _one(self, name: str, parameters: Mapping[str, Any], **parts: sql.Composable) -> DictRow | None:
        rows = self._all(name, parameters, **parts)
        return rows[0] if rows else None

    def _run(self, name: str, parameters: Mapping[str, Any]) -> int:
        return self._do(lambda c: c.execute(_sql(name), parameters).rowcount)

    def ping(self) -> None:
        """Raise StoreUnavailable unless the database answers."""
        with self._connection() as connection:
            connection.execute("select")

    def migrate(self) -> None:
        """Create what is missing in the database. Raises UnusableDatabase without a pgvector ≥ 0.8.2."""
        with _translated(), psycopg.connect(self.url, row_factory=dict_row, connect_timeout=5) as connection:
            connection.execute(_sql("schema_lock"))
            try:
                with connection.transaction():
                    connection.execute("create extension if not exists vector")
            except psycopg.Error as error:
                raise UnusableDatabase(
                    f"the database has no pgvector extension and it can't be created: {error}. "
                    "Install pgvector on its server, or run «create extension vector» as its owner."
                ) from error
            version = connection.execute(_sql("server_version")).fetchone()
            installed = version["extversion"] if version else "none"
            if tuple(int(part) for part in re.findall(r"\d+", installed)[:3]) < OLDEST_PGVECTOR:
                raise UnusableDatabase(
                    f"pgvector {installed} is too old (0.8.2 or newer is needed): install a newer one and run "
                    "«alter extension vector update»."
                )
            schema = Path(__file__).with_name("schema.sql").read_text()
            connection.execute(cast(LiteralString, schema))

    # ------------------------------------------------------------------------------------------ pages

    def save_pages(self, collection: str, run: int, pages: Sequence[FetchedPage]) -> None:
        """Commit what became of `pages` in `run`; a body of None leaves the stored one as it is."""
        rows = [_page_row(collection, run, page) for page in sorted(pages, key=lambda page: page.url)]

        def work(connection: Connection) -> None:
            with connection.cursor() as cursor:
                cursor.executemany(_sql("save_page", still_unreadable=_sql("still_unreadable")), rows)

        self._do(work)

    def known_page(self, collection: str, url: str) -> KnownPage | None:
        """What earlier runs know about `url`."""
        row = self._one("known_page", {"collection": collection, "url": url})
        return KnownPage(**(row | {"links": tuple(row["links"])})) if row else None

    def content_hashes(self, collection: str, urls: Sequence[str]) -> dict[str, str | None]:
        """The stored content hash of each of `urls` that is known."""
        rows = self._all("content_hashes", {"collection": collection, "urls": list(urls)})
        return {row["url"]: row["content_hash"] for row in rows}

    def known_urls(self, collection: str) -> Iterator[str]:
        """Every URL that was there, or failed, when last seen."""
        return self._urls("known_urls", collection)

    def failed_urls(self, collection: str) -> Iterator[str]:
        """Every URL whose last fetch or reading failed."""
        return self._urls("failed_urls", collection)

    def _urls(self, name: str, collection: str) -> Iterator[str]:
        after = ""
        while rows := self._all(name, {"collection": collection, "after": after}):
            yield from (row["url"] for row in rows)
            after = rows[-1]["url"]

    def fail_pages(self, collection: str, failures: Iterable[tuple[str, str]]) -> None:
        """Record (url, reason) of pages that could not be read; what an index holds of them stays."""
        rows = [{"collection": collection, "url": url, "error": clean(reason)} for url, reason in failures]

        def work(connection: Connection) -> None:
            with connection.cursor() as cursor:
                cursor.executemany(_sql("fail_page"), rows)

        if rows:
            self._do(work)

    def mark_unseen(self, collection: str, run: int, prefix: str, reason: str) -> int:
        """Mark pages under `prefix` that a complete `run` did not see as gone; returns how many."""
        return self._run("mark_unseen", {"collection": collection, "run": run, "prefix": prefix, "error": reason})

    def mark_duplicates(self, collection: str, run: int) -> None:
        """Leave out pages whose `rel=canonical` was itself fetched, and what `run` has staged of them."""
        self._do(lambda c: [c.execute(_sql(name), {"collection": collection, "run": run})
                            for name in ("unmark_duplicates", "mark_duplicates", "drop_staged_duplicates")])  # fmt: skip

    def ranges_to_index(
        self, collection: str, run: int, index: int | None, rules: str, size: int, attempts: int = READ_ATTEMPTS
    ) -> list[DictRow]:
        """URL ranges {first, last, pages} of about `size` pages whose present input neither `index` nor `run` holds.

        Pages that could not be read `attempts` times are left out.
        """
        named = {"collection": collection, "run": run, "index": index, "rules": rules, "size": size}
        return self._all("ranges_to_index", named | {"attempts": attempts})

    def urls_in_range(self, collection: str, first: str, last: str) -> list[str]:
        """The URLs of stored pages from `first` to `last`."""
        rows = self._all("urls_in_range", {"collection": collection, "first": first, "last": last})
        return [row["url"] for row in rows]

    def pages_to_index(
        self,
        collection: str,
        run: int,
        index: int | None,
        rules: str,
        urls: Sequence[str],
        attempts: int = READ_ATTEMPTS,
    ) -> list[PageToIndex]:
        """Those of `urls` whose present input `index` (None: a new one) does not hold, with their bodies."""
        named = {"collection": collection, "run": run, "index": index, "rules": rules, "urls": list(urls)}
        rows = self._all("pages_to_index", named | {"attempts": attempts})
        return [
            PageToIndex(
                Page(row["url"], zlib.decompress(row["body"]), row["content_type"], row["charset"]),
                row["input_hash"],
            )
            for row in rows
        ]

    def save_crawl(self, run: int, host: str, complete: bool, stopped_by: str, counts: Mapping[str, Any]) -> None:
        """Record how the crawl of one host ended."""
        named = {
            "run": run,
            "host": host,
            "complete": complete,
            "stopped_by": stopped_by,
            "counts": Jsonb(dict(counts)),
        }
        self._run("save_crawl", named)

    def crawls(self, run: int) -> list[DictRow]:
        """How the crawls of `run` ended: host, complete, stopped_by, counts."""
        return self._all("crawls", {"run": run})

    def page_counts(self, collection: str, run: int) -> dict[str, int]:
        """How many pages `run` saw: seen, new, changed, unchanged, failed, duplicate, skipped."""
        return dict(self._one("page_counts", {"collection": collection, "run": run}) or {})

    # ------------------------------------------------------------------------------------------ staging

    def stage_pages(self, run: int, pages: Sequence[StagedPage]) -> None:
        """Load pages and their chunks into the staging tables of `run`; a repetition adds nothing."""

        def work(connection: Connection) -> None:
            with connection.cursor() as cursor:
                cursor.executemany(_sql("stage_page"), [_staged_page_row(run, page) for page in pages])
                cursor.execute(_sql("forgive_pages"), {"run": run, "urls": [page.url for page in pages]})
                cursor.execute(_sql("incoming_chunks"))
                with cursor.copy(_sql("copy_chunks")) as copy:
                    copy.set_types(CHUNK_TYPES)
                    for page in pages:
                        for chunk in page.chunks:
                            copy.write_row(_staged_chunk_row(run, page, chunk))
                cursor.execute(_sql("stage_chunks"))

        self._do(work)

    def claim(self, run: int, wanted: Mapping[str, str]) -> set[str]:
        """Of the embed hashes `wanted` (hash → page that asks) those that this caller must embed.

        A hash is left out if its vector is stored already or another page of `run` has claimed it before; the
        same page asking again is given the same answer, so that a repeated task loses nothing.
        """

        def work(connection: Connection) -> set[str]:
            vectors = _vectors(connection)
            unknown = [
                row["embed_hash"]
                for row in connection.execute(_sql("unknown_hashes", vectors=vectors), {"hashes": list(wanted)})
            ]
            asked = {"run": run, "hashes": unknown, "urls": [wanted[name] for name in unknown]}
            return {row["embed_hash"] for row in connection.execute(_sql("claim_hashes"), asked)}

        return self._do(work) if wanted else set()

    def stage_vectors(self, run: int, hashes: Sequence[str], vectors: np.ndarray) -> None:
        """Load vectors (float32, one row a hash); one that is there already stays as it is."""
        if not np.isfinite(vectors).all():
            raise ValueError("a vector holds NaN or infinity: refused before it can spoil a whole load")

        def work(connection: Connection) -> None:
            with connection.cursor() as cursor:
                cursor.execute(_sql("incoming_vectors"))
                with cursor.copy(_sql("copy_vectors")) as copy:
                    copy.set_types(["text", "int8", "vector"])
                    for name, vector in zip(hashes, vectors, strict=True):
                        copy.write_row((name, run, vector))
                cursor.execute(_sql("stage_vectors"))

        self._do(work)

    def staged_counts(self, run: int) -> dict[str, int]:
        """pages, sections, chunks and embedded (vectors made) that `run` has staged so far."""
        return dict(self._one("staged_counts", {"run": run}) or {})

    # ------------------------------------------------------------------------------------------ indexes

    def live_index(self, collection: str) -> Index:
        """The index that answers now. Raises NoLiveIndex."""
        row = self._one("live_index", {"collection": collection})
        if row is None:
            raise NoLiveIndex(f"collection {collection!r} has no published index: run «python -m jobs.reindex» first")
        return _index(row)

    def candidate_index(self, collection: str) -> Index | None:
        """The newest built index that was not published, if there is one."""
        row = self._one("candidate_index", {"collection": collection})
        return _index(row) if row else None

    def previous_index(self, collection: str) -> Index | None:
        """The index that was live before, if it was not pruned."""
        row = self._one("previous_index", {"collection": collection})
        return _index(row) if row else None

    def deletable_pages(self, collection: str, index: int) -> tuple[int, int]:
        """How many pages of `index` a publish would delete as gone, and how many it holds."""
        row = self._one("deletable_pages", {"collection": collection, "index": index}) or {}
        return row["deletable"], row["pages"]

    def staged_changes(self, run: int, index: int) -> int:
        """How many chunks of `index` what `run` has staged would insert, re-embed or delete."""
        row = self._one("staged_changes", {"run": run}, chunk=_chunk_table(index)) or {}
        return int(row["chunks"])

    def index_stats(self, index: int) -> dict[str, int]:
        """How many chunks, pages and sections `index` holds."""
        return dict(self._one("index_counts", {"index": index}, chunk=_chunk_table(index)) or {})

    def prune(self, collection: str, keep: int = 0) -> list[int]:
        """Drop all retired indexes but the `keep` newest; returns their ids."""

        def work(connection: Connection) -> list[int]:
            rows = connection.execute(_sql("prunable_indexes"), {"collection": collection, "keep": keep}).fetchall()
            for row in rows:
                _drop_index(connection, row["id"])
            return [row["id"] for row in rows]

        return self._do(work)

    # ------------------------------------------------------------------------------------------ reading

    def search(
        self, index: Index, vector: np.ndarray | None, ids: Sequence[str], k: int
    ) -> tuple[int, list[Hit], dict[str, Hit]]:
        """In one snapshot: the revision, the `k` nearest chunks (cosine, best first), and the chunks named by `ids`.

        A `vector` of None skips the nearest. Raises NoSuchIndex if the index was pruned meanwhile.
        """

        def work(connection: Connection) -> tuple[int, list[Hit], dict[str, Hit]]:
            with _snapshot(connection), connection.cursor(binary=True) as cursor:
                row = cursor.execute(_sql("get_index"), {"index": index.id}).fetchone()
                if row is None:
                    raise NoSuchIndex(f"index {index.id} of collection {index.collection!r} was pruned")
                chunk = _chunk_table(index.id)
                nearest, named = [], {}
                if vector is not None:
                    if k > 100:
                        cursor.execute(sql.SQL("set local hnsw.ef_search = {}").format(min(k, 1000)))
                    vector_type = sql.SQL("halfvec" if row["settings"]["vector_type"] == "halfvec" else "vector")
                    statement = _sql("search_chunks", chunk=chunk, vector=vector_type)
                    rows = cursor.execute(statement, {"vector": vector, "k": k}).fetchall()
                    nearest = sorted((_hit(r, "cosine") for r in rows), key=lambda hit: (-hit.score, hit.chunk_id))
                if ids:
                    rows = cursor.execute(_sql("get_chunks", chunk=chunk), {"ids": list(ids)}).fetchall()
                    named = {r["id"]: _hit(r, "none") for r in rows}
                return row["revision"], nearest, named

        return self._do(work)

    @contextmanager
    def scan_chunks(self, index: int) -> Iterator[tuple[int, Iterator[Hit]]]:
        """One snapshot of a whole index: its revision and its chunks, streamed through a server-side cursor."""
        with self._connection() as connection, _snapshot(connection):
            row = connection.execute(_sql("get_index"), {"index": index}).fetchone()
            if row is None:
                raise NoSuchIndex(f"index {index} was pruned")
            with connection.cursor("scan") as cursor:
                cursor.itersize = 2_000
                cursor.execute(_sql("scan_chunks", chunk=_chunk_table(index)))
                yield row["revision"], (_hit(r, "none") for r in cursor)

    def changes_since(self, index: int, revision: int) -> tuple[int, list[tuple[str, Hit | None]]]:
        """The newest revision and, for each chunk changed since `revision`, what it is now (None: deleted).

        Raises ChangesPruned if that far back is no longer kept, NoSuchIndex if the index was pruned.
        """

        def work(connection: Connection) -> tuple[int, list[tuple[str, Hit | None]]]:
            with _snapshot(connection):
                row = connection.execute(_sql("get_index"), {"index": index}).fetchone()
                if row is None:
                    raise NoSuchIndex(f"index {index} was pruned")
                if not row["revision"] - CHANGES_KEPT <= revision <= row["revision"]:
                    raise ChangesPruned(
                        f"index {index}: changes from revision {revision} to {row['revision']} are not kept"
                    )
                changed = connection.execute(_sql("changes_since"), {"index": index, "revision": revision}).fetchall()
                ids = [r["chunk_id"] for r in changed]
                rows = connection.execute(_sql("get_chunks", chunk=_chunk_table(index)), {"ids": ids}).fetchall()
                chunks = {r["id"]: _hit(r, "none") for r in rows}
                return row["revision"], [(name, chunks.get(name)) for name in ids]

        return self._do(work)

    # ------------------------------------------------------------------------------------------ status

    def collections(self) -> list[DictRow]:
        """Every collection: name, live index, revision, stats, settings, published_at."""
        return self._all("collections")

    def status(self, collection: str, most: int = 10) -> dict[str, Any]:
        """Indexes, pages by state, last runs and failed pages of one collection."""
        named: dict[str, Any] = {"collection": collection, "most": most}
        return {
            "indexes": self._all("indexes", named),
            "pages": {row["state"]: row["pages"] for row in self._all("page_states", named)},
            "runs": self._all("last_runs", named),
            "failures": self._all("page_failures", named),
        }


class RunLock:
    """The one run that may change a collection: a session lock on a connection of its own.

    Postgres drops the lock when the session ends, so a killed run never blocks the next one. Publishing
    happens in this very session, which is what fences a run off that has lost its lock.
    """

    def __init__(self, store: Store, collection: str) -> None:
        self.store = store
        self.collection = collection
        self._connection: Connection | None = None

    def try_acquire(self) -> bool:
        """Take the lock if it is free. Raises StoreUnavailable."""
        with _translated():
            connection = psycopg.connect(self.store.url, row_factory=dict_row, autocommit=True, connect_timeout=5,
                                         keepalives_idle=10, keepalives_interval=5, keepalives_count=3)  # fmt: skip
            register_vector(connection)
            row = connection.execute(_sql("try_lock"), {"collection": self.collection}).fetchone()
        if not (row and row["locked"]):
            connection.close()
            return False
        self._connection = connection
        return True

    def holder(self) -> str:
        """Which run holds the collection, in words."""
        row = self.store._one("running_run", {"collection": self.collection})
        return f"run {row['id']} ({row['kind']}, started {row['started']:%Y-%m-%d %H:%M:%S})" if row else "another run"

    def release(self) -> None:
        """End the session, and the lock with it."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def begin(self, kind: str, settings: Mapping[str, Any] | None) -> int:
        """Start a run; runs of this collection that never ended are abandoned. Returns its id.

        `settings` None leaves the collection's as they are.
        """
        named = {"collection": self.collection, "kind": kind, "settings": Jsonb(dict(settings or {}))}
        with self._session() as connection:
            if settings is not None:
                connection.execute(_sql("save_collection"), named)
            connection.execute(_sql("abandon_runs"), named)
            row = connection.execute(_sql("insert_run"), named).fetchone()
            assert row is not None
            return int(row["id"])

    def finish(self, run: int, state: Literal["done", "failed"], counts: Mapping[str, Any], error: str | None) -> None:
        """Record how the run ended."""
        named = {"run": run, "state": state, "counts": Jsonb(dict(counts)), "error": error}
        self.store._run("finish_run", named)

    @contextmanager
    def owned(self, run: int) -> Iterator[Connection]:
        """A transaction in the locking session, after checking that `run` still owns the collection.

        A session that died (the server was restarted) is replaced if nobody had the collection meanwhile.
        Raises LostCollection.
        """
        if self._connection is None or not _alive(self._connection):
            self.release()
            if not self.store._do(lambda _: self.try_acquire()):
                raise LostCollection(
                    f"run {run} lost collection {self.collection!r} to {self.holder()}: nothing was published"
                )
        with self._session() as connection:
            row = connection.execute(_sql("own_run"), {"run": run}).fetchone()
            if row is None or row["state"] != "running":
                state = row["state"] if row else "gone"
                raise LostCollection(
                    f"run {run} is {state}, another run has taken {self.collection!r}: nothing was published"
                )
            yield connection

    # ------------------------------------------------------------------------------------------ publishing

    def publish_in_place(self, run: int, index: Index, delete: bool) -> Publication:
        """Bring what `run` has staged into `index`, and delete vanished pages if `delete`, in one transaction.

        Readers see all of it or nothing. Nothing staged and nothing to delete leaves every row and the revision
        as they are. Raises LostCollection, VectorsMissing.
        """
        with self.owned(run) as connection:
            vectors, chunk = _vectors(connection), _chunk_table(index.id)
            current = connection.execute(_sql("get_index"), {"index": index.id}).fetchone()
            if current is None:
                raise NoSuchIndex(f"index {index.id} was pruned")
            revision = current["revision"] + 1
            named = {
                "run": run,
                "index": index.id,
                "collection": self.collection,
                "revision": revision,
                "delete": delete,
            }
            _require_vectors(connection, run, vectors)
            connection.execute(_sql("replaced_pages"), named)
            deleted = connection.execute(_sql("delete_chunks", chunk=chunk), named).rowcount
            updated = connection.execute(_sql("update_chunks", chunk=chunk, vectors=vectors), named).rowcount
            inserted = connection.execute(_sql("insert_chunks", chunk=chunk, vectors=vectors), named).rowcount
            pages_deleted = connection.execute(_sql("forget_pages"), named).rowcount
            connection.execute(_sql("remember_pages"), named)
            connection.execute(_sql("describe_pages"), named)
            changed = bool(deleted or updated or inserted)
            if changed:
                connection.execute(_sql("raise_revision"), named)
                connection.execute(_sql("forget_changes"), named | {"revision": revision - CHANGES_KEPT})
                connection.execute(_sql("notify"), named)
            if changed or pages_deleted:
                _save_stats(connection, index.id)
            _clear_staged(connection, self.collection, run)
            return Publication(index.id, revision if changed else revision - 1, index.state == "live", changed,
                               inserted + updated, deleted, pages_deleted, True)  # fmt: skip

    def build(
        self, run: int, settings: IndexSettings, base: Index | None, delete: bool, resources: BuildResources
    ) -> Publication:
        """Make a candidate beside the live index: the chunks of `base` that `run` has not replaced, and the staged.

        HNSW is built after the load. One transaction: an index is visible only when whole. An older candidate
        of the collection is dropped. Raises LostCollection, VectorsMissing, ValueError for too many dimensions.
        """
        with self.owned(run) as connection:
            for row in connection.execute(_sql("superseded_candidates"), {"collection": self.collection}).fetchall():
                if base is None or row["id"] != base.id:
                    _drop_index(connection, row["id"])
            vectors = _vectors(connection)
            _require_vectors(connection, run, vectors)
            count = connection.execute(_sql("staged_counts"), {"run": run}).fetchone() or {}
            vector_type = choose_vector_type(settings, count["chunks"])
            built = replace(settings, vector_type=vector_type)
            named: dict[str, Any] = {
                "collection": self.collection, "fingerprint": settings.fingerprint, "settings": Jsonb(asdict(built)),
                "run": run, "base": base.id if base else None, "delete": delete,
            }  # fmt: skip
            index = (connection.execute(_sql("insert_index"), named).fetchone() or {})["id"]
            chunk = _chunk_table(index)
            column = sql.SQL("{}({})").format(sql.SQL(vector_type), settings.dimension)
            connection.execute(_sql("create_chunks", chunk=chunk, vector=column))
            connection.execute(_sql("replaced_pages"), named | {"index": named["base"]})
            named["index"] = index
            if base:
                connection.execute(_sql("carry_chunks", chunk=chunk, base=_chunk_table(base.id)), named)
                connection.execute(_sql("carry_pages"), named)
            written = connection.execute(_sql("fill_chunks", chunk=chunk, vectors=vectors), named).rowcount
            _index_chunks(connection, chunk, vector_type, resources)
            connection.execute(_sql("remember_pages"), named)
            connection.execute(_sql("describe_pages"), named)
            deleted, pages_deleted = _count_left_behind(connection, base, named)
            if base and base.state == "candidate":
                _drop_index(connection, base.id)
            _save_stats(connection, index)
            _clear_staged(connection, self.collection, run)
            changed = base is None or bool(written or deleted or pages_deleted)
            return Publication(index, 0, False, changed, written, deleted, pages_deleted, False)

    def promote(self, run: int, index: int) -> int:
        """Make `index` live and retire the one that was; returns its new revision. Raises LostCollection, NoSuchIndex."""
        with self.owned(run) as connection:
            named = {"collection": self.collection, "index": index}
            row = connection.execute(_sql("get_index"), named).fetchone()
            if row is None or row["collection"] != self.collection or row["state"] not in ("candidate", "retired"):
                raise NoSuchIndex(f"collection {self.collection!r} has no candidate or retired index {index}")
            connection.execute(_sql("retire_live"), named)
            connection.execute(_sql("make_live"), named)
            connection.execute(_sql("notify"), named)
            return int(row["revision"]) + 1

    @contextmanager
    def _session(self) -> Iterator[Connection]:
        if self._connection is None:
            raise LostCollection(f"collection {self.collection!r} is not locked by this process")
        with _translated(), self._connection.transaction():
            yield self._connection


# ---------------------------------------------------------------------------------------------- rows


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except PoolTimeout as error:
        raise StoreUnavailable(f"no database connection in time: {error}") from error
    except (psycopg.OperationalError, psycopg.InterfaceError) as error:
        raise StoreUnavailable(f"the database is away: {error}") from error


@contextmanager
def _snapshot(connection: Connection) -> Iterator[None]:
    """All statements inside see the same state of the database."""
    connection.execute("set transaction isolation level repeatable read, read only")
    yield


def _alive(connection: Connection) -> bool:
    try:
        connection.execute("select")
    except psycopg.Error:
        return False
    return True


def _vectors(connection: Connection) -> sql.Composable:
    """All stored vectors by embed_hash: the staged ones and those of every index."""
    tables = [_chunk_table(row["id"]) for row in connection.execute(_sql("index_tables")).fetchall()]
    selects = [sql.SQL("select embed_hash, embedding::vector from {}").format(table) for table in tables]
    staged = sql.SQL("select embed_hash, embedding from staged_vector")
    return sql.SQL("({})").format(sql.SQL(" union all ").join([staged, *selects]))


def _drop_index(connection: Connection, index: int) -> None:
    connection.execute(_sql("drop_chunks", chunk=_chunk_table(index)))
    connection.execute(_sql("delete_index"), {"index": index})


def _require_vectors(connection: Connection, run: int, vectors: sql.Composable) -> None:
    row = connection.execute(_sql("vectors_missing", vectors=vectors), {"run": run}).fetchone()
    if row and row["chunks"]:
        raise VectorsMissing(
            f"{row['chunks']} staged chunks of run {run} have no vector: run the job again, it goes on from here"
        )


def _index_chunks(connection: Connection, chunk: sql.Identifier, vector_type: str, resources: BuildResources) -> None:
    memory, workers = resources.maintenance_work_mem, resources.parallel_workers
    connection.execute(sql.SQL("set local maintenance_work_mem = {}").format(memory))
    connection.execute(sql.SQL("set local max_parallel_maintenance_workers = {}").format(workers))
    ops = sql.SQL(f"{vector_type}_cosine_ops")
    for name in ("index_chunks_id", "index_chunks_url", "index_chunks_embed_hash"):
        connection.execute(_sql(name, chunk=chunk))
    connection.execute(_sql("index_chunks_vector", chunk=chunk, ops=ops))
    connection.execute(_sql("analyze_chunks", chunk=chunk))


def _count_left_behind(connection: Connection, base: Index | None, named: Mapping[str, Any]) -> tuple[int, int]:
    """How many chunks and pages of `base` the new index does not hold."""
    if base is None:
        return 0, 0
    tables = {"chunk": _chunk_table(named["index"]), "base": _chunk_table(base.id)}
    row = connection.execute(_sql("left_behind", **tables), named).fetchone() or {}
    return row["chunks"], row["pages"]


def _save_stats(connection: Connection, index: int) -> None:
    counts = connection.execute(_sql("index_counts", chunk=_chunk_table(index)), {"index": index}).fetchone()
    connection.execute(_sql("save_stats"), {"index": index, "stats": Jsonb(counts)})


def _clear_staged(connection: Connection, collection: str, run: int) -> None:
    for name in ("clear_staged_chunks", "clear_staged_pages", "clear_claims", "clear_staged_vectors"):
        connection.execute(_sql(name), {"collection": collection, "run": run})


def choose_vector_type(settings: IndexSettings, chunks: int) -> Literal["vector", "halfvec"]:
    """The column type of an index: as set, or halfvec above 2,000 dimensions and for large indexes.

    Raises ValueError for more dimensions than HNSW takes.
    """
    wide = settings.dimension > MOST_VECTOR_DIMENSIONS
    if settings.dimension > MOST_HALFVEC_DIMENSIONS or (wide and settings.vector_type == "vector"):
        raise ValueError(
            f"model {settings.model!r} makes {settings.dimension} dimensions; an HNSW index takes at most "
            f"{MOST_VECTOR_DIMENSIONS} of type vector and {MOST_HALFVEC_DIMENSIONS} of type halfvec"
        )
    if settings.vector_type != "auto":
        return settings.vector_type
    return "halfvec" if wide or chunks > LARGE_INDEX_CHUNKS else "vector"


def clean(text: str) -> str:
    """`text` without what aborts a whole COPY: NUL and lone surrogates."""
    return text.replace("\0", "").encode("utf-8", "ignore").decode("utf-8")


def _page_row(collection: str, run: int, page: FetchedPage) -> dict[str, Any]:
    body = page.body
    return {
        "collection": collection,
        "run": run,
        "url": clean(page.url),
        "state": page.state,
        "http_status": page.http_status,
        "etag": clean(page.etag) if page.etag else None,
        "content_hash": None if body is None else content_hash(body, page.content_type, page.charset),
        "body": None if body is None else zlib.compress(body, 6),
        "content_type": clean(page.content_type),
        "charset": clean(page.charset) if page.charset else None,
        "links": [clean(link) for link in page.links],
        "canonical": clean(page.canonical) if page.canonical else None,
        "error": clean(page.error) if page.error else None,
    }


def _staged_page_row(run: int, page: StagedPage) -> dict[str, Any]:
    row = {field.name: getattr(page, field.name) for field in fields(page)}
    cleaned = {"title": clean(page.title), "language": clean(page.language), "tags": list(page.tags)}
    return row | cleaned | {"run": run, "chunks": len(page.chunks)}


def _staged_chunk_row(run: int, page: StagedPage, chunk: Chunk) -> tuple[Any, ...]:
    return (
        run, chunk.id, chunk.url, clean(chunk.anchor), [clean(a) for a in chunk.anchors], clean(chunk.title),
        [clean(h) for h in chunk.headings], chunk.ordinal, clean(chunk.text), chunk.text_hash, chunk.embed_hash,
        chunk.tokens, list(page.tags), page.version, clean(page.language),
    )  # fmt: skip


def _index(row: Mapping[str, Any]) -> Index:
    return Index(row["id"], row["collection"], IndexSettings(**row["settings"]), row["state"], row["revision"],
                 row["fingerprint"])  # fmt: skip


def _hit(row: Mapping[str, Any], kind: str) -> Hit:
    return Hit(
        chunk_id=row["id"],
        url=row["url"],
        anchors=tuple(row["anchors"]),
        title=row["title"],
        headings=tuple(row["headings"]),
        text=row["text"],
        text_hash=row["text_hash"],
        score=float(row["score"]),
        score_kind=kind,
    )
