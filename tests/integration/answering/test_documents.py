"""The pages of an index: their listing, their bodies as indexed, their versions."""

import pytest
from kit.html_workshop import HtmlWorkshop
from kit.workshop import BASE

from pipelines.fetched import FetchedPage
from pipelines.store import Store

SITE = {
    f"{version}/{name}.html": f"<html lang='en'><h1>{name} {version}</h1><p>Words of {name} in {version}.</p></html>"
    for version in ("1.0", "2.0")
    for name in ("a", "b", "c")
}


@pytest.fixture
def workshop(store: Store) -> HtmlWorkshop:
    """Index SITE as a collection."""
    workshop = HtmlWorkshop(store)
    workshop.reindex(SITE)
    return workshop


def test_pages_are_listed_in_order_and_in_batches(store: Store, workshop: HtmlWorkshop) -> None:
    index = workshop.live().id
    pages = store.list_pages(index)
    assert [page.url for page in pages] == sorted(BASE + path for path in SITE)
    assert (pages[0].title, pages[0].begins) == ("a 1.0", "Words of a in 1.0.")
    first = store.list_pages(index, most=2)
    assert first + store.list_pages(index, after=first[-1].url) == pages
    assert store.indexed_urls(index) == [page.url for page in pages]
    assert store.common_url(index) == BASE


def test_pages_of_several_hosts_share_no_common_url(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    workshop = HtmlWorkshop(store)
    monkeypatch.setattr("kit.html_workshop.BASE", "https://")
    workshop.reindex({f"{host}.test/a.html": f"<h1>{host}</h1><p>Words of {host}.</p>" for host in ("one", "two")})
    assert store.common_url(workshop.live().id) == ""


def test_versions_and_languages_are_listed_once_each(store: Store, workshop: HtmlWorkshop) -> None:
    assert store.versions(workshop.live().id) == []
    versioned = HtmlWorkshop(store, "versioned", version=r"/(\d\.\d)/")
    versioned.reindex(SITE)
    assert store.versions(versioned.live().id) == ["1.0", "2.0"]
    assert store.languages(versioned.live().id) == ["en"]


def test_page_has_the_body_that_was_indexed(store: Store, workshop: HtmlWorkshop) -> None:
    index, url = workshop.live(), f"{BASE}1.0/a.html"
    page = store.indexed_page(index, url)
    assert page and b"Words of a in 1.0." in page.body
    run = workshop.lock().begin("reindex", {})
    store.save_pages("docs", run, [FetchedPage(url, "ok", 200, body=b"<h1>Newer</h1>")])
    assert store.indexed_page(index, url) is None, "a body that is not indexed yet"
    assert store.indexed_page(index, f"{BASE}nowhere") is None


def test_page_is_found_by_its_url_or_the_url_of_a_copy(store: Store, workshop: HtmlWorkshop) -> None:
    index, url = workshop.live(), f"{BASE}1.0/a.html"
    assert store.find_pages(index, [f"{BASE}x", url]) == [url]
    run = workshop.lock().begin("reindex", {})
    store.save_pages("docs", run, [FetchedPage(f"{BASE}copy", "ok", 200, body=b"<h1>a</h1>", canonical=url)])
    assert store.find_pages(index, [f"{BASE}copy"]) == []  # its canonical may be a page that it is no copy of
    store.mark_duplicates("docs", run, {f"{BASE}copy": url})
    assert store.find_pages(index, [f"{BASE}copy"]) == [url]
    assert store.find_pages(index, [f"{BASE}nowhere", "\0"]) == []


def test_index_without_pages_lists_none(store: Store) -> None:
    workshop = HtmlWorkshop(store)
    workshop.reindex({"empty.html": "<h1>Only a title</h1>"})
    index = workshop.live().id
    assert (store.list_pages(index), store.common_url(index), store.versions(index)) == ([], "", [])
