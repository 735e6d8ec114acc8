"""Divides the tree of a page into sections: the text under each anchor.

An anchor is one that a person would link to, and the text of a section is without its subsections. Knows nothing of
bytes, media types or the surroundings of the content.
"""

from collections.abc import Iterator, Sequence

from lxml.etree import _Element as Element

from pipelines.indexing.reading.section_writer import SectionFrame, SectionWriter
from pipelines.records import Block, Section


def section_html(main: Element, url: str) -> tuple[Section, ...]:
    """Return the sections of the page at `url` with the content `main`, in page order.

    A section without text of its own is left out; its ids remain in the paths of its subsections. A list of links to
    subpages (a toctree) counts as text only where neither its section nor a subsection has any other.
    """
    writer = SectionWriter()
    writer.walk(main)
    return tuple(_sections(writer.frames, url))


def _sections(frames: Sequence[SectionFrame], url: str) -> Iterator[Section]:
    covered: set[int] = set()
    blocks: dict[int, tuple[Block, ...]] = {}
    for frame in reversed(frames):  # children stand after their parents
        own = frame.text.finish()
        if not own and id(frame) not in covered and frame.links:
            own = (Block("prose", "\n".join(frame.links)),)
        if own:
            blocks[id(frame)] = own
        if (own or id(frame) in covered) and frame.parent is not None:
            covered.add(id(frame.parent))
    for frame in frames:
        if id(frame) in blocks:
            yield Section(url, _anchors(frame), _headings(frame), blocks[id(frame)])


def _anchors(frame: SectionFrame) -> tuple[str, ...]:
    return tuple(dict.fromkeys(anchor for step in frame.path() for anchor in step.anchors))


def _headings(frame: SectionFrame) -> tuple[str, ...]:
    path = frame.path()
    headings: list[str] = []
    for step, below in zip(path, [*path[1:], None], strict=True):
        replaced = below is not None and not below.container and step.container and 0 < below.level <= step.level
        if step.heading and not replaced and headings[-1:] != [step.heading]:
            headings.append(step.heading)
    return tuple(headings)
