"""The pages of the Ray documentation as lists of words, from which collections of any size are made.

Reads RAYDEX_DATA/ray-docs-html.tar.xz once, cuts the pages as an index does, and keeps the result in a folder.
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
# Words that are changed in copies: not among this many most frequent ones.
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
    """A real page that has chunks."""

    path: str
    title: Text
    sections: int
    chunks: tuple[CorpusChunk, ...]


@dataclass(frozen=True)
class Corpus:
    """The real pages; every text is a list of numbers of `pieces`: words, and what stands between them."""

    pages: list[CorpusPage]
    pieces: list[str]
    ranks: dict[str, int]  # of words in lower case, by the chunks that hold them

    def words_of_copy(self, copy: int) -> list[str]:
        """Return `pieces` with the words of a copy: the vocabulary of all copies grows with the root of their number.

        Texts of natural language gain words so (Heaps 1978, exponents of 0.4 to 0.6 for English).
        """
        return [self._in_copy(copy, piece) for piece in self.pieces]

    def _in_copy(self, copy: int, piece: str) -> str:
        if self.ranks.get(piece.lower(), 0) < COMMON_WORDS:  # what is no word has no rank
            return piece
        other = zlib.crc32(f"{copy} {piece.lower()}".encode()) % (1 + isqrt(copy))
        return f"{piece}{'bcdfglmnprtvz'[other % 13]}{'aeiou'[other // 13 % 5]}k" if other else piece


def load_corpus(cache: Path) -> Corpus:
    """Return the pages of the archive, cut as an index does it; a second call reads them from the folder `cache`."""
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
