"""Reads a page into a document by its format: bytes, text, tree, sections.

`PageReader` does this in a process that can be killed, because some pages on the Web hang or crash any parser.
Independent of the network and the index.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Generic, TypeVar

from pipelines.indexing.reading import formats
from pipelines.indexing.reading.child_process import Child, ChildNotStarted, ChildTimeout
from pipelines.indexing.reading.language import language_of
from pipelines.indexing.reading.text import TOO_SLOW, UnreadablePage
from pipelines.page.tree import Document
from pipelines.records import Page
from pipelines.text.counts import counted

T = TypeVar("T")
NO_SELECTORS: Mapping[str, Any] = {}


def read_page(page: Page, html: Mapping[str, Any] = NO_SELECTORS) -> Document:
    """Return the title, language and sections of `page`. Raises UnreadablePage if it has no readable text.

    If a page declares no language, it is derived from its URL or its prose when certain. `html` are the collection's
    selectors, as stored in the index settings. This may take arbitrarily long on hostile input, so jobs use PageReader.
    """
    entry = formats.format_of_page(page)
    if entry is None:
        raise UnreadablePage(page.url, f"unsupported type {page.content_type!r}")
    if not page.body.strip():
        raise UnreadablePage(page.url, "empty")
    if len(page.body) > entry.max_bytes:
        raise UnreadablePage(
            page.url, f"too large ({counted(len(page.body), 'byte')}, at most {entry.max_bytes:,} are read)"
        )
    document = reader_of(entry, html)(page)
    return document if document.language else replace(document, language=language_of(document))


def reader_of(entry: formats.DocumentFormat, html: Mapping[str, Any] = NO_SELECTORS) -> Callable[[Page], Document]:
    """Return the function that reads pages of a format. `html` is as in read_page.

    Parsers are slow to load, so only the format's own parser is imported.
    """
    if entry in (formats.HTML, formats.XHTML):
        from pipelines.indexing.reading.formats.html import read_html

        return partial(read_html, html=html)
    if entry is formats.TEXT:
        from pipelines.indexing.reading.formats.plain_text import read_text as read
    elif entry is formats.PDF:
        from pipelines.indexing.reading.formats.pdf import read_pdf as read
    elif entry is formats.RESTRUCTURED_TEXT:
        from pipelines.indexing.reading.formats.restructured_text import read_restructured_text as read
    elif entry in (formats.NOTEBOOK, formats.NBSPHINX, formats.MYST_NOTEBOOK):
        from pipelines.indexing.reading.formats.notebook import read_notebook as read
    else:
        from pipelines.indexing.reading.formats.markdown import read_markdown as read
    return read


@dataclass(frozen=True)
class PageReader(Generic[T]):
    """Runs `read` (read_page, or a function that calls it) in a separate process.

    A page that hangs or crashes the process raises UnreadablePage. A page may take `patience` times the limit of its
    format and size. The process starts with the first page (some tenths of a second) and ends with the reader or the
    program; readers may share the process of a `child`.
    """

    read: Callable[[Page], T]
    patience: float = 1.0
    child: Child = field(default_factory=Child)

    def __call__(self, page: Page) -> T:
        """Return `read(page)`. Raises UnreadablePage, also if the page takes too long or kills the process.

        ChildNotStarted, which is not the page's fault, propagates.
        """
        entry = formats.format_of_page(page)
        if entry is None or len(page.body) > entry.max_bytes:
            return self.read(page)  # raises at once, without sending the page through a pipe
        try:
            return self.child(self.read, page, self.patience * entry.limit_s(len(page.body)))
        except (UnreadablePage, ChildNotStarted):
            raise
        except ChildTimeout as error:
            raise UnreadablePage(page.url, f"{error}: {TOO_SLOW}") from error
        except Exception as error:
            raise UnreadablePage(page.url, f"its parser failed: {error!r}") from error
