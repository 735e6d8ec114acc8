"""The sections of a page have the right anchors, headings, and text as a reader sees it."""

import pytest

from pipelines.page.cut.atoms import join_atoms, to_atoms
from pipelines.page.tree import Section
from tests.kit.blocks import Block, blocks_of, under
from tests.kit.sectioning import read_html, text_of


def sections(html: str) -> tuple[Section, ...]:
    return read_html(html).sections


def test_sphinx_section_has_its_id_path_and_only_its_own_text():
    outer, inner = sections(
        '<main><section id="a"><span id="label"></span><h1>A<a class="headerlink" href="#a">¶</a></h1><p>one</p>'
        '<section id="b"><h2>B<a class="headerlink" href="#b">#</a></h2><p>two</p></section><p>three</p>'
        "</section></main>"
    )
    assert (outer.anchors, outer.headings) == (("label", "a"), ("A",))
    assert blocks_of(outer) == (Block("prose", "one\n\nthree"),)
    assert (inner.anchors, inner.headings) == (("label", "a", "b"), ("A", "B"))


def test_id_derived_from_a_heading_never_marks_a_section_as_noise():
    html = "<section id='search'><h2>Search</h2><p>Finds words.</p></section><div id='menu'><p>Next</p></div>"
    assert [s.anchors for s in read_html(f"<main><h1>Parts</h1><p>All.</p>{html}</main>").sections] == [(), ("search",)]


def test_pages_inlined_by_a_sphinx_toctree_are_page_text():
    found = sections(
        '<main><section id="a"><h1>A</h1><div class="toctree-wrapper compound"><ul><li><a href="b">B</a></ul></div>'
        '<div class="toctree-wrapper compound"><span id="document-c"></span><section id="c"><h2>C</h2><p>three</p>'
        "</section></div></section></main>"
    )
    assert [(section.headings, blocks_of(section)) for section in found] == [(("A", "C"), (Block("prose", "three"),))]


def test_article_contains_headings_of_any_level_and_its_id_marks_the_first():
    function = '<article><h4 id="{0}">{0}()</h4><div><h3 id="types">Types</h3><p>T</p></div></article>'
    found = sections(f'<main><h3 id="e">E</h3>{function.format("all")}{function.format("any")}</main>')
    assert [(section.headings, section.anchors) for section in found] == [
        (("E", "all()", "Types"), ("e", "all", "types")), (("E", "any()", "Types"), ("e", "any"))
    ]  # fmt: skip


def test_text_with_preserved_lines_is_a_listing():
    found = sections(
        "<main><h1>A</h1><xmp>a\n  <b>\n</xmp><textarea readonly>c\n  d</textarea><textarea></textarea></main>"
    )
    assert [(block.kind, block.text) for block in blocks_of(found[0])] == [("code", "a\n  <b>"), ("code", "c\n  d")]


def test_decorative_marks_and_layout_tables_are_removed():
    (found, entry) = sections(
        '<main><h1>A</h1><ul><li>- one</li></ul><div class="note"><table><tr><td rowspan="2"><img alt="[Note]"></td>'
        "<th>Note</th></tr><tr><td>Well.</td></tr></table></div>"
        '<dl><dt id="f"><span>: </span><b>f</b> (x)</dt><dd>F</dd></dl></main>'
    )
    assert text_of(found) == "- one\n\nNote\n\nWell."
    assert (entry.headings, text_of(entry)) == (("A", "f (x)"), "F")


API = """<main><section id="ray-get"><h1>ray.get</h1><dl class="py function">
<dt class="sig sig-object py" id="ray.get"><span class="sig-prename descclassname"><span class="pre">ray.</span></span
><span class="sig-name descname"><span class="pre">get</span></span>(refs)<a class="reference internal" href="m.html"
><span class="viewcode-link">[source]</span></a><a class="headerlink" href="#ray.get">#</a></dt>
<dd><p>Get it.</p>%s</dd></dl>
</section></main>"""


def test_section_with_one_api_entry_is_one_section_with_both_anchors():
    (section,) = sections(API % "")
    assert section.anchors == ("ray-get", "ray.get")
    assert section.headings == ("ray.get",)
    assert blocks_of(section) == (Block("code", "ray.get(refs)"), Block("prose", "Get it."))


def test_method_is_a_section_inside_its_class():
    method = (
        '<dl class="py method"><dt class="sig py" id="ray.get.m"><span class="descname">m</span>()</dt><dd>M</dd></dl>'
    )
    outer, inner = sections(API % method)
    assert inner.anchors == ("ray-get", "ray.get", "ray.get.m")
    assert inner.headings == ("ray.get", "ray.get.m")
    assert "M" not in "".join(block.text for block in blocks_of(outer))


