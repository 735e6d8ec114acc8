"""Markdown that is written gives its plain text back, and is the Markdown that others read."""

import re
import time
from html import unescape

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from pipelines.markdown.plain import plain_text
from pipelines.markdown.text import LIST, Mark, Text, divide, join_texts, marks_of
from pipelines.markdown.writing import Part, write

SITE = "https://docs.example.com/page.html#part"
ITEM = (LIST,)


def para(text: str, *marks: Mark, within: tuple[int, ...] = ()) -> Text:
    """A paragraph, or an item if it begins with a marker, with its indentation."""
    start = len(text) - len(text.lstrip(" "))
    marker = next((m for m in ("- ", "1. ", "2. ", "12. ") if text[start:].startswith(m)), "") if within else ""
    item = [Mark(start, start + len(marker), "item")] if marker else []
    return Text(text, [Mark(0, len(text), "paragraph", within=within), *item, *marks])


def prose(*lines: str, gap: str = "\n", before: str = "\n\n") -> Part:
    return Part("prose", join_texts(lines, gap), before)


def html(markdown: str) -> str:
    return MarkdownIt("commonmark").enable(["table", "strikethrough"]).render(markdown).replace("\n", "")


# ---------------------------------------------------------------------------------------------- what is written


def test_code_has_its_language_and_a_fence_that_nothing_within_closes():
    written = write([Part("code", "```\nx = 1\n````", language="python")])
    assert written == "`````python\n```\nx = 1\n````\n`````"


def test_a_table_has_its_head_or_an_empty_one_and_its_pipes_are_escaped():
    assert write([Part("table", "a | b\nc | d")]) == "|  ||\n| --- | --- |\n| a | b |\n| c | d |"
    head = Text("name | a|b", [Mark(4, 7, "cell")])
    row = Text("x | `|` | y", [Mark(1, 4, "cell"), Mark(7, 10, "cell"), Mark(4, 7, "code")])
    written = write([Part("table", row, header=head)])
    assert written == "| name | a\\|b ||\n| --- | --- | --- |\n| x | `` `\\|` `` | y |"
    assert plain_text(written) == "name | a|b\nx | `|` | y"


def test_what_belongs_to_an_item_stands_in_it():
    parts = [
        prose("Do this:"),
        prose(para("- Install:", within=ITEM)),
        Part("code", "pip install\n\nray", language="bash", within=ITEM),
        prose(para("  It takes a minute.", within=ITEM), para("- Run", within=ITEM), before="\n"),
        prose(para("  1. first", within=(LIST, LIST)), before="\n"),
    ]
    written = write(parts)
    assert written == (
        "Do this:\n\n- Install:\n\n    ```bash\n    pip install\n\n    ray\n    ```\n    It takes a minute.\n"
        "- Run\n    1. first"
    )
    assert html(written) == (
        '<p>Do this:</p><ul><li><p>Install:</p><pre><code class="language-bash">pip installray</code></pre>'
        "<p>It takes a minute.</p></li><li><p>Run</p><ol><li>first</li></ol></li></ul>"
    )


def test_a_note_is_quoted_and_two_notes_are_two_quotes():
    note, tip = (1,), (2,)
    parts = [prose(para("Note", within=note), para("Mind this.", within=note), para("Tip", within=tip), gap="\n\n")]
    written = write(parts)
    assert written == "> Note\n>\n> Mind this.\n\n> Tip"
    assert html(written).count("<blockquote>") == 2


def test_a_text_that_begins_within_a_list_stays_a_list():
    inner = (LIST, LIST)
    lines = [para("- inner", within=inner), para("  - next", within=inner), para("- outer", within=ITEM)]
    written = write([prose(*lines)])
    assert written == "-   - inner\n    - next\n- outer"
    assert html(written) == "<ul><li><ul><li>inner</li><li>next</li></ul></li><li>outer</li></ul>"
    assert plain_text(written) == "- inner\n  - next\n- outer"


def test_links_and_code_stand_in_the_line_and_a_line_break_is_a_backslash():
    text = Text("Call map! on it.", [Mark(0, 9, "link", SITE), Mark(5, 8, "code")])
    assert write([prose("Term:", text)]) == f"Term:\\\n[Call `map`!]({SITE}) on it."


SIGNS = (
    r"*args, **kwargs and __init__ of snake_case_name",
    "1. not an item",
    "- nor this",
    "# no heading",
    "> no quote",
    "a | b",
    "[text](target) and arr[0](1) and [x]: y",
    r"C:\dir\*.txt and \\ and \ ",
    "`` ` ``` ~~ <b> &amp; &#65; a & b < c",
    "---",
    "===",
    "| --- | --- |",
    "```python",
    "  two spaces",
    "    four",
    "-   three",
    "*   three",
    "ends in a backslash\\",
    "…",
    "+ plus\n2) two\n~~~",
)


