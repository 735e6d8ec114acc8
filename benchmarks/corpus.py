"""Provides the Ray documentation's pages as lists of words, from which collections of any size are generated.

Reads RAYDEX_DATA/ray-docs-html.tar.xz once, chunks the pages like an index, and caches the result in a folder.
"""

import pickle
import re
import tarfile
import zlib
from collections import Counter
from dataclasses import dataclass
from math import isqrt
from pathlib import Path

from benchmarks import common
from pipelines.files.atomic_files import whole_file
from pipelines.indexing.chunking.page_cutter import PageCutter
from pipelines.indexing.reading.text import UnreadablePage
from pipelines.records import IndexSettings, Page

SITE = "https://synthetic.example/"
# This many most frequent words are never changed in copies.
COMMON_WORDS = 1_000
WORD = re.compile(r"([A-Za-z]{4,})")

Text = list[int]  # the numbers of its pieces


@dataclass(frozen=True, slots=True)
class CorpusChunk:
    """A chunk of a real page."""

    anchors: tuple[str, ...]
    headings: tuple[Text, ...]
    text: Text
    tokens: int


@dataclass(frozen=True, slots=True)
class CorpusPage:
    """A real page with chunks."""

    path: str
    title: Text
    sections: int
    chunks: tuple[CorpusChunk, ...]


@dataclass(frozen=True)
class Corpus:
    """The real pages. Every text is a list of indices into `pieces`: words, and the characters between them."""

    pages: list[CorpusPage]
    pieces: list[str]
    ranks: dict[str, int]  # of lower-case words, by the number of chunks that contain them

    def words_of_copy(self, copy: int) -> list[str]:
        """Return `pieces` with a copy's words: the vocabulary of all copies grows with the square root of their number.

        Natural language gains words at such a rate (Heaps 1978, exponents of 0.4 to 0.6 for English).
        """
        return [self._in_copy(copy, piece) for piece in self.pieces]

    def _in_copy(self, copy: int, piece: str) -> str:
        if self.ranks.get(piece.lower(), 0) < COMMON_WORDS:  # pieces that are not words have no rank
            return piece
        other = zlib.crc32(f"{copy} {piece.lower()}".encode()) % (1 + isqrt(copy))
        return f"{piece}{'bcdfglmnprtvz'[other % 13]}{'aeiou'[other // 13 % 5]}k" if other else piece


def load_corpus(cache: Path) -> Corpus:
    """Return the archive's pages, chunked like in an index. A second call reads them from the folder `cache`."""
    kept = cache / "corpus.pickle"
    if not kept.exists():
        cache.mkdir(parents=True, exist_ok=True)
        with whole_file(kept) as making:
            making.write_bytes(pickle.dumps(_cut_archive(common.data(common.ARCHIVE))))
    corpus: Corpus = pickle.loads(kept.read_bytes())
    return corpus


def _cut_archive(archive: Path) -> Corpus:
    cut = PageCutter(IndexSettings("hash:384"))
    numbers: dict[str, int] = {}
    frequency: Counter[str] = Counter()

    def to_pieces(text: str) -> Text:
        return [numbers.setdefault(piece, len(numbers)) for piece in WORD.split(text) if piece]

    pages = []
    for url, body in _html_of(archive):
        try:
            page = cut(Page(SITE + url, body))
        except UnreadablePage:
            continue
        chunks = [
            CorpusChunk(c.anchors, tuple(map(to_pieces, c.headings)), to_pieces(c.text), c.tokens) for c in page.chunks
        ]
        frequency.update(word for c in page.chunks for word in {w.lower() for w in WORD.findall(c.text)})
        if chunks:
            pages.append(CorpusPage(url, to_pieces(page.title), page.sections, tuple(chunks)))
    ranks = {word: rank for rank, (word, _) in enumerate(frequency.most_common())}
    return Corpus(pages, list(numbers), ranks)


def _html_of(archive: Path) -> list[tuple[str, bytes]]:
    with tarfile.open(archive) as files:
        found = [
            (member.name.removeprefix("en/master/"), file.read())
            for member in files
            if member.name.endswith(".html") and (file := files.extractfile(member))
        ]
    return sorted(found)
