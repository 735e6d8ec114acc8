"""URLs are normalized, and those outside a crawl are recognised."""

import pytest

from pipelines.indexing.crawling.scope import Scope, looks_binary, normalize_url


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
def test_no_rule_rewrites_a_path(path):
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
def test_tracking_parameters_are_not_a_part_of_a_url(query, written):
    assert normalize_url(f"http://h/a{query}") == f"http://h/a{query if written is None else written}"


def test_an_endless_url_is_no_page():
    assert normalize_url("http://h/" + "a/" * 2000) is None


@pytest.mark.parametrize(
    ("url", "inside"),
    [
        ("http://h/docs/", True),
        ("http://h/docs/a/b.html?x", True),
        ("https://h/docs/a", True),
        ("http://h/docs", False),
        ("http://h/docs2/", False),
        ("http://h/", False),
        ("http://www.h/docs/", False),
        ("http://h:8000/docs/", False),
        ("http://h/docs/logo.PNG", False),
        ("http://h/docs/app.js?v=1", False),
        ("http://h/docs/v1.2", True),
        ("http://h/docs/manual.pdf", True),
    ],
)
def test_a_crawl_stays_on_its_host_and_below_its_start(url, inside):
    assert (url in Scope(["http://h/docs/index.html"], (), (), no_parent=True)) is inside


def test_without_no_parent_the_whole_host_is_inside():
    scope = Scope(["http://h/docs/"], (), (), no_parent=False)
    assert "http://h/blog" in scope
    assert "http://x/docs/" not in scope


def test_patterns_decide_but_not_about_the_start():
    scope = Scope(["http://h/"], ("/en/",), ("/en/old/", r"\?print"), no_parent=True)
    assert [url for url in ("http://h/", "http://h/en/a", "http://h/de/a", "http://h/en/old/a") if url in scope] == [
        "http://h/",
        "http://h/en/a",
    ]
    assert "http://h/en/a?print=1" not in scope


@pytest.mark.parametrize(
    ("url", "binary"), [("http://h/a.zip", True), ("http://h/zip", False), ("http://h/a.b/", False)]
)
def test_only_the_file_names_extension_says_binary(url, binary):
    assert looks_binary(url) is binary
