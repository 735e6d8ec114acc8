"""Changing what readers see: the lock on a collection, and the transactions that build and publish an index.

All of it happens in the session that holds the lock, which fences off a run that has lost its collection.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

import psycopg
from pgvector.psycopg import register_vector
from psycopg import sql
from psycopg.rows import dict_row
from psycopg.types.json import Jsonb

from pipelines.records import Index, IndexSettings
from pipelines.store.chunks import ChunkTables, chunk_table, create_chunk_table, drop_index, vectors_of
from pipelines.store.connection import Connection, is_alive, statement, translate_errors
from pipelines.store.search import CHANGES_KEPT, NoSuchIndex

# pgvector's limits of an HNSW index: 2,000 dimensions of `vector`, 4,000 of `halfvec`.
MOST_VECTOR_DIMENSIONS, MOST_HALFVEC_DIMENSIONS = 2_000, 4_000
# Half the memory per vector at the same recall (measured by others on 1 M vectors): worth it once the graph is large.
LARGE_INDEX_CHUNKS = 1_000_000
# Rows per second into a table with HNSW, and of copying and building it anew, on 2 cores with 384 dimensions
# (benchmarks/indexing.py); only their ratio decides whether a publish changes an index in place.
INSERT_ROWS_PER_S, BUILD_ROWS_PER_S = 1_100.0, 1_900.0


class CollectionBusy(RuntimeError):
    """Another run holds the collection."""


class LostCollection(RuntimeError):
    """The run's lock on its collection is gone and another run may have had it: it must not publish."""


class VectorsMissing(RuntimeError):
    """Some staged chunks have no vector; nothing was published."""


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


class RunLock:
    """The one run that may change a collection: a session lock on a connection of its own.

    Postgres drops the lock when the session ends, so a killed run never blocks the next one. Publishing
    happens in this very session, which is what fences a run off that has lost its lock.
    """

    def __init__(self, store: ChunkTables, collection: str) -> None:
        self.store = store
        self.collection = collection
        self._connection: Connection | None = None

    def try_acquire(self) -> bool:
        """Take the lock if it is free. Raises StoreUnavailable."""
        with translate_errors():
            connection = psycopg.connect(self.store.url, row_factory=dict_row, autocommit=True, connect_timeout=5,
                                         keepalives_idle=10, keepalives_interval=5, keepalives_count=3)  # fmt: skip
            register_vector(connection)
            row = connection.execute(statement("try_lock"), {"collection": self.collection}).fetchone()
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
            with suppress(psycopg.Error):  # a session that died holds no lock; of one that is closed it goes later
                self._connection.execute(statement("unlock"), {"collection": self.collection})
            self._connection.close()
            self._connection = None

    def begin(self, kind: str, settings: Mapping[str, Any] | None) -> int:
        """Start a run; runs of this collection that never ended are abandoned. Returns its id.

        A new collection is made; `settings` None leaves those of one that is there as they are.
        """
        named = {"collection": self.collection, "kind": kind, "settings": Jsonb(dict(settings or {}))}
        with self._session() as connection:
            connection.execute(statement("add_collection" if settings is None else "save_collection"), named)
            connection.execute(statement("abandon_runs"), named)
            row = connection.execute(statement("insert_run"), named).fetchone()
            assert row is not None
            return int(row["id"])

    def finish(self, run: int, state: Literal["done", "failed"], counts: Mapping[str, Any], error: str | None) -> None:
        """Record how the run ended."""
        named = {"run": run, "state": state, "counts": Jsonb(dict(counts)), "error": error}
        self.store._run("finish_run", named)

    @contextmanager
    def transaction(self, run: int) -> Iterator[Connection]:
        """A transaction in the locking session, after checking that `run` still owns the collection.

        A session that died (the server was restarted) is replaced if nobody had the collection meanwhile.
        Raises LostCollection.
        """
        if self._connection is None or not is_alive(self._connection):
            self.release()
            if not self.store._do(lambda _: self.try_acquire()):
                raise LostCollection(
                    f"run {run} lost collection {self.collection!r} to {self.holder()}: nothing was published"
                )
        with self._session() as connection:
            row = connection.execute(statement("own_run"), {"run": run}).fetchone()
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
        with self.transaction(run) as connection:
            vectors, chunk = vectors_of(connection), chunk_table(index.id)
            parts = {**self.store.columns.parts, "chunk": chunk, "vectors": vectors}
            current = connection.execute(statement("get_index"), {"index": index.id}).fetchone()
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
            connection.execute(statement("replaced_pages"), named)
            deleted = connection.execute(statement("delete_chunks", chunk=chunk), named).rowcount
            updated = connection.execute(statement("update_chunks", **parts), named).rowcount
            inserted = connection.execute(statement("insert_chunks", **parts), named).rowcount
            pages_deleted = connection.execute(statement("forget_pages"), named).rowcount
            connection.execute(statement("remember_pages"), named)
            connection.execute(statement("describe_pages"), named)
            changed = bool(deleted or updated or inserted)
            if changed:
                connection.execute(statement("raise_revision"), named)
                connection.execute(statement("forget_changes"), named | {"revision": revision - CHANGES_KEPT})
                connection.execute(statement("notify"), named)
            if changed or pages_deleted:
                save_stats(connection, index.id)
            _clear_staged(connection, self.collection, run)
            return Publication(index.id, revision if changed else revision - 1, index.state == "live", changed,
                               inserted + updated, deleted, pages_deleted, True)  # fmt: skip

    def build(
        self, run: int, settings: IndexSettings, base: Index | None, delete: bool, resources: BuildResources
    ) -> Publication:
        """Make a candidate beside the live index: the chunks of `base` that `run` has not replaced, and the staged.

        HNSW is built after the load. One transaction: an index is visible only when whole. An older candidate
        of the collection is dropped thereafter, since its vectors may be needed. Raises LostCollection,
        VectorsMissing, ValueError for too many dimensions.
        """
        with self.transaction(run) as connection:
            vectors, columns = vectors_of(connection), self.store.columns.parts
            _require_vectors(connection, run, vectors)
            vector_type = choose_vector_type(settings, _expected_chunks(connection, run, base))
            built = replace(settings, vector_type=vector_type)
            named: dict[str, Any] = {
                "collection": self.collection, "fingerprint": settings.fingerprint, "settings": Jsonb(asdict(built)),
                "run": run, "base": base.id if base else None, "delete": delete,
            }  # fmt: skip
            index = (connection.execute(statement("insert_index"), named).fetchone() or {})["id"]
            chunk = chunk_table(index)
            create_chunk_table(connection, index, vector_type, settings.dimension, self.store.columns)
            connection.execute(statement("replaced_pages"), named | {"index": named["base"]})
            named["index"] = index
            if base:
                connection.execute(statement("carry_chunks", chunk=chunk, base=chunk_table(base.id), **columns), named)
                connection.execute(statement("carry_pages"), named)
            written = connection.execute(
                statement("fill_chunks", chunk=chunk, vectors=vectors, **columns), named
            ).rowcount
            index_chunks(connection, chunk, vector_type, resources)
            connection.execute(statement("remember_pages"), named)
            connection.execute(statement("describe_pages"), named)
            deleted, pages_deleted = _count_left_behind(connection, base, named)
            save_stats(connection, index)
            _clear_staged(connection, self.collection, run)
            changed = base is None or bool(written or deleted or pages_deleted)
        with self.transaction(run) as connection:
            for row in connection.execute(statement("superseded_candidates"), named).fetchall():
                drop_index(connection, row["id"])
        return Publication(index, 0, False, changed, written, deleted, pages_deleted, False)

    def promote(self, run: int, index: int) -> int:
        """Make `index` live and retire the one that was; returns its new revision.

        Raises LostCollection, NoSuchIndex.
        """
        with self.transaction(run) as connection:
            named = {"collection": self.collection, "index": index}
            row = connection.execute(statement("get_index"), named).fetchone()
            if row is None or row["collection"] != self.collection or row["state"] not in ("candidate", "retired"):
                raise NoSuchIndex(f"collection {self.collection!r} has no candidate or retired index {index}")
            connection.execute(statement("retire_live"), named)
            connection.execute(statement("make_live"), named)
            connection.execute(statement("notify"), named)
            return int(row["revision"]) + 1

    @contextmanager
    def _session(self) -> Iterator[Connection]:
        if self._connection is None:
            raise LostCollection(f"collection {self.collection!r} is not locked by this process")
        with translate_errors(), self._connection.transaction():
            yield self._connection


