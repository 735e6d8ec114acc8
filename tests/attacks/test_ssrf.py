"""A hostile site cannot make the crawler connect to the network that it runs in.

Each probe points inside: as the start URL, as a link, as a redirect target, in robots.txt, in sitemaps and in llms.txt.
The test's own resolver returns names that change between two look-ups. The crawler's process records every socket that
it opens, and a canary listens where most probes point.
"""

import contextlib
from pathlib import Path

import pytest
from kit.hostile_network import LEDGER, PUBLIC, opened, write_network
from kit.page_ledger import FileLedger, finish
from kit.reporting import table
from kit.web import Answer, Site, page, redirect

from pipelines.indexing.crawling.crawl import CrawlFailed, CrawlReport, CrawlSettings, crawl
from pipelines.indexing.crawling.scope import normalize_url
from pipelines.indexing.crawling.spider import check_start_urls

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("warm")]

# {port} is the canary's port.
PROBES = {
    "loopback": ["http://127.0.0.1:{port}/", "http://127.0.0.53:{port}/", "http://127.255.255.254:{port}/",
                 "http://0.0.0.0:{port}/", "http://localhost:{port}/", "http://LOCALHOST.:{port}/",
                 "http://app.localhost:{port}/", "https://127.0.0.1:{port}/", "http://[::1]:{port}/", "http://[::]:{port}/"],
    "numbers": ["http://2130706433:{port}/", "http://0x7f000001:{port}/", "http://017700000001:{port}/",
                "http://0177.0.0.1:{port}/", "http://0x7f.0.0.1:{port}/", "http://0x7f.1:{port}/", "http://127.1:{port}/",
                "http://127.0.1:{port}/", "http://0:{port}/", "http://0x0:{port}/", "http://2852039166/",
                "http://0xa9fea9fe/", "http://169.254.43518/", "http://0300.0250.0.1/", "http://10.1/"],
    "spelling": ["http://①②⑦.⓪.⓪.①:{port}/", "http://127。0。0。1:{port}/", "http://%31%32%37.0.0.1:{port}/",
                 "http://127.0.0.1.:{port}/", "http://ⓛocalhost:{port}/", "http://127.0.0.1%2f:{port}/",
                 "http://127.0.0.1\\@docs.example:{port}/", "http://127.0.0.1:{port}#@docs.example/",
                 "http://127.0.0.1:{port}?@docs.example/", "http:127.0.0.1:{port}/", "http:///127.0.0.1:{port}/"],
    "mapped IPv6": ["http://[::ffff:127.0.0.1]:{port}/", "http://[::ffff:7f00:1]:{port}/", "http://[::127.0.0.1]:{port}/",
                    "http://[0:0:0:0:0:ffff:127.0.0.1]:{port}/", "http://[::ffff:169.254.169.254]/",
                    "http://[64:ff9b::7f00:1]:{port}/", "http://[2002:7f00:1::]:{port}/", "http://[fe80::1]:{port}/",
                    "http://[fd00:ec2::254]/", "http://[fc00::1]/"],
    "private": ["http://10.0.0.1/", "http://172.16.0.1/", "http://192.168.0.1/", "http://100.64.0.1/", "http://198.18.0.1/",
                "http://169.254.169.254/latest/meta-data/", "http://metadata.google.internal/computeMetadata/v1/",
                "http://168.63.129.16/", "http://100.100.100.200/", "http://192.0.0.192/", "http://224.0.0.1/",
                "http://255.255.255.255/", "http://kubernetes.default.svc/", "http://host.docker.internal:{port}/"],
    "userinfo": ["http://docs.example@127.0.0.1:{port}/", "http://docs.example:80@127.0.0.1:{port}/",
                 "http://user:pw@127.0.0.1:{port}/", "http://docs.example%40127.0.0.1:{port}/"],
    "scheme": ["file:///etc/passwd", "ftp://127.0.0.1:{port}/", "gopher://127.0.0.1:{port}/_INFO",
               "dict://127.0.0.1:{port}/", "ldap://127.0.0.1:{port}/", "unix:/run/docker.sock", "data:text/html,x",
               "jar:http://127.0.0.1:{port}/!/", "//127.0.0.1:{port}/", "s3://127.0.0.1:{port}/x"],
    "name": ["http://inside.example/", "http://metadata.example/", "http://mapped.example/", "http://loop.example:{port}/",
             "http://half.example/"],
}  # fmt: skip
NAMES = {
    "docs.example": [PUBLIC], "inside.example": ["10.0.0.5"], "metadata.example": ["169.254.169.254"],
    "mapped.example": ["::ffff:127.0.0.1"], "loop.example": ["127.0.0.1"], "half.example": ["192.168.1.1", PUBLIC]
}  # fmt: skip
INSIDE = ["127.0.0.1", "10.0.0.1", "172.16.0.1", "192.168.0.1", "169.254.169.254", "100.64.0.1", "0.0.0.0", "::1",
          "::ffff:127.0.0.1", "::ffff:10.0.0.1", "fd00:ec2::254", "fe80::1", "64:ff9b::7f00:1", "2002:7f00:1::",
          "168.63.129.16", "198.18.0.1"]  # fmt: skip


