"""Transactions that change an index: publish in place, build a new index, make an index live.

Each runs in the session that has the collection's lock, so a run that lost its collection changes nothing. Each step
runs once per run, so it can be repeated after the database was unavailable.
"""

import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

import psycopg
from psycopg import sql
from psycopg.types.json import Jsonb

from pipelines.records import Index, IndexSettings
from pipelines.store.chunks import chunk_table, create_chunk_table, drop_index, vectors_of
from pipelines.store.database.connection import Connection, own_sql, statement
from pipelines.store.indexes import CHANGES_KEPT, Deleting, NoSuchIndex, deleting, index_row
from pipelines.store.runs import RunLock
from pipelines.text.counts import counted

log = logging.getLogger(__name__)

# pgvector's limits for an HNSW index: 2,000 dimensions of `vector`, 4,000 of `halfvec`.
MOST_VECTOR_DIMENSIONS, MOST_HALFVEC_DIMENSIONS = 2_000, 4_000
# halfvec needs half the memory per vector. Among 200,000 chunks, the graph found 0.978 of the 10 nearest instead of
# 0.981, in four fifths of the time; among 13,000, it took as long.
LARGE_INDEX_CHUNKS = 100_000
# pgvector's default `ef_construction`, and the value for graphs of more than LARGE_GRAPH chunks; connection.py has
# their recall.
EF_CONSTRUCTION, LARGE_EF_CONSTRUCTION, LARGE_GRAPH = 64, 128, 50_000


# How many publications of an index can be undone, and for how many days. Each stores the rows it replaced: at most a
# third of the index (see `is_cheaper_in_place`), in nightly runs a few in a thousand.
PUBLICATIONS_KEPT, PUBLICATION_DAYS = 10, 30
# The statements that restore the rows of an index, in order.
UNDOING = (
    "begin_publication", "returned_chunks", "keep_chunks", "clear_returned", "put_returned", "note_returned",
    "returned_pages", "keep_returned_pages", "clear_returned_pages", "put_returned_pages", "describe_returned",
)  # fmt: skip


class NoSuchRevision(LookupError):
    """An index can't return to the given revision."""

    def __init__(self, collection: str, revision: int) -> None:
        super().__init__(
            f"collection {collection!r} can't return to revision {revision}: `raydex rollback {collection} --list` "
            "lists those that it can return to"
        )


class BadResources(ValueError):
    """There is no such amount of memory or of processes for a build."""


class VectorsMissing(RuntimeError):
    """Some staged chunks have no vector; nothing was published."""


@dataclass(frozen=True, slots=True)
class Publication:
    """The result of a build or an in-place publish: the index, and how many chunks and pages changed."""

    index: int
    revision: int
    published: bool
    changed: bool
    written: int
    deleted: int
    pages_deleted: int
    in_place: bool


# Bytes per chunk that an HNSW build needs besides the vector, derived from the number of 384-dimensional vectors that
# fit into 16 MB (7,452; with workers, 5,675 in 13 MB), and its fixed overhead.
GRAPH_BYTES, BUILD_BYTES = 900, 64 << 20
# The most memory for a build if the server's own maintenance limit is lower and was not set on its command line.
LEAST_LIMIT = 1 << 30
# The Postgres source file that raises errors about shared memory.
SHARED_MEMORY = "dsm_impl.c"


MEMORY = re.compile(r"auto|[0-9]+ ?(B|kB|MB|GB|TB)?")  # Postgres' units; a number alone is kB


@dataclass(frozen=True, slots=True)
class BuildResources:
    """The memory for the graph of one HNSW build, and its worker processes besides the leader.

    "auto" is the memory that the graph needs, up to the server's `maintenance_work_mem`. If that is below 1 GB and was
    not set on the server's command line (as for the embedded server), the limit is 1 GB. A graph that doesn't fit takes
    several times longer to build. `parallel_workers` None allows as many processes as the server does.
    Raises BadResources.
    """

    maintenance_work_mem: str = "auto"
    parallel_workers: int | None = None

    def __post_init__(self) -> None:
        memory, workers = self.maintenance_work_mem, self.parallel_workers
        if not MEMORY.fullmatch(memory):
            raise BadResources(f"the memory for the HNSW build is {memory!r}: write auto, or a size such as 2GB")
        if workers is not None and workers < 0:
            raise BadResources(f"the extra processes for the HNSW build are {workers}: give 0 or more")


