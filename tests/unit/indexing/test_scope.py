"""URLs are normalized, and URLs outside a crawl are recognized."""

import pytest

from pipelines.indexing.crawling.scope import Scope, normalize_url


@pytest.mark.parametrize(
    ("url", "written"),
    [
        ("http://Example.COM", "http://example.com/"),
        ("http://h:80/a#part", "http://h/a"),
        ("https://h:443/a?q=1#part", "https://h/a?q=1"),
        ("https://h:80/", "https://h:80/"),
        ("http://h/a b?q=ü", "http://h/a%20b?q=%C3%BC"),
        ("http://h/a/../b/./c", "http://h/b/c"),
        ("http://h/a/%2E%2e/b", "http://h/b"),
        ("http://h/../../etc", "http://h/etc"),
        ("http://[::1]:8000/", "http://[::1]:8000/"),
        ("  http://h/x  ", "http://h/x"),
    ],
)
def test_one_page_has_one_spelling(url, written):
    assert normalize_url(url) == written
    assert normalize_url(written) == written


@pytest.mark.parametrize("path", ["/a", "/a/", "/a/index.html", "/A", "//a", "/a;b", "/%7Ea", "/a?b=&c", "/a.."])
def test_normalizing_never_rewrites_a_path(path):
    assert normalize_url(f"http://h{path}") == f"http://h{path}"


@pytest.mark.parametrize(
    ("query", "written"),
    [
        ("?utm_source=x&utm_Medium=y", ""),
        ("?page=2&fbclid=x", "?page=2"),
        ("?gclid=1&id=7&mc_cid=2&mc_eid=3&tab=b", "?id=7&tab=b"),
        ("?_ga=1.2&pk_campaign=x&mtm_source=y&msclkid=z&srsltid=q&_hsenc=p2", ""),
        ("?ref=main&source=git&from=x&campaign=2&sort=utm_source", None),
        ("?utm_source", None),
        ("?custom=1&xutm_source=2&gclid2=3&b=&c", None),
        ("?q=a%26utm_source%3Db", None),
    ],
)
def test_tracking_parameters_are_removed_from_a_url(query, written):
    assert normalize_url(f"http://h/a{query}") == f"http://h/a{query if written is None else written}"


def test_endless_url_is_no_page():
    assert normalize_url("http://h/" + "a/" * 2000) is None


BELOW = [
    "http://h/docs",  # a site without trailing slashes has the folder itself there
    *("http://h/docs/", "http://h/docs/a/b.html?x", "https://h/docs/a", "http://h/docs/v1.2"),
    *("http://h/docs/manual.pdf", "http://h/docs/zip", "http://h/docs/a.b/"),
    *("http://h/docs/Node.js", "http://h/docs/package.json", "http://h/docs/ld.so"),  # their media types decide
]
OUTSIDE = [
    *("http://h/docs2/", "http://h/", "http://www.h/docs/", "http://h:8000/docs/"),
    *("http://h/docs/logo.PNG", "http://h/docs/app.zip?v=1", "http://h/docs/a.zip"),  # not pages, by their suffixes
]


@pytest.mark.parametrize("url", [*BELOW, *OUTSIDE])
def test_crawl_stays_on_its_host_and_below_its_start(url):
    assert (url in Scope(["http://h/docs/index.html"], (), (), no_parent=True)) is (url in BELOW)


@pytest.mark.parametrize(
    ("start", "links", "folder"),
    [
        ("/docs", ["/docs/a", "/blog"], "/docs/"),
        ("/docs", ["/docs/"], "/docs/"),
        ("/docs/v1.2", ["/docs/v1.2/a"], "/docs/v1.2/"),
        ("/docs", ["/docs2/a", "/blog"], ""),
        ("/docs/intro", ["/docs/setup"], ""),
        ("/docs.html", ["/docs.html/a"], ""),
        ("/docs/", ["/docs/a/b"], ""),
    ],
)
def test_start_url_without_a_slash_is_a_folder_if_it_links_into_it(start, links, folder):
    urls = [f"http://h{link}" for link in links]
    scope = Scope([f"http://h{start}"], (), (), no_parent=True)
    assert scope.settle(f"http://h{start}", urls) == folder and scope.is_settled
    assert ("http://h/blog" in scope) is (not folder and start.count("/") == 1)
    for others in ({"no_parent": False}, {"include": ("/",)}):
        wide = Scope([f"http://h{start}"], **{"include": (), "exclude": (), "no_parent": True} | others)
        assert wide.is_settled and wide.settle(f"http://h{start}", urls) == ""


def test_unread_start_url_keeps_the_pages_below_it():
    scope = Scope(["http://h/docs", "http://h/old/guide"], (), (), no_parent=True)
    assert scope.settle("http://h/docs", None) == "" and not scope.is_settled
    assert "http://h/docs/a" in scope and "http://h/docs" in scope and "http://h/blog" not in scope
    assert "http://h/old/a" in scope  # the other start URL still decides
    assert scope.settle("http://h/old/guide", []) == "" and scope.is_settled and "http://h/old/a" in scope


def test_whole_host_is_in_scope_if_no_parent_is_off():
    scope = Scope(["http://h/docs/"], (), (), no_parent=False)
    assert "http://h/blog" in scope
    assert "http://x/docs/" not in scope


def test_patterns_decide_except_for_the_start_url():
    scope = Scope(["http://h/"], ("/en/",), ("/en/old/", r"\?print"), no_parent=True)
    urls = ["http://h/", "http://h/en/a", "http://h/de/a", "http://h/en/old/a", "http://h/en/a?print=1"]
    assert [url for url in urls if url in scope] == urls[:2]
