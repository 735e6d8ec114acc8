"""The crawler with real web servers: fetched pages, stored state, and ways to end."""

import asyncio
import gzip
import os
import shutil
import signal
import subprocess
import sys
import zlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from kit.crawling import LEDGER, Crawled, crawling
from kit.page_ledger import FileLedger
from kit.processes import alive, eventually
from kit.web import Answer, Handler, Site, page, pouring, redirect, slow

from pipelines.indexing.crawling.crawl import CrawlFailed
from pipelines.indexing.crawling.frontier.queue import Frontier, FrontierEntry

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("warm")]

ROOT = Path(__file__).parents[3]


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    return tmp_path / "ledger.jsonl"


def test_links_are_followed_and_every_outcome_is_a_row(ledger):
    routes = {
        "/": page("/a", "b.html#part", "/missing", "/moved", "/logo.png", "/data", "https://elsewhere.test/"),
        "/a": page("/b.html"),
        "/b.html": page("/"),
        "/moved": redirect("/target"),
        "/target": page(),
        "/data": Answer(b"\0" * 10, headers={"Content-Type": "application/x-thing"}),
    }
    with Site(routes) as site:
        crawled = Crawled(site, ledger)
        assert crawled.ok == ["/", "/a", "/b.html", "/target"]
        others = {"/missing": "gone", "/moved": "redirect", "/data": "skipped"}
        assert {path: row["state"] for path, row in crawled.rows.items()} == dict.fromkeys(crawled.ok, "ok") | others
        assert crawled.rows["/moved"]["links"] == [f"{site.url}/target"]
        assert "application/x-thing" in crawled.rows["/data"]["error"]
        assert "/logo.png" not in site.paths()
    report = crawled.report
    assert (report.complete, report.stopped_by) == (True, "")
    assert report.counts == {"ok": 4, "unchanged": 0, "gone": 1, "redirect": 1, "skipped": 1}


def test_pages_are_yielded_once_committed_while_a_slow_site_is_crawled(ledger):
    paths, asked = [f"/{n}" for n in range(4)], []
    with Site({"/": page(*paths)} | dict.fromkeys(paths, slow(0.2))) as site:
        for urls in crawling(site, ledger, concurrency=1, flush_pages=1):
            rows = FileLedger(str(ledger)).rows
            assert all(rows[url]["state"] == "ok" for url in urls)
            asked.append(len(site.paths()))
    assert asked[0] < asked[-1] == 5


@pytest.mark.parametrize("most", [1, 20])
def test_page_budget_is_exact_and_counts_only_good_pages(ledger, most):
    routes = {"/": page("/gone", "/moved", *(f"/{n}" for n in range(40))), "/moved": redirect("/0")}
    with Site(routes | {f"/{n}": page() for n in range(40)}) as site:
        crawled = Crawled(site, ledger, max_pages=most)
    assert len(crawled.ok) == most
    assert crawled.report.counts["ok"] == most
    assert (crawled.report.complete, crawled.report.stopped_by) == (False, "max_pages")


def test_link_traps_are_abandoned_after_a_few_equal_pages(ledger):
    forms = ["/s/{}/page", "/page?sid={}", "/page;id={}", "/at?sid={}&at=9"]

    def trap(form: str, number: int) -> Answer:
        return Answer(page(form.format(f"x{number + 1}"), "/real", text=f"Visit {number}, welcome."))

    traps = {form.format(f"x{n}"): trap(form, n) for form in forms for n in range(300)}
    start = page(*(form.format("x1") for form in forms), "/real")
    with Site({"/": start, "/real": page("/more"), "/more": page()} | traps) as site:
        crawled = Crawled(site, ledger)
    visited = [sum(path.startswith(form.partition("{}")[0]) for path in crawled.ok) for form in forms]
    assert {"/", "/real", "/more"} < set(crawled.ok) and 0 < min(visited) <= max(visited) < 30, visited
    assert crawled.report.complete and list(crawled.report.traps.values()) == [1] * len(forms)