def test_overload_without_an_id_belongs_to_the_entry_before_it():
    (section,) = sections('<main><dl><dt class="sig" id="f">f(a)</dt><dt class="sig">f(b)</dt><dd>F</dd></dl></main>')
    assert blocks_of(section)[0] == Block("code", "f(a)\nf(b)")


@pytest.mark.parametrize(
    ("label", "heads", "title"),
    [
        ("Write-Ahead Logging", ("1. Overview", "2. How it works"), "Write-Ahead Logging"),
        ("Install - Acme", ("Acme 3 docs", "Install"), "Install"),
        ("Acme", ("Install",), "Install"),
        ("", ("Install", "Use"), "Install"),
        ("Acme", (), "Acme"),
    ],
)
def test_page_title_is_its_own_heading_not_that_of_a_part(label, heads, title):
    parts = "".join(f"<h1>{head}</h1><p>Text.</p>" for head in heads)
    assert read_html(f"<title>{label}</title><body>{parts}<p>Text.</p>").title == title


@pytest.mark.parametrize(("before", "title"), [("", "Install"), ("<p>What it is for.</p>", "page.html")])
def test_untitled_page_is_named_only_by_a_heading_at_its_start(before, title):
    assert read_html(f"<body>{before}<h2>Install</h2><p>Text.</p>").title == title


def test_docbook_sections_entries_and_notes():
    found = sections(
        '<body><div class="navheader"><table><tr><th>Nav</th></tr></table></div><div class="sect1" id="S"><div '
        'class="titlepage"><h2 class="title">20.4. Resources</h2></div><div class="toc"><dl class="toc"><dt><a '
        'href="#M">Memory</a></dt></dl></div><div class="sect2" id="M"><h3 class="title">Memory</h3><dl '
        'class="variablelist"><dt id="G"><span class="term"><code>shared_buffers</code> (<code>integer</code>)<a '
        'id="id-1" class="indexterm"></a></span></dt><dd><p>Sets it.</p><div class="note"><h3 class="title">Note</h3>'
        "<p>Beware.</p></div><p>After.</p></dd></dl></div></div></body>"
    )
    (entry,) = found
    assert entry.anchors == ("S", "M", "G")
    assert entry.headings == ("20.4. Resources", "Memory", "shared_buffers (integer)")
    assert [block.text for block in blocks_of(entry)] == ["Sets it.\n\nNote", "Beware.", "After."]
    assert under(blocks_of(entry)[1]) == ("Note",)


def test_consecutive_headings_nest_by_rank():
    found = sections(
        '<article><h1 id="t">T</h1><p>0</p><h2 id="a">A</h2><p>1</p><h3 id="b">B</h3><p>2</p>'
        "<h2>C</h2><p>3</p></article>"
    )
    assert [(s.anchors, s.headings) for s in found] == [
        (("t",), ("T",)),
        (("t", "a"), ("T", "A")),
        (("t", "a", "b"), ("T", "A", "B")),
        (("t",), ("T", "C")),
    ]


@pytest.mark.parametrize(
    "html",
    [
        '<h2><a id="x"></a>T</h2><p>t</p>',
        '<h2><a name="x">T</a></h2><p>t</p>',
        '<p><a name="x"></a></p><h2>T</h2><p>t</p>',
        '<h2><a class="anchor" id="user-content-x" href="#x"><svg></svg></a>T</h2><p>t</p>',
        '<div class="markdown-heading"><h2>T</h2><a class="anchor" href="#x"><svg></svg></a></div><p>t</p>',
        '<h2 id="x"><a class="header" href="#x">T</a></h2><p>t</p>',
        '<h2 class="anchor" id="x">T<a href="#x" class="hash-link" title="Direct link">\u200b</a></h2><p>t</p>',
        '<div id="x"><h2>T</h2><p>t</p></div>',
    ],
)
def test_heading_id_can_be_inside_or_next_to_the_heading(html):
    (section,) = sections(f"<main>{html}</main>")
    assert (section.anchors, section.headings) == (("x",), ("T",))


def test_material_for_mkdocs_page_is_its_article():
    html = """<html lang="en"><head><title>Setup - Site</title></head><body><header class="md-header">Site</header>
    <main class="md-main"><div class="md-sidebar"><nav class="md-nav"><a href="/">Home</a></nav></div>
    <div class="md-content">
    <article class="md-content__inner"><a class="md-content__button" href="/edit" title="Edit this page">edit</a>
    <h1 id="setup">Setup<a class="headerlink" href="#setup">&para;</a></h1><p>Do this.</p>
    <div class="highlight"><table class="highlighttable"><tr><td class="linenos"><pre>1\n2</pre></td><td class="code">
    <pre><span></span><code>a:\n  b\n</code></pre></td></tr></table></div></article></div></main>
    <footer>Made with love</footer></body></html>"""
    document = read_html(html)
    (section,) = document.sections
    assert (document.title, document.language) == ("Setup", "en")
    assert section.anchors == ("setup",)
    assert blocks_of(section) == (Block("prose", "Do this."), Block("code", "a:\n  b"))


