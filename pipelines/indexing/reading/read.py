"""A page becomes a document: bytes to text, text to a tree, a tree to sections, by media type.

Knows no network and no index. `PageReader` does the same in a process that may be killed, because the Web holds
pages that no parser survives.
"""

from collections.abc import Callable
from types import TracebackType
from typing import Generic, TypeVar

from pipelines.indexing.reading.html import TooDeep, is_listing, language_of, main_content, parse, plain_text, title_of
from pipelines.indexing.reading.links import page_canonical, page_links
from pipelines.indexing.reading.sections import section_html
from pipelines.indexing.reading.subprocess import Child, ChildNotStarted, ChildTimeout
from pipelines.indexing.reading.text import UnreadablePage, clean, decode, listing, paragraph
from pipelines.records import Block, Document, Page, Section

T = TypeVar("T")

__all__ = ["PageReader", "UnreadablePage", "page_canonical", "page_links", "read_page"]

# The largest of 5,012 pages of the Ray, Python and Postgres documentation has 2 MB (an index of all terms), the
# largest with text of its own 0.6 MB; 5 MB take lxml 0.6 s.
MAX_BYTES = 5_000_000
MAX_PDF_BYTES = 64_000_000  # a manual of some thousand pages
PDF_TIMEOUT_S = 60.0  # PDFium takes 1 to 10 ms a page

_BY_SUFFIX = {
    ".html": "html", ".htm": "html", ".xhtml": "html", ".md": "markdown", ".markdown": "markdown", ".mdx": "markdown",
    ".pdf": "pdf", ".txt": "text", ".rst": "text", ".text": "text",
}  # fmt: skip
_BY_TYPE = {
    "text/html": "html", "application/xhtml+xml": "html", "text/markdown": "markdown", "text/x-markdown": "markdown",
    "application/pdf": "pdf", "text/x-rst": "text",
}  # fmt: skip
_VAGUE = ("", "text/plain", "application/octet-stream", "binary/octet-stream")


def read_page(page: Page) -> Document:
    """The title, language and sections of `page`. Raises UnreadablePage where there is no text to be had.

    May take arbitrarily long on hostile input: jobs use PageReader.
    """
    kind = _kind(page)
    limit = MAX_PDF_BYTES if kind == "pdf" else MAX_BYTES
    if not page.body.strip():
        raise UnreadablePage(page.url, "empty")
    if len(page.body) > limit:
        raise UnreadablePage(page.url, f"too large ({len(page.body):,} bytes, at most {limit:,} are read)")
    if kind == "pdf":
        from pipelines.indexing.reading.pdf import read_pdf

        return read_pdf(page)
    text = _text(page)
    if kind == "html":
        return _read_html(page.url, text)
    return _read_markdown(page.url, text) if kind == "markdown" else _read_text(page.url, text)


def _kind(page: Page) -> str:
    """What to read `page` as: its media type, where that is vague its beginning and its URL's ending."""
    if page.body.startswith(b"%PDF-"):
        return "pdf"
    media_type = page.content_type.strip().lower()
    if media_type in _BY_TYPE:
        return _BY_TYPE[media_type]
    if media_type not in _VAGUE:
        raise UnreadablePage(page.url, f"unsupported type {page.content_type!r}")
    path = page.url.split("?", 1)[0].lower()
    for suffix, kind in _BY_SUFFIX.items():
        if path.endswith(suffix):
            return kind
    if page.body[:500].lstrip().lower().startswith((b"<!doctype html", b"<html")):
        return "html"
    return "text"


def _text(page: Page) -> str:
    text = decode(page.body, page.charset)
    noise = sum(text.count(sign) for sign in "\0\x01\x02\x03\x04\x05\x06\x08\ufffd")
    if noise > 0.3 * len(text):
        raise UnreadablePage(page.url, "binary data, not text")
    return text.replace("\0", "").replace("\r\n", "\n").replace("\r", "\n")


def _read_html(url: str, text: str, title: str = "", language: str = "") -> Document:
    try:
        root = parse(text)
    except TooDeep:
        return _read_text(url, plain_text(text))
    if root is None:
        return _read_text(url, plain_text(text))
    language, listed = language or language_of(root), is_listing(root)
    main = main_content(root)
    title = title or title_of(root, main)
    if listed:
        return Document(url, title or _file_name(url), language, ())
    sections = section_html(main, url)
    if not sections:
        return _read_text(url, plain_text(text), title)
    return Document(url, title or _first_heading(sections) or _file_name(url), language, sections)


def _read_markdown(url: str, text: str) -> Document:
    from pipelines.indexing.reading.markdown import render

    rendered, fields = render(text)
    language = fields.get("lang") or fields.get("language") or ""
    return _read_html(url, f"<body><main>{rendered}</main>", clean(fields.get("title", "")), language)


def _read_text(url: str, text: str, title: str = "") -> Document:
    """Plain text: paragraphs stand apart; one with columns or indentation keeps its lines."""
    blocks: list[Block] = []
    for part in clean(text).split("\n\n"):
        lined = any("  " in line.rstrip() or line.startswith("\t") for line in part.split("\n"))
        words = listing(part) if lined else paragraph(part)
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
    """`read`, read_page or what begins with it, in a process of its own: a page that hangs or crashes it is an
    UnreadablePage.

    `timeout_s` is for one page; a PDF, which may have thousands of pages, gets `pdf_timeout_s`. The process starts
    at the first page (some tenths of a second) and ends with `close`, with the reader, or with the whole program.
    """

    def __init__(self, read: Callable[[Page], T], timeout_s: float = 2.0, pdf_timeout_s: float = PDF_TIMEOUT_S) -> None:
        self.timeout_s = timeout_s
        self.pdf_timeout_s = pdf_timeout_s
        self._read = read
        self._child = Child(read)

    def __call__(self, page: Page) -> T:
        """`read(page)`. Raises UnreadablePage, also for what takes too long or kills the process.

        ChildNotStarted is the machine's fault, not the page's, and passes through.
        """
        is_pdf = page.body.startswith(b"%PDF-")
        if len(page.body) > (MAX_PDF_BYTES if is_pdf else MAX_BYTES):
            return self._read(page)  # refuses it, without sending it through a pipe
        try:
            result: T = self._child(page, self.pdf_timeout_s if is_pdf else self.timeout_s)
        except (UnreadablePage, ChildNotStarted):
            raise
        except ChildTimeout as error:
            raise UnreadablePage(page.url, f"reading it takes too long ({error})") from error
        except Exception as error:
            raise UnreadablePage(page.url, f"its parser failed: {error!r}") from error
        return result

    def close(self) -> None:
        """Ends the process."""
        self._child.close()

    def __enter__(self) -> "PageReader[T]":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
