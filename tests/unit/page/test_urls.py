"""Where the links of a page lead, and what the rows of a table are."""

import pytest

from pipelines.page.tree import Span, Table
from pipelines.page.urls import absolute_url


@pytest.mark.parametrize(
    ("href", "url"),
    [
        ("b", "https://h/a/b"),
        (" /b#c ", "https://h/b#c"),
        ("//x/b", "https://x/b"),
        ("?q=1", "https://h/a/?q=1"),
        ("mailto:a@h", ""),
        ("javascript:x()", ""),
        ("http:///b", ""),
        ("http://[b", ""),
    ],
)
def test_a_link_leads_to_a_page_of_the_web_or_nowhere(href, url):
    assert absolute_url("https://h/a/", href) == url


def test_a_table_that_has_only_a_head_has_it_for_its_row():
    head, row = ((Span("a"),),), ((Span("b"),),)
    assert (Table(head).head, Table(head).rows) == ((), [head])
    assert (Table(head, [row]).head, Table(head, [row]).rows) == (head, [row])
