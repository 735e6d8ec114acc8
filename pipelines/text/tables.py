"""Lays tables out, as columns of a terminal or as Markdown, and finds their place on a page.

Knows words and pages; no result.
"""

import html
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


class NoPlace(ValueError):
    """A page exists, but has no place for the table."""


@dataclass(frozen=True, slots=True)
class TextTable:
    """A title, and rows of as many cells as the head has; the first column names the rows."""

    title: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]


# Of fewer questions the interval says little: of 5 and of 7 that come out right by a chance of 0.5, 6 and 13 in 100
# intervals do not hold the 0.5, of 10 and of 20 questions 4 (1,500 simulated evaluations each; promised are 5).
FEW = 10


def with_interval(score: Sequence[float], form: str = ".3f", bounds: str = "", count: int | None = None) -> str:
    """Return [value, low, high, …] as "0.500 [0.400, 0.600]"; `form` and `bounds` are formats of numbers.

    `count` is over how many questions: of few of them, or of some that are all alike, no interval is shown.
    """
    value, low, high = score[:3]
    if count is not None and count < FEW:
        return f"{value:{form}} (too few to tell)"
    if count is not None and low == high:
        return f"{value:{form}} (all {count:,} alike)"
    return f"{value:{form}} [{low:{bounds or form}}, {high:{bounds or form}}]"


def as_columns(rows: Sequence[Sequence[str]], align: str = "<>", least: Sequence[int] = ()) -> list[str]:
    """Return rows as lines of even columns; `align` has a sign for each of the first columns, the last for the others.

    `least` are the least widths of the columns.
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    widths = [max(pair) for pair in zip(widths, least or widths, strict=True)]
    signs = align.ljust(len(widths), align[-1])
    return ["  ".join(f"{c:{s}{w}}" for c, s, w in zip(row, signs, widths, strict=True)).rstrip() for row in rows]


def as_markdown(table: TextTable) -> str:
    """Return a title and its table; all columns but the first are numbers."""
    rule = ["---", *["---:"] * (len(table.head) - 1)]
    lines = [table.head, rule, *(map(in_cell, row) for row in table.rows)]
    return "\n".join([table.title, "", *(f"| {' | '.join(line)} |" for line in lines)])


def in_cell(text: str) -> str:
    """Return a text that stays in its cell of a Markdown table."""
    return html.escape(" ".join(text.split()), quote=False).replace("|", "\\|")


def split_between(page: str, begin: str, end: str, path: Path) -> tuple[str, str]:
    """Return what stands before and after the place between two marks, the marks included. Raises NoPlace."""
    if page.count(begin) != 1 or page.count(end) != 1 or page.index(begin) > page.index(end):
        raise NoPlace(f"{path} has no place for the table: put the lines {begin} and {end} where it goes")
    before, rest = page.split(begin)
    return f"{before}{begin}\n", f"{end}{rest.split(end)[1]}"
