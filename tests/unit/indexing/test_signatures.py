"""Entries of API references have names as anchors and signatures as code, in any markup."""

import pytest

from pipelines.indexing.reading.html.signatures import name_in
from pipelines.page.tree import Section
from tests.kit.blocks import Block, blocks_of
from tests.kit.sectioning import read_html


def sections(html: str) -> tuple[Section, ...]:
    return read_html(f"<main><h1>Module</h1><p>It counts words.</p>{html}</main>").sections[1:]


def found(html: str) -> list[tuple[str, str, list[tuple[str, str]]]]:
    """Return each section's anchor, last heading and blocks."""
    return [
        (part.anchor, part.headings[-1], [(block.kind, block.text) for block in blocks_of(part)])
        for part in sections(html)
    ]


SIGNED = "<span>proc</span> <a href='#%s'>%s</a>(x: int): int\n  {.inline.}"
GROUPED = f"<div id='%s'><dt><pre>{SIGNED}</pre></dt><dd>%s</dd></div>"
BETWEEN = "<dt><span>%s</span></dt>\n<a id='%s'></a><dd><p>%s</p></dd>"


def test_id_of_a_box_around_a_term_belongs_to_its_entry():
    html = GROUPED % ("sum,int", "sum%2Cint", "sum", "Adds up.") + GROUPED % (
        "max,int",
        "max%2Cint",
        "max",
        "Compares.",
    )
    assert found(f"<dl class='item'>{html}</dl>") == [
        ("sum,int", "sum", [("code", "proc sum(x: int): int\n  {.inline.}"), ("prose", "Adds up.")]),
        ("max,int", "max", [("code", "proc max(x: int): int\n  {.inline.}"), ("prose", "Compares.")]),
    ]


def test_name_between_a_term_and_its_definition_belongs_to_the_entry():
    html = BETWEEN % ("lookup", "v1", "A lookup failed.") + BETWEEN % ("refused", "v2", "A host refused.")
    assert found(f"<dl>{html}</dl>") == [
        ("v1", "lookup", [("prose", "A lookup failed.")]),
        ("v2", "refused", [("prose", "A host refused.")]),
    ]


def test_name_between_two_terms_belongs_to_the_second():
    assert [part[0] for part in found("<dl><dt id='a'>a</dt><a id='b'></a><dt>b</dt><dd>Both.</dd></dl>")] == ["b"]


BOXES = {
    "a box with an id, its signature first": (
        (
            '<div class="entry" id="fill(value:T):self-method"><div class="signature">def <strong>fill</strong>(value '
            ': <a href="T.html">T</a>) : self\n <a class="permalink" href="#fill%28value">#</a></div><div class="doc">'
            "<p>Fills it.</p></div></div>"
        ),
        ("fill(value:T):self-method", "fill", [("code", "def fill(value : T) : self"), ("prose", "Fills it.")]),
    ),
    "a name within the signature": (
        (
            '<div class="top"><p class="src"><span>data</span> <a id="t:Key" class="def">Key</a> :: *'
            ' <a href="#t:Key">#</a></p><div class="doc"><p>A key of an object.</p></div></div>'
        ),
        ("t:Key", "Key", [("code", "data Key :: *"), ("prose", "A key of an object.")]),
    ),
    "a name within the signature, with parts below it": (
        '<div class="top"><p>class <a id="t:Show" class="def">Show</a> a</p><h4>Methods</h4><p>It has one.</p></div>',
        ("t:Show", "Show", [("code", "class Show a"), ("prose", "Methods:\n\nIt has one.")]),
    ),
    "an empty name within the signature": (
        (
            '<div><p>(<a name="(def._pair~3f)"></a><b>pair?</b> v) -&gt; boolean?</p></div>'
            "<p>Returns whether it is a pair.</p>"
        ),
        ("(def._pair~3f)", "pair?", [("code", "(pair? v) -> boolean?"), ("prose", "Returns whether it is a pair.")]),
    ),
    "a signature without text": (
        '<section id="toText"><code>toText(key: Key): string</code></section>',
        ("toText", "toText", [("code", "toText(key: Key): string")]),
    ),
    "a function of C with its type before": (
        '<div id="hash_add"><code>int <b>hash_add</b>(hash *table);</code><p>Adds it.</p></div>',
        ("hash_add", "hash_add", [("code", "int hash_add(hash *table);"), ("prose", "Adds it.")]),
    ),
}


