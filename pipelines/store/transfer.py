"""Dumps an index with its pages to one file, and restores it.

The file is a zip of a manifest, the verified answers and three streams of Postgres' binary COPY. Both directions stream
in pieces, so memory stays small. A restore is one transaction: all of it or nothing.
"""

import json
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql
from psycopg.errors import ProgramLimitExceeded
from psycopg.types.json import Jsonb
from pydantic import TypeAdapter, ValidationError

from pipelines.files.atomic_files import whole_file
from pipelines.records import Index, IndexSettings
from pipelines.store.chunks import ChunkColumns, ChunkTables, chunk_table, create_chunk_table
from pipelines.store.collections.verified import VerifiedAnswer, dump_answers, restore_answers
from pipelines.store.database.connection import Connection, snapshot, statement
from pipelines.store.database.errors import StoreUnavailable
from pipelines.store.publish import BuildResources, choose_vector_type, index_chunks, save_stats
from pipelines.store.runs import RunLock
from pipelines.text.counts import counted
from pipelines.text.mistakes import describe_mistakes

FORMAT = "raydex index 1"
MOST_MANIFEST_BYTES = 1 << 20
VERIFIED, MOST_VERIFIED_BYTES = "verified_answers.json", 1 << 26
MOST_BODY_BYTES = 100_000_000  # of an unpacked page; larger ones are never read
ENCRYPTED = 1  # a bit in the flags of a zip member
# Errors from a file that is not a zip, is cut off or damaged, or uses an unsupported compression.
_UNREADABLE = (zipfile.BadZipFile, zlib.error, KeyError, EOFError, NotImplementedError)
PIECE = 1 << 20


class DumpNotWritten(OSError):
    """A dump could not be written; nothing of it remains."""


class NotADump(ValueError):
    """The file is not a dump of an index, or is damaged."""


@dataclass(frozen=True)
class Manifest:
    """The description in a dump; `columns` are the columns of its chunks."""

    collection: str
    fingerprint: str
    settings: IndexSettings
    counts: dict[str, int]
    columns: list[str]


def dump(store: ChunkTables, index: Index, path: Path) -> Manifest:
    """Write `index` and all pages of its collection to `path`, which appears only when it is complete.

    Return the manifest. Raises DumpNotWritten, for example on a full disk.
    """
    try:
        with (
            whole_file(path) as making,
            making.open("wb") as file,
            zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive,
        ):
            return store.in_transaction(lambda connection: _write(connection, index, store.columns, archive))
    except StoreUnavailable:
        raise
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise DumpNotWritten(f"{path} can't be written: {reason}; nothing is left of it") from error


def restore(lock: RunLock, run: int, path: Path, resources: BuildResources) -> tuple[int, dict[str, int]]:
    """Load a dump into the lock's collection as a candidate index; return its id and its counts.

    Pages of the dump replace the collection's pages with the same URLs. Raises NotADump, LostCollection.
    """
    manifest = read_manifest(path)
    try:
        with zipfile.ZipFile(path) as archive, lock.transaction(run) as connection:
            names = _column_names(manifest, lock.store.columns, path)
            index = _read_pages(connection, lock.collection, run, archive, manifest)
            _read_chunks(connection, index, lock.store.columns, names, archive)
            index_chunks(connection, chunk_table(index.id), index.settings.vector_type, resources)
            _read_verified(connection, lock.collection, archive)
            _check_counts(save_stats(connection, index.id), manifest, path)
            return index.id, manifest.counts
    except ValidationError as error:
        raise _incomplete(path, f"its verified answers: {describe_mistakes(error, list[VerifiedAnswer])}") from error
    except (*_UNREADABLE, psycopg.DataError, psycopg.IntegrityError, ProgramLimitExceeded) as error:
        raise _incomplete(path, error) from error


def read_manifest(path: Path) -> Manifest:
    """Return a dump's manifest, validated because the file may come from a stranger. Raises NotADump, OSError."""
    try:
        with zipfile.ZipFile(path) as archive:
            if any(info.flag_bits & ENCRYPTED for info in archive.infolist()):
                raise zipfile.BadZipFile("it is encrypted")
            if archive.getinfo("manifest.json").file_size > MOST_MANIFEST_BYTES:
                raise zipfile.BadZipFile(f"its manifest has more than {counted(MOST_MANIFEST_BYTES, 'byte')}")
            values = json.loads(archive.read("manifest.json"))
    except (*_UNREADABLE, ValueError, RecursionError) as error:
        raise _incomplete(path, error) from error
    form = values.get("format") if isinstance(values, dict) else None
    if form != FORMAT:
        raise NotADump(f"{path} has format {form!r}, this version reads {FORMAT!r}: use the version that wrote it")
    try:
        manifest = TypeAdapter(Manifest).validate_python(values)
        choose_vector_type(manifest.settings, 0)
    except ValidationError as error:
        raise _incomplete(path, describe_mistakes(error, Manifest)) from error
    except ValueError as error:
        raise _incomplete(path, error) from error
    if unknown := set(values["settings"]) - {field.name for field in fields(IndexSettings)}:
        raise NotADump(f"{path} has settings unknown to this version: {', '.join(sorted(unknown))}")
    return manifest


