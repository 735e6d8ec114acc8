"""Keeps archives of BM25 folders in memory, for stores of tests."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from pipelines.store import LexicalArchive
from pipelines.store.lexical_archives import Piece


class KeptArchives:
    """Archives by index."""

    def __init__(self) -> None:
        self.archives: dict[int, tuple[LexicalArchive, list[Piece]]] = {}

    def lexical_archive(self, index: int) -> LexicalArchive | None:
        archive, _ = self.archives.get(index, (None, []))
        return archive

    @contextmanager
    def lexical_pieces(self, index: int) -> Iterator[tuple[LexicalArchive | None, Iterator[Piece]]]:
        archive, pieces = self.archives.get(index, (None, []))
        yield archive, iter(pieces)

    def save_lexical_archive(self, index: int, archive: LexicalArchive, pieces: Callable[[], Iterable[Piece]]) -> bool:
        self.archives[index] = archive, list(pieces())
        return True

    def drop_lexical_archive(self, index: int) -> None:
        self.archives.pop(index, None)
