"""However deeply a page is nested, its texts are read no more often."""

import sys
from typing import Any

import pytest

from pipelines.indexing.reading.formats.html import document_of_html
from pipelines.indexing.reading.html.inline import begins_at_name, count_words
from pipelines.indexing.reading.html.parse import parse_html

PARAGRAPHS = "".join(f"<p>Some words of {n}, <a href=/x{n}>a link</a> and more of it.</p>" for n in range(600))
ITEMS = f"<ul>{PARAGRAPHS.replace('<p>', '<li>').replace('</p>', '</li>')}</ul>"
LINKS = f"<ul>{''.join(f'<li><a href=/x{n}>a link to {n}</a></li>' for n in range(600))}</ul><p>Words.</p>"


def calls(html: str) -> int:
    """Return the number of function calls needed to read a page."""
    count = 0

    def note(frame: Any, event: str, argument: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        document_of_html("https://h.test/", f"<main>{html}</main>")
    finally:
        sys.setprofile(before)
    return count


@pytest.mark.parametrize(
    ("begin", "end", "inner"),
    [
        ("<ul><li>", "</li></ul>", PARAGRAPHS),
        ("<ul><li>Words ", "</li></ul>", ITEMS),
        ("<ol><li><p>Words</p>", "</li></ol>", LINKS),
        ("<dl><dt>x</dt><dd>", "</dd></dl>", PARAGRAPHS),
        ("<div>", "</div>", PARAGRAPHS),
        ("<div><a name=x></a>Words ", "</div>", PARAGRAPHS),
        ("<div><p><a name=x></a></p>", "</div>", PARAGRAPHS),
        ("<span>", "</span>", PARAGRAPHS),
        ("<blockquote>", "</blockquote>", PARAGRAPHS),
        ("<section id=a>", "</section>", PARAGRAPHS),
    ],
)  # fmt: skip
def test_nested_page_takes_no_more_work_than_a_flat_one(begin, end, inner):
    flat, nested = (calls(begin * levels + inner + end * levels) for levels in (1, 100))
    assert nested < 2 * flat


@pytest.mark.parametrize(
    "texts",
    [[], ["", " "], ["one"], ["on", "e"], ["one ", "two"], ["one", " two"], ["one", " ", "two"], ["one", "", "two"],
     [" one", "\n", "\n", " two", "three four "]],
)  # fmt: skip
def test_words_are_counted_across_text_nodes_and_only_as_far_as_needed(texts):
    words = len("".join(texts).split())
    assert count_words(texts, 99) == words
    assert count_words(texts, 2) == min(words, 2)


@pytest.mark.parametrize(
    ("html", "named"),
    [
        ("<a name=x></a>Word", True),
        ("<b> <span id=x></span></b>Word", True),
        ("<a id=x>Word</a>", True),
        ("Word <a name=x></a>", False),
        ("<b>Word</b><a name=x></a>", False),
        ("<b></b>Word<a name=x></a>", False),
        ("<a href=/y id=x>Word</a>", False),
        ("<a name=index-3></a>Word", False),
        ("<a class=indexterm id=x></a>Word", False),
    ],
)
def test_name_before_the_first_word_is_found(html, named):
    [div] = parse_html(f"<div>{html}</div><a name=after></a>").iter("div")
    assert begins_at_name(div) is named