report = table(
    "SSRF probes", ("way in", "kind", "tried", "blocked", "sockets to inside addresses", "requests at the canary")
)


def probes(port: int) -> list[tuple[str, str]]:
    return [(kind, url.replace("{port}", str(port))) for kind, urls in PROBES.items() for url in urls]


def port_of(site: Site) -> int:
    return int(site.url.rpartition(":")[2])


def crawled(ledger: Path, start: str, **settings: object) -> CrawlReport:
    values = {"retries": 0, "timeout_s": 5.0, "backoff_s": 0.01, "max_depth": 2} | settings
    return finish(crawl(CrawlSettings(start_urls=(start,), **values), str(ledger), "docs", 1, ledger=LEDGER))[1]


def inside(ledger: Path) -> int:
    """Return the number of sockets opened to an address other than the public one."""
    return sum(count for address, count in opened(ledger).items() if address != PUBLIC)


def is_refused(url: str) -> bool:
    """Return whether a start URL is refused before a crawl, on a machine that cannot resolve the names in NAMES."""
    normal = normalize_url(url)
    try:
        check_start_urls((normal,) if normal else ())
    except CrawlFailed:
        return True
    return normal is None


def test_start_url_that_points_inside_is_refused(tmp_path, report):
    """An unresolvable name is crawled, because it may resolve to anything by then."""
    with Site({}) as canary, Site({}) as site:
        for kind, urls in PROBES.items():
            tried = [url.replace("{port}", str(port_of(canary))) for url in urls]
            for number, url in enumerate(one for one in tried if not is_refused(one)):
                ledger = tmp_path / f"{kind}{number}"
                write_network(ledger, NAMES, port_of(site))
                with contextlib.suppress(CrawlFailed):  # refused there
                    assert not crawled(ledger, normalize_url(url) or "").complete
                assert inside(ledger) == 0
            assert canary.requests == [] and site.requests == []
            report.append(("start URL", kind, str(len(tried)), str(len(tried)), "0", "0"))


