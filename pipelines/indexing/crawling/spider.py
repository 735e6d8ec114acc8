"""The crawler process: a Scrapy engine around one SiteCrawl.

crawl.py starts it and writes a job as one line of JSON to its stdin. It replies in lines of JSON on stdout: {"ok":
[URLs], "queued": N} after their commit, and {"report": …} or {"error": …} at the end. It ends as soon as its stdin is
closed.
"""

import asyncio
import json
import logging
import sys
import traceback
import warnings
from collections.abc import AsyncIterator, Callable
from dataclasses import asdict
from pkgutil import resolve_name
from typing import Any, ClassVar, TextIO
from urllib.parse import urlsplit

import scrapy
from scrapy.crawler import AsyncCrawlerProcess

from pipelines.fetched import FetchedPage
from pipelines.indexing.crawling.crawl import CrawlFailed, CrawlReport, CrawlSettings, PageLedger
from pipelines.indexing.crawling.fetch import Fetcher
from pipelines.indexing.crawling.network import resolve_permitted
from pipelines.indexing.crawling.outbox import Outbox
from pipelines.indexing.crawling.resolver import GuardedResolver
from pipelines.indexing.crawling.visit import SiteCrawl
from pipelines.owned import end_with_owner

HANDLER = "pipelines.indexing.crawling.fetch.BoundedHandler"
# A reply passes the higher number first.
MIDDLEWARES = {
    "pipelines.indexing.crawling.fetch.RealCodings": 600,
    "scrapy.downloadermiddlewares.httpcompression.HttpCompressionMiddleware": 590,
}


class CrawlJob:
    """The parent's request, and the stream of replies."""

    def __init__(self, values: dict[str, Any], answers: TextIO):
        self.settings = CrawlSettings(**values["settings"])
        self.collection: str = values["collection"]
        self.run: int = values["run"]
        self._flush: tuple[int, float] = values["flush_pages"], values["flush_s"]
        self._answers = answers
        self.ledger: PageLedger = resolve_name(values["ledger"])(values["ledger_url"])

    def outbox(self, count_queued: Callable[[], int]) -> Outbox:
        return Outbox(self._save, lambda urls: self.say(ok=urls, queued=count_queued()), *self._flush)

    def say(self, **message: Any) -> None:
        self._answers.write(json.dumps(message) + "\n")
        self._answers.flush()

    def _save(self, pages: list[FetchedPage]) -> None:
        self.ledger.save_pages(self.collection, self.run, pages)


class SiteSpider(scrapy.Spider):
    """Runs a SiteCrawl within an engine; requests go straight to its downloader, bypassing its scheduler."""

    name = "raydex"
    job: ClassVar[CrawlJob]  # a class variable: Scrapy creates the spider
    report: CrawlReport | None = None
    error: BaseException | None = None

    async def start(self) -> AsyncIterator[Any]:
        try:
            self.report = await self._crawl()
        except BaseException as error:
            self.error = error
        return
        yield  # an async generator that yields nothing

    async def _crawl(self) -> CrawlReport:
        from twisted.internet import reactor

        settings = self.job.settings
        resolver = GuardedResolver(reactor, settings.allow_private)
        reactor.installNameResolver(resolver)
        if not settings.allow_private:
            await asyncio.to_thread(check_start_urls, settings.start_urls)
        fetcher = Fetcher(self.crawler, settings, resolver)
        outbox = self.job.outbox(lambda: site.queued)
        site = SiteCrawl(settings, fetcher, self.job.ledger, self.job.collection, self.job.run, outbox)
        if settings.survey_only:
            self.job.say(ok=await site.survey(), queued=0)
            return CrawlReport(complete=False, stopped_by="survey_only")
        return await site.run()


