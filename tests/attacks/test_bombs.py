"""Small replies that unpack to gigabytes, never end, or stall a parser do not stop a crawl or exhaust memory.

Each bomb is one page of a site and is fetched in its own crawl. Hostile pages are then read like in a job. The tables
show the time and peak memory of the process that handled the bomb.
"""

import gzip
import threading
import time
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest
from kit.page_ledger import FileLedger, finish
from kit.reporting import table
from kit.web import Answer, Route, Site, page, pouring

from pipelines.indexing.crawling.crawl import CrawlReport, CrawlSettings, crawl
from pipelines.indexing.reading.read import PageReader, read_page
from pipelines.indexing.reading.text import UnreadablePage
from pipelines.records import Page

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads a process's peak memory from /proc"),
]

LEDGER = "tests.kit.page_ledger:FileLedger"
MOST_CRAWLING_MB, MOST_READING_MB = 160, 1_024  # above the memory for a harmless page
QUIET_S = 15  # for a reply. On a busy machine, harmless pages need less too; endless bombs always take this long
LAUGHS = b'<?xml version="1.0"?><!DOCTYPE l [<!ENTITY a0 "ha">' + b"".join(
    b'<!ENTITY a%d "%s">' % (n, b"&a%d;" % (n - 1) * 10) for n in range(1, 10)
)  # fmt: skip
OUTSIDE = b'<?xml version="1.0"?><!DOCTYPE l [<!ENTITY f SYSTEM "file:///etc/passwd">'


def packed(kind: int, mib: int = 512) -> bytes:
    """Return `mib` MiB of compressed zeros. `kind` is zlib's window bits."""
    packer = zlib.compressobj(1, wbits=kind)
    return b"".join(packer.compress(bytes(1 << 20)) for _ in range(mib)) + packer.flush()


def html(body: bytes, encoding: str = "") -> Answer:
    return Answer(body, headers={"Content-Encoding": encoding} if encoding else {})


def sitemap(body: bytes) -> dict[str, Route]:
    return {"/sitemap.xml": Answer(body, headers={"Content-Type": "application/xml"})}


CHUNKED = b"Content-Type: text/html\r\nTransfer-Encoding: chunked\r\n\r\n"
FETCHED: dict[str, Callable[[], dict[str, Route]]] = {
    "harmless": lambda: {"/bomb": page("/x")},
    "gzip, 512 MiB": lambda: {"/bomb": html(packed(31), "gzip")},
    "deflate, 512 MiB": lambda: {"/bomb": html(packed(15), "deflate")},
    "raw deflate, 512 MiB": lambda: {"/bomb": html(packed(-15), "deflate")},
    "gzip of gzip": lambda: {"/bomb": html(gzip.compress(packed(31)), "gzip, gzip")},
    "gzip of 40 layers named": lambda: {"/bomb": html(packed(31, 8), ", ".join(["gzip"] * 40))},
    "brotli": lambda: {"/bomb": html(b"\x5b\xff\xff\xff\x03" * 1000, "br")},
    "zstd": lambda: {"/bomb": html(b"(\xb5/\xfd" * 1000, "zstd")},
    "a line of 50 MB": lambda: {"/bomb": html(b"x" * 50_000_000)},
    "a head of one long line": lambda: {"/bomb": pouring(b"X-Pad: ", b"x" * 65536)},
    "a head of endless lines": lambda: {"/bomb": pouring(b"", b"X-Pad: x\r\n" * 1000)},
    "endless chunks": lambda: {"/bomb": pouring(CHUNKED, b"10000\r\n" + b"x" * 65536 + b"\r\n")},
    "endless chunks of one byte": lambda: {"/bomb": pouring(CHUNKED, b"1\r\nx\r\n" * 5000)},
    "an endless chunk extension": lambda: {"/bomb": pouring(CHUNKED + b"1;", b"x" * 65536)},
    "a chunk of 2**63": lambda: {"/bomb": pouring(CHUNKED + b"7fffffffffffffff\r\n", b"x" * 65536)},
    "a byte a second": lambda: {"/bomb": pouring(b"Content-Type: text/html\r\n\r\n", b"x", 1.0)},
    "a head, a byte a second": lambda: {"/bomb": pouring(b"X-Pad: ", b"x", 1.0)},
    "10,000 links": lambda: {"/bomb": page(*(f"/l{n}" for n in range(10_000)))},
    "100,000 links": lambda: {"/bomb": page(*(f"/l{n}" for n in range(100_000)))},
    "100,000 anchors": lambda: {"/bomb": "<main>" + "".join(f'<p id="a{n}">w</p>' for n in range(100_000)) + "</main>"},
    "100,000 robots rules": lambda: {
        "/robots.txt": Answer("User-agent: *\n" + "Disallow: /*a*b*c$\n" * 100_000), "/bomb": page()
    },
    "sitemap, gzip 512 MiB": lambda: {"/bomb": page(), **sitemap(packed(31))},
    "sitemap, XML entities": lambda: {
        "/bomb": page(), **sitemap(LAUGHS + b"]><urlset><url><loc>http://x/&a9;</loc></url></urlset>")
    },
    "sitemap, outside entity": lambda: {
        "/bomb": page(), **sitemap(OUTSIDE + b"]><urlset><url><loc>http://x/&f;</loc></url></urlset>")
    },
    "sitemap of itself": lambda: {
        "/bomb": page(),
        **sitemap(b"<sitemapindex>%b</sitemapindex>" % (b"<sitemap><loc>/sitemap.xml</loc></sitemap>" * 50_000)),
    },
}  # fmt: skip


