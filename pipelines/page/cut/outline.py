"""Completes sections that only introduce others with the titles of their subsections.

Without these titles, the chunk of an introductory section would mean little. Uses only headings, anchors and blocks.
"""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from pipelines.page.flow import GAP, LIST, FlatBlock, TextLine, flat_blocks, introduces
from pipelines.page.tree import Section, text_spans

# A section of prose with at most this many words, about two sentences, only introduces its subsections.
SHORT = 40
MOST_TITLES = 10  # subsection titles to list: a longer list is a table of contents, which matches every question


class FlatSection(NamedTuple):
    """A section and its flat list of blocks."""

    section: Section
    blocks: tuple[FlatBlock, ...]


def with_outlines(sections: Sequence[Section]) -> list[FlatSection]:
    """Return `sections` as flat blocks, with subsection titles added where a section only introduces its subsections.

    This also applies to sections that consist of a signature. A short section whose first subsection has no anchor is
    merged into that subsection: on a reference page, the purpose is merged into the synopsis.
    """
    found: list[FlatSection] = []
    carried: tuple[FlatBlock, ...] = ()
    for place, section in enumerate(sections):
        whole = FlatSection(section, (*carried, *flat_blocks(section.content)))
        carried = ()
        words = sum(len(block.text.split()) for block in whole.blocks)
        if place + 1 < len(sections) and words <= SHORT and _opens(section, sections[place + 1]):
            carried = whole.blocks
        elif section.headings and words and _only_introduces(whole.blocks, short=words <= SHORT):
            found.append(_with_titles(whole, list(islice(_subsections(sections, place), MOST_TITLES))))
        else:
            found.append(whole)
    return found


def _opens(section: Section, part: Section) -> bool:
    """Return whether a short `section` can be merged into its first `part`, which has the same anchor."""
    return section.headings == part.headings[:-1] != () and section.anchors == part.anchors


def _only_introduces(blocks: Sequence[FlatBlock], *, short: bool) -> bool:
    if not blocks:
        return short
    last = blocks[-1]
    if last.kind == "prose" and last.under == () and introduces(last.text):
        return True
    is_signature = len(blocks) == 1 and last.kind == "code"
    return short and (is_signature or all(block.kind == "prose" for block in blocks))


def _subsections(sections: Sequence[Section], place: int) -> Iterator[str]:
    """Yield the headings one level below the section at `place`, without consecutive duplicates."""
    path, last = sections[place].headings, ""
    for at in range(place + 1, len(sections)):
        section = sections[at]
        if section.headings[: len(path)] != path or section.headings == path:
            return
        if section.headings[len(path)] != last:
            last = section.headings[len(path)]
            yield last


def _with_titles(whole: FlatSection, titles: Sequence[str]) -> FlatSection:
    if not titles:
        return whole
    last = whole.blocks[-1] if whole.blocks else FlatBlock("prose", (TextLine("", ()),))
    lead = last.lines[-1] if last.kind == "prose" else TextLine(text := last.text.split(GAP)[-1], text_spans(text))
    lines = (
        TextLine(f"- {title}", text_spans(title), "- ", True, (LIST,), place > 0) for place, title in enumerate(titles)
    )
    return FlatSection(whole.section, (*whole.blocks, FlatBlock("prose", tuple(lines), under=(lead,))))
