"""Reads a PDF into sections: one per page, split where an outline entry or a heading begins."""

import re
from collections.abc import Iterator, Sequence
from itertools import islice, takewhile
from typing import NamedTuple

import pypdfium2

from pipelines.indexing.reading.formats import pdf_layout
from pipelines.indexing.reading.formats.pdf_lines import Line, PageLines, lines_of
from pipelines.indexing.reading.text import UnreadablePage
from pipelines.page.tree import Document, Section
from pipelines.records import Page
from pipelines.text.cleaning import clean_page
from pipelines.text.phrases import read_phrases

_MAX_OUTLINE = 10_000  # entries; outlines may be cyclic
_MAX_TITLE = 3  # lines of a title on the first page
_PHRASES = read_phrases(__name__)
_NUMBER = re.compile(r"(?:chapter|appendix|part|section)?[\divxa-h]{0,8}")  # before a heading, without punctuation


class Entry(NamedTuple):
    """An outline entry: the index of its page, and its heading path."""

    page: int
    path: tuple[str, ...]


def read_pdf(page: Page) -> Document:
    """Return the text of a PDF, cited as `#page=7` (counted from 1). Headings come from its outline or its fonts.

    Tables of contents, running headers and page numbers are left out. Raises UnreadablePage if the PDF is broken,
    encrypted, or without text (a scan).
    """
    try:
        pdf = pypdfium2.PdfDocument(page.body)
    except pypdfium2.PdfiumError as error:
        locked = "password" in str(error).lower() or "security" in str(error).lower()
        raise UnreadablePage(page.url, "encrypted PDF" if locked else f"broken PDF ({error})") from error
    try:
        pages = [lines_of(pdf, number) for number in range(len(pdf))]
        outline = list(_outline(pdf))
        given = " ".join(clean_page(str(pdf.get_metadata_dict().get("Title") or "")).split())
    finally:
        pdf.close()
    sections = tuple(sections_of(page.url, pages, outline))
    if not sections:
        raise UnreadablePage(page.url, "a PDF without text (scanned?)")
    title = "" if _PHRASES["no_title"].fullmatch(given) else given
    title = title or _title_on(pages, sections) or page.url.rsplit("/", 1)[-1]
    return Document(page.url, title, "", sections)


def _title_on(pages: Sequence[PageLines], sections: Sequence[Section]) -> str:
    """Return the first of the largest lines on the first page if they stand out, else the first heading, or ""."""
    lines = next((page.lines for page in pages if page.lines), ())
    largest = max((line.height for line in lines), default=0.0)
    titles = [next((section.headings[0] for section in sections if section.headings), "")]
    if largest >= 1.2 * pdf_layout.body_height(pages):
        first = next(place for place, line in enumerate(lines) if line.height >= 0.7 * largest)
        rest = lines[first : first + _MAX_TITLE]
        shown = takewhile(lambda line: pdf_layout.alike(line.height, lines[first].height), rest)
        titles.insert(0, " ".join(" ".join(line.text.split()) for line in shown))
    return next((title for title in titles if not _PHRASES["no_title"].fullmatch(title) and len(title) <= 200), "")


def sections_of(url: str, pages: Sequence[PageLines], outline: Sequence[Entry] = ()) -> Iterator[Section]:
    """Yield the sections of a document, given the lines of its pages and its outline."""
    headings: tuple[str, ...] = ()
    fonts = FontHeadings()
    shown = [pdf_layout.without_contents(page) for page in pdf_layout.without_running_lines(pages)]
    body = pdf_layout.body_height(shown)
    for number, page in enumerate(shown):
        starting = [entry for entry in outline if entry.page == number]
        parts = _split_at(page.lines, starting, headings) if outline else fonts.split(page.lines, body)
        for path, lines in parts:
            headings = path
            blocks = pdf_layout.blocks_of(lines)
            if blocks:
                yield Section(url, (f"page={number + 1}",), path, blocks)


def _outline(pdf: pypdfium2.PdfDocument) -> Iterator[Entry]:
    path: list[str] = []
    for bookmark in islice(pdf.get_toc(), _MAX_OUTLINE):
        destination = bookmark.get_dest()
        index = destination.get_index() if destination else None
        title = " ".join(clean_page(bookmark.get_title() or "").split())
        path = [*path[: bookmark.level], title]
        if index is not None and title:
            yield Entry(index, tuple(part for part in path if part))


def _split_at(
    lines: Sequence[Line], starting: Sequence[Entry], before: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], Sequence[Line]]]:
    """Yield the parts of a page with their heading paths. A part begins at the line or lines with an entry's title."""
    path, rest = before, lines
    for entry in starting:
        found = _find_title(rest, entry.path[-1])
        if found:
            yield path, rest[: found[0]]
            rest = rest[found[1] :]
        path = entry.path
    yield path, rest


def _find_title(lines: Sequence[Line], title: str) -> tuple[int, int] | None:
    """Return the range of lines that contain only `title`, possibly numbered; a long title takes up to three lines."""
    wanted = _plain(title)
    for start in range(len(lines)):
        words = ""
        for end in range(start, min(start + _MAX_TITLE, len(lines))):
            words += _plain(lines[end].text)
            if words.endswith(wanted) and _NUMBER.fullmatch(words.removesuffix(wanted)):
                return start, end + 1
            if not wanted.startswith(words[-len(wanted) :]) and len(words) > len(wanted):
                break
    return None


def _plain(text: str) -> str:
    return "".join(sign for sign in text.lower() if sign.isalnum())


class FontHeadings:
    """Splits the pages of a document without an outline at lines that look like headings.

    A heading is nested under earlier ones that are larger, or equally large with fewer parts in their number (3.1,
    3.1.2).
    """

    def __init__(self) -> None:
        self._open: list[tuple[float, int, str]] = []

    def split(self, lines: Sequence[Line], body: float) -> Iterator[tuple[tuple[str, ...], Sequence[Line]]]:
        """Yield the parts of the next page with their heading paths."""
        start = place = 0
        while place < len(lines):
            end = self._end_of_heading(lines, place, body)
            if end > place:
                yield self._path(), lines[start:place]
                self._add(lines[place:end])
                start = end
            place = max(end, place + 1)
        yield self._path(), lines[start:]

    def _end_of_heading(self, lines: Sequence[Line], place: int, body: float) -> int:
        end = place
        while end < min(len(lines), place + _MAX_TITLE) and pdf_layout.is_heading(lines[end], body):
            if not pdf_layout.alike(lines[end].height, lines[place].height):
                break
            end += 1
        return end

    def _add(self, lines: Sequence[Line]) -> None:
        words = " ".join(" ".join(line.text.split()) for line in lines)
        number = re.match(r"(?:\d+\.)*\d+|$", words)
        height, parts = lines[0].height, number[0].count(".") + 1 if number and number[0] else 0
        while self._open:
            above, its_parts, _ = self._open[-1]
            if not (its_parts >= parts if pdf_layout.alike(above, height) else above < height):
                break
            self._open.pop()
        self._open.append((height, parts, words))

    def _path(self) -> tuple[str, ...]:
        return tuple(words for _, _, words in self._open)
