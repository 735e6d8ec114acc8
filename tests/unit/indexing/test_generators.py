"""Pages of each documentation generator become sections that a reader would recognise."""

from pathlib import Path

import pytest

from pipelines.indexing.reading.read import read_page
from pipelines.indexing.reading.text import NEEDS_JAVASCRIPT, UnreadablePage
from pipelines.records import Block, Document, Page, Section
from tests.kit.sectioning import problems, text_of

PAGES = Path(__file__).parents[2] / "data" / "pages"
NAMES = sorted(path.stem for path in PAGES.glob("*.html"))


def read(name: str) -> Document:
    return read_page(Page(f"https://x.org/{name}.html", (PAGES / f"{name}.html").read_bytes()))


def section(name: str, anchor: str) -> Section:
    (found,) = (part for part in read(name).sections if part.anchor == anchor)
    return found


def read_html(html: str) -> Document:
    return read_page(Page("https://x.org/page.html", html.encode()))


@pytest.mark.parametrize("name", NAMES)
def test_sections_have_text_of_their_own_anchor_and_nothing_of_the_frame(name):
    assert problems((PAGES / f"{name}.html").read_bytes(), read(name).sections) == []


def test_a_rust_method_has_its_signature_and_its_text_under_its_anchor():
    method = section("rustdoc", "method.is_none")
    assert method.headings == ("Enum Option", "Implementations", "impl<T> Option<T>", "is_none")
    assert method.blocks[0] == Block("code", "pub const fn is_none(&self) -> bool")
    assert method.blocks[1] == Block("prose", "Returns true if the option is a None value.\n\nExamples:")
    assert method.blocks[2].text.startswith("let x: Option<u32> = Some(2);\nassert_eq!")
    assert section("rustdoc", "variant.None").blocks == (Block("prose", "No value."),)


def test_a_rust_implementation_without_text_is_a_line_of_its_list():
    lines = section("rustdoc", "synthetic-implementations").blocks
    assert lines[0] == Block("code", "impl<T> Freeze for Option<T>\nwhere\n    T: Freeze,")


def test_a_rust_page_has_no_source_links_toggles_and_buttons():
    shown = "\n".join(line for part in read("rustdoc").sections for line in (*part.headings, text_of(part)))
    assert [word for word in ("Source", "Copy item", "Expand", "Run", "§", "1.0.0", "Read more") if word in shown] == []


def test_a_doxygen_member_has_its_signature_parameters_and_notes():
    push = section("doxygen", "aec543f0f54862099b292cb7a09c75551")
    assert push.headings[-1] == "push()"
    assert push.blocks[0].text.endswith("::push(T value, int timeout_ms = 0)")
    assert Block("table", "value | the element that is moved in.\n"
                 "timeout_ms | how long to wait for room, in milliseconds.") in push.blocks  # fmt: skip
    assert "Warning:\nWith Policy::drop_oldest it always returns true." in text_of(push)


def test_doxygens_code_keeps_its_lines_and_its_summary_is_a_table():
    assert (
        Block("code", "ring::Buffer<int> buffer(16);\nif (!buffer.push(1)) {\n  handle_full();\n}")
        in section("doxygen", "details").blocks
    )
    assert "bool | push (T value, int timeout_ms=0) | Appends an element." in text_of(section("doxygen", "pub-methods"))


def test_overloads_of_a_java_method_are_two_sections_with_whole_signatures():
    short, long = (part for part in read("javadoc").sections if part.headings[-1] == "push")
    assert short.blocks[0] == Block("code", "public boolean push(T value)")
    assert long.blocks[0] == Block("code", "public boolean push(T value,\n long millis)")
    assert "millis - how long to wait" in text_of(long)


def test_a_python_method_of_pdoc_has_its_signature_and_not_its_source():
    push = section("pdoc", "Buffer.push")
    assert push.blocks[0] == Block("code", "def push(self, value, timeout=None):")
    assert "Append an element." in text_of(push) and "def pop" not in text_of(push)


def test_a_method_of_an_old_javadoc_has_its_own_anchor():
    push = section("javadoc-8", "push-T-")
    assert push.headings == ("Class Buffer<T>", "Method Detail", "push")
    assert push.blocks[0] == Block("code", "public boolean push(T value)")
    assert "boolean | push(T value) Appends an element." in text_of(section("javadoc-8", "method.summary"))


def test_headings_that_nobody_can_link_to_are_lines_of_their_method():
    push = section("typedoc", "push")
    assert push.blocks[0] == Block("code", "push(value: T): boolean")
    lines = [line.strip() for line in text_of(push).split("\n")]
    assert lines[1:] == ["Appends an element.", "Parameters:", "- value: T", "what is appended", "Returns boolean:",
                         "false if it is full"]  # fmt: skip


def test_a_card_is_a_line_of_its_page():
    cards = '<a href="one"><h2>One</h2><p>First guide.</p></a><a href="two"><h2>Two</h2><p>Second guide.</p></a>'
    (page,) = read_html(f"<main><h1>Guides</h1><p>All guides.</p>{cards}</main>").sections
    assert text_of(page) == "All guides.\n\nOne:\n\nFirst guide.\n\nTwo:\n\nSecond guide."


