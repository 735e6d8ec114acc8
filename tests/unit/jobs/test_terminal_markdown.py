"""Markdown in a terminal is rendered by rich, and a table of any width takes linear time."""

import io

import pytest
from rich.console import Console, RenderableType
from rich.markdown import Markdown

from jobs.markdown import ShownMarkdown

TABLE = "| a | b | c | d |\n|:--|:-:|--:|---|\n| 1 | 2 | 3 | 4 |\n| x |\n| `a \\| b` | **c** |"


def shown(what: RenderableType) -> str:
    console = Console(file=io.StringIO(), width=60)
    console.print(what)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


@pytest.mark.parametrize("text", ["# Head\n\n- one **b**\n- two `c`\n\n~~gone~~ <b>raw</b>", TABLE, f"- x\n\n{TABLE}"])
def test_answer_is_rendered_by_rich(text: str) -> None:
    assert shown(ShownMarkdown(text)) == shown(Markdown(text, hyperlinks=False))


@pytest.mark.parametrize("cell", ["<b>", "a", "`a`"])
def test_table_wider_than_the_terminal_is_shown_as_lines(cell: str) -> None:
    columns, rows = 400, 1_000  # filled to its header's width, it would have 400,000 cells
    lines = shown(ShownMarkdown(f"{f'|{cell}' * columns}\n{'|-' * columns}\n" + "x | y\n" * rows)).splitlines()
    assert [line.strip() for line in lines if "x" in line] == ["x | y"] * rows
    assert any(" | " in line for line in lines if "x" not in line)