def test_docusaurus_page_keeps_its_header_and_code_lines():
    html = """<div id="__docusaurus"><nav class="navbar">N</nav><main>
    <article><nav class="theme-doc-breadcrumbs">B</nav>
    <div class="theme-doc-markdown markdown"><header><h1>Intro</h1></header><p>Hello.</p><pre class="prism-code"><code>
<span class="token-line">if x:<br></span><span class="token-line">  y<br></span></code></pre><button>Copy</button></div>
    <footer class="theme-doc-footer"><a href="e">Edit this page</a></footer></article>
    <nav class="pagination-nav">Next</nav></main><footer>F</footer></div>"""
    (section,) = sections(html)
    assert section.headings == ("Intro",)
    assert blocks_of(section) == (Block("prose", "Hello."), Block("code", "if x:\n  y"))


MATH = '<math><mi>x</mi><annotation encoding="application/x-tex">x^2</annotation></math>'
CELLS = "<thead><tr><th>A<th>B</tr></thead><tr><td>1<td>x<br>y</tr><tr><td>2<td></tr>"
CARDS = '<a href="1"><h2>One</h2><p>First guide.</p></a><a href="2"><h2>Two</h2><p>Second guide.</p></a>'
SHOWN = {
    "a break and an image": ('<p>a<br>b <img alt="chart"> c</p>', Block("prose", "a\nb chart c")),
    "an image without words": ('<p>a <img alt="i/x.png" src="i/x.png"> b</p>', Block("prose", "a b")),
    "control characters": ('<p>Before <img alt="a&#12;b&#1;c"> after.</p>', Block("prose", "Before abc after.")),
    "a formula": (
        f'<p>so <span class="katex"><span>{MATH}</span><span class="katex-html">x2</span></span></p>',
        Block("prose", "so x^2"),
    ),
    "a menu that opens": ('<div>a<ul class="dropdown-menu"><li>b</li></ul></div>', Block("prose", "a")),
    "a footnote": (
        '<p>A fact<sup><a class="footnote-ref" href="#fn:1">1</a></sup>.</p>', Block("prose", "A fact [1].")
    ),
    "a footnote in brackets": ('<p>A<sup><a href="#fn1">[1]</a></sup>.</p>', Block("prose", "A [1].")),
    "code in a line and on lines": (
        "<p>Use <code>x</code>:</p><pre>\ndef f():\n\n    return  1\n</pre>",
        Block("prose", "Use x:"), Block("code", "def f():\n\n    return  1"),
    ),
    "a table in a cell": (
        "<table><tr><th>A<th>B<tr><td>1<td><table><tr><td>x<td>y</table><tr><td>2<td>z</table>",
        Block("table", "1 | x y\n2 | z", "A | B"),
    ),
    "a column of lines in a cell": (
        "<table><tr><th>A<th>B<tr><td>1<td>n<table><caption>C<tr><td>x<tr><td>y</table><tr><td>2<td>z</table>",
        Block("table", "1 | n C x y\n2 | z", "A | B"),
    ),
    "a table": (f"<table>{CELLS}</table>", Block("table", "1 | x y\n2 | ", "A | B")),
    "cells over rows": (
        "<table><tr><th rowspan=2>A<th>B<tr><th>C<tr><td rowspan=3>1<td>x<tr><td>y<tr><td>z<tr><td>2<td>w</table>",
        Block("table", "1 | x\n | y\n | z\n2 | w", "A | B C"),
    ),
    "cells over columns": (
        "<table><tr><th rowspan=2>A<th colspan=2>B<tr><th>C<th>D<tr><td colspan=2 rowspan=2>1<td>x<tr><td>y<tr><td>z",
        Block("table", "1 |  | x\n |  | y\nz", "A | B C | B D"),
    ),
    "cells over all columns and rows": (
        "<table><tr><th>A<th colspan=100>B<tr><td rowspan=0>1<td>x<td>y<tr><td>z<td>v</table>",
        Block("table", "1 | x | y\n | z | v", "A | B | B"),
    ),
    "terms without definitions": ("<dl><dt>A one<dt>B</dl>", Block("prose", "A one"), Block("prose", "B")),
    "a table for layout": ("<table><tr><td><p>One.</p><p>Two.</p></table>", Block("prose", "One.\n\nTwo.")),
    "columns": ("<table><tr><td><p>a</p><p>b</p><td><p>c</p></table>", Block("prose", "a\n\nb\n\nc")),
    "cards": (CARDS, Block("prose", "One:\n\nFirst guide.\n\nTwo:\n\nSecond guide.")),
}  # fmt: skip


