"""Reads a page into a document by its format: bytes, text, tree, sections.

Knows no network and no index. `PageReader` does so in a process that may be killed, because the Web holds pages that no
parser survives.
"""

from collections.abc import Callable
from types import TracebackType
from typing import Generic, TypeVar

from pipelines.formats import format_of_page
from pipelines.indexing.reading.child_process import Child, ChildNotStarted, ChildTimeout
from pipelines.indexing.reading.content import main_content
from pipelines.indexing.reading.html import (
    TooDeep,
    holds_words,
    is_contents,
    is_listing,
    is_redirect,
    label_of,
    language_of,
    names_of,
    needs_javascript,
    parse_html,
    strip_tags,
    title_of,
)
from pipelines.indexing.reading.section_writer import section_html
from pipelines.indexing.reading.text import NEEDS_JAVASCRIPT, TOO_SLOW, UnreadablePage, as_listing, as_paragraph, decode
from pipelines.records import Block, Document, Page, Section
from pipelines.text.cleaning import clean_for_storage, clean_page

T = TypeVar("T")


def read_page(page: Page) -> Document:
    """Return the title, language and sections of `page`. Raises UnreadablePage where no text can be had.

    May take arbitrarily long on hostile input: jobs use PageReader.
    """
    entry = format_of_page(page)
    if entry is None:
        raise UnreadablePage(page.url, f"unsupported type {page.content_type!r}")
    if not page.body.strip():
        raise UnreadablePage(page.url, "empty")
    if len(page.body) > entry.max_bytes:
        raise UnreadablePage(page.url, f"too large ({len(page.body):,} bytes, at most {entry.max_bytes:,} are read)")
    return entry.read(page)


def read_html(page: Page) -> Document:
    """Read a page of HTML or XHTML. Raises UnreadablePage."""
    return document_of_html(page.url, text_of_page(page))


def read_text(page: Page) -> Document:
    """Read a page of plain text. Raises UnreadablePage."""
    return _document_of_text(page.url, text_of_page(page))


def text_of_page(page: Page) -> str:
    """Return the body of `page` as text with "\\n" for every line break. Raises UnreadablePage for binary data."""
    text = decode(page.body, page.charset)
    noise = sum(text.count(sign) for sign in "\0\x01\x02\x03\x04\x05\x06\x08\ufffd")
    if noise > 0.3 * len(text):
        raise UnreadablePage(page.url, "binary data, not text")
    return clean_for_storage(text).replace("\r\n", "\n").replace("\r", "\n")


def document_of_html(url: str, text: str, title: str = "", language: str = "") -> Document:
    """Return the document that HTML holds; `title` and `language` go before its own. Raises UnreadablePage."""
    try:
        root = parse_html(text)
    except TooDeep:
        return _document_of_text(url, strip_tags(text))
    if root is None:
        return _document_of_text(url, strip_tags(text))
    names = names_of(root)
    language, listed = language or language_of(root), is_listing(root, names) or is_redirect(root)
    label, main = label_of(root), main_content(root, names)
    title = title or title_of(root, main)
    sections = () if listed else section_html(main, url)
    shown = sum(len(block.text) for part in sections for block in part.blocks)
    if not listed and (shown or not holds_words(main)) and needs_javascript(text, shown):
        raise UnreadablePage(url, NEEDS_JAVASCRIPT)
    if not (sections or listed or holds_words(main) or is_contents(text)):
        return _document_of_text(url, strip_tags(text), title)
    return Document(url, title or _first_heading(sections) or _file_name(url), language, sections, label)


def _document_of_text(url: str, text: str, title: str = "") -> Document:
    """Return plain text as one section: a paragraph with columns or indentation keeps its lines, as code."""
    blocks: list[Block] = []
    for part in clean_page(text).split("\n\n"):
        lined = any("  " in line.rstrip() or line.startswith("\t") for line in part.split("\n"))
        words = as_listing(part) if lined else as_paragraph(part)
        if not words:
            continue
        kind = "code" if lined else "prose"
        if blocks and blocks[-1].kind == kind:
            words = f"{blocks.pop().text}\n\n{words}"
        blocks.append(Block("code" if lined else "prose", words))
    if not blocks:
        raise UnreadablePage(url, "no text")
    title = title or _file_name(url)
    return Document(url, title, "", (Section(url, (), (), tuple(blocks)),))


def _first_heading(sections: tuple[Section, ...]) -> str:
    return next((section.headings[0] for section in sections if section.headings), "")


def _file_name(url: str) -> str:
    return url.split("?", 1)[0].rstrip("/").rsplit("/", 1)[-1] or url


class PageReader(Generic[T]):
    """Runs `read` (read_page, or a function that calls it) in a process of its own.

    A page that hangs or crashes it is an UnreadablePage. A page may take `patience` times the limit of its format and
    size. The process starts at the first page (some tenths of a second) and ends with `close`, with the reader, or with
    the program.
    """

    def __init__(self, read: Callable[[Page], T], patience: float = 1.0) -> None:
        self._read = read
        self._patience = patience
        self._child = Child(read)

    def __call__(self, page: Page) -> T:
        """Return `read(page)`. Raises UnreadablePage, also for a page that takes too long or kills the process.

        ChildNotStarted, which is not the page's fault, passes through.
        """
        entry = format_of_page(page)
        if entry is None or len(page.body) > entry.max_bytes:
            return self._read(page)  # refuses it, without sending it through a pipe
        try:
            result: T = self._child(page, self._patience * entry.limit_s(len(page.body)))
        except (UnreadablePage, ChildNotStarted):
            raise
        except ChildTimeout as error:
            raise UnreadablePage(page.url, f"{error}: {TOO_SLOW}") from error
        except Exception as error:
            raise UnreadablePage(page.url, f"its parser failed: {error!r}") from error
        return result

    def close(self) -> None:
        """End the process."""
        self._child.close()

    def __enter__(self) -> "PageReader[T]":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
