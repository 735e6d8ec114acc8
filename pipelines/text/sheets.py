"""The result of a command as a sheet: a title, and below it facts, tables and notes.

`str(sheet)` is its plain text, for pipes, files and messages. `jobs/terminal.py` prints it on a terminal.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from pipelines.text.tables import as_columns

INDENT = 2  # characters: before facts and grids below a title
NAMES = 9  # characters: the least width of the names of facts; longer names widen the column
GAP = 2  # characters: between two columns


@dataclass(frozen=True, slots=True)
class Fact:
    """A name with its text. Further lines of `text` go below the first one."""

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class Grid:
    """Rows with as many cells as `head`; a cell has one line. An empty head is not shown.

    `align` has "<" or ">" for each column; the last one applies to all further columns. `least` are the least widths of
    columns, which give tables that are printed one after the other the same columns.
    """

    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    align: str = "<>"
    least: Sequence[int] = ()

    def aligned(self) -> Iterator[str]:
        """Yield the sign of each column."""
        yield from self.align.ljust(len(self.head), self.align[-1])[: len(self.head)]

    def lines(self) -> list[str]:
        """Return the rows as lines of text."""
        shown = [self.head, *self.rows] if any(self.head) else self.rows
        return as_columns(shown, self.align, self.least)


def row_with_lines(cells: Sequence[str], lines: Iterable[str]) -> list[list[str]]:
    """Return the rows of a grid for an entry that has `lines` below its last cell."""
    return [[*cells], *([*[""] * (len(cells) - 1), line] for line in lines)]


# A string is a note. A note that is empty is an empty line.
Part = Fact | Grid | str


@dataclass(frozen=True, slots=True)
class Sheet:
    """A title and its parts. Facts in a row share one column of names. Without a title nothing is indented."""

    title: str
    parts: Sequence[Part] = ()

    @property
    def indent(self) -> int:
        """How many characters facts and grids are indented by."""
        return INDENT if self.title else 0

    def __str__(self) -> str:
        return "\n".join([*([self.title] if self.title else []), *self.lines()])

    def lines(self) -> list[str]:
        """Return the lines below the title."""
        return [line for group in self.groups() for line in self._lines(group)]

    def groups(self) -> Iterator[list[Part]]:
        """Yield the parts: consecutive facts together, any other part by itself."""
        for facts, parts in groupby(self.parts, lambda part: isinstance(part, Fact)):
            group = list(parts)
            yield from [group] if facts else ([part] for part in group)

    def _lines(self, group: Sequence[Part]) -> Iterator[str]:
        first = group[0]
        if isinstance(first, str):
            yield from first.split("\n")
        else:
            lines = first.lines() if isinstance(first, Grid) else fact_lines(group)
            yield from (" " * self.indent + line for line in lines)


def name_width(facts: Sequence[Part]) -> int:
    """Return the width of the column of names of facts, without the gap after it."""
    return max(NAMES, *(len(fact.name) for fact in facts if isinstance(fact, Fact)))


def fact_lines(facts: Sequence[Part]) -> Iterator[str]:
    """Yield the lines of facts, their texts below each other."""
    width = name_width(facts) + GAP
    for fact in facts:
        if isinstance(fact, Fact):
            first, *more = fact.text.split("\n")
            yield f"{fact.name:<{width}}{first}".rstrip()
            yield from (f"{'':<{width}}{line}".rstrip() for line in more)
