"""Writes a page as Markdown: the text of its sections below headings with their anchors.

Does not know where a page comes from or who reads it.
"""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from pipelines.page.cut.atoms import to_atoms
from pipelines.page.cut.packs import Pack
from pipelines.page.flow import flat_blocks
from pipelines.page.tree import Document, Section
from pipelines.records import Hit
from serve.mcp.quoting import HeadingLine, clean

DEEPEST = 6  # maximum heading level of Markdown


class Heading(NamedTuple):
    """A heading of a page: its level from 1, its text, the anchor of its section ("" if it has none)."""

    level: int
    text: str
    anchor: str


@dataclass(frozen=True, slots=True)
class MarkdownSection:
    """A section of a page: its anchors, outermost first, the headings down to its own, its text as Markdown."""

    anchors: tuple[str, ...]
    headings: tuple[str, ...]
    text: str

    @property
    def anchor(self) -> str:
        """The innermost anchor, "" for the page itself."""
        return self.anchors[-1] if self.anchors else ""


def sections_of_document(document: Document) -> list[MarkdownSection]:
    """Return the sections of a parsed page."""
    return [MarkdownSection(one.anchors, one.headings, _write_text(one)) for one in document.sections]


def sections_of_chunks(chunks: Sequence[Hit]) -> list[MarkdownSection]:
    """Return the sections of a page from its chunks, in reading order."""
    return [
        MarkdownSection(*place, "\n\n".join(chunk.text for chunk in found))
        for place, found in itertools.groupby(chunks, key=lambda chunk: (chunk.anchors, chunk.headings))
    ]


def with_headings(sections: Sequence[MarkdownSection]) -> Iterator[tuple[list[Heading], MarkdownSection]]:
    """Yield each section with the headings that start with it: its own, and headings above it that have no text."""
    path: tuple[str, ...] = ()
    anchor = ""
    for section in sections:
        begin, own = _common(path, section.headings), section.anchor if section.anchor != anchor else ""
        last = len(section.headings)
        yield (
            [
                Heading(level, " ".join(text.split()), own if level == last else "")
                for level, text in enumerate(section.headings[begin:], begin + 1)
            ],
            section,
        )
        path, anchor = section.headings, section.anchor


def write_sections(sections: Sequence[MarkdownSection]) -> Iterator[str]:
    """Yield the headings, with anchors as `{#anchor}`, and the text of each section, without invisible characters."""
    for headings, section in with_headings(sections):
        for heading in headings:
            anchor = f" {{#{heading.anchor}}}" if heading.anchor else ""
            yield HeadingLine(clean(f"{'#' * min(heading.level, DEEPEST)} {heading.text}{anchor}"))
        yield clean(section.text)


def _write_text(section: Section) -> str:
    atoms = to_atoms(flat_blocks(section.content))
    return Pack(atoms).markdown if atoms else ""


def _common(one: Sequence[str], other: Sequence[str]) -> int:
    """Return the length of the common prefix of two heading paths."""
    pairs = zip(one, other, strict=False)
    return sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], pairs))