# One of each kind; `make test-all` tries the others too.
OFTEN = {
    "gzip, 512 MiB", "a head of endless lines", "endless chunks", "sitemap, XML entities", "100,000 divs deep",
    "an outside entity", "a line of 4 MB", "RST, file inclusion", "PDF of itself", "Markdown, 100,000 quotes deep",
}  # fmt: skip


def tiered(names: Iterable[str]) -> list[object]:
    """Return the names as parameters. Names outside OFTEN belong to the exhaustive tier."""
    return [pytest.param(name, marks=() if name in OFTEN else pytest.mark.exhaustive) for name in names]


class PeakMemory:
    """The peak memory of any child of this process in the block, in MB."""

    def __init__(self) -> None:
        self.mb = 0.0

    @contextmanager
    def measured(self) -> Iterator[None]:
        over, before = threading.Event(), {child.pid for child in psutil.Process().children()}
        thread = threading.Thread(target=self._sample, args=(over, before))
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()

    def _sample(self, over: threading.Event, before: set[int]) -> None:
        while not over.wait(0.1):  # listing all processes takes as long as some of these pages
            for child in psutil.Process().children():
                if child.pid not in before and not _is_fork(child.pid):
                    self.mb = max(self.mb, _peak_mb(child.pid))


def _is_fork(pid: int) -> bool:
    """Return whether the process is a fork of this one that has not executed its program yet."""
    own = Path("/proc/self/cmdline").read_bytes()
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes() == own
    except OSError:
        return True


def _peak_mb(pid: int) -> float:
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0.0
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM")), 0.0)


def crawled(ledger: Path, site: Site) -> CrawlReport:
    settings = CrawlSettings(
        start_urls=(f"{site.url}/",), allow_private=True, retries=0, timeout_s=QUIET_S, max_depth=1, backoff_s=0.01
    )
    return finish(crawl(settings, str(ledger), "docs", 1, ledger=LEDGER, flush_pages=1))[1]


fetching = table("bombs that are fetched", ("bomb", "held", "time", "peak of the crawler"))
reading = table("bombs that are read", ("bomb", "held", "time", "peak of the reader"))


@pytest.fixture(scope="module")
def harmless_mb(tmp_path_factory: pytest.TempPathFactory, fetching: list[tuple[str, ...]]) -> float:
    return fetched("harmless", tmp_path_factory.mktemp("harmless") / "ledger", fetching)


