"""Crawls one host: takes settings, yields the URLs of good pages, and records each page in a ledger.

`crawl` runs the crawler (spider.py) as a child process, because Scrapy owns the event loop of its process, and a
misbehaving page must not crash the caller. The child commits to the ledger before it reports a URL. This module knows
no Ray and no database. Pages are parsed elsewhere.
"""

import json
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Protocol
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, Field

from pipelines.fetched import FetchedPage, KnownPage
from pipelines.indexing.chunking.url_rules import UrlPattern
from pipelines.indexing.crawling.scope import Scope, normalize_url
from pipelines.version import raydex_version

# The callable that opens the ledger from its URL, as module:callable.
DEFAULT_LEDGER = "pipelines.indexing.crawling.crawl:open_store"
PROJECT_ROOT = Path(__file__).resolve().parents[3]


class CrawlFailed(RuntimeError):
    """The crawler ended without a report; the message contains the reason and the last lines of its stderr."""


class PageLedger(Protocol):
    """Stores the pages of a crawl. Called from threads; `save_pages` is one transaction."""

    def known_page(self, collection: str, url: str, run: int) -> KnownPage | None: ...
    def known_urls(self, collection: str) -> list[str]: ...
    def failed_urls(self, collection: str) -> list[str]: ...
    def save_pages(self, collection: str, run: int, pages: Sequence[FetchedPage]) -> None: ...


def _check_start_url(url: str) -> str:
    if (result := normalize_url(url)) is None:
        raise ValueError(f"{url!r} can't be crawled: it must begin with http:// or https:// and contain no user name")
    return result


class Site(BaseModel, extra="forbid", frozen=True):
    """A site to crawl, of one host or several. Raises ValidationError.

    `include` and `exclude` are regular expressions that are searched for in the whole URL. A page must match one of
    `include` (if there are any) and none of `exclude`. Start URLs are always fetched. A page that is not included is
    not fetched, so pages that only it links to are found only through a sitemap. `max_pages` counts pages that were
    fetched or unchanged (None: 50,000). `max_depth` counts links from a start URL or sitemap entry. `allow_private`
    switches off the address guard, and also the wait before the second request.
    """

    start_urls: tuple[Annotated[str, AfterValidator(_check_start_url)], ...] = Field(min_length=1)
    include: tuple[UrlPattern, ...] = Field((), description="regular expression that a URL must match")
    exclude: tuple[UrlPattern, ...] = Field((), description="regular expression that a URL must not match")
    max_pages: int | None = Field(None, ge=1, description="stop after this many pages of a host")
    max_depth: int | None = Field(None, ge=0, description="follow at most this many links from a start URL")
    no_parent: bool = True
    sitemap: bool = True
    ignore_robots: bool = Field(False, description="do not obey robots.txt")
    allow_private: bool = Field(False, description="allow private and loopback addresses")
    # Requests at once; 8 is Scrapy's own default, AutoThrottle stays below it.
    concurrency: int = Field(8, ge=1, le=64, description="concurrent requests per host")
    delay_s: float = Field(0.0, ge=0, description="minimum seconds between two requests")
    # For one page, from connecting to its last byte: 20 MB at 1 MB/s. A page that hangs costs it twice (one retry).
    timeout_s: float = Field(default=20.0, gt=0)
    retries: int = Field(default=3, ge=0)  # after the first attempt; at most one after a timeout
    # Compressed or not; PostgreSQL's PDF manual has 15 MB.
    max_page_bytes: int = Field(default=20 * 1024 * 1024, ge=1)
    user_agent: str | None = None  # None: the default of CrawlSettings

    def hosts(self, retry_failed_only: bool = False) -> list["CrawlSettings"]:
        """Return one crawl for each host of the start URLs."""
        by_host: dict[str, list[str]] = {}
        for url in self.start_urls:
            by_host.setdefault(urlsplit(url).netloc, []).append(url)
        common = self.model_dump(exclude_none=True) | {"retry_failed_only": retry_failed_only}
        return [CrawlSettings(**common | {"start_urls": urls}) for urls in by_host.values()]


class CrawlSettings(Site, frozen=True):
    """The crawl of one host; with `only`, it fetches these pages and no others."""

    backoff_s: float = 0.5  # before the first retry, doubled for each further one
    max_retry_after_s: float = 120.0  # longer Retry-After values are cut to this
    max_crawl_delay_s: float = 10.0  # longer Crawl-delay lines in robots.txt are cut to this
    max_redirects: int = 10  # browsers give up at 20
    user_agent: str = f"Raydex/{raydex_version()} (documentation indexer)"
    verify_tls: bool = True  # off for hosts with a self-signed certificate
    retry_failed_only: bool = False
    only: tuple[str, ...] = ()
    listed_in: tuple[str, ...] = ()  # more sitemaps of its site
    indexes: tuple[str, ...] = ()  # inventories and search indexes, which only a survey fetches
    survey_only: bool = False  # report the URLs that the start pages and seeds link to, and record nothing

    @property
    def follows_links(self) -> bool:
        """Whether links of pages are followed, as in a crawl of the whole site."""
        return not (self.retry_failed_only or self.only)

    @property
    def scope(self) -> Scope:
        """The URLs that belong to the crawl."""
        return Scope(self.start_urls, self.include, self.exclude, self.no_parent)

    def limited_to(self, urls: Iterable[str]) -> "CrawlSettings | None":
        """Return a crawl of only the `urls` that belong to this one, None if none do."""
        scope = self.scope
        only = tuple(url for url in map(normalize_url, urls) if url and url in scope)
        return self.model_copy(update={"only": only}) if only else None