def test_asciidoctors_admonitions_are_prose():
    assert "Settings are read once." in text_of(section("asciidoctor", "_install"))
    assert all(block.kind != "table" or "Note" not in block.text for block in section("asciidoctor", "_install").blocks)


def test_javas_summary_of_methods_is_a_table():
    (table,) = section("javadoc", "method-summary").blocks
    assert table.header == "Modifier and Type | Method | Description"
    assert "boolean | push(T value) | Appends an element." in table.text.split("\n")


@pytest.mark.parametrize("name", ["mkdocs-material", "docusaurus", "sphinx-pydata"])
def test_each_tab_has_its_label(name):
    blocks = read(name).sections[0].blocks
    assert blocks[0].text.endswith("Linux: Use the package of your distribution:") or "Linux: Use" in blocks[0].text
    assert blocks[1] == Block("code", "apt install ring")
    assert blocks[2:4] == (Block("prose", "macOS:"), Block("code", "brew install ring"))
    assert "Windows: " in "\n".join(block.text for block in blocks[4:])


def test_tabs_within_tabs_have_both_labels():
    shown = text_of(section("mkdocs-material", "nested-tabs"))
    assert shown.startswith("Python:\n\npip:\npip install ring\nconda:\nconda install ring\nRust: Add it")


def test_sphinx_tabs_and_code_groups_have_labels():
    shown = text_of(read("sphinx-pydata").sections[0])
    assert "pip:\npip install ring\nconda: Use the channel ring." in shown
    assert text_of(section("vitepress", "tabs")).startswith("npm:\nnpm install ring\npnpm:\npnpm add ring")


def test_a_gitbook_page_has_labels_tables_and_no_footer():
    first, second = read("gitbook").sections
    assert "Linux:\n\ninstall.sh\napt update\napt install ring\nWindows: Run the installer." in text_of(first)
    assert second.blocks[-1] == Block("table", "capacity | 16\npolicy | refuse", "Setting | Default")


def test_a_long_tab_is_a_section_under_its_label():
    panel = "<p>" + "Words of a long tab. " * 100 + "</p>"
    page = read_html(
        '<main><h1 id="a">A</h1><p>Choose.</p><div>'
        '<ul role="tablist"><li role="tab">One</li><li role="tab">Two</li></ul>'
        f'<div role="tabpanel">{panel}</div><div role="tabpanel"><p>Short.</p></div></div><p>After.</p></main>'
    )
    outer, inner = page.sections
    assert outer.blocks == (Block("prose", "Choose.\n\nTwo: Short.\n\nAfter."),)
    assert (inner.anchors, inner.headings) == (("a",), ("A", "One"))


def test_mdbook_hides_the_lines_that_only_the_compiler_needs():
    assert section("mdbook", "comments").blocks[1] == Block("code", "// hello, world")


def test_a_table_of_contents_is_no_source():
    assert read("docbook-contents").sections == ()
    links = '<ul><li><a href="a.html">A</a><ul><li><a href="b.html">B</a></li></ul></li></ul>'
    assert read_html(f'<main><h1 id="t">T</h1>{links}</main>').sections == ()
    described = '<dl class="toc">' + '<dt><a href="a.html">A</a> &#8212; does one thing to another</dt>' * 20 + "</dl>"
    assert read_html(f'<body><div class="navheader">Prev</div><h1>T</h1>{described}</body>').sections == ()
    (intro,) = read_html(f'<main><h1 id="t">T</h1><p>An introduction.</p>{links}</main>').sections
    assert text_of(intro) == "An introduction.\n\n- A\n  - B"


def test_links_to_other_sites_are_text():
    links = '<ul><li><a href="https://else.org/">A book</a></li><li><a href="https://else.org/b">B</a></li></ul>'
    assert text_of(read_html(f"<main><h1>Reading</h1>{links}</main>").sections[0]) == "- A book\n- B"


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
def test_a_page_that_a_script_fills_is_not_indexed(body):
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
def test_a_short_page_with_scripts_is_indexed(body):
    assert len(read_html(f'<body>{body}<script src="main.js"></script></body>').sections) == 1


def test_a_page_to_search_at_is_no_source():
    note = '<div id="fallback"><p>Please activate JavaScript to enable the search.</p></div><p>Type words.</p>'
    assert read_html(f'<div role="main"><h1>Search</h1>{note}<div id="search-results"></div></div>').sections == ()


def test_the_mark_of_a_footnote_stands_apart_from_its_word():
    page = read_html('<main><p>A fact<sup><a class="footnote-ref" href="#fn:1">1</a></sup>.</p></main>')
    assert text_of(page.sections[0]) == "A fact [1]."


def test_a_redirect_is_no_source():
    page = '<meta http-equiv="refresh" content="0; URL=new.html"><p>Redirecting to <a href="new.html">new</a>'
    assert read_html(page).sections == ()