@pytest.mark.parametrize(("html", "blocks"), [(html, blocks) for html, *blocks in SHOWN.values()], ids=SHOWN)
def test_blocks_match_the_view_of_a_reader(html, blocks):
    (section,) = sections(f"<main><h1>T</h1>{html}</main>")
    assert list(blocks_of(section)) == blocks


def test_lists_keep_one_item_per_line():
    (section,) = sections("<main><p>See:</p><ul><li>a<ul><li>b</li></ul></li><li><p>c</p></li></ul><p>d</p></main>")
    assert join_atoms(to_atoms(blocks_of(section))) == "See:\n\n- a\n  - b\n- c\n\nd"


def test_text_outside_a_missing_or_nearly_empty_main_is_kept():
    assert text_of(*sections("<body><div>Hello</div><font>world</font> again</body>")) == "Hello\n\nworld again"
    assert "Much text" in text_of(*sections(f"<body><div>{'Much text. ' * 50}</div><main></main></body>"))
    (found,) = sections("<body><div class=header><ul class=nav><li>Menu</ul><h1>T</h1><p>The page.</p></body>")
    assert (found.headings, text_of(found)) == (("T",), "The page.")


def test_invisible_characters_never_reach_the_index():
    found = text_of(*sections("<main><p>a&#0;b&#x200b;c&#xd800;d\u202ee  \n f</p></main>"))
    assert not set(found) & set("\0\u200b\u202e\n")
    assert found.startswith("a")
    found.encode("utf-8")


REQUEST = "<h2 id='%s'>%s</h2><p>It makes one of many.</p><h3 id='%s-h'>Headers</h3><p>Authorization</p>%s"


def parts(html: str) -> list[tuple[str, str, str]]:
    return [(part.anchor, part.headings[-1], text_of(part)) for part in read_html(f"<main>{html}</main>").sections]


def test_small_parts_with_repeated_headings_belong_to_their_parent():
    answer = "<h3 id='%s-ok'>200: OK</h3><p>The token.</p>"
    html = "".join(REQUEST % (name, name, name, answer % name) for name in ("add", "show", "drop"))
    text = "It makes one of many.\n\nHeaders:\n\nAuthorization\n\n200: OK:\n\nThe token."
    assert parts(f"<h1>API</h1>{html}") == [(name, name, text) for name in ("add", "show", "drop")]


def test_parts_of_which_only_some_are_small_are_sections():
    long = "<p>" + "It is a long answer with much to say. " * 20 + "</p>"
    for html in (
        REQUEST % ("add", "add", "add", "") + REQUEST % ("show", "show", "show", ""),
        "".join(REQUEST % (name, name, name, long) for name in ("add", "show", "drop")),
    ):
        assert "Headers" in [heading for _, heading, _ in parts(f"<h1>API</h1>{html}")]


def test_small_part_after_a_long_one_stays_in_its_place():
    long = "<h3>Parameters</h3><p>" + "It is a long answer with much to say. " * 20 + "</p>"
    html = "".join(REQUEST.replace("<h3", long + "<h3", 1) % (name, name, name, "") for name in ("add", "show", "drop"))
    assert [heading for _, heading, _ in parts(f"<h1>API</h1>{html}")] == [
        "add",
        "Parameters",
        "Headers",
        "show",
        "Parameters",
        "Headers",
        "drop",
        "Parameters",
        "Headers",
    ]


def test_changes_of_a_version_are_one_section():
    html = "".join(
        f"<h2>{n}.0</h2><h3>Added</h3><ul><li>One thing.</li></ul><h3>Fixed</h3><p>Another.</p>" for n in (3, 2, 1)
    )
    assert parts(f"<h1>Changes</h1>{html}")[0] == ("", "3.0", "Added:\n- One thing.\nFixed:\n\nAnother.")


def test_line_of_links_to_pages_is_not_a_section():
    links = ", ".join(f"<a href='p.html#{name}'>{name}</a>" for name in ("map", "each", "all", "any"))
    html = f"<h1>Pairs</h1><p>They count.</p><h2 id='i'>Inherited from Iterable</h2><div>{links}</div>"
    assert [heading for _, heading, _ in parts(html)] == ["Pairs"]
    assert [heading for _, heading, _ in parts(html.replace("<div>", "<div>Also "))] == [
        "Pairs",
        "Inherited from Iterable",
    ]
