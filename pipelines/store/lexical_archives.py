"""Stores BM25 folders of indexes in pieces, for machines that don't have them yet.

An archive is one transaction: a reader sees all of it or none. This module doesn't know their content.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import psycopg

from pipelines.store.database.connection import Connection, Database, snapshot, statement
from pipelines.store.indexes import NoSuchIndex

Piece = tuple[str, bytes]  # the name of a file, and a part of its content; the parts of a file follow each other


@dataclass(frozen=True, slots=True)
class LexicalArchive:
    """An archive of an index at `revision`; `format` names the versions that can open its files."""

    revision: int
    format: str
    digest: str = ""


class ArchiveDamaged(ValueError):
    """The pieces of an archive are not those that were stored."""


class LexicalArchives(Database):
    """The archives of BM25 folders, at most one for each index."""

    def lexical_archive(self, index: int) -> LexicalArchive | None:
        """Return the archive of an index, without its pieces."""
        row = self._one("lexical_archive", {"index": index})
        return LexicalArchive(**row) if row else None

    @contextmanager
    def lexical_pieces(self, index: int) -> Iterator[tuple[LexicalArchive | None, Iterator[Piece]]]:
        """Yield the archive of an index and its pieces, streamed; after the last one, raises ArchiveDamaged."""
        values = {"index": index}
        with self._connection() as connection, snapshot(connection):
            row = connection.execute(statement("lexical_archive"), values).fetchone()
            archive = LexicalArchive(**row) if row else None
            with connection.cursor("pieces", binary=True) as cursor:
                cursor.itersize = 4
                if archive:
                    cursor.execute(statement("lexical_pieces"), values)
                pieces = ((piece["file"], piece["content"]) for piece in cursor) if archive else iter(())
                yield archive, _checked(pieces, archive)

    def save_lexical_archive(self, index: int, archive: LexicalArchive, pieces: Callable[[], Iterable[Piece]]) -> bool:
        """Replace the archive of an index; return False if another session does so at this moment.

        Raises NoSuchIndex if the index was pruned.
        """

        def work(connection: Connection) -> bool:
            values = {"index": index, "revision": archive.revision, "format": archive.format}
            claimed = connection.execute(statement("claim_lexical_archive"), values).fetchone() or {}
            if not claimed["claimed"]:
                return False
            connection.execute(statement("clear_lexical_archive"), values)
            try:
                connection.execute(statement("insert_lexical_archive"), values)
            except psycopg.errors.ForeignKeyViolation as error:
                raise NoSuchIndex(f"index {index} was pruned") from error
            hashed = hashlib.sha256()
            with connection.cursor() as cursor, cursor.copy(statement("copy_lexical_pieces")) as copy:
                copy.set_types(["int8", "int4", "text", "bytea"])
                for number, (file, content) in enumerate(pieces()):
                    _add(hashed, file, content)
                    copy.write_row((index, number, file, content))
            connection.execute(statement("finish_lexical_archive"), values | {"digest": hashed.hexdigest()})
            return True

        return self._do(work)

    def drop_lexical_archive(self, index: int) -> None:
        """Delete the archive of an index, if there is one."""
        self._run("clear_lexical_archive", {"index": index})


def _checked(pieces: Iterable[Piece], archive: LexicalArchive | None) -> Iterator[Piece]:
    hashed = hashlib.sha256()
    for file, content in pieces:
        _add(hashed, file, content)
        yield file, content
    if archive and archive.digest != hashed.hexdigest():
        raise ArchiveDamaged(f"the archive of revision {archive.revision} has other pieces than were stored")


def _add(hashed: "hashlib._Hash", file: str, content: bytes) -> None:
    hashed.update(f"{len(file)} {file} {len(content)} ".encode())
    hashed.update(content)
