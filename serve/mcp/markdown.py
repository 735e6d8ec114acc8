"""Writes a page as Markdown: headings with their anchors, prose, fenced code, tables.

Knows neither where a page comes from nor who reads it.
"""

import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from pipelines.answering.synthesis.passages import Kind, split_blocks
from pipelines.records import Block, Document, Hit

DEEPEST = 6  # headings of Markdown


class Heading(NamedTuple):
    """A heading of a page: its level from 1, its text, the anchor of its section ("" if it has none of its own)."""

    level: int
    text: str
    anchor: str


@dataclass(frozen=True, slots=True)
class MarkdownSection:
    """A section of a page: its anchors, outermost first, the headings down to its own, its blocks as Markdown."""

    anchors: tuple[str, ...]
    headings: tuple[str, ...]
    blocks: tuple[str, ...]

    @property
    def anchor(self) -> str:
        """The finest anchor, "" for the page itself."""
        return self.anchors[-1] if self.anchors else ""


def sections_of_document(document: Document) -> list[MarkdownSection]:
    """Return the sections of a page that was read."""
    return [
        MarkdownSection(section.anchors, section.headings, tuple(_join_tight(section.blocks)))
        for section in document.sections
    ]


def sections_of_chunks(chunks: Sequence[Hit]) -> list[MarkdownSection]:
    """Return the sections of a page from its chunks, in reading order: which of it is code is told by its looks."""
    sections: list[MarkdownSection] = []
    for chunk in chunks:
        blocks = tuple(write_text(chunk.text))
        if sections and (sections[-1].anchors, sections[-1].headings) == (chunk.anchors, chunk.headings):
            blocks = (*sections.pop().blocks, *blocks)
        sections.append(MarkdownSection(chunk.anchors, chunk.headings, blocks))
    return sections


def with_headings(sections: Sequence[MarkdownSection]) -> Iterator[tuple[list[Heading], MarkdownSection]]:
    """Yield each section with the headings that begin with it: its own, and those above it that have no text."""
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
    """Yield the blocks of sections, each section under its headings; a heading shows its anchor as `{#anchor}`."""
    for headings, section in with_headings(sections):
        for heading in headings:
            anchor = f" {{#{heading.anchor}}}" if heading.anchor else ""
            yield f"{'#' * min(heading.level, DEEPEST)} {heading.text}{anchor}"
        yield from section.blocks


def write_text(text: str) -> Iterator[str]:
    """Yield the blocks of a chunk's text: what looks like code or a table is fenced."""
    for block in split_blocks(text):
        yield fence(block.text) if block.kind in (Kind.CODE, Kind.TABLE) else block.text


def write_part(text: str, blocks: Sequence[Block]) -> Iterator[str]:
    """Yield the blocks of a chunk's text as its section has them in `blocks`; what is none of them, by its looks."""
    at = 0
    for block in blocks:
        own = block.text.strip("\n").rstrip()
        begin = _find_lines(text, own, at) if own else -1
        if begin >= 0:
            header = f"{block.header}\n" if block.header and text[at:begin].endswith(f"{block.header}\n") else ""
            yield from write_text(text[at : begin - len(header)])
            yield _write_block(block)
            at = begin + len(own)
    yield from write_text(text[at:])


def fence(code: str) -> str:
    """Return code as a fenced block, with a longer fence than any run of backticks in it."""
    mark = "`" * max(3, 1 + max((len(run) for run in re.findall(r"`+", code)), default=0))
    return f"{mark}\n{code}\n{mark}"


def _find_lines(text: str, lines: str, start: int) -> int:
    """Return where `lines` stand in `text` as whole lines, -1 if they do not."""
    begin = text.find(lines, start)
    while begin >= 0:
        end = begin + len(lines)
        if text[begin - 1 : begin] in ("", "\n") and text[end : end + 1] in ("", "\n"):
            return begin
        begin = text.find(lines, begin + 1)
    return -1


def _common(one: Sequence[str], other: Sequence[str]) -> int:
    """Return how many headings two paths begin with alike."""
    pairs = zip(one, other, strict=False)
    return sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], pairs))


def _join_tight(blocks: Sequence[Block]) -> Iterator[str]:
    """Yield blocks as Markdown; what is tight goes on the line after the block before it."""
    last = ""
    for block in blocks:
        text = _write_block(block)
        if not text:
            continue
        if last and block.tight:
            last = f"{last}\n{text}"
            continue
        if last:
            yield last
        last = text
    if last:
        yield last


def _write_block(block: Block) -> str:
    if block.kind == "code":
        return fence(block.text) if block.text.strip() else ""
    return _write_table(block) if block.kind == "table" else block.text.strip("\n")


def _write_table(block: Block) -> str:
    """Return a table of Markdown; one without a header row gets an empty one, which Markdown needs."""
    rows = [line.split(" | ") for line in block.text.splitlines() if line.strip()]
    header = block.header.split(" | ") if block.header else []
    if rows and header and rows[0] == header:
        rows = rows[1:]
    width = max((len(row) for row in [header, *rows]), default=0)
    lines = [header, ["---"] * width, *rows]
    return "\n".join(f"| {' | '.join([*line, *[''] * (width - len(line))])} |" for line in lines) if width else ""
