"""The watch of a run says how much is done, and expects its end by what takes longest."""

from typing import Any

import pytest
from kit.workshop import Workshop, small_site

from pipelines.indexing.watch import RunWatch
from pipelines.store import Store


@pytest.fixture
def watched(store: Store) -> tuple[RunWatch, list[str], Any]:
    """A watch of a run that staged four pages of twelve texts, a third of them embedded; what it told; the store."""
    workshop = Workshop(store, "docs")
    lock = workshop.lock()
    run = lock.begin("reindex", {})
    workshop.save(run, small_site(4))
    workshop.stage(run)
    told: list[str] = []
    return RunWatch(store, "docs", run, told.append), told, run


def test_a_crawl_ends_when_its_queue_is_done_at_this_pace(watched, store):
    watch, told, run = watched
    store.save_crawl(run, "https://docs.test/", False, "", {"queued": 12})
    watch._report_crawl(20.0)
    assert told == ["4 of 16 known pages, 12 chunks, 12 embedded, about 60 s left"]


def test_texts_that_wait_for_the_model_decide_about_the_end(watched, store):
    watch, told, run = watched
    store.claim(run, {f"text{number}": "page" for number in range(24)})
    watch._report_crawl(20.0)
    watch._report_crawl(50.0)
    watch._report_crawl(70.0)
    words = "4 of 4 known pages, 12 chunks, 12 embedded"
    assert told == [f"{words}, about 40 s left", f"{words}, about 10 s left", words]


def test_before_the_first_page_and_at_the_end_no_end_is_expected(watched, store):
    watch, told, run = watched
    RunWatch(store, "docs", run + 1, told.append)._report_crawl(20.0)
    watch._report_crawl(20.0)
    assert told == ["waiting for the first page", "4 of 4 known pages, 12 chunks, 12 embedded"]