def publish_in_place(lock: RunLock, run: int, index: Index, delete: Deleting) -> Publication:
    """Publish the staged pages of `run` into `index` and delete vanished pages as `delete` says, in one transaction.

    Readers see all of it or nothing. If nothing is staged and nothing is to be deleted, no row or revision changes.
    Raises LostCollection, VectorsMissing.
    """

    def change(connection: Connection) -> dict[str, Any]:
        vectors, chunk = vectors_of(connection), chunk_table(index.id)
        parts = {**lock.store.columns.parts, "chunk": chunk, "vectors": vectors}
        current = index_row(connection, index.id)
        revision = current["revision"] + 1
        values = {"run": run, "index": index.id, "collection": lock.collection, "revision": revision,
                  **deleting(delete), "returned_to": None}  # fmt: skip
        _require_vectors(connection, run, vectors)
        connection.execute(statement("begin_publication"), values)
        connection.execute(statement("replaced_pages", replaced=statement("replaced_urls")), values)
        connection.execute(statement("keep_pages"), values)
        deleted = connection.execute(statement("delete_chunks", chunk=chunk), values).rowcount
        updated = connection.execute(statement("update_chunks", **parts), values).rowcount
        inserted = connection.execute(statement("insert_chunks", **parts), values).rowcount
        pages_deleted = connection.execute(statement("forget_pages"), values).rowcount
        connection.execute(statement("remember_pages"), values)
        connection.execute(statement("describe_pages"), values)
        changed = bool(deleted or updated or inserted)
        if changed:
            _announce(connection, values)
        else:
            connection.execute(statement("cancel_publication"), values)
        if changed or pages_deleted:
            save_stats(connection, index.id)
        _clear_staged(connection, values)
        return asdict(Publication(index.id, revision if changed else revision - 1, index.state == "live", changed,
                                  inserted + updated, deleted, pages_deleted, True))  # fmt: skip

    return Publication(**lock.once(run, "change", change))


def build_index(
    lock: RunLock, run: int, settings: IndexSettings, base: Index | None, delete: Deleting, resources: BuildResources
) -> Publication:
    """Build a candidate index from the chunks of `base` that `run` has not replaced, and the staged ones.

    The HNSW graph is built after the load. It is all one transaction, so an index is visible only when complete. An
    older candidate of the collection is dropped afterwards, since the build may need its vectors. Raises
    LostCollection, VectorsMissing, ValueError for too many dimensions.
    """

    def build(connection: Connection) -> dict[str, Any]:
        vectors, columns = vectors_of(connection), lock.store.columns
        _require_vectors(connection, run, vectors)
        vector_type = choose_vector_type(settings, _expected_chunks(connection, run, base))
        built = replace(settings, vector_type=vector_type)
        values: dict[str, Any] = {
            "collection": lock.collection, "fingerprint": settings.fingerprint, "settings": Jsonb(asdict(built)),
            "run": run, "base": base.id if base else None, **deleting(delete),
        }  # fmt: skip
        index = (connection.execute(statement("insert_index"), values).fetchone() or {})["id"]
        parts = {**columns.parts, "chunk": chunk_table(index), "vectors": vectors}
        create_chunk_table(connection, index, vector_type, settings.dimension, columns)
        replaced = statement("replaced_pages", replaced=statement("replaced_urls"))
        connection.execute(replaced, values | {"index": values["base"]})
        values["index"] = index
        if base:
            connection.execute(statement("carry_chunks", base=chunk_table(base.id), **parts), values)
            connection.execute(statement("carry_pages"), values)
        written = connection.execute(statement("fill_chunks", **parts), values).rowcount
        index_chunks(connection, chunk_table(index), vector_type, resources)
        connection.execute(statement("remember_pages"), values)
        connection.execute(statement("describe_pages"), values)
        deleted, pages_deleted = _count_left_behind(connection, base, values)
        save_stats(connection, index)
        _clear_staged(connection, values)
        changed = base is None or bool(written or deleted or pages_deleted)
        return asdict(Publication(index, 0, False, changed, written, deleted, pages_deleted, False))

    publication = Publication(**lock.once(run, "build", build))
    lock.once(run, "drop", lambda connection: _drop_superseded(connection, lock.collection, publication.index))
    return publication


