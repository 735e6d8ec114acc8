"""Written Markdown gives back its plain text, and other parsers read it the same way."""

import re
import time
from html import unescape

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from pipelines.page.flow import LIST
from pipelines.page.markdown import Part, write
from pipelines.page.plain import NEW_LINE, joined, plain, row_spans
from pipelines.page.stored import plain_text
from pipelines.page.tree import Span, Spans, text_spans

SITE = "https://docs.example.com/page.html#part"
ITEM = (LIST,)


def line(text: str, *styled: Span, gap: str = "\n", within: tuple[int, ...] = ()) -> Part:
    """Return a line, or an item if it begins with a marker, with its indentation and the spans after its text."""
    start = len(text) - len(text.lstrip(" ")) if within else 0
    marker = next((m for m in ("- ", "1. ", "2. ", "12. ") if text[start:].startswith(m)), "") if within else ""
    size = start + len(marker)
    spans = (*text_spans(text[size:]), *styled)
    return Part("prose", spans, gap, within=within, lead=text[:size], item=bool(marker))


def code(text: str, language: str = "", **more) -> Part:
    return Part("code", (Span(text),), language=language, **more)


def table(*rows: str, head: str = "", gap: str = "\n\n", within: tuple[int, ...] = ()) -> Part:
    return Part("table", joined(list(map(row, rows)), NEW_LINE), gap, row(head) if head else (), within=within)


def row(text: str) -> Spans:
    return row_spans(tuple(map(text_spans, text.split(" | "))))


def html(markdown: str) -> str:
    return MarkdownIt("commonmark").enable(["table", "strikethrough"]).render(markdown).replace("\n", "")


# ---------------------------------------------------------------------------------------------- output


def test_code_has_its_language_and_a_fence_that_its_text_cannot_close():
    assert write([code("```\nx = 1\n````", "python")]) == "`````python\n```\nx = 1\n````\n`````"


def test_table_has_a_header_or_an_empty_one_and_escaped_pipes():
    assert write([table("a | b", "c | d")]) == "|  ||\n| --- | --- |\n| a | b |\n| c | d |"
    cells = (text_spans("x"), (Span("`|`", code=True),), text_spans("y"))
    written = write([Part("table", row_spans(cells), head=row_spans((text_spans("name"), text_spans("a|b"))))])
    assert written == "| name | a\\|b ||\n| --- | --- | --- |\n| x | `` `\\|` `` | y |"
    assert plain_text(written) == "name | a|b\nx | `|` | y"


