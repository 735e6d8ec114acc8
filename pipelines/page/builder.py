"""Builds the sections of a page from the blocks that a reader reports in order.

Three structures occur in documentation, and may be nested: containers with an id, consecutive headings (Markdown and
most other sites), and entries of definition lists (APIs, settings, glossaries). Independent of formats.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import groupby
from typing import NamedTuple
from urllib.parse import unquote

from pipelines.page.flow import introduces
from pipelines.page.plain import merged, plain
from pipelines.page.tree import Box, Code, Item, List, Node, Paragraph, Section, Span, Spans, Table, Term, size_of
from pipelines.page.urls import absolute_url

MUCH = 30  # words that justify a section without a title: about two sentences
_SMALL = 200  # characters of a section that may be joined to its parent: a sentence or two
_REPEATED, _MOST = 3, 0.5  # repeated small sections with one heading: least number, and least share of all its sections
_TITLED, _UNTITLED, _ROW = 7, 8, 9  # levels below h1 to h6, for sections that begin at a named anchor in the text
_PICTURES = (".png", ".svg", ".jpg", ".jpeg", ".gif", ".webp")
_SIGNATURE = re.compile(r"(?:[^\s(]+\s+){0,3}[^\s(]*(?:\w\(|\s=\s|::)")  # a heading that declares a name
_FIELD = re.compile(r"(?:public|private|protected|static|final|abstract|readonly|const)\s+\S")  # a declared field
_NAME = re.compile(r"[^=({]{1,100}+(?:\([^()]*+\))?")  # the part of such a heading that names it
_LONG_HEADING = 120  # characters; longer declarations are text below their name
_REMAINDER = 0.1  # of an index's size: text for its description and usage notes


class PageHeading(NamedTuple):
    """A heading. A `minor` one (a deep heading, the title of a card) begins a section only if it has an id."""

    spans: Spans
    anchors: Sequence[str]
    level: int
    minor: bool = False


@dataclass(eq=False)
class SectionFrame:
    """A section in progress: a container, the scope of a heading (`level` 1 to 6) or of a name, or a list entry."""

    parent: "SectionFrame | None"
    anchors: list[str] = field(default_factory=list)
    heading: str = ""
    level: int = 0
    container: bool = True
    is_entry: bool = False
    filled: bool = False
    is_source: bool = False  # it has content other than lists of links to other pages
    boxes: list[Box] = field(default_factory=lambda: [Box()])  # the open boxes; the first contains the whole section

    @property
    def content(self) -> list[Node]:
        """The blocks of the section."""
        return self.boxes[0].blocks

    def path(self) -> "list[SectionFrame]":
        """Return the frames from the page to this one."""
        path: list[SectionFrame] = [self]
        while path[-1].parent is not None:
            path.append(path[-1].parent)
        return path[::-1]

    def anchor_path(self) -> tuple[str, ...]:
        """Return the ids from the outermost section to this one."""
        return tuple(dict.fromkeys(anchor.replace(" ", "%20") for step in self.path() for anchor in step.anchors))

    def heading_path(self) -> tuple[str, ...]:
        """Return the headings from the page's first to this one.

        A heading directly below a container replaces the container's heading if both have the same level.
        """
        path = self.path()
        headings: list[str] = []
        for step, inner in zip(path, [*path[1:], None], strict=True):
            replaced = inner is not None and not inner.container and step.container and 0 < inner.level == step.level
            if step.heading and not replaced and headings[-1:] != [step.heading]:
                headings.append(step.heading)
        return tuple(headings)

    def is_small(self) -> bool:
        """Return whether the section has a heading and little text."""
        return bool(self.heading) and self.filled and size_of(self.content) <= _SMALL

    def ends_before(self, part: "SectionFrame") -> bool:
        """Return whether the scope of a heading ends before the container `part`: it is deeper, or both declare."""
        alike = self.level == part.level and all(_SIGNATURE.match(one.heading) for one in (self, part))
        return not self.container and (self.level > part.level or alike)

    def is_next_to(self, before: "SectionFrame") -> bool:
        """Return whether the section begins with a signature on the level of the heading `before`, right after it."""
        same = self.level == before.level and self.parent in (before, before.parent)
        return same and _SIGNATURE.match(self.heading) is not None

    def take(self, part: "SectionFrame") -> None:
        """Absorb the heading and the blocks of `part`, which is then no longer a section."""
        heading = part.heading if not part.heading[-1:].isalnum() else f"{part.heading}:"
        self.content.extend([Paragraph((Span(heading),)), *part.content])
        self.filled, self.is_source = True, self.is_source or part.is_source
        part.filled = False

    def is_led(self) -> bool:
        """Return whether the last block introduces the next one, as a paragraph that is not the first of its group."""
        inner = self.boxes[-1].blocks
        last = inner[-1] if inner else None
        is_head = len(inner) == 1 and len(self.boxes) > 1
        return isinstance(last, Paragraph) and not is_head and introduces(plain(last.spans))


class SectionBuilder:
    """Appends blocks, in order, to the innermost open section of the page at `url`."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._frames = [SectionFrame(None)]
        self._innermost = self._frames[0]  # the section that receives text
        self._targets: list[str] = []  # ids since the last text; they belong to the next text
        self._lists = self._apart = 0  # depth of open lists, and of open boxes set apart from the main text
        self._linking = False  # within a list of links
        self._left_out = 0  # characters of omitted indexes

    def sections(self) -> tuple[Section, ...]:
        """Return the sections in page order.

        Every section has text. The ids of sections without text stay in the paths of the sections inside them. A table
        of contents is not a section: the pages that it links to are the sources. A page that contains little apart from
        an index has no sections.
        """
        self._join_repeated()
        self._keep_names()
        self._keep_signatures()
        owners: dict[str, SectionFrame] = {}
        for frame in self._frames:  # a link leads to the first section with its id
            frame.anchors = [anchor for anchor in frame.anchors if owners.setdefault(anchor, frame) is frame]
        found = [frame for frame in self._frames if frame.is_source and frame.filled]
        if self._left_out and size_of(*(frame.content for frame in found)) <= _REMAINDER * self._left_out:
            return ()
        return tuple(Section(self._url, one.anchor_path(), one.heading_path(), one.content) for one in found)

    def _join_repeated(self) -> None:
        """Join small sections whose heading repeats across the page ("Headers", "200: OK") to their parents.

        A section that follows a kept sibling is not joined, because its text would move.
        """
        parents = {frame.parent for frame in self._frames}
        small = [frame for frame in self._frames if frame.is_small() and frame not in parents]
        headed = Counter(frame.heading for frame in self._frames if frame.heading and frame.filled)
        repeated = Counter(heading for heading, _ in {(frame.heading, frame.parent) for frame in small})
        joined = {frame for frame in small if repeated[frame.heading] >= max(_REPEATED, _MOST * headed[frame.heading])}
        followed: set[SectionFrame | None] = set()  # parents that already have a kept subsection
        for frame in self._frames:
            parent = frame.parent
            if parent is not None and frame in joined and parent not in followed and parent.heading:
                parent.take(frame)
            elif frame.filled:
                followed.update(frame.path()[:-1])

    def _keep_names(self) -> None:
        """Keep the names that have no text: entries and rows of fields become text of the section around them.

        Constants and fields are often declared without a description. Signatures get sections of their own.
        """
        parents = {frame.parent for frame in self._frames}

        def kind(frame: SectionFrame) -> tuple[SectionFrame, int, bool] | None:
            is_name = frame.heading and not (frame.filled or frame in parents or _SIGNATURE.match(frame.heading))
            return (frame.parent, frame.level, frame.is_entry) if is_name and frame.parent else None

        for found, frames in groupby(self._frames, kind):
            named = list(frames)
            if found is not None and (named[0].is_entry or any(_FIELD.match(one.heading) for one in named)):
                found[0].content.extend(Paragraph((Span(one.heading),)) for one in named)
                found[0].filled = found[0].is_source = True

    def _keep_signatures(self) -> None:
        """Keep the signatures that are headings without text: consecutive ones as text of the last one's section."""
        waiting: list[SectionFrame] = []
        for frame, following in zip(self._frames, [*self._frames[1:], None], strict=True):
            if not _SIGNATURE.match(frame.heading):
                continue
            if not frame.filled and following is not None and following.is_next_to(frame):
                waiting.append(frame)
                continue
            if waiting or not (frame.filled or (following is not None and following.parent is frame)):
                own = [] if frame.filled else [frame]
                frame.content[:0] = [Paragraph((Span(one.heading),)) for one in (*waiting, *own)]
                for one in waiting:
                    if one is not frame.parent:
                        frame.anchors, one.anchors = [*one.anchors, *frame.anchors], []
                frame.filled = frame.is_source = True
            waiting = []

    # -- sections -----------------------------------------------------------------------------------------

    def _open(self, anchors: Sequence[str], heading: str, level: int = 0, *, container: bool = True) -> None:
        """Open a section, which receives all text until it is closed."""
        self._innermost = SectionFrame(self._innermost, list(anchors), heading, level, container)
        self._frames.append(self._innermost)

    def _open_scope(self, title: str, level: int, anchors: Sequence[str]) -> None:
        """Open a section that ends at the next heading of the same or a higher level."""
        self._close_scopes(level)
        self._open(anchors, title, level, container=False)

    def _close_scopes(self, level: int) -> None:
        """Close the innermost scopes of this level and of deeper levels."""
        while self._innermost.parent and not self._innermost.container and self._innermost.level >= level:
            self._innermost = self._innermost.parent

    @contextmanager
    def _section(self, anchors: Sequence[str], heading: str) -> Iterator[None]:
        """Put the blocks added in this context into a new section, and close all headings opened in it."""
        outer, lists = self._innermost, self._lists
        self._lists, self._targets = 0, []
        self._open(anchors, heading)
        yield
        self._innermost, self._lists, self._targets = outer, lists, []

    @contextmanager
    def container(self, anchors: Sequence[str], label: str = "") -> Iterator[None]:
        """Put the blocks added in this context into a section with these ids, or with `label` as its heading."""
        if not label:
            self._close_scopes(_TITLED)
        with self._section(self._take_targets(anchors), label):
            yield

    # -- boxes --------------------------------------------------------------------------------------------

    @contextmanager
    def box(self, box: Box, *, apart: bool = False) -> Iterator[None]:
        """Put the blocks added in this context into `box`. If it is set `apart`, headings in it begin no sections."""
        frame, outer = self._innermost, self._apart
        frame.boxes[-1].blocks.append(box)
        frame.boxes.append(box)
        place = len(frame.boxes)
        self._apart += apart
        yield
        self._apart = outer
        del frame.boxes[place - 1 :]

    @contextmanager
    def items(self, *, contents: bool = False) -> Iterator[None]:
        """Put the items added in this context into a list. With `contents`, it is a table of contents (only links)."""
        outer = self._lists, self._linking
        self._lists, self._linking = self._lists + 1, self._linking or contents
        with self.box(List()):
            yield
        self._lists, self._linking = outer

    def leave_out(self, size: int) -> bool:
        """Return whether to omit an index with this number of characters. An index within a list is kept."""
        if size and not self._lists:
            self._left_out += size
            return True
        return False

    @contextmanager
    def item(self, marker: str, *, named: bool = False, long: bool = False) -> Iterator[None]:
        """Put the blocks added in this context into a list item. A long item with a name becomes a section."""
        outer = self._lists
        self._lists = max(1, outer)
        is_section = long and (named or self._targets) and not self._apart
        with self._section(self._take_targets(()), "") if is_section else self.box(Item(marker=marker)):
            yield
        self._lists = outer

    @contextmanager
    def entry(
        self, ids: Sequence[str], heading: str, terms: Sequence[Spans], *, linked: bool, endless: bool = False
    ) -> Iterator[bool]:
        """Put the blocks added in this context into an entry: a section if links lead to it, else a term's definition.

        Yields whether the entry is a section. An `endless` entry lacks its end tag, so headings may follow inside it.
        """
        if linked and (ids or self._targets):
            anchors = self._take_targets(ids)
            self._close_scopes(_UNTITLED)
            if endless:
                self._open(anchors, heading, _UNTITLED, container=False)
                yield True
            else:
                with self._section(anchors, heading):
                    self._innermost.is_entry = True
                    yield True
            return
        shown = [self._absolute(term) for term in terms if term]
        if shown:
            self._fill()
            own = (span.text for term in shown for span in term if not span.target)
            self._innermost.is_source |= not self._linking and any(map(str.isalnum, "".join(own)))
        with self.box(Term(terms=shown)):
            yield False

    # -- anchors ------------------------------------------------------------------------------------------

    @property
    def waiting(self) -> bool:
        """Whether an anchor name waits for its text at a place where a section may begin."""
        return bool(self._targets) and not self._apart and not self._lists

    def target(self, *names: str) -> None:
        """Remember anchor names for the text after them."""
        self._targets += names

    def _take_targets(self, anchors: Sequence[str]) -> list[str]:
        """Return and clear the ids that wait for their text, outermost first, followed by `anchors`."""
        taken, self._targets = [*self._targets, *anchors], []
        return taken

    def heading(self, heading: PageHeading) -> None:
        """Add a heading. It begins a section if it can serve as a title; otherwise it becomes a paragraph."""
        title, anchors, level = plain(heading.spans), heading.anchors, heading.level
        if not title or (self._apart and not anchors):
            self._targets += anchors
            self.paragraph(heading.spans)
            return
        innermost = self._innermost
        own = not anchors or anchors[-1] in innermost.anchors
        if own and innermost.container and innermost.parent and not innermost.heading and not innermost.filled:
            innermost.heading, innermost.level = title, level
            while innermost.parent.ends_before(innermost) and innermost.parent.parent:
                innermost.parent = innermost.parent.parent
            innermost.anchors = self._take_targets([*anchors, *innermost.anchors])
            self._declare(heading.spans)
            return
        if heading.minor and not anchors and not self._targets:
            last = heading.spans[-1]
            ending = last._replace(text=f"{last.text}:") if title[-1].isalnum() else last
            self.paragraph((*heading.spans[:-1], ending))
            return
        self._open_scope(title, level, self._take_targets(anchors))
        self._declare(heading.spans)

    def _declare(self, spans: Spans) -> None:
        """Shorten a long declaration in the innermost heading to its name, and add it as text."""
        innermost = self._innermost
        is_long = len(innermost.heading) > _LONG_HEADING and _SIGNATURE.match(innermost.heading)
        if is_long and (name := _NAME.match(innermost.heading)):
            innermost.heading = name[0].strip()
            self.paragraph(spans)

    def begin(self, title: str, words: int, following: int) -> bool:
        """Begin a section at a waiting anchor name, and return whether `title` becomes its heading.

        `words` is the number of words at the anchor, `following` the number after them. Without a title, only a long
        text begins a section.
        """
        innermost = self._innermost
        if title and following:
            self._open_scope(title, _TITLED, self._take_targets(()))
            return True
        if not innermost.filled:
            innermost.anchors = innermost.anchors or (self._targets if innermost.parent else [])
        elif not innermost.is_led() and words + following >= MUCH:
            self._open_scope("", _UNTITLED, self._take_targets(()))
        return False

    # -- text ---------------------------------------------------------------------------------------------

    def paragraph(self, spans: Spans, *, contents: bool = False) -> None:
        """Add a paragraph, if it has text. With `contents`, it is a table of contents (only links)."""
        if spans:
            self._add(Paragraph(self._absolute(spans)))
            self._innermost.is_source |= not (self._linking or contents)

    def code(self, code: Code | None) -> None:
        """Add a listing, if there is one."""
        if code is not None:
            self._add(code)
            self._innermost.is_source = True

    def table(self, captions: Sequence[Spans], parts: Sequence[tuple[Sequence[str], str, Table | None]]) -> None:
        """Add a table below its captions. Each part has the anchor names at its start, a title and rows."""
        for caption in captions:
            self.paragraph(caption)
        for names, title, table in parts:
            if names:
                self._open_scope(title, _ROW, names)
            if table is not None:
                rows = [tuple(map(self._absolute, row)) for row in table.rows]
                self._add(Table(tuple(map(self._absolute, table.head)), rows))
                self._innermost.is_source = True
        self._close_scopes(_ROW)

    def _add(self, node: Node) -> None:
        self._innermost.boxes[-1].blocks.append(node)
        self._fill()

    def _fill(self) -> None:
        self._innermost.filled, self._targets = True, []

    def _absolute(self, spans: Spans) -> Spans:
        """Return `spans` with absolute link targets."""
        if not any(span.target for span in spans):
            return spans
        return merged(span._replace(target=_target(self._url, span.target)) if span.target else span for span in spans)


@lru_cache(1 << 12)  # pages repeat the links in their menus and tables
def _target(url: str, href: str) -> str:
    """Return the absolute target of a link, or "" if it leads to a picture or outside the Web.

    A link with an unfilled template placeholder (`/docs/{{version}}/queues`) also gives "".
    """
    if "{{" in unquote(href):
        return ""
    target = absolute_url(url, href)
    return "" if target.endswith(_PICTURES) else target