def _require_vectors(connection: Connection, run: int, vectors: sql.Composable) -> None:
    row = connection.execute(statement("vectors_missing", vectors=vectors), {"run": run}).fetchone()
    if row and row["chunks"]:
        raise VectorsMissing(
            f"{row['chunks']} staged chunks of run {run} have no vector: run the job again, it goes on from here"
        )


def index_chunks(connection: Connection, chunk: sql.Identifier, vector_type: str, resources: BuildResources) -> None:
    """Build the indexes of a loaded chunk table, HNSW last, and analyse it."""
    memory, workers = resources.maintenance_work_mem, resources.parallel_workers
    connection.execute(sql.SQL("set local maintenance_work_mem = {}").format(memory))
    connection.execute(sql.SQL("set local max_parallel_maintenance_workers = {}").format(workers))
    ops = sql.SQL(f"{vector_type}_cosine_ops")
    for name in ("index_chunks_id", "index_chunks_url", "index_chunks_filters", "index_chunks_embed_hash"):
        connection.execute(statement(name, chunk=chunk))
    connection.execute(statement("index_chunks_vector", chunk=chunk, ops=ops))
    connection.execute(statement("analyze_chunks", chunk=chunk))


def _expected_chunks(connection: Connection, run: int, base: Index | None) -> int:
    """At most so many chunks will be in an index built from `base` and what `run` has staged."""
    staged = connection.execute(statement("staged_counts"), {"run": run}).fetchone() or {}
    if base is None:
        return int(staged["chunks"])
    named, table = {"index": base.id}, chunk_table(base.id)
    carried = connection.execute(statement("index_counts", chunk=table), named).fetchone() or {}
    return int(staged["chunks"] + carried["chunks"])


def _count_left_behind(connection: Connection, base: Index | None, named: Mapping[str, Any]) -> tuple[int, int]:
    """How many chunks and pages of `base` the new index does not hold."""
    if base is None:
        return 0, 0
    tables = {"chunk": chunk_table(named["index"]), "base": chunk_table(base.id)}
    row = connection.execute(statement("left_behind", **tables), named).fetchone() or {}
    return row["chunks"], row["pages"]


def save_stats(connection: Connection, index: int) -> None:
    """Write down how many chunks, pages and sections an index holds."""
    counts = connection.execute(statement("index_counts", chunk=chunk_table(index)), {"index": index}).fetchone()
    connection.execute(statement("save_stats"), {"index": index, "stats": Jsonb(counts)})


def _clear_staged(connection: Connection, collection: str, run: int) -> None:
    for name in ("clear_staged_chunks", "clear_staged_pages", "clear_claims", "clear_staged_vectors"):
        connection.execute(statement(name), {"collection": collection, "run": run})


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
