"""Reads plain text into one section."""

from html import unescape

from pipelines.indexing.reading.text import UnreadablePage, as_listing, as_paragraph, text_of_page
from pipelines.records import Block, Document, Page, Section
from pipelines.text.cleaning import clean_page


def read_text(page: Page) -> Document:
    """Read a page of plain text. Raises UnreadablePage."""
    return document_of_text(page.url, text_of_page(page))


def document_of_text(url: str, text: str, title: str = "") -> Document:
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
    return Document(url, title or file_name(url), "", (Section(url, (), (), tuple(blocks)),))


def document_between_tags(url: str, html: str, title: str = "") -> Document:
    """Return the text between tags as plain text, in linear time: of a page whose tree holds none."""
    kept, skipping = [], ""
    for part in html.split("<"):
        tag, sign, rest = part.partition(">")
        name = tag.split(None, 1)[0].lower() if tag.strip() else ""
        if not skipping or name == f"/{skipping}":
            skipping = name if name in ("script", "style") else ""
        if not skipping:
            kept.append(rest if sign else "")
    return document_of_text(url, unescape("\n".join(kept)), title)


def file_name(url: str) -> str:
    """Return the last part of the path of `url`, which names a page without a title."""
    return url.split("?", 1)[0].rstrip("/").rsplit("/", 1)[-1] or url