def fetched(name: str, ledger: Path, rows: list[tuple[str, ...]]) -> float:
    """Crawl a site with a bomb between two harmless pages, and return the crawler's peak memory in MB."""
    peak = PeakMemory()
    with Site({"/": page("/bomb", "/after"), "/after": page(), **FETCHED[name]()}) as site:
        began = time.monotonic()
        with peak.measured():
            crawled(ledger, site)
        seconds = time.monotonic() - began
        pages = {url.removeprefix(site.url): row for url, row in FileLedger(str(ledger)).rows.items()}
    assert pages["/"]["state"] == pages["/after"]["state"] == "ok", pages
    assert not any("passwd" in url or "root:" in url for url in pages)
    bomb = pages["/bomb"]
    held = f"{bomb['state']}: {bomb['error']}" if bomb["error"] else bomb["state"]
    rows.append((name, held[:70], f"{seconds:.1f} s", f"{peak.mb:.0f} MB"))
    return peak.mb


@pytest.mark.parametrize("name", tiered(name for name in FETCHED if name != "harmless"))
def test_crawl_survives_a_bomb_and_continues(tmp_path, fetching, harmless_mb, name):
    assert fetched(name, tmp_path / "ledger", fetching) - harmless_mb < MOST_CRAWLING_MB


# ------------------------------------------------------------------------------------------------ reading