def test_crawl_without_a_limit_gets_the_default_limit(ledger, monkeypatch):
    monkeypatch.setattr("pipelines.indexing.crawling.frontier.queue.DEFAULT_MAX_PAGES", 5)
    frontier = Frontier()
    for n in range(9):
        frontier.add(FrontierEntry(str(n)))

    async def visit() -> int:
        while (entry := await frontier.take()) is not None:
            await frontier.done(entry, ok=True)
        return frontier.ok_pages

    assert asyncio.run(visit()) == 5 and frontier.exhausted


def test_depth_budget_counts_links_on_the_shortest_path(ledger):
    # /x is two links away through the slow page and three through the fast ones.
    routes = {"/": page("/fast", "/slow"), "/fast": page("/fast2"), "/fast2": page("/x"), "/slow": slow(0.3, "/x")}
    with Site(routes | {"/x": page("/y"), "/y": page("/z"), "/z": page()}) as site:
        crawled = Crawled(site, ledger, max_depth=3)
    assert crawled.ok == ["/", "/fast", "/fast2", "/slow", "/x", "/y"]
    assert (crawled.report.complete, crawled.report.stopped_by) == (True, "max_depth")


def test_crawl_stays_below_its_start_url_and_on_its_host(ledger):
    with Site({"/": page()}) as other:
        routes = {
            "/docs/index.html": page("/docs/a", "/blog", "/docs/../secret", f"{other.url}/", "/docs/out"),
            "/docs/a": page("//localhost/", "ftp://h/", "mailto:x@y", "javascript:void(0)", "http://u:p@h/"),
            "/docs/out": redirect(f"{other.url}/"),
            "/blog": page(),
        }
        with Site(routes) as site:
            crawled = Crawled(site, ledger, start=("/docs/index.html",))
            assert crawled.ok == ["/docs/a", "/docs/index.html"]
            assert sorted(set(site.paths())) == ["/docs/a", "/docs/index.html", "/docs/out"]
            assert crawled.rows["/docs/out"]["state"] == "redirect"
            assert "leads out" in crawled.rows["/docs/out"]["error"]
            assert not other.requests
            assert "/blog" in Crawled(site, ledger, start=("/docs/index.html",), no_parent=False, run=2).ok


def test_include_and_exclude_patterns_match_anywhere_in_the_url(ledger):
    paths = ("/guide/a", "/guide/old/b", "/api/c")
    with Site({"/": page(*paths)} | dict.fromkeys(paths, page())) as site:
        crawled = Crawled(site, ledger, include=("/guide/",), exclude=("/old/",))
    assert crawled.ok == ["/", "/guide/a"]


def test_redirect_chains_end_and_redirect_loops_do_not_hang(ledger):
    routes = {f"/{n}": redirect(f"/{n + 1}") for n in range(30)}
    routes |= {"/": page("/0", "/loop"), "/loop": redirect("/pool"), "/pool": redirect("/loop")}
    with Site(routes) as site:
        crawled = Crawled(site, ledger)
        assert (site.paths().count("/loop"), site.paths().count("/pool")) == (1, 1)
        assert "/11" not in site.paths()
    assert crawled.rows["/10"]["state"] == "failed"
    assert "more than 10 redirects" in crawled.rows["/10"]["error"]


def sitemap(kind: str, item: str, *urls: str) -> str:
    items = "".join(f"<{item}><loc>{url}</loc></{item}>" for url in urls)
    return f'<?xml version="1.0"?><{kind} xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{items}</{kind}>'


