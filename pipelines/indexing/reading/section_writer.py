"""Writes the items of a page into sections.

Three structures occur in documentation and may be nested: containers with an id, headings in a row
(Markdown and most other sites), and entries of definition lists (APIs, settings, glossaries). Knows no tree.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import cache, partial
from itertools import chain
from typing import Any
from urllib.parse import unquote, urljoin

from pipelines.indexing.reading.html import blocks, items
from pipelines.indexing.reading.html.flow import MUCH, TextRun, words_from
from pipelines.indexing.reading.text import introduces
from pipelines.markdown.text import LIST, Text, below, in_list, join_texts, marks_of
from pipelines.records import Block, Section

_TITLED, _UNTITLED, _ROW = 7, 8, 9  # levels below all headings, of sections that begin at a name in the text
_PICTURES = (".png", ".svg", ".jpg", ".jpeg", ".gif", ".webp")
_BESIDE = 0.1  # of the characters of an index: what it is, and how to use it


def sections_of(parts: items.Items, url: str) -> tuple[Section, ...]:
    """Return the sections of the page at `url` with these `parts`, in page order.

    A section has text of its own; the ids of what has none remain in the paths of those within. A table of contents is
    none: the pages that it links to are the sources. A page that holds little besides an index has no sections.
    """
    writer = SectionWriter(url)
    writer.write(parts)
    owners: dict[str, SectionFrame] = {}
    for frame in writer.frames:  # a link leads to the first of those with an id
        frame.anchors = [anchor for anchor in frame.anchors if owners.setdefault(anchor, frame) is frame]
    written = ((frame, frame.text.finish()) for frame in writer.frames if frame.is_source)
    sections = tuple(Section(url, frame.anchor_path(), frame.heading_path(), own) for frame, own in written if own)
    shown = sum(len(block.text) for section in sections for block in section.blocks)
    return sections if shown > _BESIDE * writer.left_out else ()


class Prose:
    """Collects the blocks of one section; paragraphs and list items in a row become one block.

    A group is what belongs together: an item, a note, a list under the sentence that introduces it.
    """

    def __init__(self) -> None:
        self.blocks: list[Block] = []
        self._lines: list[str] = []
        self._prose: tuple[tuple[str, ...], bool] = ((), False)  # what the block of `_lines` is under; whether tight
        self._heads: list[str] = []  # of the open groups; "" until the first paragraph
        self._level = 0  # open groups when the last paragraph came

    def __bool__(self) -> bool:
        return bool(self.blocks or self._lines)

    @contextmanager
    def group(self, head: str = "") -> Iterator[None]:
        """Put what is added meanwhile under `head`, else under the first paragraph that is added."""
        self._heads.append(head)
        place = len(self._heads)
        yield
        del self._heads[place - 1 :]

    @property
    def lead(self) -> str:
        """The paragraph before, if it introduces what follows and is not the head of its group; else ""."""
        last = self._lines[-1] if self._lines and self._level == len(self._heads) else ""
        return last if last and introduces(last) and last not in self._heads else ""

    def add_paragraph(self, text: str, *, tight: bool = False) -> None:
        """Add a paragraph, or with `tight` a line that belongs to the paragraph before it."""
        under = self._under()
        if self._lines and under != self._prose[0]:
            self._end_prose()
        if self._lines:
            self._lines.append("\n" if tight else "\n\n")
        else:
            self._prose = (under, tight and bool(self.blocks))
        self._lines.append(text)
        self._level = len(self._heads)
        if self._heads and not self._heads[-1]:
            self._heads[-1] = text

    def add_block(self, block: Block) -> None:
        """Add a listing or a table: under the paragraph that introduces it, or with the listing before it."""
        under, lead = self._under(), self.lead
        if lead:
            under = (*under, lead)
        elif not self._lines and self.blocks and block.kind == self.blocks[-1].kind == "code":
            before = self.blocks[-1].under
            under = before if before[: len(under)] == under else under
        self._end_prose()
        self.blocks.append(replace(block, under=under))

    def finish(self) -> tuple[Block, ...]:
        """Return all blocks in order."""
        self._end_prose()
        return tuple(self.blocks)

    def _under(self) -> tuple[str, ...]:
        return tuple(filter(None, self._heads))

    def _end_prose(self) -> None:
        if self._lines:
            under, tight = self._prose
            self.blocks.append(Block("prose", join_texts(self._lines), under=under, tight=tight))
            self._lines = []


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
        return tuple(dict.fromkeys(anchor.replace(" ", "%20") for step in self.path() for anchor in step.anchors))

    def heading_path(self) -> tuple[str, ...]:
        """Return the headings from the page's first to this one; one of the same rank below replaces a container's."""
        path = self.path()
        headings: list[str] = []
        for step, inner in zip(path, [*path[1:], None], strict=True):
            replaced = inner is not None and not inner.container and step.container and 0 < inner.level == step.level
            if step.heading and not replaced and headings[-1:] != [step.heading]:
                headings.append(step.heading)
        return tuple(headings)


class SectionWriter:
    """Writes items one after the other into the innermost open section."""

    def __init__(self, url: str = "") -> None:
        self._target = cache(partial(_target, url))
        self._linking = False  # within a list of links
        self.left_out = 0  # characters of indexes
        self.frames = [SectionFrame(None)]
        self._innermost = self.frames[0]  # the section that text goes into
        self._targets: list[str] = []  # ids since the last text: they belong to the next one
        self._within: tuple[int, ...] = ()  # the lists and notes around the text
        self._notes = 0
        self._numberings: list[items.Numbering] = []  # of the open lists
        self._marker = ""
        self._tight = False
        self._term = False  # the next paragraph stands below its term
        self._boxes = 0

    def write(self, parts: items.Items) -> None:
        """Write all `parts`."""
        for item in parts:
            _WRITERS[type(item)](self, item)

    # -- sections -----------------------------------------------------------------------------------------

    def _open(self, anchors: list[str], heading: str, level: int = 0, *, container: bool = True) -> None:
        """Open a section: text goes into it until it is closed."""
        self._innermost = SectionFrame(self._innermost, anchors, heading, level, container)
        self.frames.append(self._innermost)

    def _open_scope(self, title: str, level: int, anchors: list[str]) -> None:
        """Open a section that ends where a heading of its level or a higher one follows."""
        self._close_scopes(level)
        self._open(anchors, title, level, container=False)

    def _close_scopes(self, level: int) -> None:
        """Close the innermost scopes of this level and deeper ones."""
        while self._innermost.parent and not self._innermost.container and self._innermost.level >= level:
            self._innermost = self._innermost.parent

    # -- what holds others --------------------------------------------------------------------------------

    def _container(self, container: items.Container) -> None:
        if not container.label:
            self._close_scopes(_TITLED)
        self._write_into(self._take_targets(container.anchors), container.label, container.parts)

    def _write_into(self, anchors: list[str], heading: str, parts: items.Items) -> None:
        """Write `parts` into a section of their own, and close every heading opened in it."""
        outer, within, tight = self._innermost, self._within, self._tight
        self._within, self._marker, self._tight, self._targets = (), "", False, []
        self._open(anchors, heading)
        self.write(parts)
        self._innermost, self._within, self._tight, self._targets = outer, within, tight, []

    def _group(self, group: items.GroupedItems) -> None:
        """Write what belongs together: under its own first paragraph, definitions under the sentence before them."""
        outer, boxes, text = self._within, self._boxes, self._innermost.text
        self._boxes += group.kind in ("note", "quotation", "tab")
        if group.kind == "note":
            self._notes += 1
            self._within += (self._notes,)
        lead = text.lead if group.kind == "definitions" else ""
        with nullcontext() if group.kind == "tab" or (group.kind == "definitions" and not lead) else text.group(lead):
            self.write(group.parts)
        self._within, self._boxes = outer, boxes

    def _list(self, entries: items.ItemList) -> None:
        if entries.index_size and LIST not in self._within:
            self.left_out += entries.index_size
            return
        outer, within, linking, text = self._tight, self._within, self._linking, self._innermost.text
        self._linking = linking or entries.contents
        self._within += (LIST,)
        self._numberings.append(entries.numbering)
        with text.group(text.lead) if text.lead else nullcontext():
            self.write(entries.parts)
        self._numberings.pop()
        self._within, self._tight, self._marker, self._linking = within, outer, "", linking

    def _list_item(self, item: items.ListItem) -> None:
        outer = self._within
        self._within = outer if LIST in outer else (*outer, LIST)
        self._marker = self._numberings[-1].mark(item.number) if self._numberings else items.BULLET
        if item.long and (item.named or self._targets) and not self._boxes:
            self._write_into(self._take_targets([]), "", item.parts)
        else:
            with self._innermost.text.group():
                self.write(item.parts)
        self._within, self._marker = outer, ""

    def _entry(self, entry: items.ListEntry) -> None:
        """Write an entry that links lead to as a section, any other as terms above their definition."""
        if entry.linked and (entry.ids or self._targets):
            self._linked_entry(entry)
            return
        outer = self._tight
        with self._innermost.text.group():
            for term in entry.terms:
                self._paragraph(term)
            self._tight, self._term = True, bool(entry.terms)
            self.write(entry.parts)
        self._tight = outer

    def _linked_entry(self, entry: items.ListEntry) -> None:
        anchors, parts = self._take_targets([*entry.ids]), chain(entry.signatures, entry.parts)
        self._close_scopes(_UNTITLED)
        if entry.endless:
            self._open(anchors, entry.heading, _UNTITLED, container=False)
            self.write(parts)
        else:
            self._write_into(anchors, entry.heading, parts)

    # -- anchors ------------------------------------------------------------------------------------------

    def _take_targets(self, anchors: list[str]) -> list[str]:
        """Return and clear the ids that wait for their text, outermost first, then `anchors`."""
        taken, self._targets = [*self._targets, *anchors], []
        return taken

    def _heading(self, heading: blocks.PageHeading) -> None:
        title, anchors, level, minor = heading
        if not title or (self._boxes and not anchors):
            self._targets += anchors
            self._paragraph(title)
            return
        innermost = self._innermost
        own = not anchors or anchors[-1] in innermost.anchors
        if own and innermost.container and innermost.parent and not innermost.heading and not innermost.text:
            innermost.heading, innermost.level = title, level
            innermost.anchors = self._take_targets([*anchors, *innermost.anchors])
            return
        if minor and not anchors and not self._targets:
            self._paragraph(f"{title}:" if title[-1].isalnum() else title)
            return
        self._open_scope(title, level, self._take_targets(anchors))

    def _begin(self, run: TextRun, *, of_block: bool = False) -> bool:
        """Begin a section where names wait, with `run` or the block after it: return whether `run` is its title.

        One without a title needs much text.
        """
        if not self._targets or self._boxes or LIST in self._within:
            return False
        innermost, following = self._innermost, words_from(run.following, MUCH)
        title, words = ("", []) if of_block else (run.title, run.words)
        if title and following:
            self._open_scope(title, _TITLED, self._take_targets([]))
            return True
        if not innermost.text:
            innermost.anchors = innermost.anchors or (self._targets if innermost.parent else [])
        elif not innermost.text.lead and len("".join(words).split()) + following >= MUCH:
            self._open_scope("", _UNTITLED, self._take_targets([]))
        return False

    # -- text ---------------------------------------------------------------------------------------------

    def _run(self, run: TextRun) -> None:
        """Write text as a paragraph, or as the title of the section that a name before it begins."""
        self._targets += run.before
        if run and not self._begin(run):
            self._paragraph(run.text)
        self._targets += run.after
        if run.names_block:
            self._begin(run, of_block=True)

    def _absolute(self, text: str) -> str:
        """Return `text` with the absolute targets of its links."""
        if not (marks := marks_of(text)):
            return text
        found = (mark._replace(target=self._target(mark.target)) if mark.kind == "link" else mark for mark in marks)
        return Text(text, [mark for mark in found if mark.kind != "link" or mark.target])

    def _paragraph(self, text: str) -> None:
        if not text:
            return
        depth = self._within.count(LIST)
        text = self._absolute(text)
        text = below(text) if self._tight and not depth and not self._term else text
        text = in_list(text, self._marker if depth else "", self._within)
        self._innermost.text.add_paragraph(text, tight=self._tight)
        self._innermost.is_source |= not self._linking
        self._marker, self._targets, self._term = "", [], False
        self._tight = self._tight or depth > 0

    def _add(self, block: Block | None) -> None:
        if block is not None:
            text, header = self._absolute(block.text), self._absolute(block.header)
            self._innermost.text.add_block(replace(block, text=text, header=header, within=self._within))
            self._innermost.is_source = True
            self._marker, self._targets = "", []

    def _table(self, table: blocks.DataTable) -> None:
        for caption in table.captions:
            self._paragraph(caption)
        for names, title, block in table.parts:
            if names:
                self._open_scope(title, _ROW, names)
            self._add(block)
        self._close_scopes(_ROW)


_WRITERS: dict[type, Callable[[SectionWriter, Any], None]] = {
    TextRun: SectionWriter._run,
    str: SectionWriter._paragraph,
    Text: SectionWriter._paragraph,
    blocks.PageHeading: SectionWriter._heading,
    Block: SectionWriter._add,
    blocks.DataTable: SectionWriter._table,
    items.Container: SectionWriter._container,
    items.GroupedItems: SectionWriter._group,
    items.ItemList: SectionWriter._list,
    items.ListItem: SectionWriter._list_item,
    items.ListEntry: SectionWriter._entry,
}


def _target(url: str, href: str) -> str:
    """Return where a link on the page at `url` leads, "" if to a picture, or to no page of the Web.

    Nor does one that a template has yet to fill in: `/docs/{{version}}/queues`.
    """
    if "{{" in unquote(href):
        return ""
    try:
        target = urljoin(url, href.strip())
    except ValueError:
        return ""
    return target if target.startswith(("https://", "http://")) and not target.endswith(_PICTURES) else ""
