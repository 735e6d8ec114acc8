"""Loads the pages, chunks and vectors of a run into staging tables until they are published.

Tasks may run twice. Every row is keyed by its content, so loading it again adds nothing.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from psycopg import sql

from pipelines.records import Chunk
from pipelines.store.chunks import ChunkTables, vectors_of
from pipelines.store.database.connection import Connection, is_pooled, statement


@dataclass(frozen=True, slots=True)
class StagedPage:
    """A page as a run has read it, with its chunks and the metadata from its URL."""

    url: str
    input_hash: str
    title: str
    language: str
    tags: tuple[str, ...]
    version: str | None
    sections: int
    chunks: Sequence[Chunk]


class Staging(ChunkTables):
    """Staged pages, chunks and vectors."""

    def stage_pages(self, run: int, pages: Sequence[StagedPage]) -> None:
        """Load pages and their chunks into the staging tables of `run`; loading them again adds nothing.

        A page that was staged with another input (it was fetched again and has changed) is staged again.
        """

        def work(connection: Connection) -> None:
            with connection.cursor() as cursor:
                values = {"run": run, "urls": [p.url for p in pages], "hashes": [p.input_hash for p in pages]}
                cursor.execute(statement("drop_outdated_pages"), values)
                self._for_each(connection, statement("stage_page"), [_staged_page_row(run, page) for page in pages])
                cursor.execute(statement("forgive_pages"), values)
                cursor.execute(statement("incoming_chunks", ending=_ending(connection)))
                with cursor.copy(statement("copy_chunks", **self.columns.parts)) as copy:
                    copy.set_types(["int8", *self.columns.types])
                    for page in pages:
                        for chunk in page.chunks:
                            copy.write_row([run, *self.columns.values(page, chunk)])
                cursor.execute(statement("stage_chunks", **self.columns.parts))

        self._do(work)

    def claim(self, run: int, wanted: Mapping[str, str]) -> set[str]:
        """Return the embed hashes in `wanted` (hash → page that needs it) that this caller must embed.

        A hash is left out if its vector is already stored or another page of `run` has claimed it. The same page gets
        the same result again, so a repeated task loses nothing.
        """

        def work(connection: Connection) -> set[str]:
            vectors = vectors_of(connection)
            unknown = [
                row["embed_hash"]
                for row in connection.execute(statement("unknown_hashes", vectors=vectors), {"hashes": list(wanted)})
            ]
            values = {"run": run, "hashes": unknown, "urls": [wanted[name] for name in unknown]}
            return {row["embed_hash"] for row in connection.execute(statement("claim_hashes"), values)}

        return self._do(work) if wanted else set()

    def stage_vectors(self, run: int, hashes: Sequence[str], vectors: np.ndarray) -> None:
        """Load vectors (float32, one row per hash); stored vectors stay unchanged. Raises ValueError."""
        if not np.isfinite(vectors).all():
            raise ValueError("a vector contains NaN or infinity, and none was stored: check the embedding model")

        def work(connection: Connection) -> None:
            with connection.cursor() as cursor:
                cursor.execute(statement("incoming_vectors", ending=_ending(connection)))
                with cursor.copy(statement("copy_vectors")) as copy:
                    copy.set_types(["text", "int8", "vector"])
                    for name, vector in zip(hashes, vectors, strict=True):
                        copy.write_row((name, run, vector))
                cursor.execute(statement("stage_vectors"))

        self._do(work)

    def staged_counts(self, run: int) -> dict[str, int]:
        """Count the pages, sections, chunks and vectors (`embedded`) that `run` has staged so far."""
        return dict(self._one("staged_counts", {"run": run}) or {})

    def staging_progress(self, collection: str, run: int, rules: str) -> dict[str, int]:
        """Return counts of the staged pages of `run` that were read with `rules`, to predict when it ends.

        They are the pages, their stored `bytes` and chunks, the `tokens` of texts that the run itself embeds, the
        `embedded_tokens` among them, and as `embedded` all vectors of the run.
        """
        values = {"collection": collection, "run": run, "rules": rules}
        return dict(self._one("staging_progress", values) or {})

    def reused_chunks(self, run: int) -> int:
        """Return how many staged chunks of `run` needed no embedding: known texts, or texts staged twice."""
        return int((self._one("reused_chunks", {"run": run}) or {})["chunks"])


def _staged_page_row(run: int, page: StagedPage) -> dict[str, Any]:
    row = {field.name: getattr(page, field.name) for field in fields(page)}
    return row | {"run": run, "chunks": len(page.chunks)}


def _ending(connection: Connection) -> sql.SQL:
    """Return the `on commit` action for temporary tables: a session that is not pooled keeps the table."""
    return sql.SQL("drop" if is_pooled(connection) else "delete rows")
