"""Flattens the tree of a section into a sequence of blocks: prose in lines, listings, tables.

This is where lists get their indentation and markers. Each block records the paragraphs that it depends on: the
sentence that introduces it, the first paragraph of its item or note, its term. Independent of token budgets and models.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple

from pipelines.page.plain import NEW_LINE, joined, plain, row_spans
from pipelines.page.tree import (
    Code,
    Definitions,
    Group,
    Item,
    List,
    Node,
    Note,
    Paragraph,
    Section,
    Span,
    Spans,
    Tab,
    Table,
    Term,
)

FlatKind = Literal["prose", "code", "table"]
LIST = 0  # in TextLine.within: a list level; notes are numbered from 1
GAP = "\n\n"  # between blocks, and between paragraphs
_STOPS = (".", "!", "?", "…", "。", "！", "？")
_CLOSING = " \t\n)]}»”’\"'*`"


def section_text(section: Section) -> str:
    """Return the plain text of a section, with a line break between blocks."""
    return "\n".join(block.text for block in flat_blocks(section.content))


def introduces(paragraph: str) -> bool:
    """Return whether `paragraph` introduces the text after it: it ends with a colon, or lacks a final stop."""
    return not paragraph.rstrip(_CLOSING).endswith(_STOPS)


class TextLine(NamedTuple):
    """A paragraph, or one line of it. `text` is `lead` followed by the spans as plain text.

    `lead` is the indentation and the marker. `item` means that the marker is a Markdown list marker. `within` names the
    lists and notes around the line, outermost first: LIST for a list level, a number for a note. A `tight` line follows
    the previous one without an empty line. If it is also `below`, it is still a separate paragraph.
    """

    text: str
    spans: Spans
    lead: str = ""
    item: bool = False
    within: tuple[int, ...] = ()
    tight: bool = False
    below: bool = False


class Part(NamedTuple):
    """A unit of writing: a line of prose, a listing in `language`, or the rows of a table below its `head`.

    `gap` is the separator before the part: an empty line or a line break. `within` names the lists and notes around it.
    `lead` is the indentation and marker of a line; `item` means that the marker is a Markdown list marker. A part with
    `below` is a separate paragraph, although no empty line comes before it.
    """

    kind: FlatKind
    spans: Spans
    gap: str = GAP
    head: Spans = ()
    language: str = ""
    within: tuple[int, ...] = ()
    lead: str = ""
    item: bool = False
    below: bool = False

    @property
    def text(self) -> str:
        """The plain text of the part; for a table, without its header."""
        return self.lead + plain(self.spans)


@dataclass(frozen=True)
class FlatBlock:
    """A block of a section (prose, listing or table) that is split only where its kind allows it.

    `spans` is the text of a listing or the rows of a table. `head` is the table's header, which each part of a split
    table repeats. `under` are the paragraphs that the block belongs to, outermost first. `tight` prose follows them
    without an empty line. `within` names the lists and notes around code and tables, as in TextLine.
    """

    kind: FlatKind
    lines: tuple[TextLine, ...] = ()
    spans: Spans = ()
    head: Spans = ()
    under: tuple[TextLine, ...] = ()
    tight: bool = False
    language: str = ""
    within: tuple[int, ...] = ()

    @cached_property
    def text(self) -> str:
        """The plain text of the block; for a table, without its header."""
        if self.kind != "prose":
            return plain(self.spans)
        first, *rest = self.lines
        return first.text + "".join(("\n" if line.tight else GAP) + line.text for line in rest) if rest else first.text

    @property
    def header(self) -> str:
        """The plain text of a table's header."""
        return plain(self.head)


def flat_blocks(nodes: Sequence[Node]) -> tuple[FlatBlock, ...]:
    """Return the blocks of a section in order. Consecutive paragraphs and items form one block."""
    flow = _Flow()
    flow.write(nodes)
    return flow.finish()


