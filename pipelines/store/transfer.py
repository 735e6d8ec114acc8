"""A whole index with its pages as one file, and back.

The file is a zip of a manifest and three streams of Postgres' binary COPY, so that neither side ever holds more
than a piece of it. A restore is one transaction: it comes in whole or not at all.
"""

import json
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, BinaryIO

import psycopg
from psycopg import sql
from psycopg.types.json import Jsonb

from pipelines.records import Index, IndexSettings
from pipelines.store.connection import Connection, Database, chunk_table, snapshot, statement
from pipelines.store.publish import BuildResources, RunLock, index_chunks, save_stats
from pipelines.whole import whole_file

FORMAT = "raydex index 1"
PIECE = 1 << 20


class NotADump(ValueError):
    """The file is not a dump of an index, or is damaged."""


def dump(store: Database, index: Index, path: Path) -> dict[str, Any]:
    """Write `index` and all pages of its collection to `path`, which appears only when it is whole.

    Returns the manifest. Raises OSError if the file can't be written.
    """
    with (
        whole_file(path) as making,
        making.open("wb") as file,
        zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive,
    ):
        return store.in_transaction(lambda connection: _write(connection, index, archive))


def restore(lock: RunLock, run: int, path: Path, resources: BuildResources) -> tuple[int, dict[str, Any]]:
    """Load a dump into the lock's collection as a candidate index; returns its id and the manifest.

    Pages that are there already are replaced by the dump's. Raises NotADump, LostCollection.
    """
    try:
        with zipfile.ZipFile(path) as archive, lock.transaction(run) as connection:
            manifest = _manifest(archive, path)
            return _read(connection, lock.collection, run, archive, manifest, resources), manifest
    except (zipfile.BadZipFile, zlib.error, KeyError, psycopg.DataError) as error:
        raise NotADump(f"{path} is not a whole dump of an index: {error}") from error


def _write(connection: Connection, index: Index, archive: zipfile.ZipFile) -> dict[str, Any]:
    with snapshot(connection):
        chunk = chunk_table(index.id)
        counts = connection.execute(statement("index_counts", chunk=chunk), {"index": index.id}).fetchone()
        manifest = {
            "format": FORMAT,
            "collection": index.collection,
            "fingerprint": index.fingerprint,
            "settings": asdict(index.settings),
            "counts": counts,
        }
        named = {"collection": sql.Literal(index.collection)}
        for name, query in {
            "pages": statement("dump_pages", **named),
            "indexed_pages": statement("dump_indexed_pages", index=sql.Literal(index.id)),
            "chunks": statement("dump_chunks", chunk=chunk),
        }.items():
            with archive.open(name, "w", force_zip64=True) as member, connection.cursor().copy(query) as copy:
                for piece in copy:
                    member.write(piece)
    archive.writestr("manifest.json", json.dumps(manifest))  # last: a file without it is not whole
    return manifest


def _manifest(archive: zipfile.ZipFile, path: Path) -> dict[str, Any]:
    manifest: dict[str, Any] = json.loads(archive.read("manifest.json"))
    if manifest.get("format") != FORMAT:
        raise NotADump(f"{path} has format {manifest.get('format')!r}, this version reads {FORMAT!r}")
    return manifest


def _read(
    connection: Connection,
    collection: str,
    run: int,
    archive: zipfile.ZipFile,
    manifest: Mapping[str, Any],
    resources: BuildResources,
) -> int:
    settings = IndexSettings(**manifest["settings"])
    named: dict[str, Any] = {
        "collection": collection,
        "run": run,
        "fingerprint": manifest["fingerprint"],
        "settings": Jsonb(asdict(settings)),
    }
    connection.execute(statement("incoming_pages"))
    _copy(connection, statement("restore_pages"), archive, "pages")
    connection.execute(statement("adopt_pages"), named)
    index = int((connection.execute(statement("insert_index"), named).fetchone() or {})["id"])
    connection.execute(statement("incoming_indexed_pages"))
    _copy(connection, statement("restore_indexed_pages"), archive, "indexed_pages")
    connection.execute(statement("adopt_indexed_pages"), {"index": index})
    chunk = chunk_table(index)
    column = sql.SQL("{}({})").format(sql.SQL(settings.vector_type), settings.dimension)
    connection.execute(statement("create_chunks", chunk=chunk, vector=column))
    _copy(connection, statement("restore_chunks", chunk=chunk), archive, "chunks")
    index_chunks(connection, chunk, settings.vector_type, resources)
    save_stats(connection, index)
    return index


def _copy(connection: Connection, query: sql.Composed, archive: zipfile.ZipFile, name: str) -> None:
    with archive.open(name) as member, connection.cursor().copy(query) as copy:
        _pump(member, copy)


def _pump(member: Any, copy: Any) -> None:
    source: BinaryIO = member
    while piece := source.read(PIECE):
        copy.write(piece)