def test_links_redirects_sitemaps_and_llms_txt_never_lead_inside(tmp_path, report):
    ledger = tmp_path / "ledger"
    with Site({}) as canary, Site({}) as site:
        tried = probes(port_of(canary))
        urls = [url for _, url in tried]
        xml = [url.replace("&", "&amp;") for url in urls]
        to_maps = "".join(f"<sitemap><loc>{url}</loc></sitemap>" for url in [*xml, "http://docs.example/inner.xml"])
        to_pages = "".join(f"<url><loc>{url}</loc></url>" for url in xml)
        site.routes = {
            "/": page(*urls, *(f"/r{n}" for n in range(len(urls)))),
            **{f"/r{n}": redirect(url.encode("utf-8").decode("latin-1")) for n, url in enumerate(urls)},
            "/robots.txt": Answer("User-agent: *\nAllow: /\n" + "".join(f"Sitemap: {url}\n" for url in urls)),
            "/sitemap.xml": Answer(f"<sitemapindex>{to_maps}</sitemapindex>"),
            "/inner.xml": Answer(f"<urlset>{to_pages}</urlset>"),
            "/llms.txt": Answer("\n".join(f"- [x]({url})" for url in urls)),
        }
        write_network(ledger, NAMES, port_of(site))
        assert crawled(ledger, "http://docs.example/").complete
        asked = set(site.paths())
        assert {f"/r{n}" for n in range(len(urls))} <= asked and "/inner.xml" in {r.path for r in site.requests}
        assert canary.requests == [] and inside(ledger) == 0 and opened(ledger)[PUBLIC] > 0
    states = {row["state"] for url, row in FileLedger(str(ledger)).rows.items() if "/r" in url}
    assert "ok" not in states
    for kind, one_kind in PROBES.items():
        count = str(4 * len(one_kind))
        report.append(("link, redirect, sitemap, llms.txt", kind, count, count, "0", "0"))


@pytest.mark.parametrize(
    "status", [301, *(pytest.param(code, marks=pytest.mark.exhaustive) for code in (302, 303, 307, 308))]
)
def test_robots_txt_and_sitemaps_that_redirect_inside_are_not_followed(tmp_path, report, status):
    ledger = tmp_path / "ledger"
    with Site({}) as canary, Site({}) as site:
        targets = [canary.url, "http://169.254.169.254", "http://loop.example", "http://[::ffff:127.0.0.1]"]
        target = targets[status % len(targets)]
        files = ("/robots.txt", "/sitemap.xml", "/llms.txt")
        site.routes = {"/": page("/a"), "/a": redirect(f"{target}/a", status)}
        site.routes |= {path: redirect(f"{target}{path}", status) for path in files}
        write_network(ledger, NAMES, port_of(site))
        crawled(ledger, "http://docs.example/")
        assert {request.path for request in site.requests} >= {"/", "/a", *files}
        assert canary.requests == [] and inside(ledger) == 0
    report.append((f"robots.txt, sitemap, llms.txt, page: {status}", target, "4", "4", "0", "0"))


def test_name_that_changes_between_lookups_opens_no_internal_socket(tmp_path, report):
    """Every second look-up of the site's own name returns an internal address, and each page is a new connection."""
    ledger = tmp_path / "ledger"
    with Site({}) as canary, Site({}) as site:
        closing = {"Connection": "close"}
        pages = [f"/p{n}" for n in range(3 * len(INSIDE))]
        site.routes = {path: Answer(page(), headers=closing) for path in pages}
        site.routes["/"] = Answer(page(*pages), headers=closing)
        answers = [PUBLIC] * 4 + [address for one in INSIDE for address in (PUBLIC, one)]
        write_network(ledger, {"docs.example": [*answers, PUBLIC]}, port_of(site))
        crawled(ledger, f"http://docs.example:{port_of(canary)}/", sitemap=False, concurrency=1)
        assert canary.requests == [] and inside(ledger) == 0
    refused = [row["error"] for row in FileLedger(str(ledger)).rows.values() if "refused" in (row["error"] or "")]
    assert len(refused) == len(INSIDE)
    report.append(("DNS rebinding", "between two look-ups", str(len(INSIDE)), str(len(refused)), "0", "0"))


def test_canary_and_socket_count_would_detect_a_leak(tmp_path):
    ledger = tmp_path / "ledger"
    with Site({"/": page()}) as canary:
        write_network(ledger, {"docs.example": ["127.0.0.1"]}, 1)
        crawled(ledger, f"http://docs.example:{port_of(canary)}/", allow_private=True)
        assert canary.requests and inside(ledger) > 0
