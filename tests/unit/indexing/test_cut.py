"""A child process reads and cuts pages: it is ready before its first page, and a page that hangs costs its limit."""

import pytest

from pipelines.indexing.chunking.page_cutter import PageCutter
from pipelines.indexing.reading.child_process import Child
from pipelines.indexing.reading.read import PageReader
from pipelines.indexing.reading.text import UnreadablePage
from pipelines.records import IndexSettings, Page

SETTINGS = IndexSettings(model="hash:16", dimension=16)


def test_a_page_comes_back_as_its_chunks() -> None:
    body = b"<html lang=en><title>T</title><main><h1 id=top>Top</h1><p>Some text.</p></main></html>"
    with PageReader(PageCutter(SETTINGS)) as reader:
        page = reader(Page("http://x/", body))
    assert (page.title, page.language, page.sections) == ("Top", "en", 1)
    assert [(chunk.anchor, chunk.text) for chunk in page.chunks] == [("top", "Some text.")]


def test_cutting_that_takes_too_long_is_an_unreadable_page_and_the_next_one_is_read() -> None:
    slow = b"<p>" + b" ".join(str(number).encode() for number in range(600_000)) + b"</p>"
    child, cut = Child(), PageCutter(SETTINGS)
    with PageReader(cut, child=child) as reader, PageReader(cut, patience=0.02, child=child) as impatient:
        assert reader(Page("http://x/", b"<p>Ready.</p>")).chunks
        with pytest.raises(UnreadablePage, match="too long"):
            impatient(Page("http://x/slow", slow))
        assert reader(Page("http://x/", b"<p>Text.</p>")).chunks
