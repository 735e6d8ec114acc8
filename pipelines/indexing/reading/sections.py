"""Divides the tree of a page into sections: the text under each anchor.

An anchor is one that a person would link to, and the text of a section is without its subsections. Knows nothing of
bytes, media types or the surroundings of the content.
"""

from collections.abc import Iterator, Sequence

from lxml.etree import _Element as Element

from pipelines.indexing.reading.section_writer import SectionFrame, SectionWriter
from pipelines.records import Section


def section_html(main: Element, url: str) -> tuple[Section, ...]:
    """Return the sections of the page at `url` with the content `main`, in page order.

    A section without text of its own is left out; its ids remain in the paths of its subsections. A table of contents
    is no text of its own: the pages that it links to are the sources.
    """
    writer = SectionWriter(url)
    writer.walk(main)
    return tuple(_sections(writer.frames, url))


def _sections(frames: Sequence[SectionFrame], url: str) -> Iterator[Section]:
    for frame in frames:
        if frame.is_source and (blocks := frame.text.finish()):
            yield Section(url, _anchors(frame), _headings(frame), blocks)


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