def test_sitemaps_and_llms_txt_add_unlinked_pages(ledger):
    with Site({"/docs/": page()}) as site:
        packed = gzip.compress(sitemap("urlset", "url", f"{site.url}/docs/packed", f"{site.url}/outside").encode())
        xml = {"Content-Type": "application/xml"}
        index = sitemap("sitemapindex", "sitemap", f"{site.url}/one.xml.gz", "http://x.test/s")
        site.routes |= {
            "/robots.txt": Answer("User-agent: *\nDisallow: /docs/no\nSitemap: https://[host]/x\nSitemap: /more.xml\n"),
            "/sitemap.xml": Answer(index, headers=xml),
            "/one.xml.gz": Answer(packed, headers={"Content-Type": "application/gzip"}),
            "/more.xml": Answer(sitemap("urlset", "url", f"{site.url}/docs/more", f"{site.url}/docs/no"), headers=xml),
            "/llms.txt": Answer("# T\n- [A](/docs/llms.md): words\n", headers={"Content-Type": "text/plain"}),
            "/docs/llms.md": Answer("# Hello\n", headers={"Content-Type": "application/octet-stream"}),
            "/docs/packed": page(),
            "/docs/more": page(),
        }
        crawled = Crawled(site, ledger, start=("/docs/",), sitemap=True)
        assert crawled.ok == ["/docs/", "/docs/llms.md", "/docs/more", "/docs/packed"]
        assert crawled.rows["/docs/llms.md"]["content_type"] == "text/markdown"
        assert crawled.rows["/docs/no"] | {"state": "skipped", "error": "robots.txt"} == crawled.rows["/docs/no"]
        assert "/docs/no" not in site.paths()
        assert "/outside" not in site.paths()


def test_robots_txt_is_obeyed_and_ignoring_it_is_logged(ledger, capfd):
    robots = Answer("User-agent: *\nDisallow: /\n\nUser-agent: raydex\nDisallow: /private\nAllow: /private/open\n")
    routes = {"/": page("/private/a", "/private/open"), "/private/a": page(), "/private/open": page()}
    with Site(routes | {"/robots.txt": robots}) as site:
        assert Crawled(site, ledger).ok == ["/", "/private/open"]
        assert "IGNORED" not in capfd.readouterr().err
        assert "/private/a" in Crawled(site, ledger, ignore_robots=True, run=2).ok
        assert "robots.txt is IGNORED" in capfd.readouterr().err


def test_unreachable_robots_txt_forbids_everything(ledger):
    with Site({"/": page("/a"), "/a": page(), "/robots.txt": Answer("", 503)}) as site:
        crawled = Crawled(site, ledger, retries=0)
        assert not site.paths()
    assert not crawled.report.complete and "robots.txt answered 503" in crawled.report.stopped_by
    assert crawled.rows["/"]["state"] == "failed"


def test_crawl_delay_is_respected(ledger):
    paths, robots = ("/a", "/b", "/c", "/d"), Answer("User-agent: *\nCrawl-delay: 0.3\n")
    with Site({"/robots.txt": robots, "/": page(*paths), **{path: page() for path in paths}}) as site:
        Crawled(site, ledger)
        times = [request.at for request in site.requests if request.path != "/robots.txt"]
    # Full and half the delay: a busy machine may notice one request late and the next one immediately.
    assert len(times) == 5 and times[-1] - times[0] > 4 * 0.3 / 2


def test_server_errors_are_retried_then_counted_as_failed(ledger):
    answers = iter([Answer("", 500), Answer("", 502)])
    routes = {"/": page("/shaky", "/broken", "/forbidden"), "/shaky": lambda _: next(answers, page())}
    routes |= {"/broken": Answer("", 500), "/forbidden": Answer("", 403)}
    with Site(routes) as site:
        crawled = Crawled(site, ledger, retries=2)
        assert [site.paths().count(path) for path in ("/shaky", "/broken", "/forbidden")] == [3, 3, 1]
    assert crawled.ok == ["/", "/shaky"]
    assert crawled.rows["/broken"] | {"state": "failed", "http_status": 500} == crawled.rows["/broken"]
    assert "500" in crawled.rows["/broken"]["error"]
    assert crawled.report.complete


