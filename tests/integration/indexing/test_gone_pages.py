"""Pages are gone only after everything that may lead to them has been read completely."""

import psycopg
import pytest
import yaml
from kit.reindexing import Jobs, html_page
from kit.web import Answer
from kit.web import Site as WebSite
from kit.workshop import BASE, fetched

from pipelines.indexing.collection import Collection
from pipelines.indexing.crawling.crawl import Site
from pipelines.indexing.folders.folder import Folder
from pipelines.indexing.lock import hold_collection
from pipelines.indexing.sources.absence import mark_unseen
from pipelines.indexing.sources.folder import FolderSource
from pipelines.indexing.sources.site import SiteSource
from pipelines.store import Store

ONE, TWO = (
    Site(start_urls=["http://docs.test/one/"]),
    Site(start_urls=[f"{BASE}two/"], exclude=["/old/"]),
)  # links to https
WHOLE = Folder(path="pages", base_url=BASE)
PAGES = ("one/a", "two/a", "two/old/a", "a")


@pytest.mark.parametrize(
    ("folders", "complete", "gone"),
    [
        ([], [ONE, TWO], PAGES),  # including those that no source leads to
        ([], [ONE], ("one/a", "two/old/a", "a")),
        ([], [TWO], ("two/a", "two/old/a", "a")),
        ([], [], ()),
        ([WHOLE], [], ("two/old/a", "a")),
    ],
)
def test_pages_that_another_source_may_contain_stay(jobs: Jobs, store: Store, folders, complete, gone):
    with hold_collection(store, "docs") as lock:
        first, second = (lock.begin("reindex", {}) for _ in range(2))
    store.save_pages("docs", first, [fetched(path, {"s": path}) for path in (*PAGES, "one/seen")])
    store.save_pages("docs", second, [fetched("one/seen", {"s": "seen"})])
    collection = Collection(name="docs", sites=[ONE, TWO], folders=folders)
    read = [*(SiteSource(host) for site in complete for host in site.hosts()), *map(FolderSource, folders)]
    mark_unseen(store, "docs", second, collection.page_sources(), read)
    assert tuple(path for path in (*PAGES, "one/seen") if jobs.page_states()[path] == "gone") == gone


@pytest.mark.slow
def test_incomplete_or_omitted_site_loses_no_page_to_another_on_its_host(jobs: Jobs, tmp_path):
    words = {"s": "Some text that is long enough to be read."}
    routes = {f"/{part}/{name}.html": html_page(name, words) for part in "abc" for name in "123"}
    starts = {f"/{part}/": html_page(part, words, links=("1.html", "2.html", "3.html")) for part in "abc"}
    with WebSite(routes | starts) as web:

        def index(parts: str, *flags: object) -> set[str]:
            site = {"allow_private": True, "retries": 0}
            sites = [site | {"start_urls": [f"{web.url}/{part}/"]} for part in parts]
            (tmp_path / "docs.yaml").write_text(yaml.safe_dump({"sites": sites, "max_delete_ratio": 0.5}))
            done = jobs.run("reindex", tmp_path / "docs.yaml", "--model", "hash:64", "--no-ray", *flags)
            assert done.code in (0, 3)
            return {source.partition("#")[0] for source in jobs.texts()}

        assert len(index("ab")) == 8
        web.routes["/b/"] = Answer("", 404)
        assert len(index("ab")) == 8
        web.routes |= starts
        assert index("ab", "--chunk-size", 100) >= {"b/1.html", "b/2.html", "b/3.html"}
        assert len(index("abc", "--chunk-size", 90)) >= 11  # only c is crawled


@pytest.mark.slow
def test_folder_inside_another_keeps_the_attempts_of_its_pages(jobs: Jobs, tmp_path):
    for name in ("outer", "inner"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.html").write_text(html_page(name, {"s": f"Some text of {name}."}))
    (tmp_path / "inner/x.pdf").write_bytes(b"%PDF-1.4 broken")
    folders = [
        {"path": f"{tmp_path}/outer", "base_url": BASE},
        {"path": f"{tmp_path}/inner", "base_url": f"{BASE}api/"},
    ]
    (tmp_path / "docs.yaml").write_text(yaml.safe_dump({"folders": folders}))
    for _ in range(3):
        jobs.run("reindex", tmp_path / "docs.yaml", "--model", "hash:64", "--no-ray")
    with psycopg.connect(jobs.url) as connection:
        query = "select attempts from page where url like '%.pdf'"
        assert connection.execute(query).fetchone() == (3,)
