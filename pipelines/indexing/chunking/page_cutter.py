"""Reads and cuts a page in one step, which runs in a child process that can be killed."""

from typing import NamedTuple

from pipelines.embedding.load import load_tokenizer
from pipelines.indexing.reading.layout import NO_LAYOUTS, Layouts
from pipelines.indexing.reading.read import read_page
from pipelines.page.cut.chunker import Chunker
from pipelines.records import Chunk, IndexSettings, Page


class PageChunks(NamedTuple):
    """The chunks of a page, with its title, its language and its number of sections."""

    title: str
    language: str
    sections: int
    chunks: tuple[Chunk, ...]


class PageCutter:
    """Reads pages without the layout of their site, and cuts them by `settings`.

    It is pickled as its settings and layouts, and is ready to use after unpickling.
    """

    def __init__(self, settings: IndexSettings, layouts: Layouts = NO_LAYOUTS) -> None:
        self._settings, self._layouts = settings, layouts
        counter = load_tokenizer(settings.embedding)
        self._chunker = Chunker(counter, settings.chunk_size, settings.chunk_overlap, settings.chunk_unit)

    def __reduce__(self) -> tuple[type["PageCutter"], tuple[IndexSettings, Layouts]]:
        return PageCutter, (self._settings, self._layouts)

    def __call__(self, page: Page) -> PageChunks:
        """Read and cut `page`. Raises UnreadablePage."""
        document = self._layouts.of(page.url).strip(read_page(page, self._settings.html))
        chunks = self._chunker(document)
        return PageChunks(document.title, document.language, len(document.sections), tuple(chunks))
