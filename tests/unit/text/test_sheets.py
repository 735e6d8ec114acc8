"""A sheet is the result of a command: its plain text aligns names, texts and numbers."""

from pipelines.text.sheets import Fact, Grid, Sheet


def test_facts_in_a_row_share_a_column_of_names():
    sheet = Sheet("docs", [Fact("pages", "3"), Fact("a longer name", "first\nsecond"), "a note", Fact("run 1", "done")])
    assert str(sheet).splitlines() == [
        "docs",
        "  pages          3",
        "  a longer name  first",
        "                 second",
        "a note",
        "  run 1      done",
    ]


def test_grid_aligns_numbers_right_and_has_no_empty_head():
    rows = [("a", "1"), ("bb", "1,000")]
    assert Sheet("", [Grid(["name", "n"], rows)]).lines() == ["name      n", "a         1", "bb    1,000"]
    assert Sheet("x", [Grid(["", ""], rows)]).lines() == ["  a       1", "  bb  1,000"]
