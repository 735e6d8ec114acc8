"""An API entry is a section with its text, even if the text follows an empty definition."""

import pytest

from pipelines.page.cut.outline import with_outlines
from pipelines.page.tree import Section
from tests.kit.blocks import blocks_of
from tests.kit.sectioning import read_html, text_of


def entry(name: str, definition: str = "") -> str:
    term = f'<dt class="sig" id="{name}"><code class="descname">{name}</code>()</dt>'
    return f'<dl class="py class">{term}<dd>{definition}</dd></dl>'


def sections(html: str) -> tuple[Section, ...]:
    body = f'<section id="m"><h1>M</h1><p>Fields.</p>{html}</section><section id="n"><h2>N</h2>Else.</section>'
    return read_html(f"<main>{body}</main>").sections


def found(html: str) -> list[tuple[str, str, str]]:
    """Return each section's anchor, last heading and text."""
    return [(part.anchor, part.headings[-1], text_of(part)) for part in sections(html)[1:-1]]


def test_text_after_an_entry_without_definition_belongs_to_the_entry():
    html = f"{entry('a')}<p>A is.</p><pre>a()</pre>{entry('b')}<p>B is.</p><h2 id='h'>H</h2><p>Other.</p>"
    assert found(html) == [("a", "a", "a()\nA is.\na()"), ("b", "b", "b()\nB is."), ("h", "H", "Other.")]


def test_entry_with_a_definition_ends_with_it():
    expected = [("h", "H", "Other."), ("a", "a", "a()\nA is.")]
    assert found(f"<h2 id='h'>H</h2>{entry('a', '<p>A is.</p>')}<p>Other.</p>") == expected


def test_consecutive_entries_share_the_text_of_the_last():
    expected = [("a", "a", "a()\nb()\nBoth are.")]
    assert found(f"{entry('a')}{entry('b')}<p>Both are.</p>") == expected
    assert found(f"{entry('a')}{entry('b', '<p>Both are.</p>')}") == expected
    assert sections(f"{entry('a')}{entry('b')}<p>Both are.</p>")[1].anchors == ("m", "b", "a")


def test_all_terms_of_an_entry_are_shown():
    terms = "<dt id='a'>Function: <em>int</em> <strong>a</strong></dt><dt id='b'>Function: b</dt>"
    assert found(f"<dl>{terms}<dd>Both are.</dd></dl>") == [
        ("a", "Function: int a", "Function: int a\nFunction: b\nBoth are.")
    ]
    assert found("<dl><dt id='c'>Plain</dt><dd>It is.</dd></dl>") == [("c", "Plain", "It is.")]


def test_text_after_a_box_does_not_belong_to_an_entry_inside_it():
    html = f"<div class='note'><p>See.</p>{entry('a')}</div><p>Other.</p>"
    assert found(html) == [("a", "a", "a()")]
    assert text_of(sections(html)[0]).endswith("Other.")


def test_introduction_of_the_next_entries_is_not_text_of_the_previous_one():
    for lead in ("<p class='rubric'>Methods</p>", "<p>These count:</p>", "<span id='b'></span>"):
        assert found(f"{entry('a')}<p>A is.</p>{lead}{entry('b')}<p>B is.</p>")[0] == ("a", "a", "a()\nA is.")


def test_signature_without_text_lists_the_names_it_contains():
    term = '<dt class="sig" id="C">class <code class="descname">C</code></dt>'
    outer, inner = with_outlines(sections(f"<dl>{term}<dd>{entry('C.f', '<p>F.</p>')}</dd></dl>"))[1:3]
    assert [block.text for block in blocks_of(outer)] == ["class C", "- C.f"]
    assert [block.text for block in blocks_of(inner)] == ["C.f()", "F."]


def test_terms_and_definitions_without_end_tags_are_separate():
    page = read_html("<main><h1>T</h1><dl><dt>a<dt>b<dd>Both.<dd>More.<dl><dt>i<dd>In.</dl><dt>c<dd>Last.</dl></main>")
    assert text_of(*page.sections).split() == ["a:", "b:", "Both.", "More.", "i:", "In.", "c:", "Last."]


@pytest.mark.parametrize(
    "functions",
    [
        "<h3 id='a'>send(x)</h3><h3 id='b'>send(x, y)</h3><p>Sends it.</p><h3 id='z'>stop()</h3>",
        "<div id='a'><h3>send(x)</h3><h3 id='b'>send(x, y)</h3><p>Sends it.</p></div><div id='z'><h3>stop()</h3></div>",
        "<section><h3 id='a'>send(x)</h3><h3 id='b'>send(x, y)</h3><p>Sends it.</p></section><h3 id='z'>stop()</h3>",
    ],
)
def test_consecutive_headings_that_are_signatures_share_the_text_below(functions):
    page = f"<h1>M</h1><h2>Functions</h2>{functions}<h2 id='y'>More</h2><p>Words.</p>"
    assert found_in(page) == [
        (("a", "b"), ("M", "Functions", "send(x, y)"), "send(x)\n\nSends it."),
        (("z",), ("M", "Functions", "stop()"), "stop()"),
        (("y",), ("M", "More"), "Words."),
    ]


def found_in(page: str) -> list[tuple[tuple[str, ...], tuple[str, ...], str]]:
    return [(part.anchors, part.headings, text_of(part)) for part in read_html(page).sections]


@pytest.mark.parametrize(("before", "heading"), [("<h4>B</h4>", "<h3>C"), ("<h3>b(x)</h3>", "<h3>c(x)")])
def test_container_ends_the_section_of_a_deeper_heading_or_signature(before, heading):
    page = f"<h1>A</h1>{before}<p>One.</p><div id='c'>{heading} <div>since 2</div></h3><p>Two.</p></div>"
    anchors, headings, text = found_in(page)[1]
    assert (anchors, headings[0], headings[1], text) == (("c",), "A", heading[4:] + " since 2", "Two.")


def test_long_declaration_in_a_heading_is_text_below_its_name():
    declared = "option() =<br> " + " |<br> ".join(f"{{flag_{n}, boolean()}}" for n in range(12))
    for after in ("", "<p>All options.</p>", "<h4 id='b'>mode() = atom()</h4>"):
        first = read_html(f"<h1>Types</h1><h4 id='a'>{declared}</h4>{after}").sections[0]
        assert (first.headings[-1], first.anchor) == ("option()", "a")
        assert text_of(first).startswith("option() = {flag_0, boolean()} | {flag_1, ")


def test_names_without_text_stay_in_the_section_around_them():
    entries = "<dl><dt id='A'>ARROW</dt><dd></dd><dt id='B'>BOX</dt><dd></dd></dl>"
    fields = "<h4>static final Class[] ARGS</h4><h4>Class klass</h4>"
    assert found_in(f"<h1>M</h1><h2 id='c'>Constants</h2>{entries}<h2 id='f'>Fields</h2>{fields}") == [
        (("c",), ("M", "Constants"), "ARROW\n\nBOX"),
        (("f",), ("M", "Fields"), "static final Class[] ARGS:\n\nClass klass:"),
    ]


def test_headings_whose_links_were_left_out_stay_empty():
    assert [
        text for _, _, text in found_in("<h1>M</h1><p>Words.</p><h2>Methods inherited from A</h2><h2>See</h2>")
    ] == ["Words."]
