"""Remembers the chunks that searches read, so that the next searches need not read them again.

This module knows no database: the reader says which revision of an index it read.
"""

import threading
from collections.abc import Iterable

from pipelines.records import Hit

MOST_BYTES = 32_000_000  # per store: about 15,000 chunks of 600 characters
_FIELDS = 1_000  # bytes of a chunk besides its texts, roughly


class KnownChunks:
    """Chunks by index, revision and id. Within a revision no chunk changes, so none is ever looked up again.

    Beyond `most` bytes, those that were read first are forgotten. Thread-safe.
    """

    def __init__(self, most: int = MOST_BYTES) -> None:
        self._most, self._bytes = most, 0
        self._chunks: dict[tuple[int, int, str], Hit] = {}
        self._adding = threading.Lock()

    def get(self, index: int, revision: int, ids: Iterable[str]) -> dict[str, Hit]:
        """Return the known chunks with `ids`, by id."""
        known = ((name, self._chunks.get((index, revision, name))) for name in ids)
        return {name: chunk for name, chunk in known if chunk is not None}

    def add(self, index: int, revision: int, chunks: Iterable[Hit]) -> None:
        """Remember chunks as they are at `revision`."""
        with self._adding:
            for chunk in chunks:
                if (key := (index, revision, chunk.chunk_id)) not in self._chunks:
                    self._chunks[key] = chunk
                    self._bytes += _size(chunk)
            while self._bytes > self._most:
                self._bytes -= _size(self._chunks.pop(next(iter(self._chunks))))


def _size(chunk: Hit) -> int:
    return len(chunk.text) + len(chunk.plain) + _FIELDS