def test_retry_after_is_respected_up_to_a_limit(ledger):
    busy = iter([Answer("", 429, {"Retry-After": "1"}), Answer("", 503, {"Retry-After": "86400"})])
    with Site({"/": lambda _: next(busy, page())}) as site:
        crawled = Crawled(site, ledger, max_retry_after_s=1.5)  # 86,400 s would take too long in a test
        first, second, third = (request.at for request in site.requests if request.path == "/")
    assert crawled.ok == ["/"]
    assert second - first >= 0.95
    assert third - second >= 1.45


def test_endless_page_fails_without_affecting_others(ledger):
    drip = pouring(b"Content-Type: text/html\r\n\r\n", b" ", 0.1)
    with Site({"/": page("/drip", "/a"), "/drip": drip, "/a": page()}) as site:
        crawled = Crawled(site, ledger, timeout_s=1, retries=5)
        assert site.paths().count("/drip") == 2
    assert crawled.ok == ["/", "/a"]
    assert "within 1 s" in crawled.rows["/drip"]["error"]


def test_bodies_are_limited_in_size_both_packed_and_unpacked(ledger):
    bomb = Answer(gzip.compress(b"x" * 100_000_000), headers={"Content-Encoding": "gzip"})
    routes = {
        "/": page("/bomb", "/zstd", "/big", "/endless", "/head", "/packed"),
        "/bomb": bomb,
        "/zstd": Answer(b"(\xb5/\xfd", headers={"Content-Encoding": "zstd"}),
        "/big": Answer(b"x" * 2_000_000),
        "/endless": pouring(b"Content-Type: text/html\r\n\r\n", b"x" * 65536),
        "/head": pouring(b"", b"X-Pad: " + b"x" * 8000 + b"\r\n"),
        "/packed": Answer(gzip.compress(page("/found").encode()), headers={"Content-Encoding": "gzip"}),
        "/found": page(),
    }
    with Site(routes) as site:
        crawled = Crawled(site, ledger, max_page_bytes=1_000_000, retries=0, timeout_s=20)
        assert all(request.headers["accept-encoding"] == "gzip" for request in site.requests)
    assert crawled.ok == ["/", "/found", "/packed"]
    for path in ("/bomb", "/big", "/endless"):
        assert crawled.rows[path]["state"] == "skipped"
        assert "larger than 1,000,000 bytes" in crawled.rows[path]["error"]
    assert "zstd" in crawled.rows["/zstd"]["error"]
    assert crawled.rows["/head"]["state"] == "failed"
    assert crawled.report.complete


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads a process's peak memory from /proc")
def test_bomb_takes_no_more_memory_than_a_page_may(ledger, cold):
    bomb = bytes(128 << 20)
    routes = {
        "/": page("/gzip", "/deflate", "/after"),
        "/gzip": Answer(gzip.compress(bomb, 1), headers={"Content-Encoding": "gzip"}),
        "/deflate": Answer(zlib.compress(bomb, 1), headers={"Content-Encoding": "deflate"}),
        "/after": page(),
    }
    with Site(routes) as site:
        peaks = []
        for _ in crawling(site, ledger, concurrency=1, flush_pages=1):
            (child,) = _children(os.getpid())
            status = dict(line.split(":", 1) for line in Path(f"/proc/{child}/status").read_text().splitlines())
            peaks.append(int(status["VmHWM"].split()[0]) // 1024)
    states = [row["state"] for row in FileLedger(str(ledger)).rows.values()]
    assert states == ["ok", "skipped", "skipped", "ok"]
    # A page may have 20 MiB. Measured: 24, and twice that if the first bomb's bytes were kept.
    assert peaks[1] - peaks[0] < 36


def test_page_keeps_its_charset_and_a_normalized_canonical_url(ledger):
    def canonical(url: str) -> bytes:
        page = f'<html><head><link rel="canonical" href="{url}"></head><body><a href="/b">Grüße</a></body></html>'
        return page.encode("latin-1")

    latin = Answer(canonical("HTTP://Docs.test:80/x y#part"), headers={"Content-Type": "Text/HTML; charset=ISO-8859-1"})
    with Site({"/": latin, "/b": Answer(canonical("/b#top"))}) as site:
        rows = Crawled(site, ledger).rows
    assert rows["/"].items() >= {
        "content_type": "text/html", "charset": "ISO-8859-1", "canonical": "http://docs.test/x%20y",
    }.items()  # fmt: skip
    assert rows["/"]["content_hash"] is not None and rows["/b"]["canonical"] is None


def test_tracking_parameters_are_dropped_unless_the_server_adds_them(ledger):
    links = page("/a", "/a?utm_source=mail", "/a?fbclid=1#part", "/a?page=2&gclid=3", "/b")
    canonical = '<html><head><link rel="canonical" href="/a?utm_medium=web"></head></html>'
    added = {"/b": redirect("/b?utm_source=self"), "/b?utm_source=self": page()}
    with Site({"/": links, "/a": canonical, "/a?page=2": page(), **added}) as site:
        crawled = Crawled(site, ledger, start=("/?utm_campaign=start",))
        assert sorted(site.paths()) == ["/", "/a", "/a?page=2", *added]
    assert crawled.ok == ["/", "/a", "/a?page=2", "/b?utm_source=self"]
    assert sorted(crawled.rows) == ["/", "/a", "/a?page=2", *added] and crawled.rows["/a"]["canonical"] is None


@pytest.mark.parametrize(
    ("routes", "words"),
    [
        ({"/": Answer("", 404)}, "start URL {}/ is gone: the server answered 404"),
        ({"/": Answer("", 500)}, "start URL {}/ could not be fetched: the server answered 500"),
        ({"/": redirect("/a"), "/a": redirect("/")}, "the start URLs redirect in a circle"),
    ],
)
def test_unreachable_start_url_makes_the_crawl_incomplete(ledger, routes, words):
    with Site(routes) as site:
        crawled = Crawled(site, ledger, retries=0)
    assert (crawled.ok, crawled.report.complete) == ([], False)
    assert crawled.report.stopped_by == f"error: {words.format(site.url)}"


def test_moved_start_url_is_reported_with_the_new_address(ledger):
    with Site({"/": page()}) as other, Site({"/": redirect(f"{other.url}/")}) as site:
        report = Crawled(site, ledger).report
        assert not other.requests
    assert not report.complete and report.stopped_by.endswith(f"to {other.url}/: start there instead")


def test_missing_host_is_reported(ledger):
    with Site({}) as site:
        pass
    report = Crawled(site, ledger, retries=0).report
    assert not report.complete
    assert report.stopped_by.endswith("robots.txt could not be fetched (connection refused)")


def test_start_url_that_redirects_to_a_page_is_valid(ledger):
    with Site({"/": redirect("/index.html"), "/index.html": page("/")}) as site:
        assert Crawled(site, ledger).report.complete
        assert Crawled(site, ledger, start=("/index.html", "/"), run=2).report.complete


def test_private_address_is_refused_before_connecting(ledger):
    with Site({"/": page()}) as site:
        with pytest.raises(CrawlFailed, match=r"127\.0\.0\.1 is a loopback address.*--allow-private"):
            Crawled(site, ledger, allow_private=False)
        assert not site.requests


def test_proxies_from_the_environment_are_not_used(ledger, monkeypatch):
    with Site({}) as proxy, Site({"/": page()}) as site:
        for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "https_proxy"):
            monkeypatch.setenv(name, proxy.url)
        assert Crawled(site, ledger).ok == ["/"]
        assert not proxy.requests


