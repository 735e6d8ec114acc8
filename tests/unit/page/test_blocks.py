"""Stored Markdown is parsed into blocks, each with its own source; plain text is prose."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from pipelines.page.blocks import BlockKind, read_blocks
from pipelines.page.parser import block_parser, skip_labels_without_target

NESTED = "- one\n    1. inner\n\n        ```sh\n        ls\n        ```\n- two\\\n    more"


def test_each_kind_of_block_keeps_its_source() -> None:
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


def test_list_that_starts_inside_an_item_is_a_separate_list() -> None:
    blocks = read_blocks("-   - inner\n    - next\n- outer")
    assert [block.text for block in blocks] == ["- inner\n- next", "- outer"]


@pytest.mark.parametrize(
    "text", ["- - inner\nlazy", "1. - inner\n   - next", "10. 1. inner\n    2. next", "-   - inner\nlazy"]
)
def test_no_letter_is_lost_after_markers_of_any_width(text: str) -> None:
    assert read_blocks(text)[0].text.split() == text.split()[1:]


@pytest.mark.parametrize("opens", ["- ", "1. ", "* - "])
def test_deeply_nested_lists_are_parsed(opens: str) -> None:
    (block,) = read_blocks(opens * 4_000 + "a")
    assert block.kind is BlockKind.LIST and block.text.startswith(opens) and block.text.endswith("a")
    blocks = read_blocks(f"{opens}{opens}a\n" * 2_000)
    assert sum(block.text.count("a") for block in blocks) == 2_000 and len(blocks) == 2_000


@pytest.mark.parametrize("marker", ["- ", "-   ", "1. ", "10) "])
@pytest.mark.parametrize(
    "inner", ["- a\n- b", "1. a\n\n   more\n2. b", "* > note\n* - c\n  - d", "- ```py\n  x = 1\n  ```"]
)
def test_list_inside_an_item_is_parsed_like_a_separate_one(marker: str, inner: str) -> None:
    within = (marker + inner).replace("\n", "\n" + " " * len(marker))
    assert read_blocks(f"{within}\n\nprose\n\n{within}") == (
        *read_blocks(inner),
        *read_blocks("prose"),
        *read_blocks(inner),
    )


def test_table_ends_with_its_rows() -> None:
    rows = "|a|b|\n|-|-|\n|1|\n1|2|3\nno pipe"
    for end in ("\n\nprose", "\n```\nx\n```", "\n- item", "\n> note", "\n    x"):
        first, second = read_blocks(rows + end)
        assert (first.kind, first.text, len(first.rows)) == (BlockKind.TABLE, rows, 5), end
        assert second.kind is not BlockKind.TABLE
    assert (
        read_blocks("|a|b|\n|-|\n|1|")[0].kind is BlockKind.PROSE
    )  # a delimiter row with fewer columns than the header


@given(st.text("ab|-:\\\n >`<", max_size=80))
def test_tables_are_found_where_the_library_finds_them(text: str) -> None:
    library = MarkdownIt("commonmark").enable("table").disable("inline")
    kept = {"table_open", "paragraph_open", "fence", "code_block", "html_block", "blockquote_open", "list_item_open"}
    ours, theirs = (
        [(token.type, token.map, token.level) for token in parser.parse(text) if token.type in kept]
        for parser in (block_parser(), library)
    )
    assert ours == theirs


@pytest.mark.parametrize("text", ["# a comment\n---\nx", "<b>raw</b>\n=====", "[a]: https://d.test"])
def test_other_markdown_syntax_is_prose(text: str) -> None:
    assert {block.kind.value for block in read_blocks(text)} == {"prose"}


@pytest.mark.parametrize("text", ["```py\nx", "```py", "~~~py\nx\n~~~"])
def test_code_is_always_closed(text: str) -> None:
    (block,) = read_blocks(text)
    assert block.text == f"```py\n{'x' if 'x' in text else ''}\n```" and block.language == "py"


def test_indented_code_of_an_older_version_is_fenced() -> None:
    (block,) = read_blocks("    x = '```'\n    y = 2")
    assert block.text == "````\nx = '```'\ny = 2\n````"


@given(st.text("ab -*>`|\\\n1.[]()#<", max_size=200))
def test_no_letter_of_any_text_is_lost(text: str) -> None:
    written = "".join(block.text for block in read_blocks(text))
    assert [sign for sign in written if sign.isalnum()] == [sign for sign in text if sign.isalnum()]


@given(st.text("ab[]()!`\\\n<>:", max_size=60), st.sampled_from(["", "\n\n[a]: https://d.test", "](b)"]))
def test_labels_are_found_where_the_library_finds_them(text: str, end: str) -> None:
    library, ours = MarkdownIt("commonmark"), skip_labels_without_target(MarkdownIt("commonmark"))
    assert ours.render(text + end) == library.render(text + end)
