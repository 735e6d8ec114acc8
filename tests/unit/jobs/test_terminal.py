"""Results fit the window of a terminal, and are plain lines with the same words elsewhere."""

import io
import os
import pty

import pytest
from rich.console import Console

from jobs.terminal import is_styled, laid_out, make_console, print_result
from pipelines.text.sheets import Fact, Grid, Sheet

SCORES = Grid(
    ["run", *(f"score {n}" for n in range(9))], [["a long name of a run", *["0.500"] * 9], ["b", *["1.0"] * 9]]
)
SHEET = Sheet("docs", [Fact("pages", "word " * 40), SCORES, "run `raydex status` " * 6])


def lines_at(width: int, sheet: Sheet = SHEET) -> list[str]:
    console = Console(file=io.StringIO(), width=width, color_system=None)
    for part in laid_out(sheet, width):
        console.print(part)
    assert isinstance(console.file, io.StringIO)
    return [line.rstrip() for line in console.file.getvalue().splitlines()]


@pytest.mark.parametrize("width", [40, 80, 120])
def test_no_line_is_wider_than_the_terminal_and_no_word_is_lost(width: int) -> None:
    lines = lines_at(width)
    assert max(map(len, lines)) <= width
    assert " ".join(lines).split().count("word") == 40
    assert "".join(lines).count("0.500") == 9


def test_columns_of_a_wide_table_continue_below_with_the_names_of_its_rows() -> None:
    heads = [line for line in lines_at(80) if line.startswith("  run  ")]
    assert len(heads) == 2 and " ".join(heads).split().count("score") == 9


def test_further_lines_of_a_fact_begin_below_its_text() -> None:
    pages, second, *_ = lines_at(60)[1:]
    assert pages.startswith("  pages      word") and second.startswith(" " * 13 + "word")


def test_piped_result_is_the_plain_text_of_the_sheet(capsys: pytest.CaptureFixture[str]) -> None:
    print_result(SHEET)
    assert capsys.readouterr().out == f"{SHEET}\n"


@pytest.mark.parametrize(("variables", "styled"), [({}, True), ({"NO_COLOR": "1"}, False)])
def test_terminal_gets_styles_unless_no_color_is_set(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], styled: bool
) -> None:
    for name, value in {"TERM": "xterm", "NO_COLOR": "", **variables}.items():
        monkeypatch.setenv(name, value)
    reader, writer = pty.openpty()
    with os.fdopen(writer, "w") as terminal:
        monkeypatch.setattr("sys.stdout", terminal)
        assert is_styled() == styled
        make_console().print("x", style="bold")
        terminal.flush()
        assert (b"\x1b[" in os.read(reader, 100)) == styled
    os.close(reader)
