"""The crawler with the real database as its ledger."""

import time
from collections.abc import Iterator
from itertools import chain

import psycopg
import pytest
from kit.web import Answer, Handler, Site, page, redirect
from psycopg.rows import dict_row

from pipelines.indexing.crawling.crawl import CrawlReport, CrawlSettings, crawl
from pipelines.store import RunLock, Store

pytestmark = pytest.mark.slow


class Database:
    """Crawls a site into a fresh database and shows its page rows by path."""

    def __init__(self, store: Store):
        self.store, self.urls = store, []
        self.report: CrawlReport | None = None

    def crawl(self, site: Site, **settings) -> Iterator[list[str]]:
        lock = RunLock(self.store, "docs")
        assert lock.try_acquire()
        run = lock.begin("reindex", {})
        lock.release()
        job = CrawlSettings((f"{site.url}/",), allow_private=True, sitemap=False, backoff_s=0.01, **settings)
        self.report = yield from crawl(job, self.store.url, "docs", run, flush_s=0.1)

    def rows(self, site: Site) -> dict[str, dict]:
        with psycopg.connect(self.store.url, row_factory=dict_row) as connection:
            found = connection.execute("select * from page where collection = 'docs'").fetchall()
        return {row["url"].removeprefix(site.url): row for row in found}


@pytest.fixture
def database(store: Store) -> Database:
    return Database(store)


def _tagged(handler: Handler) -> Answer:
    if handler.headers.get("If-None-Match") == '"1"':
        return Answer("", 304)
    return Answer(page("/a", "/broken", "/moved"), headers={"ETag": '"1"'})


def test_two_crawls_remember_what_became_of_each_page(database):
    routes = {"/": _tagged, "/a": page("/b"), "/b": page(), "/broken": page("/leaf"), "/leaf": page()}
    with Site(routes | {"/moved": redirect("/b")}) as site:
        named = sorted(chain.from_iterable(database.crawl(site)))
        assert named == [f"{site.url}{path}" for path in ("/", "/a", "/b", "/broken", "/leaf")]
        first = database.rows(site)
        site.routes |= {"/a": Answer("", 410), "/broken": Answer("", 500)}
        named = sorted(chain.from_iterable(database.crawl(site, retries=0)))
        second = database.rows(site)
    assert named == [f"{site.url}{path}" for path in ("/", "/b", "/leaf")]
    states = {path: row["state"] for path, row in second.items()}
    assert states == {"/": "ok", "/a": "gone", "/b": "ok", "/broken": "failed", "/leaf": "ok", "/moved": "redirect"}
    for path in ("/", "/b", "/broken", "/leaf"):
        assert second[path]["content_hash"] == first[path]["content_hash"]
        assert second[path]["links"] == first[path]["links"]
    assert second["/"]["http_status"] == 304
    assert database.report.complete


def test_a_crawl_goes_on_when_its_database_sessions_are_killed(database):
    def slow(handler: Handler) -> str:
        time.sleep(0.1)
        return page()

    paths = [f"/{n}" for n in range(40)]
    with Site({"/": page(*paths)} | dict.fromkeys(paths, slow)) as site:
        killed, named = 0, []
        for urls in database.crawl(site, concurrency=4):
            named += urls
            if killed < 3:
                killed += _kill_other_sessions(database.store.url)
        assert sorted(named) == sorted(f"{site.url}{path}" for path in ["/", *paths])
        assert {row["state"] for row in database.rows(site).values()} == {"ok"}
    assert killed > 0
    assert database.report.complete


def _kill_other_sessions(url: str) -> int:
    query = """select count(pg_terminate_backend(pid)) from pg_stat_activity
               where datname = current_database() and pid <> pg_backend_pid()"""
    with psycopg.connect(url, autocommit=True) as connection:
        return connection.execute(query).fetchone()[0]