@dataclass
class CrawlReport:
    """How a crawl ended. Pages that were not seen only count as vanished after a complete crawl that follows links.

    `stopped_by` is "" or the reason why the crawl stopped early: "max_pages", "max_depth" (deeper links were not
    followed, but the crawl counts as complete), "retry_failed" (only failed pages were requested) or "error: …".
    `counts` are pages by state; "unchanged" (304) is included in "ok". `traps` counts skipped URLs of link traps by
    pattern. `below` are the folders of start URLs without a final slash that turned out to be folders.
    """

    complete: bool
    stopped_by: str = ""
    counts: dict[str, int] = field(default_factory=dict)
    seconds: float = 0.0
    traps: dict[str, int] = field(default_factory=dict)
    below: list[str] = field(default_factory=list)


def open_store(url: str) -> PageLedger:
    """Open the database as a ledger with few connections, because a crawl reads single rows and writes batches."""
    from pipelines.store import DATABASE_PATIENCE_S, Store

    return Store(url, pool_size=4, retry_s=DATABASE_PATIENCE_S)


def crawl(
    settings: CrawlSettings,
    ledger_url: str,
    collection: str,
    run: int,
    *,
    flush_pages: int = 64,
    flush_s: float = 1.0,
    ledger: str = DEFAULT_LEDGER,
    note_queue: Callable[[int], object] = lambda urls: None,
    within_s: float | None = None,
) -> Generator[list[str], None, CrawlReport]:
    """Crawl a host: yield batches of URLs of "ok" pages once they are committed, and return the CrawlReport.

    A batch has at most `flush_pages` URLs and waits at most `flush_s` seconds for more. `ledger` names the callable
    that opens `ledger_url`. With each batch, `note_queue` receives the number of known URLs not yet visited. Closing
    the generator kills the crawler, and so does a runtime over `within_s` seconds. Raises CrawlFailed.
    """
    job = dict(settings=settings.model_dump(), ledger_url=ledger_url, ledger=ledger, collection=collection, run=run)
    with _crawler_process({**job, "flush_pages": flush_pages, "flush_s": flush_s}, within_s) as (process, last_lines):
        for message in map(json.loads, process.stdout or ()):
            if "report" in message:
                return CrawlReport(**message["report"])
            if "error" in message:
                raise CrawlFailed(message["error"])
            note_queue(message["queued"])
            yield message["ok"]
        process.wait()
    words = "".join(last_lines).strip() or "(nothing on stderr)"
    raise CrawlFailed(f"the crawler ended with status {process.returncode}:\n{words}")


def survey(settings: CrawlSettings, ledger_url: str, collection: str, within_s: float | None = None) -> list[str]:
    """Return the URLs in scope that the start pages, sitemaps and llms.txt of a host list. Raises CrawlFailed."""
    asking = settings.model_copy(update={"survey_only": True})
    batches = crawl(asking, ledger_url, collection, 0, within_s=within_s)
    return [url for urls in batches for url in urls]


@contextmanager
def _crawler_process(job: dict[str, Any], within_s: float | None) -> Iterator[tuple[subprocess.Popen[str], deque[str]]]:
    """Yield the crawler process, and the last lines of its stderr, which are complete when it has ended.

    The process ends when its stdin is closed, so it can't outlive a killed parent. It also ends after `within_s`
    seconds.
    """
    process = subprocess.Popen(
        [sys.executable, "-m", "pipelines.indexing.crawling.spider"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=PROJECT_ROOT,
        start_new_session=True,
        encoding="utf-8",
        errors="replace",
    )
    last_lines = deque[str](maxlen=20)

    def forward_stderr() -> None:
        for line in process.stderr or ():
            last_lines.append(line)
            sys.stderr.write(line)

    reader = threading.Thread(target=forward_stderr, daemon=True)
    reader.start()
    limit = threading.Timer(within_s or 0, process.kill)
    if within_s is not None:
        limit.start()
    with process:
        try:
            with suppress(BrokenPipeError):  # it died at once; its stderr has the reason
                print(json.dumps(job), file=process.stdin, flush=True)
            yield process, last_lines
        finally:
            limit.cancel()
            process.kill()
            reader.join(timeout=5)
