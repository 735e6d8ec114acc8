"""Reads plain text: paragraphs, lists, columns, underlined headings."""

import re
from collections.abc import Iterator, Sequence
from html import unescape
from itertools import groupby

from pipelines.indexing.reading.links import HIDDEN
from pipelines.indexing.reading.set_text import parts_of
from pipelines.indexing.reading.text import LINE_BREAK, UnreadablePage, as_listing, as_paragraph, text_of_page
from pipelines.page.tree import Code, Document, Node, Paragraph, Section, text_spans
from pipelines.records import Page
from pipelines.text.cleaning import clean_page

# A heading: a line after an empty line, underlined and perhaps overlined. A line with columns is a table's header.
_UNDERLINED = r"(?:\A|\n\n)(?:[=*#~]{3,}\n)?(\S+(?: \S+)*)\n(?:={3,}|-{3,}|~{3,}|\*{3,}|#{3,}|\^{3,}) *(?=\n|\Z)"
_ITEM = r"\n(?= ?(?:[-*+•]|\d{1,3}[.)]) )"


def read_text(page: Page) -> Document:
    """Read a page of plain text. Raises UnreadablePage."""
    return document_of_text(page.url, text_of_page(page))


def document_of_text(url: str, text: str, title: str = "") -> Document:
    """Return plain text as sections, which begin at underlined lines. A heading at the start is the title.

    A paragraph with columns or indentation keeps its line breaks, as code, unless it reads as typeset prose. Each list
    item starts a new line.
    """
    before, *parts = re.split(_UNDERLINED, clean_page(text).lstrip("\n"))
    top = parts[0] if parts and not before else ""
    sections = [
        Section(url, (), tuple(dict.fromkeys(filter(None, (top, heading)))), blocks)
        for heading, part in (("", before), *zip(parts[::2], parts[1::2], strict=True))
        if (blocks := list(_blocks(part)))
    ]
    if not sections:
        raise UnreadablePage(url, "no text")
    return Document(url, title or top or file_name(url), "", tuple(sections))


def _blocks(text: str) -> Iterator[Node]:
    parts = (
        re.sub(r"(?<=[.!?])  (?=\w)", " ", part) for part in text.split("\n\n")
    )  # typewriter style: two spaces after a sentence
    for lined, group in groupby(filter(str.strip, parts), key=_keeps_lines):
        if lined:
            yield from _lined_blocks(list(group))
        else:
            yield from (Paragraph(text_spans(as_paragraph(re.sub(_ITEM, LINE_BREAK, part)))) for part in group)


def _lined_blocks(group: Sequence[str]) -> Iterator[Node]:
    """Yield text with columns or indentation as code, unless it is prose that is indented or set in full lines."""
    for part in (parts := parts_of("\n\n".join(group))):
        if part.lined:
            yield Code(part.text)
        else:
            yield from (Paragraph(text_spans(text)) for text in (part.term, part.text) if text)
    if not parts:
        yield Code("\n\n".join(map(as_listing, group)))


def _keeps_lines(part: str) -> bool:
    return any("  " in line.rstrip() or line.startswith("\t") for line in part.split("\n"))


def document_between_tags(url: str, html: str, title: str = "") -> Document:
    """Return the text between tags as plain text, in linear time. For pages whose tree contains no text."""
    return document_of_text(url, unescape(re.sub(r"<[^<>]*>?", "\n", HIDDEN.sub("\n", html))), title)


def file_name(url: str) -> str:
    """Return the last part of the path of `url`, which serves as the title of a page without one."""
    return url.split("?", 1)[0].rstrip("/").rsplit("/", 1)[-1] or url
