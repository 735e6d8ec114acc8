"""An empty `<a name>` or `<span id>` is an anchor of the content after it, as on pages before HTML 5."""

import pytest

from tests.kit.blocks import blocks_of
from tests.kit.sectioning import read_html

LONG = "The word is read and read again until thirty of them have been read, and then some more are read. " * 2


def found(html: str) -> list[tuple[str, str, str]]:
    """Return each section's anchor, last heading and first text."""
    return [
        (part.anchor, part.headings[-1] if part.headings else "", blocks_of(part)[0].text.split("\n")[0][:20].strip())
        for part in read_html(html).sections
    ]


@pytest.mark.parametrize(
    "html",
    [
        "<p>One. <a name='b'></a><h2>B</h2>Two.",
        "<p>One.</p><a name='b'><h2>B</h2></a><p>Two.</p>",
        "<p>One.</p><a id='b' href='#b'><h2>B</h2></a><p>Two.</p>",
        "One. <a name='b'></a><h2>B</h2>Two.",
        "<p>One.</p><h2>B</h2><a name='b'></a><p>Two.</p>",
        "<p>One.</p><h2 id='b'>B</h2><a name='c'></a><p>Two.</p>",
        "<p>One.<a name='b'></a><h>B</h><hr><p>Two.</p>",  # a heading without a level
        "<p>One.</p><h2>B<span><a class='mark' href='#b' id='b'>#</a></span></h2><p>Two.</p>",  # Node's doctool
        "<p>One.</p><h2><small><a href='#b'>¶</a></small> B</h2><p>Two.</p>",
        "<p>One.</p><div id='b'><h2>B</h2></div><p>Two.</p>",  # an element around nothing but the heading
        "<p>One.</p><div id='c'> <h2 id='b'>B</h2> </div><p>Two.</p>",
    ],
)
def test_name_next_to_a_heading_without_an_id_is_its_anchor(html):
    assert found(f"<h1>A</h1>{html}") == [("", "A", "One."), ("b", "B", "Two.")]


def test_named_questions_are_sections():
    assert found(
        "<h1>FAQ</h1><p>Asked often.</p><a name='q1'></a><p><b>(1) How do I count?</b></p><blockquote>With fingers."
        "</blockquote><a name='q2'></a><p><b>(2) Why?</b></p><p>So.</p><h2>End</h2><p>Over.</p>"
    ) == [
        ("", "FAQ", "Asked often."),
        ("q1", "(1) How do I count?", "With fingers."),
        ("q2", "(2) Why?", "So."),
        ("", "End", "Over."),
    ]


def test_named_titles_in_boxes_are_sections():
    entry = (
        "<a name='{0}'></a><a name='1-{0}'></a><div><b><a href='#{0}'>{0}</a></b> &lt;n&gt;</div><pre>Sets {0}.</pre>"
    )
    assert found(f"<h1>A</h1><p>One.</p>{entry.format('max rate')}{entry.format('min')}") == [
        ("", "A", "One."),
        ("1-max%20rate", "max rate <n>", "Sets max rate."),
        ("1-min", "min <n>", "Sets min."),
    ]


def test_long_part_after_a_name_is_a_section_under_its_heading():
    html = f"<h1>A</h1><p>One.</p><a name='b'></a><p>{LONG}</p><p><a name='c'></a>{LONG}</p><h2>B</h2>{LONG}"
    assert [part[:2] for part in found(html)] == [("", "A"), ("b", "A"), ("c", "A"), ("", "B")]


def test_short_parts_and_names_inside_a_paragraph_split_nothing():
    short = "<a name='x'></a><p>Two words.</p>" * 20
    within = f"<p>Before <a name='y'></a>{LONG}</p>"
    led = f"<p>As follows:</p><a name='z'></a><p>{LONG}</p>"
    for html in (short, within, led):
        assert [part[:2] for part in found(f"<h1>A</h1><p>One.</p>{html}")] == [("", "A")]


def test_entries_have_the_names_before_and_in_their_terms():
    html = "<h1>A</h1><dl>%s</dl>"
    for term in ("<a name='f'></a><dt>f(x)</dt>", "<p><a name='f'></a><dt>f(x)</dt>", "<dt><a name='f'></a>f(x)</dt>"):
        assert found(html % f"{term}<dd>Counts.</dd>") == [("f", "f(x)", "Counts.")]
    assert found(html % "<dt id='g'><a name='f'></a>g</dt><dd>G</dd>") == [("g", "g", "G")]


def test_long_named_items_are_sections_and_short_ones_stay_items():
    long = f"<h1>A</h1><ul><li><a name='a'></a>{LONG}<li><a name='b'></a>{LONG}</ul>"
    assert [anchor for anchor, *_ in found(long)] == ["a", "b"]
    assert found("<h1>A</h1><ul><li>One.<a name='b'></a></li><li>Two.</li></ul>") == [("", "A", "- One.")]


def test_long_named_rows_are_sections_with_the_table_header():
    row = "<tr><td><a name='%s'></a>%s<td>%s"
    long = f"<tr><th>Name<th>Text</tr>{row % ('Goto', 'Goto', LONG)}{row % ('Add', 'Add', LONG)}"
    goto, add = read_html(f"<h1>A</h1><table>{long}</table>").sections
    assert (goto.anchors, goto.headings, add.anchors) == (("Goto",), ("A", "Goto"), ("Add",))
    assert blocks_of(goto)[0].header == "Name | Text"
    assert blocks_of(goto)[0].text.startswith("Goto | The word")
    short = f"<h1>A</h1><table>{row % ('x', 'x', 'y')}{row % ('z', 'z', 'y')}</table>"
    assert found(short) == [("", "A", "x | y")]


def test_unclosed_item_or_entry_does_not_contain_the_following_headings():
    for html in ("<ul><li><a name='a'></a>", "<dl><a name='a'></a><dt>a<dd>"):
        last = read_html(f"<h1>A</h1><h2>List</h2>{html}{LONG}<h2>B</h2>{LONG}").sections[-1]
        assert (last.anchors, last.headings) == ((), ("A", "B"))
