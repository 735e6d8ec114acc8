"""Stored Markdown is read as blocks, each with its own source; a plain text is prose."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.markdown.blocks import read_blocks

NESTED = "- one\n    1. inner\n\n        ```sh\n        ls\n        ```\n- two\\\n    more"


def test_each_kind_of_block_has_its_source() -> None:
    table = "| a | b \\| c |\n| --- | --- |\n| 1 | 2 |"
    code, note = "````python\nx = 1\n\n```\n````", "> Note\n>\n> ```\n> y\n> ```"
    parts = ["Prose with `code`.\\\nA second line.", NESTED, table, code, note]
    blocks = read_blocks("\n\n".join(parts))
    assert [block.text for block in blocks] == parts
    assert [block.kind.value for block in blocks] == ["prose", "list", "table", "code", "note"]
    assert [block.has_code for block in blocks] == [False, True, False, True, True]
    assert blocks[1].items == (NESTED.partition("\n- two")[0], "- two\\\n    more")
    assert blocks[2].rows == tuple(table.split("\n")) and blocks[3].language == "python"
    assert blocks[0].plain == "Prose with code.\nA second line."


def test_a_list_that_begins_within_an_item_is_a_list_of_its_own() -> None:
    blocks = read_blocks("-   - inner\n    - next\n- outer")
    assert [block.text for block in blocks] == ["- inner\n- next", "- outer"]


@pytest.mark.parametrize("text", ["# a comment\n---\nx", "<b>raw</b>\n=====", "[a]: https://d.test"])
def test_what_a_chunk_never_has_is_prose(text: str) -> None:
    assert {block.kind.value for block in read_blocks(text)} == {"prose"}


@pytest.mark.parametrize("text", ["```py\nx", "```py", "~~~py\nx\n~~~"])
def test_code_is_always_closed(text: str) -> None:
    (block,) = read_blocks(text)
    assert block.text == f"```py\n{'x' if 'x' in text else ''}\n```" and block.language == "py"


def test_indented_code_of_an_earlier_version_is_fenced() -> None:
    (block,) = read_blocks("    x = '```'\n    y = 2")
    assert block.text == "````\nx = '```'\ny = 2\n````"


@given(st.text("ab -*>`|\\\n1.[]()#<", max_size=200))
def test_no_letter_is_lost_whatever_the_text(text: str) -> None:
    written = "".join(block.text for block in read_blocks(text))
    assert [sign for sign in written if sign.isalnum()] == [sign for sign in text if sign.isalnum()]