@pytest.mark.parametrize("text", SIGNS)
def test_signs_of_markdown_in_a_text_are_signs_of_the_text(text):
    written = write([prose(*text.split("\n"))])
    assert plain_text(written) == text
    words = unescape(re.sub("</?p>|<br />", "", html(written)))
    assert words == text.replace("\n", "").rstrip() if not text.startswith(" ") else words.strip() == text.strip()


# ---------------------------------------------------------------------------------------------- the round trip

WORD = st.text(st.sampled_from("ab1_*`|[]()<>&;:#-+=~\\!. …é"), min_size=1, max_size=8)
LINES = st.lists(WORD, min_size=1, max_size=6).map(" ".join)
CODE = st.lists(st.text(st.sampled_from("ab`~| -\\…>*"), max_size=8), min_size=1, max_size=5).map("\n".join)
GAPS = st.sampled_from(["\n", "\n\n"])
WITHIN = st.lists(st.sampled_from([LIST, LIST, 1, 2]), max_size=3).map(tuple)


@st.composite
def lines(draw: st.DrawFn) -> str:
    """A line of prose as reading writes it: indented in its lists, perhaps with a marker, code and links."""
    within = draw(WITHIN)
    words = draw(LINES)
    levels = within.count(LIST)
    marker = draw(st.sampled_from(["", "- ", "1. ", "12. "])) if levels else ""
    flat = draw(st.booleans())
    indent = "" if flat else "  " * (levels - bool(marker))
    text = indent + marker + words
    spans = draw(st.lists(st.tuples(st.integers(0, 30), st.integers(1, 30), st.booleans()), max_size=3))
    base = len(indent + marker)
    found = [Mark(0, len(text), "paragraph", within=within)]
    found += [Mark(len(indent), base, "item")] if marker else []
    for start, length, code in sorted(spans):
        if base + start < len(text):
            end = min(base + start + length, len(text))
            found.append(Mark(base + start, end, "code") if code else Mark(base + start, end, "link", SITE))
    return Text(text, found if within or spans else ())


@st.composite
def parts(draw: st.DrawFn) -> Part:
    kind = draw(st.sampled_from(["prose", "code", "table"]))
    gap, inner = draw(GAPS), draw(GAPS)
    if kind == "prose":
        return Part("prose", join_texts(draw(st.lists(lines(), min_size=1, max_size=4)), inner), gap)
    if kind == "code":
        return Part("code", draw(CODE), gap, language=draw(st.sampled_from(["", "python", "c++"])), within=draw(WITHIN))
    row = st.lists(LINES, min_size=1, max_size=3).map(" | ".join).filter(lambda cells: cells.strip(" |"))
    header = draw(st.sampled_from(["", "a | b", "`x` | "]))
    return Part("table", "\n".join(draw(st.lists(row, min_size=1, max_size=3))), gap, header, within=draw(WITHIN))


def plain(found: list[Part]) -> str:
    texts = [f"{part.header}\n{part.text}".removeprefix("\n") if part.kind == "table" else part.text for part in found]
    texts = [text.rstrip() if part.kind == "table" else text for text, part in zip(texts, found, strict=True)]
    return "".join(part.gap + text for part, text in zip(found, texts, strict=True)).removeprefix(found[0].gap)


@given(st.lists(parts(), min_size=1, max_size=5))
def test_the_plain_text_of_what_is_written_is_the_text(found):
    assert plain_text(write(found)) == plain(found)


def letters(found: list[Part]) -> str:
    """What a page shows of the parts, without spaces, pipes and the markers of items."""
    shown = []
    for part in found:
        items = [mark for mark in marks_of(part.text) if mark.kind == "item"]
        text = str(part.text)
        for mark in reversed(items):
            text = text[: mark.start] + text[mark.end :]
        shown.append(part.header + text)
    return "".join("".join(shown).replace("|", "").split())


@given(st.lists(parts(), min_size=1, max_size=4))
def test_another_reader_of_markdown_finds_the_same_text(found):
    shown = unescape(re.sub("<[^>]*>", "", html(write(found))))
    assert "".join(shown.replace("|", "").split()) == letters(found)


@given(st.text(st.sampled_from("ab`|[]()\\>-* \n…#1."), max_size=200))
@example("`" * 50 + "\n" + "[" * 50)
def test_any_text_can_be_read(text):
    plain_text(text)


@pytest.mark.parametrize(
    "piece", ["`", "``` ", "[", "](", "\\", "| ", "> ", "    ", "-   ", "&#1", "`a``b", "\n", "|\n"]
)
def test_reading_takes_time_that_grows_like_the_text(piece):
    def seconds(count: int) -> float:
        start = time.process_time()
        plain_text(piece * count)
        return time.process_time() - start

    short, long = min(seconds(20_000) for _ in range(3)), min(seconds(80_000) for _ in range(2))
    assert long < 0.02 + 10 * short


def test_a_text_keeps_its_marks_when_it_is_divided_and_joined():
    text = Text("one two three", [Mark(4, 13, "code")])
    first, second = divide(text, ["one two", " three"])
    assert second == " three"
    assert join_texts([first, second]).marks == (Mark(4, 7, "code"), Mark(7, 13, "code"))  # type: ignore[attr-defined]