class _Flow:
    """Collects blocks. A group keeps related nodes together: an item, a note, a list and its introduction."""

    def __init__(self) -> None:
        self._blocks: list[FlatBlock] = []
        self._lines: list[TextLine] = []
        self._prose: tuple[tuple[TextLine, ...], bool] = ((), False)  # the `under` and `tight` of the block in `_lines`
        self._heads: list[TextLine | None] = []  # one for each open group; None before its first paragraph
        self._level = 0  # number of open groups at the last paragraph
        self._within: tuple[int, ...] = ()
        self._notes = 0
        self._marker = ""
        self._tight = self._term = False  # the next paragraph follows without a gap; follows its term

    def write(self, nodes: Sequence[Node]) -> None:
        for node in nodes:
            _WRITERS[type(node)](self, node)

    def finish(self) -> tuple[FlatBlock, ...]:
        self._end_prose()
        return tuple(self._blocks)

    # -- containers

    def _list(self, box: List) -> None:
        within, tight = self._within, self._tight
        self._within += (LIST,)
        self._under_lead(box)
        self._within, self._tight, self._marker = within, tight, ""

    def _item(self, box: Item) -> None:
        outer = self._within
        self._within = outer if LIST in outer else (*outer, LIST)
        self._marker = box.marker
        with self._group():
            self.write(box.blocks)
        self._within, self._marker = outer, ""

    def _note(self, box: Note) -> None:
        outer, lead = self._within, self._lead()
        self._notes += 1
        self._within += (self._notes,)
        with self._group(lead) if lead else nullcontext():
            self._grouped(box)
        self._within = outer

    def _grouped(self, box: Group | Note) -> None:
        with self._group():
            self.write(box.blocks)

    def _under_lead(self, box: List | Definitions) -> None:
        lead = self._lead()
        with self._group(lead) if lead else nullcontext():
            self.write(box.blocks)

    def _entry(self, box: Term) -> None:
        outer = self._tight
        with self._group():
            for term in box.terms:
                self._paragraph(term)
            self._tight, self._term = True, bool(box.terms)
            self.write(box.blocks)
        self._tight = outer

    def _tab(self, box: Tab) -> None:
        blocks = box.blocks
        if box.label and blocks and isinstance(blocks[0], Paragraph):
            self._paragraph((Span(f"{box.label}: "), *blocks[0].spans))
            blocks = blocks[1:]
        elif box.label:
            self._paragraph((Span(f"{box.label}:"),))
        self.write(blocks)

    @contextmanager
    def _group(self, head: TextLine | None = None) -> Iterator[None]:
        """Put the nodes added in this context under `head`, or else under the first paragraph added."""
        self._heads.append(head)
        place = len(self._heads)
        yield
        del self._heads[place - 1 :]

    # -- text

    def _lead(self) -> TextLine | None:
        """Return the previous paragraph if it introduces the next block and is not the head of its group."""
        last = self._lines[-1] if self._lines and self._level == len(self._heads) else None
        return last if last is not None and introduces(last.text) and last not in self._heads else None

    def _paragraph(self, spans: Spans) -> None:
        depth, within, marker, lead, is_item = self._within.count(LIST), self._within, "", "", False
        if depth:
            marker = self._marker
            lead = "  " * (depth - bool(marker)) + marker
            is_item = marker == "- " or (marker[:-2].isdecimal() and len(marker) <= 11)  # the markers that Markdown has
        below = self._tight and not depth and not self._term
        self._add_line(TextLine(lead + plain(spans), spans, lead, is_item, within, self._tight, below))
        self._marker, self._term = "", False
        self._tight = self._tight or depth > 0

    def _add_line(self, line: TextLine) -> None:
        under = self._under()
        if self._lines and under != self._prose[0]:
            self._end_prose()
        if not self._lines:
            self._prose = (under, line.tight and bool(self._blocks))
        self._lines.append(line)
        self._level = len(self._heads)
        if self._heads and self._heads[-1] is None:
            self._heads[-1] = line

    def _add_block(self, kind: FlatKind, spans: Spans, head: Spans = (), language: str = "") -> None:
        """Add a listing or table, under the paragraph that introduces it or together with the listing before it."""
        under, lead = self._under(), self._lead()
        if lead:
            under = (*under, lead)
        elif not self._lines and self._blocks and kind == self._blocks[-1].kind == "code":
            before = self._blocks[-1].under
            under = before if before[: len(under)] == under else under
        self._end_prose()
        self._blocks.append(FlatBlock(kind, (), spans, head, under, False, language, self._within))
        self._marker = ""

    def _code(self, code: Code) -> None:
        self._add_block("code", (Span(code.text),), language=code.language)

    def _table(self, table: Table) -> None:
        self._add_block("table", joined([row_spans(row) for row in table.rows], NEW_LINE), row_spans(table.head))

    def _under(self) -> tuple[TextLine, ...]:
        return tuple([head for head in self._heads if head is not None])

    def _end_prose(self) -> None:
        if self._lines:
            under, tight = self._prose
            self._blocks.append(FlatBlock("prose", tuple(self._lines), under=under, tight=tight))
            self._lines = []


_WRITERS: dict[type, Callable[[_Flow, Any], None]] = {
    Paragraph: lambda flow, node: flow._paragraph(node.spans),
    Code: _Flow._code,
    Table: _Flow._table,
    List: _Flow._list,
    Item: _Flow._item,
    Note: _Flow._note,
    Group: _Flow._grouped,
    Tab: _Flow._tab,
    Definitions: _Flow._under_lead,
    Term: _Flow._entry,
}
