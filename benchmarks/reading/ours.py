"""Reads pages like a run: in a child process, then without the parts that repeat across the site.

Only this module of the benchmark knows Raydex's page classes.
"""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import groupby
from operator import attrgetter

from benchmarks.reading.compare import Read
from pipelines.indexing.reading.layout import Layout, learn_layout
from pipelines.indexing.reading.read import PageReader, read_page
from pipelines.indexing.reading.text import UnreadablePage
from pipelines.page.flow import flat_blocks
from pipelines.page.tree import Document, Section
from pipelines.records import Page

_TARGET = attrgetter("target")
SAMPLE = 32  # pages for learning the layout; a run takes 64, which costs minutes over all sites


class SiteReader:
    """Reads the pages of one site. `sample` has the pages for learning its layout."""

    def __init__(self, sample: Iterable[Page]) -> None:
        self._read = PageReader(read_page)
        self.layout: Layout = learn_layout(list(self._documents(sample)))

    def __call__(self, page: Page) -> Read:
        """Return Raydex's reading of `page`. Raises UnreadablePage."""
        return as_read(self.document(page))

    def document(self, page: Page) -> Document:
        """Return a page's sections. Raises UnreadablePage."""
        return self.layout.strip(self._read(page))

    def _documents(self, pages: Iterable[Page]) -> Iterator[Document]:
        for page in pages:
            with suppress(UnreadablePage):
                yield self._read(page)


def sampled(pages: list[str]) -> list[str]:
    """Return evenly spaced pages for learning the layout."""
    return spread(pages, SAMPLE)


def spread(pages: list[str], count: int) -> list[str]:
    """Return `count` of `pages`, evenly spaced."""
    if len(pages) <= count:
        return list(pages)
    return [pages[at * len(pages) // count] for at in range(count)]


def as_read(document: Document) -> Read:
    """Return a document's text in reading order."""
    parts = [(document.title, True)] if document.title not in _first_headings(document) else []
    code: list[str] = []
    rows: list[str] = []
    targets: list[tuple[str, str]] = []
    before: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())
    for section in document.sections:
        for heading in _new_headings(section, *before):
            # An entry's name is also in its signature, and nowhere qualified.
            parts.append((heading, " " not in heading))
        before = section.headings, section.anchors
        for block in flat_blocks(section.content):
            parts += [(text, False) for text in (block.header, block.text) if text]
            if block.kind == "code":
                code += block.text.split("\n")
            elif block.kind == "table":
                rows += [row for text in (block.header, block.text) for row in text.split("\n")]
            for spans in (block.head, block.spans, *(line.spans for line in block.lines)):
                targets += [
                    ("".join(span.text for span in link), target) for target, link in groupby(spans, _TARGET) if target
                ]
    return Read(parts, code, rows, targets)


def _first_headings(document: Document) -> tuple[str, ...]:
    return document.sections[0].headings if document.sections else ()


def _new_headings(section: Section, headings: tuple[str, ...], anchors: tuple[str, ...]) -> list[str]:
    """Return the new headings, and the section's own heading if the previous section has the same one."""
    own = section.headings
    same = next(
        (at for at, (a, b) in enumerate(zip(own, headings, strict=False)) if a != b), min(len(own), len(headings))
    )
    if same == len(own) and own and len(headings) == len(own) and anchors != section.anchors:
        same -= 1
    return list(own[same:])
