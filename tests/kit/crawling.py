"""Crawls a site of tests.kit.web to its end, without a database."""

from pathlib import Path

from kit.page_ledger import FileLedger, finish
from kit.web import Site

from pipelines.indexing.crawling.crawl import CrawlSettings, crawl

LEDGER = "tests.kit.page_ledger:FileLedger"


def crawling(site: Site, ledger: Path, start: tuple[str, ...] = ("/",), run: int = 1, kept_by: str = LEDGER, **others):
    """Return a crawl that starts with the first `next`."""
    flush = {name: others.pop(name) for name in ("flush_s", "flush_pages") if name in others} or {"flush_s": 0.1}
    values = {"allow_private": True, "backoff_s": 0.01, "sitemap": False} | others
    job = CrawlSettings(start_urls=tuple(site.url + path for path in start), **values)
    return crawl(job, str(ledger), "docs", run, ledger=kept_by, **flush)


class Crawled:
    """One finished crawl: the URLs that it yielded (as paths), rows by path, and the report."""

    def __init__(self, site: Site, ledger: Path, **others):
        named, self.report = finish(crawling(site, ledger, **others))
        self.rows = {url.removeprefix(site.url): row for url, row in FileLedger(str(ledger)).rows.items()}
        self.ok = sorted(url.removeprefix(site.url) for url in named)
