"""Columns for a terminal are aligned by the places that characters take there."""

import pytest
from rich.cells import cell_len

from pipelines.text.tables import as_columns


@pytest.mark.parametrize("name", ["docs", "中文文档", "ドキュメント", "Größe", "e\u0301te\u0301", "한국어"])
def test_columns_are_aligned_with_characters_of_any_width(name):
    lines = as_columns([["collection", "pages"], [name, "1,234"], ["a", "5"]])
    assert len({cell_len(line) for line in lines}) == 1
    assert lines[1].startswith(name) and lines[2].endswith(" 5")


def test_header_may_be_wide_too():
    assert as_columns([["页", "n"], ["ab", "10"]], "<>") == ["页   n", "ab  10"]


def test_minimum_width_counts_places():
    assert as_columns([["页", "1"]], "<>", [4, 3]) == ["页      1"]