def test_blocks_of_an_item_stay_inside_it():
    parts = [
        line("Do this:"),
        line("- Install:", within=ITEM, gap="\n\n"),
        code("pip install\n\nray", "bash", within=ITEM),
        line("  It takes a minute.", within=ITEM),
        line("- Run", within=ITEM),
        line("  1. first", within=(LIST, LIST)),
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


def test_note_is_quoted_and_two_notes_are_two_quotes():
    note, tip = (1,), (2,)
    gap = "\n\n"
    parts = [line("Note", within=note), line("Mind this.", within=note, gap=gap), line("Tip", within=tip, gap=gap)]
    written = write(parts)
    assert written == "> Note\n>\n> Mind this.\n\n> Tip"
    assert html(written).count("<blockquote>") == 2


def test_text_that_starts_inside_a_list_stays_a_list():
    inner = (LIST, LIST)
    written = write([line("- inner", within=inner), line("  - next", within=inner), line("- outer", within=ITEM)])
    assert written == "-   - inner\n    - next\n- outer"
    assert html(written) == "<ul><li><ul><li>inner</li><li>next</li></ul></li><li>outer</li></ul>"
    assert plain_text(written) == "- inner\n  - next\n- outer"


def test_links_and_code_are_inline_and_a_line_break_is_a_backslash():
    text = line("", Span("Call ", target=SITE), Span("map", True, SITE), Span("!", target=SITE), Span(" on it."))
    assert write([line("Term:"), text]) == f"Term:\\\n[Call `map`!]({SITE}) on it."


def test_style_appears_in_markdown_and_plain_text():
    spans = (
        Span("It was "), Span("20", style="strike"), Span(" "), Span("a", True, style="strike"), Span(" 25, 2"),
        Span("32", style="sup"), Span(" or e"), Span("x + 1", style="sup"), Span(" of x"), Span("i", style="sub"),
    )  # fmt: skip
    written = write([Part("prose", spans)])
    assert written == "It was ~~20~~ ~~`a`~~ 25, 2^32 or e^(x + 1) of x_i"
    assert plain(spans) == "It was ~~20~~ ~~a~~ 25, 2^32 or e^(x + 1) of x_i"


@pytest.mark.parametrize(("spans", "written"), [
    ((Span("2", True), Span("32", True, style="sup")), "`2^32`"),
    ((Span("2"), Span("n", True, style="sup")), "2`^n`"),
    ((Span("e"), Span("x", True, style="sup"), Span(" + 1", style="sup")), "e`^(x` + 1)"),
    ((Span("x", True), Span("i", True, style="sub"), Span("y", True)), "`x_iy`"),
    ((Span("a ", True), Span("key", True, style="image"), Span(" b", True)), "`a key b`"),
    ((Span("10"), Span("6", target=SITE, style="sup")), f"10[^6]({SITE})"),
    ((Span("foo ", style="strike"), Span("bar", target=SITE, style="strike"), Span(" baz", style="strike")),
     f"~~foo [bar]({SITE}) baz~~"),
])  # fmt: skip
def test_code_and_links_keep_their_surrounding_style(spans, written):
    assert write([Part("prose", spans)]) == written and plain_text(written) == plain(spans)


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
def test_markdown_characters_in_a_text_are_escaped(text):
    written = write(list(map(line, text.split("\n"))))
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
def spans(draw: st.DrawFn) -> Spans:
    """Generate words with code and links."""
    kinds = st.sampled_from([(), (True,), (False, SITE), (True, SITE)])
    pieces = draw(st.lists(st.tuples(WORD, kinds), min_size=1, max_size=6))
    found = [Span(text.strip() or "x", *kind) for text, kind in pieces]
    return tuple(span for one in found for span in (one, Span(" ")))[:-1]


@st.composite
def lines(draw: st.DrawFn, gap: str) -> Part:
    """Generate lines of prose as cutting produces them: indented in their lists, perhaps with a marker."""
    within = draw(WITHIN)
    levels = within.count(LIST)
    marker = draw(st.sampled_from(["", "- ", "1. ", "12. "])) if levels else ""
    indent = "" if draw(st.booleans()) else "  " * (levels - bool(marker))
    return Part("prose", draw(spans()), gap, within=within, lead=indent + marker, item=bool(marker))


@st.composite
def parts(draw: st.DrawFn) -> list[Part]:
    kind = draw(st.sampled_from(["prose", "code", "table"]))
    gap, inner = draw(GAPS), draw(GAPS)
    if kind == "prose":
        return [draw(lines(gap)), *draw(st.lists(lines(inner), max_size=3))]
    within = draw(WITHIN)
    if kind == "code":
        return [code(draw(CODE), draw(st.sampled_from(["", "python", "c++"])), gap=gap, within=within)]
    rows = st.lists(LINES, min_size=1, max_size=3).map(" | ".join).filter(lambda cells: cells.strip(" |"))
    head = draw(st.sampled_from(["", "a | b", "x | "]))
    return [table(*draw(st.lists(rows, min_size=1, max_size=3)), head=head, gap=gap, within=within)]


PARTS = st.lists(parts(), min_size=1, max_size=5).map(lambda found: [part for one in found for part in one])


def shown(found: list[Part]) -> str:
    """Return the plain text of parts."""
    texts = [f"{plain(part.head)}\n{part.text}".removeprefix("\n").rstrip() if part.kind == "table" else part.text
             for part in found]  # fmt: skip
    return "".join(part.gap + text for part, text in zip(found, texts, strict=True)).removeprefix(found[0].gap)


@given(PARTS)
def test_plain_text_of_written_markdown_equals_the_input(found):
    assert plain_text(write(found)) == shown(found)


def letters(found: list[Part]) -> str:
    """Return the visible text of parts, without spaces, pipes and item markers."""
    texts = (plain((*part.head, *part.spans)) for part in found)
    return "".join("".join(texts).replace("|", "").split())


@given(PARTS)
def test_another_markdown_parser_finds_the_same_text(found):
    seen = unescape(re.sub("<[^>]*>", "", html(write(found))))
    assert "".join(seen.replace("|", "").split()) == letters(found)


@given(
    st.lists(
        st.builds(
            Span,
            st.text(st.sampled_from("ab1`|[]()^ "), min_size=1, max_size=5).map(lambda text: text.strip() or "x"),
            st.booleans(),
            st.sampled_from(["", SITE]),
            st.sampled_from(["", "", "sup", "sub", "strike", "image"]),
        ),
        min_size=1,
        max_size=6,
    )
)
def test_plain_text_of_styles_survives_a_round_trip(spans):
    assert plain_text(write([Part("prose", tuple(spans))])) == plain(tuple(spans))


@given(st.text(st.sampled_from("ab`|[]()\\>-* \n…#1."), max_size=200))
@example("`" * 50 + "\n" + "[" * 50)
def test_any_text_can_be_parsed(text):
    plain_text(text)


@pytest.mark.exhaustive  # it measures time
@pytest.mark.parametrize(
    "piece", ["`", "``` ", "[", "](", "\\", "| ", "> ", "    ", "-   ", "&#1", "`a``b", "\n", "|\n"]
)
def test_parsing_time_grows_linearly(piece):
    def seconds(count: int) -> float:
        start = time.process_time()
        plain_text(piece * count)
        return time.process_time() - start

    short, long = min(seconds(20_000) for _ in range(3)), min(seconds(80_000) for _ in range(2))
    assert long < 0.02 + 10 * short
