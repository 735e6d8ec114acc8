"""Long lists of links are listings, which are never cited; lists with real content are text."""

import pytest

from pipelines.page.tree import Section
from tests.kit.blocks import blocks_of
from tests.kit.sectioning import read_html, text_of


def sections(html: str) -> tuple[Section, ...]:
    return read_html(f"<body><h1>A</h1>{html}</body>").sections


def text(html: str) -> str:
    return text_of(*sections(html))


def items(count: int, item: str) -> str:
    return f"<ul>{''.join('<li>' + item.replace('#', str(number)) for number in range(count))}</ul>"


LINK = '<a href="page#.html">the name of page #</a>'
LISTED = {
    "a permuted index": items(120, LINK),
    "an index with terms": items(120, f"term and its kind # &rarr; {LINK}"),
    "an index with what refers to each": items(120, f"term # &rarr; {LINK} {LINK} {LINK}"),
    "a long table of contents, with a few links to other sites": items(80, LINK) + items(2, LINK),
}


def test_page_with_little_besides_an_index_is_a_listing():
    for name, html in LISTED.items():
        assert sections(f"<p>What refers to what.</p>{html}") == (), name


def test_text_around_an_index_stays():
    prose = "<p>How the index is made, and what it is for.</p>" * 30
    found = text(f"{prose}{LISTED['a permuted index']}")
    assert "How the index is made" in found
    assert "the name of page 7" not in found


def test_lists_with_content_are_text():
    described = items(120, f"{LINK}: it reads the whole table, and writes another one.")
    away = items(120, LINK.replace("page#.html", "https://y.org/#"))
    for html in (described, away, items(60, f"term and its kind # &rarr; {LINK}"), f"<p>See also:</p>{items(9, LINK)}"):
        assert "the name of page 7" in text(html)


def test_table_of_links_is_a_table():
    row = f"<tr><td>{LINK}<td>X<td>{LINK}"
    assert "| X |" in text(f"<p>What works where:</p><table>{row.replace('#', '1') * 150}</table>")


def test_unclosed_heading_ends_before_a_list():
    (section,) = sections("<h2 id='b'>B<ul><li>One.</ul>")
    assert (section.headings, blocks_of(section)[0].text) == (("A", "B"), "- One.")


@pytest.mark.parametrize("address", ["http://[b", "https://x]y/", "http://", "https://h:port/"])
@pytest.mark.parametrize("before", ["", "Some words and ", '<a href="https://other.test/">another</a> '])
def test_invalid_link_costs_no_page_with_a_list(address, before):
    read = read_html(f'<h1>T</h1><ul><li>{before}<a href="{address}">this link</a></li></ul><p>More words.</p>')
    assert "this link" in "".join(map(text_of, read.sections))
