"""Text that a Markdown parser reads as raw HTML is escaped, even if other marks suggest code."""

from collections.abc import Iterator

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from pipelines.answering.sanitizing import blocks
from pipelines.answering.sanitizing.stream import AnswerSanitizer, sanitize

READERS = [MarkdownIt("commonmark", {"html": True}), MarkdownIt("commonmark", {"html": True}).enable("table")]
ACTIVE = ("<script", "<img", "<svg", "<!", "<?")
HTML = [
    "<script>x</script>", "<img src=x onerror=y>", "<svg onload=y>", "`<script>x</script>`", "<!-- c -->", "<?php ?>"
]  # fmt: skip
MARKS = [
    "- ", "* ", "1. ", "10) ", "-\t", "1.\t", ">", "> ", ">\t", " ", "  ", "   ", "    ", "\t", "---", "# ", "|",
    "\n|--|\n", "```", "````", "~~~", "~~~~", "```html", "~~~ a", "`", "``", "`x`", "`" * 99, "\\", "\n", "\n", "\n\n",
    "\r", "word", "[9]", "[a](x`y)", "[x]: ", "<b>", "<div>", "<b `c>", "<b title='", "'>", "<http:a`b>",
]  # fmt: skip


def raw_html(tokens: list[Token]) -> Iterator[str]:
    for token in tokens:
        if token.type in ("html_block", "html_inline"):
            yield token.content
        yield from raw_html(token.children or [])


def streamed(text: str, sizes: list[int]) -> str:
    leaving, at, out = AnswerSanitizer(0, ()), 0, []
    for size in sizes:
        out.append(leaving.feed(text[at : at + size]))
        at += size
    return "".join([*out, leaving.feed(text[at:]), leaving.close()])


@given(st.lists(st.sampled_from(MARKS + HTML), max_size=14).map("".join), st.lists(st.integers(1, 5), max_size=40))
@example("- a\n  - ```\n    x\n<script>x</script>", [1])
@example("- a\n\n  ```\n<script>x</script>", [3])
@example("> - ~~~\n>   x\n> <img src=x onerror=y>", [1])
@example("para\n    ~~~\n<script>x</script>", [2])
@example("---```<script>x</script>", [1])
@example("<div>\n`<script>x</script>`", [1])
@example("a ` b\n`<script>x</script>`", [1])
@example("````x`\r\n`<script>x</script>`", [6])
@example("`x``<script>x</script>`` `", [1])
@example("<b `c>`<script>x</script>`", [1])
@example("| a |\n|--|\n| ` | `<script>x</script>` |", [1])
@example("~~~ | a |\n|--|\n<svg onload=y>", [1])
@example("``[9]`<script>x</script>`", [1])
@example("`" * 100 + "<script>x</script>`", [99])
@example("<b title='<!-- c -->'>", [])
@example("<b title='<!-- c --><b title='- >", [])
@example("<b title='<img src=x>'=>", [])
def test_no_markdown_reader_finds_active_html(text: str, sizes: list[int]) -> None:
    left = sanitize(text, 0, ())
    assert streamed(text, sizes) == left
    for reader in READERS:
        assert not [html for html in raw_html(reader.parse(left)) if any(tag in html for tag in ACTIVE)]


@pytest.mark.parametrize("fence", ["```", "~~~", "`````"])
@pytest.mark.parametrize(("begin", "inside"), [
    ("", ""), ("- ", "  "), ("1. ", "   "), ("10) ", "    "), ("-\t", "\t"), ("> ", "> "), ("> - ", ">   "),
    ("- > ", "  > "), ("- - ", "    "), ("* a\n\n  1. b\n\n     ", "     "),
])  # fmt: skip
def test_code_is_kept_in_every_container(fence: str, begin: str, inside: str) -> None:
    code = ['<script src="a.js"></script>', "", '- <b onclick="x">', "> a[9]", "    <!-- `c -->", fence[:2], "1. <i>"]
    body = "".join(f"{inside}{line}".rstrip() + "\n" for line in [*code, fence])
    text = f"{begin}{fence}html\n{body}\nSo `<script>x</script>` and ``a ` <b onclick=x>``.\n"
    assert sanitize(text, 0, ()) == text
    assert streamed(text, [1] * len(text)) == text


def test_long_code_and_lists_are_not_reparsed_for_each_line(monkeypatch: pytest.MonkeyPatch) -> None:
    read = []
    parse = MarkdownIt.parse
    monkeypatch.setattr(
        MarkdownIt, "parse", lambda self, text, *rest: read.append(len(text)) or parse(self, text, *rest)
    )
    sanitize("1. Do:\n\n   ```python\n" + "   x = f(a)[0]\n" * 500 + "   ```\n", 0, ())
    assert 3 <= len(read) < 9 and max(read) < 100
    read.clear()
    sanitize("- Do it so.\n" * 300 + "\nOr else\n\n```\na\n```\n", 0, ())
    assert 3 <= len(read) < 9 and max(read) < 50


def test_each_line_of_a_list_is_parsed_with_few_lines_before_it(monkeypatch: pytest.MonkeyPatch) -> None:
    read = []
    parse = MarkdownIt.parse
    monkeypatch.setattr(
        MarkdownIt, "parse", lambda self, text, *rest: read.append(text.count("\n")) or parse(self, text, *rest)
    )
    sanitize("".join(f"- a{n} <b>\n  - b{n}\n" for n in range(200)), 0, ())
    assert max(read) <= 2 * blocks.FEW_LINES


def test_code_after_a_very_long_list_is_still_code() -> None:
    text = "- a <b>\n" * 500 + "- ```\n  <script>x</script>"
    assert sanitize(text, 0, ()) == text


def test_nothing_counts_as_code_if_parsing_costs_too_much(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "MOST_WORK", 1_000)
    assert sanitize("- a <b>\n" * 500 + "- ```\n  <script>x</script>", 0, ()).endswith("- ```\n  x")


PREFIXES = ["- ", "  ", "  ", "    ", "> ", "1. ", "   ", "  - ", "  > ", "    - ", "> - ", "", "  7. "]
LINES = [
    "a", "", "```", "~~~", "<div>", "<b>", "<!--", "-->", "</div>", "|a|b|", "|-|-|", "---", "===", "# h", "[x]: y",
    "`x`"
]  # fmt: skip


def lines_read(lines: list[str]) -> list[str]:
    reader, found = blocks.BlockReader(), []
    for line in lines:
        found.append(reader.begin_line(line))
        reader.add(f"{line}\n")
    return found


@given(st.lists(st.tuples(st.sampled_from(PREFIXES), st.sampled_from(LINES)).map("".join), min_size=9, max_size=60))
def test_shortened_context_classifies_lines_like_the_full_context(lines: list[str]) -> None:
    shortened = lines_read(lines)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks, "FEW_LINES", 10_000)
        assert shortened == lines_read(lines)


def test_line_starting_with_inline_code_passes_immediately() -> None:
    leaving = AnswerSanitizer(0, ())
    assert leaving.feed("- `ray.init` starts Ray") == "- `ray.init` starts Ray"