def promote_index(lock: RunLock, run: int, index: int) -> int:
    """Make `index` live and retire the index that was live; return the new revision.

    Raises LostCollection, NoSuchIndex.
    """

    def promote(connection: Connection) -> int:
        values: dict[str, Any] = {"collection": lock.collection, "index": index}
        row = connection.execute(statement("get_index"), values).fetchone()
        if row is None or row["collection"] != lock.collection or row["state"] not in ("candidate", "retired"):
            raise NoSuchIndex(
                f"collection {lock.collection!r} has no candidate or retired index {index}: `raydex status` shows "
                "its indexes"
            )
        revision = int(row["revision"]) + 1
        values |= {"run": run, "revision": revision, "returned_to": None}
        connection.execute(statement("retire_live"), values)
        connection.execute(statement("make_live"), values)
        connection.execute(statement("begin_publication"), values)
        connection.execute(statement("notify"), values)
        return revision

    return lock.once(run, f"promote {index}", promote)


def return_to_revision(lock: RunLock, run: int, index: Index, revision: int) -> Publication:
    """Restore the rows of `index` to an earlier revision, as a new publish, which can be undone too.

    It is one transaction. Raises LostCollection, and NoSuchRevision if the replaced rows are no longer stored.
    """

    def undo(connection: Connection) -> dict[str, Any]:
        current = index_row(connection, index.id)
        rows = connection.execute(statement("publications"), {"index": index.id}).fetchall()
        if revision not in returnable(rows, current["revision"]):
            raise NoSuchRevision(lock.collection, revision)
        parts = {**lock.store.columns.parts, "chunk": chunk_table(index.id)}
        values = {"run": run, "index": index.id, "collection": lock.collection, "to": revision, "returned_to": revision}
        values["revision"] = current["revision"] + 1
        counts = {name: connection.execute(statement(name, **parts), values).rowcount for name in UNDOING}
        _announce(connection, values)
        save_stats(connection, index.id)
        written = counts["put_returned"]
        return asdict(Publication(index.id, current["revision"] + 1, index.state == "live", True, written,
                                  counts["note_returned"] - written,
                                  counts["clear_returned_pages"] - counts["put_returned_pages"], True))  # fmt: skip

    return Publication(**lock.once(run, f"return to {revision}", undo))


def returnable(publications: Sequence[Mapping[str, Any]], newest: int) -> set[int]:
    """Return the revisions that an index can return to: those after which every publication is stored."""
    found, known = set[int](), {row["revision"] for row in publications}
    while newest in known:
        newest -= 1
        found.add(newest)
    return found - {0}


def _announce(connection: Connection, values: Mapping[str, Any]) -> None:
    """Raise the revision of a changed index, notify readers, and delete changes and publications that are too old."""
    revision = values["revision"]
    connection.execute(statement("raise_revision"), values)
    connection.execute(statement("forget_changes"), {**values, "revision": revision - CHANGES_KEPT})
    connection.execute(statement("count_publication"), values)
    kept = {"kept": PUBLICATIONS_KEPT, "days": PUBLICATION_DAYS}
    connection.execute(statement("forget_publications"), {**values, **kept})
    connection.execute(statement("notify"), values)


def _drop_superseded(connection: Connection, collection: str, candidate: int) -> list[int]:
    """Drop all candidates of a collection except `candidate`; return their ids."""
    rows = connection.execute(statement("superseded_candidates"), {"collection": collection, "index": candidate})
    superseded = [row["id"] for row in rows]
    for index in superseded:
        drop_index(connection, index)
    return superseded


def _require_vectors(connection: Connection, run: int, vectors: sql.Composable) -> None:
    row = connection.execute(statement("vectors_missing", vectors=vectors), {"run": run}).fetchone()
    if row and row["chunks"]:
        raise VectorsMissing(
            f"{counted(row['chunks'], 'staged chunk')} of run {run} without a vector: run the command again to continue"
        )


