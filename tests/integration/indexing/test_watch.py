"""A run's watch reports all progress in one line, and estimates the end by the slowest part."""

import re

import psycopg
import pytest
from kit.processes import eventually
from kit.workshop import BASE, Workshop, small_site

from pipelines.indexing.watch import RunWatch
from pipelines.store import Store

SITE = small_site(100)


class Watched:
    """A watch on the workshop's run, its messages, and pages staged one after another."""

    def __init__(self, store: Store) -> None:
        self.store, self.workshop = store, Workshop(store, "docs")
        self.run = self.workshop.lock().begin("reindex", {})
        self.told: list[str] = []
        self.watch = RunWatch(store, "docs", self.run, self.told.append)
        self.rules = self.workshop.rules.digest

    def stage(self, first: int, last: int) -> None:
        self.workshop.save(self.run, {path: SITE[path] for path in list(SITE)[first:last]})
        self.workshop.stage(self.run)

    @property
    def left(self) -> float | None:
        found = re.search(r"about (\d+) s left", self.told[-1])
        return float(found[1]) if found else None


@pytest.fixture
def watched(store: Store) -> Watched:
    return Watched(store)


def report(watched: Watched, at_s: float, queued: int) -> None:
    watched.store.save_crawl(watched.run, BASE, False, "", {"queued": queued})
    watched.watch._report_crawl(watched.rules, at_s)


def test_crawl_time_left_is_estimated_from_its_queue_and_pace(watched: Watched) -> None:
    for n in range(10):
        watched.stage(4 * n, 4 * n + 4)
        report(watched, 7e5 + 2.0 * n, 96 - 4 * n)
    assert watched.told[0] == "4 of 100 pages, 12 chunks, 12 embedded"
    assert watched.told[-1].startswith("40 of 100 pages, 120 chunks, 120 embedded, about ")
    assert watched.left == pytest.approx(30, abs=4)


def test_waiting_run_says_so_then_keeps_counting(watched: Watched, monkeypatch) -> None:
    monkeypatch.setattr("pipelines.indexing.watch.EVERY_S", 0.01)
    watched.stage(0, 10)
    size = watched.store.seen_pages("docs", watched.run)["bytes"]
    with watched.watch.embedding(watched.rules, 90, size):
        with watched.watch.waiting("waiting for a node that has room"):
            del watched.told[:]
            eventually(lambda: len(watched.told) > 2, "it reports")
            waited = set(watched.told[1:])
        eventually(lambda: watched.told[-1].startswith("10 of 100 pages"), "it counts again")
    assert waited == {"waiting for a node that has room"}


def test_run_without_a_cpu_says_so(store: Store, watched: Watched, monkeypatch) -> None:
    monkeypatch.setattr("pipelines.indexing.watch.EVERY_S", 0.01)
    others = [True]
    watch = RunWatch(store, "docs", watched.run, watched.told.append, starves=lambda: others[0])
    with watch.preparing("learning the layout of the pages"):
        eventually(lambda: bool(watched.told), "it says what waits")
    assert set(watched.told) == {"waiting for a CPU, which other processes use: learning the layout of the pages"}
    watched.stage(0, 10)
    size = store.seen_pages("docs", watched.run)["bytes"]
    with watch.embedding(watched.rules, 90, size):
        start = "waiting for a CPU, which other processes use: 10 of 100 pages"
        eventually(lambda: watched.told[-1].startswith(start), "it says that it waits")
        others[0] = False
        eventually(lambda: watched.told[-1].startswith("10 of 100 pages"), "it works again")
    del watched.told[:]
    with watch.preparing("learning the layout of the pages"):
        pass
    assert watched.told == []


def test_texts_waiting_for_the_model_determine_the_time_left(watched: Watched) -> None:
    watched.stage(0, 100)
    with psycopg.connect(watched.store.url, autocommit=True) as connection:
        connection.execute("create table kept as select * from staged_vector")
        connection.execute("delete from staged_vector")
        for n in range(10):  # a tenth of the texts in 20 s
            connection.execute("insert into staged_vector select * from kept limit 3 offset %s", [3 * n])
            report(watched, 2.0 * n, 0)
    assert watched.left == pytest.approx(180, rel=0.2) or watched.told[-1].endswith("3 min left")
    words = watched.told[-1]
    report(watched, 60.0, 0)  # nothing new is known: it counts down
    assert watched.told[-1] != words


def test_first_pages_of_a_crawl_do_not_predict_the_remaining_texts(watched: Watched) -> None:
    with psycopg.connect(watched.store.url, autocommit=True) as connection:
        watched.stage(0, 50)
        connection.execute("create table kept as select * from staged_vector")
        connection.execute("delete from staged_vector")
        for n in range(10):  # a fifth of the texts in 20 s
            connection.execute("insert into staged_vector select * from kept limit 3 offset %s", [3 * n])
            report(watched, 2.0 * n, 50)
        assert watched.left is None
        size = watched.store.seen_pages("docs", watched.run)["bytes"]
        with watched.watch.embedding(watched.rules, 50, size):
            watched.watch._report(watched.rules, 100, 2 * size, None, 20.0)
            assert watched.left is None, "no page of this phase is read"
            watched.stage(50, 60)
            watched.watch._report(watched.rules, 100, 2 * size, None, 22.0)
    assert watched.left is not None or " min left" in watched.told[-1]


def test_progress_line_continues_while_stored_pages_are_reread(watched: Watched) -> None:
    """After a crawl, pages are read again without their repeated parts: count and pace do not start over."""
    for n in range(10):
        watched.stage(4 * n, 4 * n + 4)
        report(watched, 2.0 * n, 0)
    size = watched.store.seen_pages("docs", watched.run)["bytes"]
    with watched.watch.embedding("other rules", 40, size):
        watched.watch._report("other rules", 40, size, None, 21.0)
    assert watched.told[-1].startswith("40 of 40 pages, 0 chunks, 120 embedded")


def test_no_time_left_is_estimated_before_the_first_page_or_at_the_end(watched: Watched) -> None:
    report(watched, 20.0, 0)
    watched.stage(0, 4)
    report(watched, 20.0, 0)
    assert watched.told == ["waiting for the first page", "4 of 4 pages, 12 chunks, 12 embedded"]


def test_clock_pauses_between_two_phases(store: Store) -> None:
    seconds = iter([100.0, 130.0, 137.0, 140.0, 150.0])
    watch = RunWatch(store, "docs", 1, str, lambda: next(seconds))
    with watch.embedding("rules", 0, 0):  # from 100 to 130
        pass
    with watch.embedding("rules", 0, 0):  # from 137 on
        assert watch._now() == 33.0