def _incomplete(path: Path, reason: object) -> NotADump:
    said = str(reason).partition("\n")[0]
    return NotADump(f"{path} is not a complete dump of an index: {said}. Write it again with `raydex dump`")


def _check_counts(counts: Mapping[str, int], manifest: Manifest, path: Path) -> None:
    """Raise NotADump unless the loaded counts match the manifest, which has fewer counts in older dumps."""
    if not {"chunks", "pages"} <= manifest.counts.keys() or not manifest.counts.items() <= counts.items():
        raise _incomplete(path, f"it contains {dict(counts)}, but its manifest says {manifest.counts}")


def _write(connection: Connection, index: Index, columns: ChunkColumns, archive: zipfile.ZipFile) -> Manifest:
    with snapshot(connection):
        chunk = chunk_table(index.id)
        counts = connection.execute(statement("index_counts", chunk=chunk), {"index": index.id}).fetchone()
        manifest = Manifest(index.collection, index.fingerprint, index.settings, dict(counts or {}), columns.names)
        for name, query in {
            "pages": statement("dump_pages", collection=sql.Literal(index.collection)),
            "indexed_pages": statement("dump_indexed_pages", index=sql.Literal(index.id)),
            "chunks": statement("dump_chunks", chunk=chunk, **columns.parts),
        }.items():
            with archive.open(name, "w", force_zip64=True) as member, connection.cursor().copy(query) as copy:
                for piece in copy:
                    member.write(piece)
        archive.writestr(VERIFIED, dump_answers(connection, index.collection))
    # written last, so that a dump without it is incomplete
    archive.writestr("manifest.json", json.dumps({"format": FORMAT, **asdict(manifest)}))
    return manifest


def _column_names(manifest: Manifest, columns: ChunkColumns, path: Path) -> list[str]:
    """Return the chunk columns in a dump."""
    if not manifest.columns:
        raise _incomplete(path, "it has no columns")
    if len(set(manifest.columns)) < len(manifest.columns):
        raise _incomplete(path, f"it lists a column twice: {', '.join(manifest.columns)}")
    if unknown := set(manifest.columns) - set(columns.names):
        raise NotADump(
            f"{path} holds columns of chunks that this version does not know ({', '.join(sorted(unknown))}): "
            "restore it with the version that wrote it, or a newer one"
        )
    return manifest.columns


def _read_pages(
    connection: Connection, collection: str, run: int, archive: zipfile.ZipFile, manifest: Manifest
) -> Index:
    """Load the pages; return a new index for them, without chunks."""
    settings = replace(
        manifest.settings, vector_type=choose_vector_type(manifest.settings, manifest.counts.get("chunks", 0))
    )
    values: dict[str, Any] = {
        "collection": collection,
        "run": run,
        "fingerprint": manifest.fingerprint,
        "settings": Jsonb(asdict(settings)),
    }
    connection.execute(statement("incoming_pages"))
    _copy(connection, statement("restore_pages"), archive, "pages")
    _check_bodies(connection)
    connection.execute(statement("adopt_pages"), values)
    index = int((connection.execute(statement("insert_index"), values).fetchone() or {})["id"])
    connection.execute(statement("incoming_indexed_pages"))
    _copy(connection, statement("restore_indexed_pages"), archive, "indexed_pages")
    connection.execute(statement("adopt_indexed_pages"), {"index": index})
    return Index(index, collection, settings, "candidate", 0, manifest.fingerprint)


def _check_bodies(connection: Connection) -> None:
    """Raise BadZipFile unless the next update can unpack the body of each loaded page."""
    with connection.cursor("bodies") as cursor:
        cursor.itersize = 20
        for row in cursor.execute(statement("incoming_bodies")):
            unpacker = zlib.decompressobj()
            try:
                size = len(unpacker.decompress(row["body"], MOST_BODY_BYTES))
            except zlib.error as error:
                raise zipfile.BadZipFile(f"the body of {row['url']} is damaged ({error})") from error
            if not unpacker.eof:
                cut_off = size < MOST_BODY_BYTES
                fault = "is cut off" if cut_off else f"has more than {counted(MOST_BODY_BYTES, 'byte')}"
                raise zipfile.BadZipFile(f"the body of {row['url']} {fault}")


def _read_chunks(
    connection: Connection, index: Index, columns: ChunkColumns, names: Sequence[str], archive: zipfile.ZipFile
) -> None:
    create_chunk_table(connection, index.id, index.settings.vector_type, index.settings.dimension, columns)
    copied = sql.SQL(", ").join([sql.Identifier(name) for name in names])
    _copy(connection, statement("restore_chunks", chunk=chunk_table(index.id), names=copied), archive, "chunks")


def _read_verified(connection: Connection, collection: str, archive: zipfile.ZipFile) -> None:
    """Load the verified answers."""
    if archive.getinfo(VERIFIED).file_size > MOST_VERIFIED_BYTES:
        raise zipfile.BadZipFile(f"its verified answers have more than {counted(MOST_VERIFIED_BYTES, 'byte')}")
    restore_answers(connection, collection, archive.read(VERIFIED))


def _copy(connection: Connection, query: sql.Composed, archive: zipfile.ZipFile, name: str) -> None:
    with archive.open(name) as member, connection.cursor().copy(query) as copy:
        while piece := member.read(PIECE):
            copy.write(piece)