NESTED = 100_000
READ: dict[str, tuple[bytes, str]] = {
    "100,000 anchors": (b"<main>" + b"".join(b'<h2 id="a%d">t</h2>' % n for n in range(100_000)), "text/html"),
    "10,000 links": (b"<main><p>" + b"".join(b'<a href="/%d">t</a>' % n for n in range(10_000)), "text/html"),
    "100,000 links": (b"<main><p>" + b"".join(b'<a href="/%d">t</a>' % n for n in range(100_000)), "text/html"),
    "100,000 divs deep": (b"<div>" * NESTED + b"x" + b"</div>" * NESTED, "text/html"),
    "100,000 attributes": (b"<p " + b" ".join(b"a%d=1" % n for n in range(100_000)) + b">x</p>", "text/html"),
    "100,000 open comments": (b"<!--" * 100_000, "text/html"),
    "100,000 open tags": (b"<a" * 100_000, "text/html"),
    "a table of 100,000 cells": (b"<table><tr>" + b"<td>x" * 100_000, "text/html"),
    "100,000 exponents": (b"<main><p>" + b"2<sup>3</sup>" * 100_000, "text/html"),
    "100,000 ticks in a cell": (
        b"<table><tr><th>a<th>b<tr><td>c<td>" + b"<i class=fa-check aria-hidden=true></i>" * 100_000, "text/html"
    ),
    "100,000 hidden parts": (b"<main><h1>a</h1>" + b"<button>a</button><div hidden>b</div>" * 100_000, "text/html"),
    "a listing of 100,000 changed lines": (b"<pre>" + b"<span class='line add'>a</span>" * 100_000, "text/html"),
    "100,000 struck words in links": (b"<main><p>" + b"<a href=/x><s>a</s> b</a>" * 100_000, "text/html"),
    "100,000 sections of data": (b"<?xml version='1.0'?><html>" + b"<![CDATA[" * 100_000, "application/xhtml+xml"),
    "20,000 items of rustdoc": (
        b"<body class=rustdoc>" + b"<section id=x><h4 class=code-header>f</h4></section><p>w" * 20_000, "text/html"
    ),
    "a soup of 5 MB": (b"<body class=rustdoc>" + b"<a class=fn>" * 400_000, "text/html"),
    "a line of 4 MB": (b"<pre>" + b"x" * 4_000_000 + b"</pre>", "text/html"),
    "a line of 4 MB of text": (b"x" * 4_000_000, "text/plain"),
    "a line of 50 MB of text": (b"x" * 50_000_000, "text/plain"),
    "XML entities": (LAUGHS + b"]><html><body><p>&a9;</p></body></html>", "application/xhtml+xml"),
    "XML entities as HTML": (LAUGHS + b"]><html><body><p>&a9;</p></body></html>", "text/html"),
    "an outside entity": (OUTSIDE + b"]><html><body><p>&f; words</p></body></html>", "application/xhtml+xml"),
    "Markdown, 100,000 brackets": (b"[" * 100_000, "text/markdown"),
    "Markdown, 100,000 quotes deep": (b">" * 100_000 + b"x", "text/markdown"),
    "Markdown, 20,000 backticks in a line": (b"a " + b"`" * 20_000 + b"a", "text/markdown"),
    "Markdown, 50,000 stars": (b"**a " * 50_000, "text/markdown"),
    "Markdown, 50,000 tags of templates": (b"{{< " * 50_000, "text/markdown"),
    "Markdown, 50,000 formulas": (b"$a_ " * 50_000, "text/markdown"),
    "Markdown, 50,000 components": (b"<Badge text='a' " * 50_000, "text/markdown"),
    "Markdown, 50,000 links of a wiki": (b"[[a|b" * 50_000, "text/markdown"),
    "MDX, 50,000 formulas": (b"$\\a{b " * 50_000, "text/mdx"),
    "MDX, 50,000 braces": (b"{/* \n" * 50_000, "text/mdx"),
    "MkDocs, 100,000 blank lines": (b"x" + b" \n" * 100_000, "text/x-mkdocs"),
    "Markdown, 20,000 listings": (b"{% highlight a %}\n" * 20_000, "text/markdown"),
    "Markdown, 2,000 list levels": (b"".join(b" " * n + b"- x\n" for n in range(2_000)), "text/markdown"),
    "AsciiDoc, attributes of attributes": (
        b":a0: x\n" + b"".join(b":a%d: {a%d}{a%d}\n" % (n + 1, n, n) for n in range(99)) + b"\n{a99}", "text/asciidoc"
    ),
    "AsciiDoc, 400 blocks deep": (b"\n".join(b"=" * n for n in range(4, 400)) + b"\nx", "text/asciidoc"),
    "RST, nested quotes": (b"".join(b" " * n + b"x\n\n" for n in range(2_000)), "text/x-rst"),
    "RST, file inclusion": (b"W.\n\n.. include:: /etc/passwd\n\n.. raw:: html\n   :file: /etc/passwd\n", "text/x-rst"),
    "notebook of 100,000 cells": (
        b'{"nbformat":4,"nbformat_minor":5,"metadata":{},"cells":['
        + b",".join(b'{"cell_type":"markdown","metadata":{},"source":"x"}' for _ in range(100_000)) + b"]}",
        "application/x-ipynb+json",
    ),
    "notebook nested 100,000 deep": (b"[" * 100_000, "application/x-ipynb+json"),
    "PDF of itself": (b"%PDF-1.7\n" + b"1 0 obj<</Kids[1 0 R]/Type/Pages/Count 9>>endobj\n" * 999, "application/pdf"),
}  # fmt: skip
# Real pages may contain these, for instance a base64 file, and are read.
HARMLESS = {"a line of 4 MB", "a line of 4 MB of text", "Markdown, 20,000 backticks in a line"}


@pytest.mark.parametrize("name", tiered(READ))
def test_reader_returns_text_or_says_why_not(reading, name):
    body, content_type = READ[name]
    suffix = {"text/markdown": ".md", "text/x-rst": ".rst", "application/x-ipynb+json": ".ipynb"}.get(content_type, "")
    peak = PeakMemory()
    with peak.measured():
        reader = PageReader(read_page)
        reader(Page("https://docs.test/", b"Some words.", "text/plain"))  # this starts the process
        began = time.monotonic()
        try:
            document = reader(Page(f"https://docs.test/bomb{suffix}", body, content_type))
            held = f"{len(document.sections):,} sections"
            assert "root:" not in str(document)
        except UnreadablePage as error:
            held = str(error).partition(": ")[2]
        seconds = time.monotonic() - began
        assert reader(Page("https://docs.test/after", b"Some words.", "text/plain")).sections
    reading.append((name, held[:70], f"{seconds:.1f} s", f"{peak.mb:.0f} MB"))
    assert peak.mb < MOST_READING_MB and (held == "1 sections" or name not in HARMLESS)
