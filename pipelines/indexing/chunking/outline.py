"""Gives a section that only introduces others what a reader of it alone would miss.

Knows headings, anchors and blocks only.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice

from pipelines.indexing.reading.text import introduces
from pipelines.markdown.text import LIST, in_list, join_texts
from pipelines.records import Block, Section

# A section of prose with at most this many words is a lead-in to its subsections: two sentences.
SHORT = 40
MOST_TITLES = 10  # of subsections that are listed: longer lists are tables of contents, which match everything


def with_outlines(sections: Sequence[Section]) -> list[Section]:
    """Return `sections`, where one that only introduces its subsections, or is a signature, ends with their titles.

    A short one begins its first part, if that has no anchor of its own: the purpose of a reference page its synopsis.
    """
    found: list[Section] = []
    carried: tuple[Block, ...] = ()
    for place, section in enumerate(sections):
        whole = replace(section, blocks=(*carried, *section.blocks))
        carried = ()
        words = sum(len(block.text.split()) for block in whole.blocks)
        if place + 1 < len(sections) and words <= SHORT and _opens(whole, sections[place + 1]):
            carried = whole.blocks
        elif section.headings and words and _only_introduces(whole, short=words <= SHORT):
            found.append(_with_titles(whole, list(islice(_subsections(sections, place), MOST_TITLES))))
        else:
            found.append(whole)
    return found


def _opens(section: Section, part: Section) -> bool:
    """Return whether a short `section` may begin its first `part`, which stands under the same anchor."""
    return section.headings == part.headings[:-1] != () and section.anchors == part.anchors


def _only_introduces(section: Section, *, short: bool) -> bool:
    last = section.blocks[-1] if section.blocks else Block("prose", "")
    if last.kind == "prose" and last.under == () and introduces(last.text):
        return True
    is_signature = len(section.blocks) == 1 and last.kind == "code"
    return short and (is_signature or all(block.kind == "prose" for block in section.blocks))


def _subsections(sections: Sequence[Section], place: int) -> Iterator[str]:
    """Yield the headings right below those of the section at `place`, each once."""
    path, last = sections[place].headings, ""
    for section in islice(sections, place + 1, None):
        if section.headings[: len(path)] != path or section.headings == path:
            return
        if section.headings[len(path)] != last:
            last = section.headings[len(path)]
            yield last


def _with_titles(section: Section, titles: Sequence[str]) -> Section:
    if not titles:
        return section
    lead = section.blocks[-1].text.split("\n\n")[-1] if section.blocks else ""
    listed = Block("prose", join_texts([in_list(title, "- ", (LIST,)) for title in titles], "\n"), under=(lead,))
    return replace(section, blocks=(*section.blocks, listed))
