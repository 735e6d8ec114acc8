"""The sections of a page while they are written: what is open, and the ids on the way to each.

An anchor is one that a person would link to, and the text of a section is without its subsections. Knows no HTML.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from pipelines.indexing.reading.blocks import Prose
from pipelines.records import Section


@dataclass(eq=False)
class SectionFrame:
    """A section in progress: a container, the scope of a heading (`level` 1 to 6), of a name, or an entry of a list."""

    parent: "SectionFrame | None"
    anchors: list[str] = field(default_factory=list)
    heading: str = ""
    level: int = 0
    container: bool = True
    text: Prose = field(default_factory=Prose)
    is_source: bool = False  # it holds more than lists of links to other pages

    def path(self) -> "list[SectionFrame]":
        """Return the frames from the page to this one."""
        path = [self]
        while path[-1].parent is not None:
            path.append(path[-1].parent)
        return path[::-1]

    def anchor_path(self) -> tuple[str, ...]:
        """Return the ids from the outermost to the finest."""
        return tuple(dict.fromkeys(anchor for step in self.path() for anchor in step.anchors))

    def heading_path(self) -> tuple[str, ...]:
        """Return the headings from the page's first to this one; one of the same rank below replaces a container's."""
        path = self.path()
        headings: list[str] = []
        for step, below in zip(path, [*path[1:], None], strict=True):
            replaced = below is not None and not below.container and step.container and 0 < below.level <= step.level
            if step.heading and not replaced and headings[-1:] != [step.heading]:
                headings.append(step.heading)
        return tuple(headings)


class OpenSections:
    """The sections of a page, in its order, and those of them that are open."""

    def __init__(self) -> None:
        self._frames = [SectionFrame(None)]
        self._open = [self._frames[0]]

    @property
    def innermost(self) -> SectionFrame:
        """The section that text goes into."""
        return self._open[-1]

    def open(self, frame: SectionFrame) -> None:
        """Open `frame`: text goes into it until it is closed."""
        self._frames.append(frame)
        self._open.append(frame)

    @contextmanager
    def within(self, frame: SectionFrame | None = None) -> Iterator[None]:
        """Open `frame`, and close at the end what was opened meanwhile."""
        depth = len(self._open)
        if frame is not None:
            self.open(frame)
        yield
        del self._open[depth:]

    def open_scope(self, title: str, level: int, anchors: list[str]) -> None:
        """Open a section that ends where a heading of its level or a higher one follows."""
        self.close_scopes(level)
        self.open(SectionFrame(self.innermost, anchors, title, level, container=False))

    def close_scopes(self, level: int) -> None:
        """Close the innermost scopes of this level and deeper ones."""
        while not self.innermost.container and self.innermost.level >= level:
            self._open.pop()

    def finish(self, url: str) -> Iterator[Section]:
        """Yield the sections that have text of their own; the ids of the others remain in the paths of theirs."""
        for frame in self._frames:
            if frame.is_source and (blocks := frame.text.finish()):
                yield Section(url, frame.anchor_path(), frame.heading_path(), blocks)