def index_chunks(connection: Connection, chunk: sql.Identifier, vector_type: str, resources: BuildResources) -> None:
    """Create the indexes of a loaded chunk table, HNSW last, and analyze it."""
    memory, workers = resources.maintenance_work_mem, resources.parallel_workers
    graph = connection.execute(statement("graph_size", chunk=chunk)).fetchone() or {}
    if memory == "auto":
        memory = _memory_of_build(**graph)
    connection.execute(sql.SQL("set local maintenance_work_mem = {}").format(memory))
    if workers is not None:
        connection.execute(sql.SQL("set local max_parallel_maintenance_workers = {}").format(workers))
    ef_construction = LARGE_EF_CONSTRUCTION if graph["chunks"] > LARGE_GRAPH else EF_CONSTRUCTION
    vector = {"ops": sql.SQL(own_sql(f"{vector_type}_cosine_ops")), "ef_construction": sql.Literal(ef_construction)}
    for name in ("index_chunks_id", "index_chunks_url", "index_chunks_filters", "index_chunks_embed_hash"):
        connection.execute(statement(name, chunk=chunk))
    _build_graph(connection, statement("index_chunks_vector", chunk=chunk, **vector))
    connection.execute(statement("analyze_chunks", chunk=chunk))


def _build_graph(connection: Connection, create: sql.Composed) -> None:
    """Run `create`; use one process if the server has too little shared memory for several.

    A container has 64 MB of it by default.
    """
    try:
        with connection.transaction():
            connection.execute(create)
    except psycopg.OperationalError as error:
        if error.diag.source_file != SHARED_MEMORY:
            raise
        log.warning("HNSW is built by one process, as the server's shared memory is too small for several: %s", error)
        connection.execute("set local max_parallel_maintenance_workers = 0")
        connection.execute(create)


def _memory_of_build(chunks: int, vector_bytes: int, allowed: int, strict: bool) -> str:
    """Return the memory that the graph of a loaded chunk table needs, within the server's limit."""
    needed = BUILD_BYTES + chunks * (vector_bytes + GRAPH_BYTES)
    return f"{min(needed, allowed if strict else max(allowed, LEAST_LIMIT)) >> 10}kB"


def _expected_chunks(connection: Connection, run: int, base: Index | None) -> int:
    """Return the most chunks that an index of `base` and the staged pages of `run` can have."""
    staged = connection.execute(statement("staged_counts"), {"run": run}).fetchone() or {}
    if base is None:
        return int(staged["chunks"])
    values, table = {"index": base.id}, chunk_table(base.id)
    carried = connection.execute(statement("index_counts", chunk=table), values).fetchone() or {}
    return int(staged["chunks"] + carried["chunks"])


def _count_left_behind(connection: Connection, base: Index | None, values: Mapping[str, Any]) -> tuple[int, int]:
    """Count the chunks and pages of `base` that the new index does not have."""
    if base is None:
        return 0, 0
    tables = {"chunk": chunk_table(values["index"]), "base": chunk_table(base.id)}
    row = connection.execute(statement("left_behind", **tables), values).fetchone() or {}
    return row["chunks"], row["pages"]


def save_stats(connection: Connection, index: int) -> dict[str, int]:
    """Store the number of chunks, pages and sections of an index; return them."""
    counts = connection.execute(statement("index_counts", chunk=chunk_table(index)), {"index": index}).fetchone() or {}
    connection.execute(statement("save_stats"), {"index": index, "stats": Jsonb(counts)})
    return counts


def _clear_staged(connection: Connection, values: Mapping[str, Any]) -> None:
    """Delete the staged rows of a run; after a run over all pages, also delete rows that earlier runs left."""
    for name in ("clear_staged_chunks", "clear_staged_pages", "clear_claims", "clear_staged_vectors"):
        connection.execute(statement(name), {**values, "first": 0 if values["only"] is None else values["run"]})


def choose_vector_type(settings: IndexSettings, chunks: int) -> Literal["vector", "halfvec"]:
    """Return the column type of an index: the configured one, or halfvec above 2,000 dimensions and for large indexes.

    Raises ValueError for more dimensions than HNSW supports.
    """
    wide = settings.dimension > MOST_VECTOR_DIMENSIONS
    if settings.dimension > MOST_HALFVEC_DIMENSIONS or (wide and settings.vector_type == "vector"):
        raise ValueError(
            f"model {settings.model!r} has {counted(settings.dimension, 'dimension')}; an HNSW index supports at most "
            f"{MOST_VECTOR_DIMENSIONS:,} of type vector and {MOST_HALFVEC_DIMENSIONS:,} of type halfvec: choose "
            "another model or type"
        )
    if settings.vector_type != "auto":
        return settings.vector_type
    return "halfvec" if wide or chunks > LARGE_INDEX_CHUNKS else "vector"
