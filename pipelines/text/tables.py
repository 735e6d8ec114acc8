"""Formats tables as terminal columns or Markdown, and finds their place on a page.

Independent of the data in the tables.
"""

import html
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


class NoPlace(ValueError):
    """A page exists, but has no place for the table."""


@dataclass(frozen=True, slots=True)
class TextTable:
    """A title, a header, and rows with as many cells as the header. The first column names the rows."""

    title: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]


# With fewer questions, the interval says little. If answers are right with probability 0.5, the interval misses 0.5 in
# 6% and 13% of evaluations with 5 and 7 questions, and in 4% with 10 and 20 (nominal: 5%; 1,500 simulations each).
FEW = 10


def with_interval(score: Sequence[float], form: str = ".3f", bounds: str = "", count: int | None = None) -> str:
    """Return [value, low, high, …] as "0.500 [0.400, 0.600]". `form` and `bounds` are number formats.

    `count` is the number of questions. The interval is left out if there are few, or if all results are alike.
    """
    value, low, high = score[:3]
    if count is not None and count < FEW:
        return f"{value:{form}} (too few to tell)"
    if count is not None and low == high:
        return f"{value:{form}} (all {count:,} alike)"
    return f"{value:{form}} [{low:{bounds or form}}, {high:{bounds or form}}]"


def as_columns(rows: Sequence[Sequence[str]], align: str = "<>", least: Sequence[int] = ()) -> list[str]:
    """Return rows as lines with aligned columns.

    `align` has one format character per column; the last one applies to all further columns. `least` are the minimum
    widths of the columns. Widths are those on a terminal, where a Chinese character takes two places.
    """
    widths = [max(map(_places, column)) for column in zip(*rows, strict=True)]
    widths = [max(pair) for pair in zip(widths, least or widths, strict=True)]
    signs = align.ljust(len(widths), align[-1])
    return ["  ".join(map(_pad, row, signs, widths)).rstrip() for row in rows]


def _places(text: str) -> int:
    """Return how many places a text takes on a terminal: accents that combine take none, wide characters two."""
    return sum(
        0 if unicodedata.combining(sign) else 2 if unicodedata.east_asian_width(sign) in "WF" else 1 for sign in text
    )


def _pad(cell: str, sign: str, width: int) -> str:
    """Return a cell filled with spaces to `width` places: behind it for "<", before it for ">"."""
    spaces = " " * (width - _places(cell))
    return cell + spaces if sign == "<" else spaces + cell


def as_markdown(table: TextTable) -> str:
    """Return a title and its table. All columns but the first contain numbers."""
    rule = ["---", *["---:"] * (len(table.head) - 1)]
    lines = [table.head, rule, *(map(in_cell, row) for row in table.rows)]
    return "\n".join([table.title, "", *(f"| {' | '.join(line)} |" for line in lines)])


def in_cell(text: str) -> str:
    """Return a string escaped for a cell of a Markdown table."""
    return html.escape(" ".join(text.split()), quote=False).replace("|", "\\|")


def split_between(page: str, begin: str, end: str, path: Path) -> tuple[str, str]:
    """Return the parts of a page before and after the place between two marks, including the marks. Raises NoPlace."""
    if page.count(begin) != 1 or page.count(end) != 1 or page.index(begin) > page.index(end):
        raise NoPlace(f"{path} has no place for the table: put the lines {begin} and {end} where it goes")
    before, rest = page.split(begin)
    return f"{before}{begin}\n", f"{end}{rest.split(end)[1]}"
