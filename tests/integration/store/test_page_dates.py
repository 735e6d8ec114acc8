"""The dates when a page was checked and changed, and their use in answers and freshness."""

import asyncio
from datetime import datetime

import psycopg
import pytest

from pipelines.answering.grounding.dates import SourceDates
from pipelines.fetched import FetchedPage
from pipelines.indexing.lock import hold_collection
from pipelines.records import Answer, Citation
from pipelines.store import Store, StoreUnavailable

URL = "https://docs.example/a"


def done(store: Store, kind: str = "reindex", **counts: object) -> int:
    """Record a finished run."""
    with hold_collection(store, "docs") as lock:
        run = lock.begin(kind, {})
        lock.finish(run, "done", counts, None)
    return run


@pytest.fixture
def run(store: Store) -> int:
    return done(store)


def dates(store: Store) -> tuple[datetime, datetime]:
    row = store.page_dates("docs", [URL])[URL]
    return row["checked"], row["changed"]


def test_each_good_fetch_checks_a_page_and_only_new_content_changes_it(store, run):
    save = lambda **page: store.save_pages("docs", run, [FetchedPage(URL, **page)])  # noqa: E731
    save(state="ok", body=b"one")
    checked, changed = dates(store)
    save(state="ok", http_status=304)
    again, same = dates(store)
    assert (again > checked, same) == (True, changed)
    save(state="failed", error="time-out")
    assert dates(store) == (again, changed)
    save(state="ok", body=b"one")
    assert dates(store)[1] == changed
    save(state="ok", body=b"two")
    last, new = dates(store)
    assert (last > again, new > changed) == (True, True)


def test_answer_has_the_dates_of_its_sources_and_the_age_of_the_oldest(store, run):
    store.save_pages("docs", run, [FetchedPage(url, "ok", body=b"x") for url in (URL, f"{URL}b")])
    with psycopg.connect(store.url) as connection:
        connection.execute("update page set checked_at = '2026-01-02T03:04:05Z' where url = %s", [f"{URL}b"])
    sources = (f"{URL}#one", f"{URL}b#two", "https://docs.example/unknown")
    answer = Answer("q", "a", citations=tuple(Citation(n, one) for n, one in enumerate(sources, 1)), collection="docs")
    dated = asyncio.run(SourceDates(store).add(answer))
    first, second, unknown = dated.citations
    assert datetime.fromisoformat(first.changed) and first.checked > second.checked
    assert (second.checked, unknown.checked, dated.as_of) == ("2026-01-02T03:04:05+00:00", "", second.checked)
    assert Answer.from_dict(dated.to_dict()).citations == dated.citations


def test_answer_without_the_database_has_no_dates():
    class Away:
        def page_dates(self, collection: str, urls: object) -> dict:
            raise StoreUnavailable("gone")

    answer = Answer("q", "a", citations=(Citation(1, URL),), collection="docs")
    assert asyncio.run(SourceDates(Away()).add(answer)) == answer
    assert answer.as_of == ""


def test_pages_failing_for_days_are_counted(store, run):
    store.save_pages("docs", run, [FetchedPage(URL, "ok", body=b"x")])
    store.save_pages("docs", run, [FetchedPage(url, "failed", error="x") for url in (URL, f"{URL}new")])
    assert store.freshness("docs").failing == 0
    with psycopg.connect(store.url) as connection:
        connection.execute("update page set checked_at = now() - interval '4 days' where checked_at is not null")
    assert store.freshness("docs").failing == 1
    with psycopg.connect(store.url) as connection:
        connection.execute("update run set started = now() - interval '4 days'")
    assert store.freshness("docs").failing == 2
    assert store.freshness("docs").last_run is not None


def test_refused_night_makes_nothing_fresh(store, run):
    good = store.freshness("docs").last_run
    done(store, "nightly", night={"verdict": "refused"})
    assert store.freshness("docs").last_run == good
    done(store, "nightly", night={"verdict": "unchanged"})
    assert store.freshness("docs").last_run > good


def test_last_good_run_is_remembered_so_its_age_can_trigger_a_warning(store, run):
    with psycopg.connect(store.url) as connection:
        connection.execute("update run set started = started - interval '90 days', ended = ended - interval '90 days'")
    assert store.forget_past("docs") == (0, 0)
    assert any("no full run" in warning for warning in store.freshness("docs").warnings())


def test_old_runs_and_removed_pages_are_deleted(store, run):
    done(store)
    now = done(store)
    gone = [FetchedPage(f"{URL}{n}", "gone") for n in range(2)]
    store.save_pages("docs", run, [FetchedPage(URL, "ok", body=b"x"), gone[0]])
    store.save_pages("docs", now, [gone[1]])
    assert store.forget_past("docs") == (0, 0)
    with psycopg.connect(store.url) as connection:
        connection.execute("update run set started = started - interval '31 days' where id = %s", [run])
    assert store.forget_past("docs") == (1, 1)
    status = store.status("docs")
    assert (status["pages"], [one["id"] for one in status["runs"]]) == ({"gone": 1, "ok": 1}, [now, now - 1])
