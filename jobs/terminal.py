"""Prints results with rich: styled and fitted to the window on a terminal, as plain lines elsewhere."""

import re
import shutil
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from jobs.environment import variables
from pipelines.text.sheets import GAP, Fact, Grid, Part, Sheet, name_width

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

COMMAND = re.compile(r"`[^`\n]+`")
LEAST = 16  # characters: the least width of a column of text; a narrower one is hard to read


def is_styled() -> bool:
    """Return whether output may have colors and bold letters: on a terminal, unless NO_COLOR is set."""
    given = variables()
    return sys.stdout.isatty() and not given.get("NO_COLOR")


def make_console() -> "Console":
    """Return rich's console on standard output."""
    from rich.console import Console

    return Console(highlight=False, soft_wrap=True, emoji=False, color_system="auto" if is_styled() else None)


def print_result(result: Sheet | str) -> None:
    """Print a result of a command."""
    if isinstance(result, str) or not sys.stdout.isatty():
        print(result, flush=True)
        return
    console, width = make_console(), shutil.get_terminal_size().columns
    for part in laid_out(result, width):
        console.print(part, soft_wrap=False, width=width)


def laid_out(sheet: Sheet, width: int) -> "Iterator[RenderableType]":
    """Yield what rich prints for a sheet on a terminal of `width` columns."""
    from rich.padding import Padding

    indent = sheet.indent
    if sheet.title:
        yield worded(sheet.title, "bold")
    for group in sheet.groups():
        first = group[0]
        if isinstance(first, str):
            yield worded(first)
        elif isinstance(first, Grid):
            for number, block in enumerate(split_columns(first, width - indent)):
                above = min(number, 1)  # an empty line between the parts of a wide table
                yield Padding(grid_table(block, width - indent), (above, 0, 0, indent), expand=False)
        else:
            yield Padding(fact_table(group), (0, 0, 0, indent), expand=False)


def worded(text: str, style: str = "") -> "RenderableType":
    """Return text for rich, with the commands in it highlighted."""
    from rich.text import Text

    shown = Text(text, style=style)
    shown.highlight_regex(COMMAND, "cyan")
    return shown


def fact_table(facts: Sequence[Part]) -> "RenderableType":
    """Return facts as two columns: their names, and their texts wrapped below each other."""
    from rich.table import Table

    table = Table.grid(padding=(0, GAP, 0, 0))
    table.add_column(min_width=name_width(facts), no_wrap=True)
    table.add_column(overflow="fold")
    for fact in facts:
        if isinstance(fact, Fact):
            table.add_row(worded(fact.name, "bold"), worded(fact.text))
    return table


def grid_table(grid: Grid, width: int) -> "RenderableType":
    """Return a grid as a table without lines; columns of text wrap where the width is too small."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False, padding=(0, GAP, 0, 0), show_header=any(grid.head), header_style="bold")
    for head, sign, least in zip(grid.head, grid.aligned(), least_widths(grid), strict=True):
        number = sign == ">"
        table.add_column(
            worded(head), justify="right" if number else "left", no_wrap=number, min_width=min(least, width),
            overflow="fold",
        )  # fmt: skip
    for row in grid.rows:
        table.add_row(*map(worded, row))
    return table


def split_columns(grid: Grid, width: int) -> Iterator[Grid]:
    """Yield the grid as it is if it fits into `width`; else its columns in parts, each with the first column."""
    least = least_widths(grid)
    parts, used = [[0]], least[0]
    for column in range(1, len(least)):
        if used + GAP + least[column] > width and len(parts[-1]) > 1:
            parts.append([0])
            used = least[0]
        parts[-1].append(column)
        used += GAP + least[column]
    signs = list(grid.aligned())
    for columns in parts:
        yield Grid(
            [grid.head[column] for column in columns],
            [[row[column] for column in columns] for row in grid.rows],
            "".join(signs[column] for column in columns),
            [grid.least[column] for column in columns] if grid.least else (),
        )


def least_widths(grid: Grid) -> list[int]:
    """Return the least width of each column: a whole number, LEAST characters of text, or the grid's own width."""
    from rich.cells import cell_len

    columns = zip(grid.head, *grid.rows, strict=True)
    widths = [max(map(cell_len, column)) for column in columns]
    shown = [width if sign == ">" else min(width, LEAST) for width, sign in zip(widths, grid.aligned(), strict=True)]
    return [max(pair) for pair in zip(shown, grid.least or shown, strict=True)]