def check_start_urls(urls: tuple[str, ...]) -> None:
    """Raise CrawlFailed for start URLs with forbidden addresses, which the resolver would refuse later anyway."""
    for url in urls:
        host, port = urlsplit(url).hostname or "", urlsplit(url).port or 0
        try:
            _, reason = resolve_permitted(host, port)
        except OSError:  # a name that does not resolve is reported as a failed page
            continue
        if reason:
            raise CrawlFailed(f"start URL {url} is refused: {reason}; `--allow-private` permits such addresses")


def _target_concurrency(settings: CrawlSettings) -> float:
    """Return how many requests are in flight on average.

    For public hosts, it is two, like a person with two tabs. For private hosts, it is half of the limit, and the other
    half leaves room for slow pages (the Ray docs on loopback, two cores: 45, 90, 141 and 151 pages/s with 1, 2, 4 and 8
    in flight).
    """
    return max(1.0, settings.concurrency / 2) if settings.allow_private else min(2.0, settings.concurrency)


def scrapy_settings(settings: CrawlSettings) -> dict[str, Any]:
    """Return settings that reduce Scrapy to its downloader: slots, AutoThrottle, HTTP/1.1, limited decompression."""
    return {
        "TELNETCONSOLE_ENABLED": False,
        "LOG_INSTALL_ROOT_HANDLER": False,
        "EXTENSIONS_BASE": {"scrapy.extensions.throttle.AutoThrottle": 0},
        "SPIDER_MIDDLEWARES_BASE": {},
        "DOWNLOADER_MIDDLEWARES_BASE": MIDDLEWARES,
        "DOWNLOAD_HANDLERS_BASE": {"http": HANDLER, "https": HANDLER},
        "DOWNLOAD_MAXSIZE": settings.max_page_bytes,
        "DOWNLOAD_WARNSIZE": 0,
        "DOWNLOAD_TIMEOUT": settings.timeout_s,
        "CONCURRENT_REQUESTS": settings.concurrency,
        "CONCURRENT_REQUESTS_PER_DOMAIN": settings.concurrency,
        "DOWNLOAD_VERIFY_CERTIFICATES": settings.verify_tls,
        "AUTOTHROTTLE_ENABLED": True,
        "AUTOTHROTTLE_TARGET_CONCURRENCY": _target_concurrency(settings),
        # The wait after the first request halves with each response: a public host gets a slow start (a few seconds in
        # all), a private one none.
        "AUTOTHROTTLE_START_DELAY": 0.0 if settings.allow_private else 1.0,
        "AUTOTHROTTLE_MAX_DELAY": 10.0,
    }


def quiet_logging() -> None:
    """Log our own warnings, and errors of Scrapy and Twisted, to stderr; drop the rest."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("crawl: %(message)s"))
    handler.addFilter(lambda record: record.levelno >= logging.WARNING)
    handler.addFilter(lambda record: record.name.startswith("raydex") or record.levelno >= logging.ERROR)
    logging.getLogger().addHandler(handler)
    warnings.simplefilter("ignore")


def main() -> None:
    """Run the job on stdin."""
    answers, sys.stdout = sys.stdout, sys.stderr  # a stray print must not look like a reply
    quiet_logging()
    values = json.loads(sys.stdin.readline())
    end_with_owner()
    job = CrawlJob(values, answers)
    process = AsyncCrawlerProcess(scrapy_settings(job.settings))
    SiteSpider.job = job
    crawler = process.create_crawler(SiteSpider)
    process.crawl(crawler)
    process.start(install_signal_handlers=False)
    spider = crawler.spider
    if isinstance(spider, SiteSpider) and spider.report is not None:
        job.say(report=asdict(spider.report))
    else:
        job.say(error=_explain(getattr(spider, "error", None)))


def _explain(error: BaseException | None) -> str:
    """Return why the crawl stopped, in one line; print the traceback of an unexpected error to stderr."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if error is None:
        return "the crawler did not start"
    if isinstance(error, CrawlFailed):
        return str(error)
    traceback.print_exception(error)
    return f"the crawler was stopped by {type(error).__name__}: {error}"


if __name__ == "__main__":
    main()
