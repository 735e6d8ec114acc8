"""Reads a PDF into sections: one for each page, divided where an outline entry begins."""

import re
from collections.abc import Iterator

import pypdfium2

from pipelines.characters import clean_page
from pipelines.indexing.reading.text import UnreadablePage
from pipelines.records import Block, Document, Page, Section

_MAX_OUTLINE = 10_000  # entries: outlines may be cyclic
_HYPHEN = re.compile(r"(?<=\w)[-\u00ad\ufffe\x02]\n(?=[a-z])")
_Entry = tuple[int, tuple[str, ...]]  # page index, heading path


def read_pdf(page: Page) -> Document:
    """Return the text of a PDF, cited as `#page=7` (counted from 1); headings come from its outline.

    Raises UnreadablePage if it is broken or encrypted, or if it has no text (a scan).
    """
    try:
        pdf = pypdfium2.PdfDocument(page.body)
    except pypdfium2.PdfiumError as error:
        locked = "password" in str(error).lower() or "security" in str(error).lower()
        raise UnreadablePage(page.url, "encrypted PDF" if locked else f"broken PDF ({error})") from error
    try:
        sections = tuple(_sections(page.url, pdf))
        title = clean_page(str(pdf.get_metadata_dict().get("Title") or "")).strip()
    finally:
        pdf.close()
    if not sections:
        raise UnreadablePage(page.url, "a PDF without text (scanned?)")
    title = title or (sections[0].headings[0] if sections[0].headings else page.url.rsplit("/", 1)[-1])
    return Document(page.url, title, "", sections)


def _sections(url: str, pdf: pypdfium2.PdfDocument) -> Iterator[Section]:
    entries = _outline(pdf)
    headings: tuple[str, ...] = ()
    for number in range(len(pdf)):
        starting = [path for index, path in entries if index == number]
        for path, text in _split_at(_page_text(pdf, number), starting, headings):
            headings = path
            if text:
                yield Section(url, (f"page={number + 1}",), path, (Block("prose", text),))


def _outline(pdf: pypdfium2.PdfDocument) -> list[_Entry]:
    entries: list[_Entry] = []
    path: list[str] = []
    for count, bookmark in enumerate(pdf.get_toc()):
        if count >= _MAX_OUTLINE:
            break
        destination = bookmark.get_dest()
        index = destination.get_index() if destination else None
        title = " ".join(clean_page(bookmark.get_title() or "").split())
        path = [*path[: bookmark.level], title]
        if index is not None and title:
            entries.append((index, tuple(part for part in path if part)))
    return entries


def _page_text(pdf: pypdfium2.PdfDocument, number: int) -> str:
    page = pdf[number]
    text_page = page.get_textpage()
    try:
        text = text_page.get_text_bounded().replace("\r\n", "\n").replace("\r", "\n")
    finally:
        text_page.close()
        page.close()
    return "\n".join(" ".join(line.split()) for line in clean_page(_HYPHEN.sub("", text)).split("\n"))


def _split_at(
    text: str, starting: list[tuple[str, ...]], before: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield the parts of a page's text with their heading paths; a part begins at the line of an entry's title."""
    path, rest = before, text
    for entry in starting:
        found = re.search(rf"^[\d.\s]*{re.escape(entry[-1])}\s*$", rest, re.MULTILINE | re.IGNORECASE)
        if found:
            yield path, _prose(rest[: found.start()])
            rest = rest[found.end() :]
        path = entry
    yield path, _prose(rest)


def _prose(text: str) -> str:
    """Join lines into paragraphs: one ends where a line ends a sentence well before the margin."""
    lines = [line for line in text.split("\n") if line]
    margin = 0.75 * max(map(len, lines), default=0)
    ends = ("\n" if len(line) < margin and line.endswith((".", ":", "?", "!", ";")) else " " for line in lines)
    return "".join(line + end for line, end in zip(lines, ends, strict=True)).strip()