def test_unresponsive_site_is_given_up(ledger):
    def close(handler: Handler) -> None:
        handler.close_connection = True

    routes = {"/": page(*(f"/{n}" for n in range(200)))} | {f"/{n}": close for n in range(200)}
    with Site(routes) as site:
        crawled = Crawled(site, ledger, retries=1)
    assert not crawled.report.complete
    assert "stopped answering" in crawled.report.stopped_by
    assert 50 <= crawled.report.counts["failed"] < 100


def _certificate(folder: Path) -> Path:
    """Return a self-signed certificate with its key in one file."""
    path = folder / "own.pem"
    command = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -keyout -"
    made = subprocess.run([*command.split(), "-out", "-"], check=True, capture_output=True)
    path.write_bytes(made.stdout)
    return path


@pytest.mark.skipif(shutil.which("openssl") is None, reason="makes a certificate with openssl")
def test_certificates_are_verified_unless_disabled(ledger, tmp_path):
    with Site({"/": page()}) as site:
        site.use_tls(_certificate(tmp_path))
        report = Crawled(site, ledger, retries=0).report
        assert "(TLS: certificate verify failed)" in report.stopped_by
        assert Crawled(site, ledger, verify_tls=False, run=2).ok == ["/"]


def test_failing_ledger_fails_the_crawl(ledger):
    broken = "tests.kit.page_ledger:BrokenLedger"
    with Site({"/": page()}) as site, pytest.raises(CrawlFailed, match="the ledger went away"):
        list(crawling(site, ledger, kept_by=broken))


