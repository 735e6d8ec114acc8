"""Link targets resolve to URLs, and tables have a header and rows."""

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
def test_link_leads_to_a_web_page_or_nowhere(href, url):
    assert absolute_url("https://h/a/", href) == url


def test_header_of_a_table_without_rows_becomes_its_row():
    head, row = ((Span("a"),),), ((Span("b"),),)
    assert (Table(head).head, Table(head).rows) == ((), [head])
    assert (Table(head, [row]).head, Table(head, [row]).rows) == (head, [row])