@pytest.mark.parametrize(("html", "entry"), BOXES.values(), ids=BOXES)
def test_named_signature_starts_an_entry(html, entry):
    assert found(html) == [entry]


@pytest.mark.parametrize(
    "html",
    [
        "<p>Bind a <a name='tech-variable'></a>variable (see above) before you call it, as follows.</p>",
        "<div id='install'><p>Install it with install(1), which is there.</p><p>More.</p></div>",
        "<div id='note'><p>Note</p><p>More.</p></div>",
        "<p>See <a id='sum'></a>sum(x) and more of them.</p>",
    ],
)
def test_text_that_only_has_a_name_is_no_signature(html):
    page = read_html(f"<main><h1>Module</h1><p>It counts words.</p>{html}</main>")
    assert [block.kind for part in page.sections for block in blocks_of(part)] == ["prose"] * len(page.sections)


@pytest.mark.parametrize(
    ("text", "anchor", "name"),
    [
        ("(filter pred lst) → list? lst : list?", "(def._((lib._racket/private/list..rkt)._filter))", "filter"),
        ("(list-ref lst pos) → any/c", "(def._((quote._~23~25kernel)._list-ref))", "list-ref"),
        ("public static String sort(String text)", "sort(java.lang.String)", "sort"),
        ("def []=(index : Int, value : T) : T", "[]=(index:Int,value:T):T-instance-method", "[]="),
        ("supports?()", "method-i-supports-3F", "supports?"),
        ("fn fold<B, F>(self, init: B, f: F) -> B", "method.fold", "fold"),
        ("gtk_widget_show (GtkWidget *widget);", "gtk-widget-show", "gtk_widget_show"),
        ("union :: Map v -> Map v", "v:union", "union"),
        ("type Foo = Bar", "associated-type.Other", ""),
        ("struct foo", "a3f2b1c", ""),
    ],
)
def test_entry_name_is_the_signature_word_found_in_its_anchor(text, anchor, name):
    assert name_in(text, anchor) == name


ROW = "<tr><td><span class='p'>(</span><span class='n'>%s</span>&nbsp;<span class='v'>%s</span>%s</td></tr>"
CODE_TABLES = {
    "a listing": (
        "<table>" + ROW % ("match", "x", "") + "<tr><td><span class='s'>&nbsp;&nbsp;</span><span class='p'>[</span>"
        "<span class='v'>1</span><span class='p'>])</span></td></tr></table>",
        "(match x\n  [1])",
    ),
    "a session with what it prints": (
        "<table class='o'><tr><td><table class='i'>" + ROW % ("add", "1", "<span class='p'>)</span>")
        + "</table></td></tr><tr><td><p><span class='r'>2</span></p></td></tr></table>",
        "(add 1)\n2",
    ),
    "a listing by elements of code": (
        ("<table><tr><td><code>let</code> <code>x</code> <code>= 1</code></td></tr>"
        "<tr><td><code>&nbsp;&nbsp;x</code></td></tr></table>"),
        "let x = 1\n  x",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("html", "code"), CODE_TABLES.values(), ids=CODE_TABLES)
def test_code_in_a_one_column_table_is_code(html, code):
    page = read_html(f"<main><h1>Module</h1><p>It counts.</p><blockquote>{html}</blockquote></main>")
    assert blocks_of(page.sections[0])[-1] == Block("code", code)


def test_text_in_a_one_column_table_is_text():
    html = "<table><tr><td>One <span class='x'>word</span> of many</td></tr><tr><td>Two</td></tr></table>"
    page = read_html(f"<main><h1>Module</h1><p>It counts.</p>{html}</main>")
    assert [block.kind for block in blocks_of(page.sections[0])] == ["prose"]


def test_signature_on_several_lines_is_titled_by_its_name():
    signature = "<dt id='json.dump'><code>def <b>dump</b>(obj,<br>fp,<br>indent=None)</code></dt>"
    (section,) = read_html(f"<h1>json</h1><dl>{signature}<dd>Writes it.</dd></dl>").sections
    assert section.headings == ("json", "dump")


@pytest.mark.parametrize("line", ["size", "size = number", "size { |each| ... }"])
def test_line_that_is_only_the_name_in_the_id_of_its_box_begins_an_entry(line):
    box = f"<div id='method-i-size'><div><span>{line}</span></div><div><p>Counts it.</p></div></div>"
    (section,) = read_html(f"<main><h1>Pair</h1>{box}</main>").sections
    assert (section.anchors, section.headings) == (("method-i-size",), ("Pair", "size"))
