"""Frame elements within a page's content are left out: its table of contents, menus, tool links."""

import pytest

from pipelines.indexing.reading.layout import learn_layout
from tests.kit.blocks import blocks_of
from tests.kit.sectioning import read_html, text_of

NAMES = ("pair?", "null?", "cons", "car", "cdr")
PARTS = "".join(f'<h2 id="{n}">{name}</h2><p>It is about {name} and more.</p>' for n, name in enumerate(NAMES))
LINKS = [f'<a href="#{n}">{name}</a>' for n, name in enumerate(NAMES)]
GROUPS = "".join(f"<ul>{name[:1]}<li>{link}</li></ul>" for name, link in zip(NAMES, LINKS, strict=True))
ITEMS = "".join(f"<li>{link}</li>" for link in LINKS)


def text(html: str) -> str:
    return "\n".join(text_of(part) for part in read_html(html).sections)


CONTENTS = {
    "a list": f"<ul>{ITEMS}</ul>",
    "a list below a label": f"<div><p>On this page:</p><ul>{ITEMS}</ul></div>",
    "a table": f"<table>{''.join(f'<tr><td>4.{n}</td><td>{link}</td></tr>' for n, link in enumerate(LINKS))}</table>",
    "boxes": f"<div>{''.join(f'<div>{link}</div>' for link in LINKS)}</div>",
    "groups with names": f"<ul>{GROUPS}</ul>",
    "links to the page by its name": f"<ul>{ITEMS}</ul>".replace('"#', '"page.html#'),
}


@pytest.mark.parametrize("contents", CONTENTS.values(), ids=CONTENTS)
def test_list_of_the_parts_of_the_page_is_removed(contents):
    expected = "\n".join(["It counts.", *(f"It is about {name} and more." for name in NAMES)])
    assert text(f"<main><h1>Pairs</h1><p>It counts.</p>{contents}{PARTS}</main>") == expected


def test_text_next_to_a_list_of_page_parts_stays():
    html = f"<body><div><div>How to count pairs</div><div>Contents</div><ul>{ITEMS}</ul></div><h1>1. Pairs</h1>{PARTS}"
    assert text(html).startswith("How to count pairs\nIt is about pair?")
    rows = "".join(f"<tr><td>boolean</td><td>{link}</td></tr>" for link in LINKS)
    assert "boolean | pair?" in text(f"<main><h1>Pairs</h1><table>{rows}</table>{PARTS}</main>")


STAYS = {
    "what a sentence introduces": f"<p>The following functions are available:</p><ul>{ITEMS}</ul>",
    "with what each does": f"<ul>{''.join(f'<li>{link} tells about one of the pairs</li>' for link in LINKS)}</ul>",
    "a few": f"<ul><li>{LINKS[0]}</li><li>{LINKS[1]}</li></ul>",
}


@pytest.mark.parametrize("html", STAYS.values(), ids=STAYS)
def test_links_inside_the_text_stay(html):
    assert "pair?" in text_of(read_html(f"<main><h1>Pairs</h1><p>It counts.</p>{html}{PARTS}</main>").sections[0])


def test_menu_before_the_first_heading_without_main_content_is_removed():
    menu = "".join(f'<tr><td>{n}</td><td><a href="p{n}.html">Chapter {n}</a></td></tr>' for n in range(1, 9))
    page = read_html(f"<div><div><table>{menu}</table></div></div><div><h3>12 Pairs</h3><p>It counts.</p></div>")
    assert [(part.headings, text_of(part)) for part in page.sections] == [(("12 Pairs",), "It counts.")]


TOOL = '<a href="src/%s.html#L1">%s</a>'


@pytest.mark.parametrize(
    "html",
    [
        f"<p>It counts words. {TOOL % ('a', 'Source')} {TOOL % ('b', 'Edit')}</p>",
        f"<p>It counts words. [{TOOL % ('a', 'src')}]</p>",
        f"<p>It counts words.</p><p>{TOOL % ('a', 'View Source')}</p>",
        f"<p>It counts words.</p><div>{TOOL % ('a', 'Source')} | {TOOL % ('b', 'Edit this page')}</div>",
    ],
)
def test_source_links_are_removed(html):
    assert text(f"<main><h1>Pairs</h1>{html}</main>") == "It counts words."


def test_signature_ends_before_its_source_link():
    html = f'<dl><dt id="sum"><code>sum(x)</code> {TOOL % ("a", "[source]")}</dt><dd>It counts.</dd></dl>'
    assert text(f"<main><h1>Pairs</h1><p>Pairs.</p>{html}</main>") == "Pairs.\nIt counts."


def test_sentence_can_end_with_a_link_to_a_source():
    html = f"<p>Read the {TOOL % ('a', 'source')}</p><p>Data: {TOOL % ('b', 'Source')} of 2020.</p>"
    assert text(f"<main><h1>Pairs</h1>{html}</main>") == "Read the source\n\nData: Source of 2020."


def documents(below: str):
    pages = (f"<main><h1>Page {n}</h1><p>About {n}.</p>{below}</main>" for n in range(10))
    return [read_html(page) for page in pages]


def test_link_lines_on_most_pages_are_layout_even_below_a_heading():
    for line in (
        '<p><a href="m.html">Manual</a> | <a href="i.html">Index</a></p>',
        "<ul><li><a href='m.html'>Manual</a></li></ul>",
    ):
        pages = documents(line)
        layout = learn_layout(pages)
        assert [text_of(part) for page in pages for part in layout.strip(page).sections] == [
            f"About {n}." for n in range(10)
        ]


def test_sentences_and_code_on_most_pages_stay_below_a_heading():
    pages = documents('<p>Read <a href="w.html">the warning</a>.</p><pre>make</pre>')
    layout = learn_layout(pages)
    assert {tuple(block.kind for block in blocks_of(layout.strip(page).sections[0])) for page in pages} == {
        ("prose", "code")
    }