def _children(pid: int) -> list[int]:
    """Return the crawlers among a process's children. A whole test run has other children, such as its Postgres."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [int(child) for child in children if b"crawling.spider" in Path(f"/proc/{child}/cmdline").read_bytes()]


HANGING = {"/": page("/hang"), "/hang": slow(20)}


def test_closing_the_generator_ends_the_child_process(ledger, cold):
    with Site(HANGING) as site:
        pages = crawling(site, ledger)
        next(pages)
        (child,) = _children(os.getpid())
        pages.close()
        eventually(lambda: not alive(child), "the crawler has ended")


def test_killed_child_fails_the_crawl_but_keeps_committed_pages(ledger, cold):
    with Site(HANGING) as site:
        pages = crawling(site, ledger)
        assert next(pages) == [f"{site.url}/"]
        os.kill(_children(os.getpid())[0], signal.SIGKILL)
        with pytest.raises(CrawlFailed, match="status -9"):
            next(pages)
    assert list(FileLedger(str(ledger)).rows) == [f"{site.url}/"]


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="finds the child through /proc")
def test_killing_the_parent_leaves_no_orphan(ledger, cold):
    script = (
        "import sys; from pipelines.indexing.crawling.crawl import *\n"
        "job = CrawlSettings(start_urls=(sys.argv[1],), allow_private=True)\n"
        f"for _ in crawl(job, sys.argv[2], 'docs', 1, ledger={LEDGER!r}, flush_s=0.1): print('ok', flush=True)\n"
    )
    with Site(HANGING) as site:
        parent = subprocess.Popen(
            [sys.executable, "-c", script, site.url, str(ledger)], cwd=ROOT, stdout=subprocess.PIPE
        )
        assert parent.stdout.readline() == b"ok\n"
        (child,) = _children(parent.pid)
        parent.send_signal(signal.SIGKILL)
        parent.wait()
        parent.stdout.close()
        eventually(lambda: not alive(child), "the crawler has ended")


def test_concurrency_is_limited(ledger):
    with Site({"/": page(*(f"/{n}" for n in range(20)))} | {f"/{n}": slow(0.05) for n in range(20)}) as site:
        Crawled(site, ledger, concurrency=3)
        assert site.most_at_once <= 3


def test_two_concurrent_crawls_do_not_mix(tmp_path):
    def one(name: str) -> list[str]:
        with Site({"/": page(f"/{name}"), f"/{name}": page()}) as site:
            return Crawled(site, tmp_path / name).ok

    with ThreadPoolExecutor(2) as threads:
        assert list(threads.map(one, "xy")) == [["/", "/x"], ["/", "/y"]]
