"""The demo's documentation site: every page in docs/ is served, and every link leads to a page."""

import re
import socket
import struct
import urllib.error
import urllib.request
from pathlib import Path
from urllib.parse import urljoin, urlsplit

import pytest

from jobs import demo
from jobs.cli import BadInput
from jobs.documentation import render_documentation, serve_documentation

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    return render_documentation(ROOT)


def test_every_page_of_the_docs_is_on_the_site(pages):
    assert len(pages) == 3 + len(list((ROOT / "docs").rglob("*.md")))
    assert {"/", "/SECURITY.html", "/freshness.html", "/decisions/README.html"} <= set(pages)


def test_source_tree_page_answers_no_question(pages):
    """A question about a command would find the names and first lines of its modules."""
    page = pages["/architecture.html"]
    assert "building/" not in page and "tracing.py" not in page and "The way of a question" in page


def test_every_link_leads_to_a_page_and_keeps_its_anchor(pages):
    for path, page in pages.items():
        for link in re.findall(r'href="([^"]+)"', page):
            target = urlsplit(urljoin(f"http://site{path}", link))
            assert target.netloc != "site" or target.path in pages, f"{path}: {link}"
    assert 'href="/serving.html#' in "".join(pages.values())


def test_pages_are_served_as_html_and_connection_resets_are_ignored(capfd):
    with serve_documentation(ROOT) as site:
        for path in ("", "freshness.html", "decisions/README.html"):
            with urllib.request.urlopen(f"{site}{path}") as page:
                assert b"<h1" in page.read() and page.headers["Content-Type"].startswith("text/html")
        with pytest.raises(urllib.error.HTTPError, match="404"):
            urllib.request.urlopen(f"{site}nothing.html")
        address = urlsplit(site)
        for _ in range(5):  # fills the server's queue: a sixth would wait a second
            with socket.create_connection((address.hostname, address.port)) as client:
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # closing sends a reset
                client.sendall(b"GET /freshness.html HTTP/1.1\r\n")
        assert urllib.request.urlopen(site).status == 200
    assert capfd.readouterr().err == ""


def test_demo_without_docs_requires_a_site(tmp_path):
    with pytest.raises(BadInput, match="--site URL"):
        render_documentation(tmp_path)


@pytest.mark.parametrize(("site", "collection"), [
    (None, "demo"), ("http://127.0.0.1:3000/", "demo-127.0.0.1"), ("http://127.0.0.1:4000/docs/", "demo-127.0.0.1"),
    ("https://Docs.Example.com/guide", "demo-docs.example.com"), ("http://[::1]:9/", "demo--1"),
])  # fmt: skip
def test_site_is_the_same_collection_on_any_port(site, collection):
    assert demo.collection_of(site) == collection
