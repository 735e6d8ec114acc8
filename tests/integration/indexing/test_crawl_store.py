"""The crawler with the real database as its ledger."""

from collections.abc import Iterator
from itertools import chain

import psycopg
import pytest
from kit.databases import end_sessions
from kit.web import Answer, Handler, Site, page, redirect, slow
from psycopg.rows import dict_row

from pipelines.indexing.crawling.crawl import CrawlReport, CrawlSettings, crawl
from pipelines.indexing.lock import hold_collection
from pipelines.store import Store

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("warm")]


class Database:
    """Crawls a site into a fresh database and returns its page rows by path."""

    def __init__(self, store: Store):
        self.store, self.urls = store, []
        self.report: CrawlReport | None = None

    def crawl(self, site: Site, **settings) -> Iterator[list[str]]:
        """Crawl in a new run. A crawl closed before its end counts as dead."""
        with hold_collection(self.store, "docs") as lock:
            run = lock.begin("reindex", {})
            yield from self.crawl_in(run, site, **settings)
            lock.finish(run, "done", {}, None)

    def crawl_in(self, run: int, site: Site, **settings) -> Iterator[list[str]]:
        job = CrawlSettings(start_urls=(f"{site.url}/",), allow_private=True, sitemap=False, backoff_s=0.01, **settings)
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
    modified = "Mon, 01 Jan 2024 00:00:00 GMT"
    return Answer(page("/a", "/broken", "/moved", "/list"), headers={"ETag": '"1"', "Last-Modified": modified})


def test_second_crawl_remembers_page_states_and_requests_unlinked_pages(database):
    routes = {"/": _tagged, "/a": page("/b"), "/b": page(), "/broken": page("/leaf"), "/leaf": page()}
    routes |= {"/list": page("/kept", "/vanishing"), "/kept": page("/child"), "/child": page(), "/vanishing": page()}
    with Site(routes | {"/moved": redirect("/b")}) as site:
        named = sorted(chain.from_iterable(database.crawl(site)))
        assert named == [f"{site.url}{path}" for path in sorted(routes)]
        first = database.rows(site)
        site.routes |= dict.fromkeys(("/a", "/vanishing"), Answer("", 410)) | {
            "/broken": Answer("", 500),
            "/list": page(),
        }
        named = sorted(chain.from_iterable(database.crawl(site, retries=0)))
        second = database.rows(site)
        assert not any("if-modified-since" in request.headers for request in site.requests)
    good = ["/", "/b", "/child", "/kept", "/leaf", "/list"]
    assert named == [f"{site.url}{path}" for path in good]
    states = {"/a": "gone", "/broken": "failed", "/moved": "redirect", "/vanishing": "gone"} | dict.fromkeys(good, "ok")
    assert {path: row["state"] for path, row in second.items()} == states
    for path in ("/", "/b", "/broken", "/leaf"):
        assert second[path]["content_hash"] == first[path]["content_hash"]
        assert second[path]["links"] == first[path]["links"]
    assert [second[path]["http_status"] for path in ("/", "/a", "/vanishing")] == [304, 410, 410]
    assert database.report.complete and database.report.counts["unchanged"] == 1


def test_crawl_continues_when_its_database_sessions_are_killed(database):
    paths = [f"/{n}" for n in range(40)]
    with Site({"/": page(*paths)} | dict.fromkeys(paths, slow(0.1))) as site:
        killed, named = 0, []
        for urls in database.crawl(site, concurrency=4):
            named += urls
            if killed < 3:
                killed += end_sessions(database.store.url)
        assert sorted(named) == sorted(f"{site.url}{path}" for path in ["/", *paths])
        assert {row["state"] for row in database.rows(site).values()} == {"ok"}
    assert killed > 0
    assert database.report.complete


def _killed_crawl(database: Database, site: Site) -> set[str]:
    """Crawl until a new page is yielded, kill the crawler, and return the paths of stored pages."""

    def stored() -> set[str]:
        return {path for path, row in database.rows(site).items() if row["body"] is not None}

    before, crawl = stored(), database.crawl(site, concurrency=4)
    while {url.removeprefix(site.url) for url in next(crawl)} <= before:
        pass
    crawl.close()
    return stored()


@pytest.mark.parametrize("same_run", [False, True], ids=["next run", "same run"])
def test_crawl_after_a_kill_refetches_no_stored_page(database, same_run):
    paths = [f"/{n}" for n in range(30)]
    routes = {"/": page("/moved", *paths), "/moved": redirect("/30")} | dict.fromkeys([*paths, "/30"], slow(0.05))
    with Site(routes) as site:
        first = _killed_crawl(database, site)
        stored = _killed_crawl(database, site)  # takes over the first run's stored pages, and is killed too
        assert {"/"} <= first < stored < {"/", *paths, "/30"}
        asked, run = len(site.paths()), database.rows(site)["/"]["run"]
        again = database.crawl_in(run, site) if same_run else database.crawl(site)
        assert {url.removeprefix(site.url) for url in chain.from_iterable(again)} == {"/", *paths, "/30"}
        assert set(site.paths()[asked:]) & stored == set()
        assert database.report.complete
        rows = database.rows(site).values()
        assert {row["run"] for row in rows} == {run + (not same_run)}
        assert {row["http_status"] for row in rows if row["body"] is not None} == {200}


def test_crawl_after_a_finished_one_refetches_all_pages(database):
    with Site({"/": page("/a"), "/a": page()}) as site:
        list(database.crawl(site))
        list(database.crawl(site))
        assert sorted(site.paths()) == ["/", "/", "/a", "/a"]
