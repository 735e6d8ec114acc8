"""Pages of each documentation generator become the sections that a reader would recognize."""

import pytest

from pipelines.indexing.reading.generators import GENERATORS, WrongTable, generator_of
from pipelines.indexing.reading.html.elements import names_of
from pipelines.indexing.reading.html.parse import parse_html
from pipelines.indexing.reading.text import NEEDS_JAVASCRIPT, UnreadablePage
from tests.kit.blocks import Block, blocks_of
from tests.kit.sectioning import NAMES, PAGES, problems, read_golden, read_html, shown, text_of


@pytest.mark.parametrize("name", NAMES)
def test_golden_page_has_the_sections_a_reader_would_recognize(name):
    """The `.txt` file contains reviewed output: signatures, tab labels, listings with their lines, no frame."""
    sections = read_golden(name).sections
    assert shown(sections) == (PAGES / f"{name}.txt").read_text()
    assert problems((PAGES / f"{name}.html").read_bytes(), sections) == []


def test_every_generator_that_changes_pages_has_a_golden_page():
    marks = [names_of(parse_html((PAGES / f"{name}.html").read_text())) for name in NAMES]
    changing = [generator for generator in GENERATORS if generator.rewrite or generator.hidden]
    unseen = [g.name for g in changing if not any(not names.isdisjoint(g.marks.split()) for names in marks)]
    assert unseen == ["Apache httpd", "gi-docgen", "JSDoc", "RDoc", "Sphinx"]  # these only hide links


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        (
            {"name": "ExDoc", "mark": "exdoc"},
            r"'mark'.* \(allowed keys: name, marks, main, .*, publishes; in publishes: ",
        ),
        ({"marks": "exdoc"}, r"'name' \(allowed keys: name, "),
        ({"name": "ExDoc", "publishes": {"config": "mix.exs"}}, r"'config'.*; in publishes: configs, folders, "),
        ({"name": "ExDoc", "hidden": "#summary..list"}, r"hidden: '#summary..list' is not a CSS selector: "),
    ],
    ids=["unknown key", "no name", "unknown key of sources", "bad selector"],
)
def test_wrong_table_is_named_with_its_mistake(keys, said):
    with pytest.raises(WrongTable, match=rf"^exdoc\.yaml: .*{said}"):
        generator_of("exdoc.yaml", keys)


def test_long_tab_is_a_section_under_its_label():
    panel = "<p>" + "Words of a long tab. " * 100 + "</p>"
    page = read_html(
        '<main><h1 id="a">A</h1><p>Choose.</p><div>'
        '<ul role="tablist"><li role="tab">One</li><li role="tab">Two</li></ul>'
        f'<div role="tabpanel">{panel}</div><div role="tabpanel"><p>Short.</p></div></div><p>After.</p></main>'
    )
    outer, inner = page.sections
    assert blocks_of(outer) == (Block("prose", "Choose.\n\nTwo: Short.\n\nAfter."),)
    assert (inner.anchors, inner.headings) == (("a",), ("A", "One"))


LINKS = '<ul><li><a href="a.html">A</a><ul><li><a href="b.html">B</a></li></ul></li></ul>'
DESCRIBED = '<dl class="toc">' + '<dt><a href="a.html">A</a> &#8212; does one thing to another</dt>' * 20 + "</dl>"
NOTE = '<div id="fallback"><p>Please activate JavaScript to enable the search.</p></div><p>Type words.</p>'
NO_SOURCES = {
    "a table of contents": f'<main><h1 id="t">T</h1>{LINKS}</main>',
    "a described one": f'<body><div class="navheader">Prev</div><h1>T</h1>{DESCRIBED}</body>',
    "a page to search at": f'<div role="main"><h1>Search</h1>{NOTE}<div id="search-results"></div></div>',
    "frames": '<frameset><frame src="a.html"><noframes><body>No frames?</body></noframes></frameset>',
    "a redirect": '<meta http-equiv="refresh" content="0; URL=new.html"><p>Redirecting to <a href="new.html">new</a>',
}


@pytest.mark.parametrize("html", NO_SOURCES.values(), ids=NO_SOURCES)
def test_page_that_only_redirects_is_no_source(html):
    assert read_html(html).sections == ()


RESULTS = '<div id="search-results"></div>'
PROSE = "<h1>T</h1><p>" + "A sentence that explains what this page is about. " * 8 + "</p>"
SEARCHABLE = {
    "beside the content": f"<body><header>{RESULTS}</header><main><h1>T</h1><p>Short.</p></main></body>",
    "beside a region that has the role": f'<body><div>{RESULTS}</div><div role="main"><h1>T</h1><p>Short.</p></div>',
    "above the text of a page that marks no content": f"<body>{RESULTS}{PROSE}</body>",
    "within the content of a page with text": f"<body><main>{RESULTS}{PROSE}</main></body>",
}


@pytest.mark.parametrize("html", SEARCHABLE.values(), ids=SEARCHABLE)
def test_page_with_text_is_read_although_it_has_a_search_result_box(html):
    (section,) = read_html(html).sections
    assert section.headings == ("T",)


def test_links_below_an_introduction_and_links_to_other_sites_are_text():
    (page,) = read_html(f"<main><h1>T</h1><p>An introduction.</p>{LINKS}</main>").sections
    assert text_of(page) == "An introduction.\n\n- A\n  - B"
    links = '<ul><li><a href="https://else.org/">A book</a></li><li><a href="https://else.org/b">B</a></li></ul>'
    assert text_of(*read_html(f"<main><h1>Reading</h1>{links}</main>").sections) == "- A book\n- B"


@pytest.mark.parametrize(
    "body",
    [
        '<noscript>You need to enable JavaScript to run this app.</noscript><div id="root"></div>',
        '<div id="app">Loading…</div>',
        "<app-root></app-root>",
        '<header><a href="/">Docs</a></header><div id="__next"></div><div>© 2024 Example</div>',
        "<noscript><p>This page requires JavaScript.</p></noscript>",
        '<div id="app"><p>Please enable JavaScript to continue.</p></div>',
    ],
)
def test_page_filled_by_a_script_is_not_indexed(body):
    with pytest.raises(UnreadablePage) as error:
        read_html(f'<html><head><title>App</title></head><body>{body}<script src="main.js"></script></body></html>')
    assert error.value.reason == NEEDS_JAVASCRIPT


@pytest.mark.parametrize(
    "body",
    [
        "<noscript>Search needs JavaScript.</noscript><main><h1>Exit codes</h1><p>0 is success.</p></main>",
        "<main><h1>Loading data</h1><p>Call load().</p></main>",
        '<div id="app"><h1>Guide</h1><p>Rendered on the server.</p></div>',
    ],
)
def test_short_page_with_scripts_is_indexed(body):
    assert len(read_html(f'<body>{body}<script src="main.js"></script></body>').sections) == 1


def test_inherited_members_that_doxygen_collapses_are_left_out():
    rows = (
        '<tr class="memitem:a"><td>int</td><td>own ()</td></tr>'
        '<tr class="inherit_header b"><td colspan="2">Inherited from Base</td></tr>'
        '<tr class="memitem:c inherit b"><td>int</td><td>other ()</td></tr>'
    )
    table = f'<div class="contents"><table class="memberdecls">{rows}</table></div>'
    text = text_of(*read_html(f'<body><div class="headertitle"><h1>T</h1></div>{table}</body>').sections)
    assert "own ()" in text and "Inherited from Base" in text and "other" not in text
