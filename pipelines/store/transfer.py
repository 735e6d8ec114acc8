"""Dumps an index with its pages to one file, and restores it.

The file is a zip of a manifest and three streams of Postgres' binary COPY, so that neither side ever holds more
than a piece of it in memory. A restore is one transaction: all of it or nothing.
"""

import json
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, BinaryIO

import psycopg
from psycopg import sql
from psycopg.types.json import Jsonb

from pipelines.records import Index, IndexSettings
from pipelines.store.chunks import ChunkColumns, ChunkTables, chunk_table, create_chunk_table
from pipelines.store.connection import Connection, snapshot, statement
from pipelines.store.publish import BuildResources, index_chunks, save_stats
from pipelines.store.runs import RunLock
from pipelines.whole import whole_file

FORMAT = "raydex index 1"
PIECE = 1 << 20


class NotADump(ValueError):
    """The file is not a dump of an index, or is damaged."""


def dump(store: ChunkTables, index: Index, path: Path) -> dict[str, Any]:
    """Write `index` and all pages of its collection to `path`, which appears only when it is complete.

    Return the manifest. Raises OSError if the file can't be written.
    """
    with (
        whole_file(path) as making,
        making.open("wb") as file,
        zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive,
    ):
        return store.in_transaction(lambda connection: _write(connection, index, store.columns, archive))


def restore(lock: RunLock, run: int, path: Path, resources: BuildResources) -> tuple[int, dict[str, Any]]:
    """Load a dump into the lock's collection as a candidate index; return its id and the manifest.

    Pages of the dump replace the collection's pages with the same URLs. Raises NotADump, LostCollection.
    """
    try:
        with zipfile.ZipFile(path) as archive, lock.transaction(run) as connection:
            manifest = _manifest(archive, path)
            names = _column_names(manifest, lock.store.columns, path)
            index = _read_pages(connection, lock.collection, run, archive, manifest)
            _read_chunks(connection, index, lock.store.columns, names, archive)
            index_chunks(connection, chunk_table(index.id), index.settings.vector_type, resources)
            save_stats(connection, index.id)
            return index.id, manifest
    except (zipfile.BadZipFile, zlib.error, KeyError, psycopg.DataError) as error:
        raise NotADump(
            f"{path} is not a complete dump of an index: {error}. Write it again with `raydex dump`"
        ) from error


def _write(connection: Connection, index: Index, columns: ChunkColumns, archive: zipfile.ZipFile) -> dict[str, Any]:
    with snapshot(connection):
        chunk = chunk_table(index.id)
        counts = connection.execute(statement("index_counts", chunk=chunk), {"index": index.id}).fetchone()
        manifest = {
            "format": FORMAT,
            "collection": index.collection,
            "fingerprint": index.fingerprint,
            "settings": asdict(index.settings),
            "counts": counts,
            "columns": columns.names,
        }
        for name, query in {
            "pages": statement("dump_pages", collection=sql.Literal(index.collection)),
            "indexed_pages": statement("dump_indexed_pages", index=sql.Literal(index.id)),
            "chunks": statement("dump_chunks", chunk=chunk, **columns.parts),
        }.items():
            with archive.open(name, "w", force_zip64=True) as member, connection.cursor().copy(query) as copy:
                for piece in copy:
                    member.write(piece)
    archive.writestr("manifest.json", json.dumps(manifest))  # last: a file without it is incomplete
    return manifest


def _manifest(archive: zipfile.ZipFile, path: Path) -> dict[str, Any]:
    manifest: dict[str, Any] = json.loads(archive.read("manifest.json"))
    if manifest.get("format") != FORMAT:
        raise NotADump(
            f"{path} has format {manifest.get('format')!r}, this version reads {FORMAT!r}: use the one that wrote it"
        )
    return manifest


def _column_names(manifest: Mapping[str, Any], columns: ChunkColumns, path: Path) -> list[str]:
    """Return the chunk columns that a dump holds; one without a list of them holds those of the first release."""
    names: list[str] = manifest.get("columns", columns.first_names)
    if unknown := set(names) - set(columns.names):
        raise NotADump(
            f"{path} holds columns of chunks that this version does not know ({', '.join(sorted(unknown))}): "
            "restore it with the version that wrote it, or a newer one"
        )
    return names


def _read_pages(
    connection: Connection, collection: str, run: int, archive: zipfile.ZipFile, manifest: Mapping[str, Any]
) -> Index:
    """Load the pages; return a new index of them, without chunks."""
    settings = IndexSettings(**manifest["settings"])
    values: dict[str, Any] = {
        "collection": collection,
        "run": run,
        "fingerprint": manifest["fingerprint"],
        "settings": Jsonb(asdict(settings)),
    }
    connection.execute(statement("incoming_pages"))
    _copy(connection, statement("restore_pages"), archive, "pages")
    connection.execute(statement("adopt_pages"), values)
    index = int((connection.execute(statement("insert_index"), values).fetchone() or {})["id"])
    connection.execute(statement("incoming_indexed_pages"))
    _copy(connection, statement("restore_indexed_pages"), archive, "indexed_pages")
    connection.execute(statement("adopt_indexed_pages"), {"index": index})
    return Index(index, collection, settings, "candidate", 0, manifest["fingerprint"])


def _read_chunks(
    connection: Connection, index: Index, columns: ChunkColumns, names: Sequence[str], archive: zipfile.ZipFile
) -> None:
    create_chunk_table(connection, index.id, index.settings.vector_type, index.settings.dimension, columns)
    copied = sql.SQL(", ").join([sql.Identifier(name) for name in names])
    _copy(connection, statement("restore_chunks", chunk=chunk_table(index.id), names=copied), archive, "chunks")


def _copy(connection: Connection, query: sql.Composed, archive: zipfile.ZipFile, name: str) -> None:
    with archive.open(name) as member, connection.cursor().copy(query) as copy:
        _pump(member, copy)


def _pump(member: Any, copy: Any) -> None:
    source: BinaryIO = member
    while piece := source.read(PIECE):
        copy.write(piece)
