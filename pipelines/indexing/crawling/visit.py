"""Crawls one site: takes a URL, checks robots.txt, fetches, records, follows links.

It knows the network only as a Fetcher, and the database only as a ledger that is called in threads.
"""

import asyncio
import logging
import time
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import replace

from pipelines.fetched import FetchedPage, KnownPage
from pipelines.indexing.crawling.crawl import CrawlFailed, CrawlReport, CrawlSettings, PageLedger
from pipelines.indexing.crawling.fetch import GIVE_UP, Fetcher
from pipelines.indexing.crawling.frontier.queue import Frontier, FrontierEntry
from pipelines.indexing.crawling.frontier.traps import LinkTraps, reduced
from pipelines.indexing.crawling.outbox import Outbox
from pipelines.indexing.crawling.reply import HttpReply, page_from_reply
from pipelines.indexing.crawling.robots import Robots
from pipelines.indexing.crawling.scope import directory, normalize_url
from pipelines.indexing.crawling.seeds import read_listing, read_llms_txt, read_sitemaps
from pipelines.indexing.reading.links import origin, page_pointers
from pipelines.indexing.reading.text import decode
from pipelines.records import Page, digest
from pipelines.text.counts import counted

# The parser takes milliseconds; a page that makes it hang loses its links and blocks one thread, but not the crawl.
READ_S = 20.0

_COOKIES_ASKED = ", even with the cookies that the site sets: it may need a browser. Index its source files, or a copy"
_NO_START = {"failed": "could not be fetched", "gone": "is gone", "skipped": "may not be read"}

logger = logging.getLogger("raydex.crawl")


class SiteCrawl:
    """One crawl of one host, in a run that may continue a killed one."""

    def __init__(
        self, settings: CrawlSettings, fetcher: Fetcher, ledger: PageLedger, collection: str, run: int, outbox: Outbox
    ):
        self._settings, self._fetcher, self._ledger = settings, fetcher, ledger
        self._collection, self._run, self._outbox = collection, run, outbox
        self._scope = settings.scope
        self._robots = Robots(self._fetch_file, settings.user_agent)
        self._frontier = Frontier(settings.max_pages, settings.max_depth)
        self._traps = LinkTraps()
        self._starts = set(settings.start_urls)
        self._redirects: dict[str, str] = {}
        self._below: list[str] = []
        self._start_errors: list[str] = []
        self._began = False
        self._counts: Counter[str] = Counter()

    async def run(self) -> CrawlReport:
        """Crawl to the end. Only errors of the ledger propagate."""
        began = time.monotonic()
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._outbox.run())
            if self._settings.ignore_robots:
                logger.warning("robots.txt is IGNORED in this crawl: make sure that the site's owner agrees")
            async for url in self._seeds():
                self._frontier.add(FrontierEntry(url))
            while not (self._scope.is_settled or self._settings.only or self._settings.retry_failed_only):
                if not await self._work_once():
                    break
            await self._drain()
            if self._may_revisit():
                for url in await self._known_urls():
                    self._frontier.add(FrontierEntry(url, depth=self._settings.max_depth or 0))
                await self._drain()
            await self._outbox.close()
        return self._report(time.monotonic() - began)

    async def survey(self) -> list[str]:
        """Return the URLs in scope that the start pages and seeds list; record nothing. Raises CrawlFailed."""
        found = dict.fromkeys([url async for url in self._seeds()])
        for index in self._settings.indexes:
            found |= dict.fromkeys(await read_listing(self._fetch_allowed, index))
        for start in self._settings.start_urls:
            waiting = [FrontierEntry(start)]
            for _ in range(self._settings.max_redirects + 1):
                page = await self._visit(waiting[0])
                self._note(waiting[0], page)
                waiting = self._next_entries(waiting[0], page)
                found |= dict.fromkeys(entry.url for entry in waiting)
                if page.state != "redirect" or not waiting:
                    break
        if self._start_errors:
            raise CrawlFailed("; ".join(self._start_errors))
        return [url for url in found if url in self._scope]

    @property
    def queued(self) -> int:
        """How many known URLs were not visited yet."""
        return self._frontier.queued

    def _may_revisit(self) -> bool:
        """Return whether to visit known URLs that no page of this crawl led to."""
        done = self._frontier.exhausted or self._fetcher.given_up
        return not done and self._settings.follows_links and not self._start_errors

    async def _seeds(self) -> AsyncIterator[str]:
        for url in self._settings.only:
            yield url
        if self._settings.only:
            return
        if self._settings.retry_failed_only:
            for url in await asyncio.to_thread(self._ledger.failed_urls, self._collection):
                if url in self._scope:
                    yield url
            return
        for url in self._settings.start_urls:
            yield url
        if self._settings.sitemap:
            async for url in self._sitemap_seeds():
                if url in self._scope:
                    yield url

    async def _sitemap_seeds(self) -> AsyncIterator[str]:
        for base in dict.fromkeys(map(origin, self._settings.start_urls)):
            rules = await self._robots.rules(base)
            if rules.unreachable and not self._settings.ignore_robots:
                continue
            sitemaps = (
                normalize_url(url, base) for url in ("/sitemap.xml", *self._settings.listed_in, *rules.parsed.sitemaps)
            )
            on_site = filter(self._scope.same_site, filter(None, sitemaps))
            async for url in read_sitemaps(self._fetch_allowed, on_site, self._settings.max_page_bytes):
                yield url
        for folder in dict.fromkeys(
            origin(url) + path for url in self._settings.start_urls for path in ("/", directory(url))
        ):
            for url in await read_llms_txt(self._fetch_allowed, f"{folder}llms.txt"):
                yield url

    async def _known_urls(self) -> list[str]:
        """Return the URLs of earlier crawls that are normalized by today's rules."""
        known = await asyncio.to_thread(self._ledger.known_urls, self._collection)
        return [url for url in known if url in self._scope and normalize_url(url) == url]

    async def _drain(self) -> None:
        async with asyncio.TaskGroup() as workers:
            for _ in range(self._settings.concurrency):
                workers.create_task(self._work())

    async def _work(self) -> None:
        while await self._work_once():
            pass

    async def _work_once(self) -> bool:
        """Visit the next page; return False if there is none."""
        if (entry := await self._frontier.take()) is None:
            return False
        if entry.url not in self._scope or self._traps.holds(entry.url, entry.finder):
            await self._frontier.done(entry, ok=False)
            return True
        page = await self._visit(entry)
        self._note(entry, page)
        await self._outbox.put(page)
        if self._fetcher.given_up:
            self._frontier.stop()
        await self._frontier.done(entry, page.state == "ok", self._next_entries(entry, page))
        return True

    async def _visit(self, entry: FrontierEntry) -> FetchedPage:
        if (page := await self._robots_refusal(entry.url)) is not None:
            return page
        known = await asyncio.to_thread(self._ledger.known_page, self._collection, entry.url, self._run)
        if known and known.fetched:
            return FetchedPage(entry.url, "ok", 200, links=known.links)  # the server's earlier response
        reply = await self._fetcher.fetch(entry.url, known.etag if known else None)
        page = page_from_reply(reply, known)
        if page.state == "redirect":
            return self._check_redirect(entry, page, known)
        return page if page.body is None else await self._add_pointers(page)

    async def _robots_refusal(self, url: str) -> FetchedPage | None:
        """Return the page's record if robots.txt forbids it; unreachable rules only forbid it for now."""
        if self._settings.ignore_robots:
            return None
        rules = await self._robots.rules(url)
        delay = min(rules.parsed.crawl_delay(self._robots.agent) or 0.0, self._settings.max_crawl_delay_s)
        self._fetcher.pacer.delay = max(self._settings.delay_s, delay)
        if rules.allow(url, self._robots.agent):
            return None
        if rules.unreachable:
            return FetchedPage(url, "failed", error=f"forbidden while {rules.unreachable}")
        return FetchedPage(url, "skipped", error="robots.txt")

    async def _add_pointers(self, page: FetchedPage) -> FetchedPage:
        """Add the links and the canonical URL in the body of `page`; none if it can't be read."""
        document = Page(page.url, page.body or b"", page.content_type, page.charset)
        try:
            async with asyncio.timeout(READ_S):
                links, canonical, text = await asyncio.to_thread(_read_pointers, document)
        except Exception as error:  # the reader decides later whether the page can be indexed
            logger.warning("no links read from %s: %s", page.url, error or type(error).__name__)
            return page
        self._traps.note(page.url, text)
        return replace(page, links=links, canonical=canonical)

    def _check_redirect(self, entry: FrontierEntry, page: FetchedPage, known: KnownPage | None) -> FetchedPage:
        """If a redirect is not to be followed, add the reason to its record."""
        (target,) = page.links
        if entry.hops >= self._settings.max_redirects:
            links = known.links if known else ()
            error = f"more than {counted(self._settings.max_redirects, 'redirect')}"
            return FetchedPage(entry.url, "failed", page.http_status, links=links, error=error)
        if target not in self._scope:
            return replace(page, error=f"leads out of the crawl, to {target}")
        return page

    def _note(self, entry: FrontierEntry, page: FetchedPage) -> None:
        self._counts[page.state] += 1
        self._counts["unchanged"] += page.state == "ok" and page.http_status == 304
        if page.state == "redirect" and page.links:
            self._redirects[page.url] = page.links[0]
        if entry.url in self._starts and not self._settings.only:
            self._note_start(page)
            is_read = page.state in ("ok", "redirect") and not page.error
            if folder := self._scope.settle(entry.url, map(_normal, page.links) if is_read else None):
                self._below.append(folder)

    def _note_start(self, page: FetchedPage) -> None:
        """Record a start URL: without a page, the crawl is incomplete; a redirect's target becomes a start URL."""
        if page.state == "ok":
            self._began = True
        elif page.state == "redirect" and page.error:
            self._start_errors.append(f"start URL {page.url} {page.error}: start there instead")
        elif page.state == "redirect":
            self._began |= not self._starts.issuperset(page.links) and self._frontier.seen(page.links[0])
            self._starts.update(page.links)
        else:
            reason = page.error or f"the server answered {page.http_status}"
            self._start_errors.append(f"start URL {page.url} {_NO_START[page.state]}: {reason}")

    def _next_entries(self, entry: FrontierEntry, page: FetchedPage) -> list[FrontierEntry]:
        if page.state == "redirect":
            return [] if page.error else [self._redirected(entry, page.links[0])]
        if not self._settings.follows_links:
            return []
        urls = dict.fromkeys(filter(None, map(normalize_url, page.links)))
        fresh = (url for url in urls if not self._frontier.seen(url) and url in self._scope)
        return [FrontierEntry(url, entry.depth + 1, finder=entry.url) for url in fresh]

    def _redirected(self, entry: FrontierEntry, target: str) -> FrontierEntry:
        """Return the target of a redirect; visit a seen page again, with cookies, if the site requires them."""
        next_entry = FrontierEntry(target, entry.depth, entry.hops + 1, entry.finder)
        if entry.again or not (self._fetcher.has_cookies(entry.url) and self._leads_back(entry.url)):
            return next_entry
        self._fetcher.send_cookies = True
        return replace(next_entry, again=True)

    def _leads_back(self, url: str) -> bool:
        """Return whether the redirects so far lead from `url` back to it."""
        target = self._redirects.get(url)
        for _ in range(self._settings.max_redirects):
            if target is None or target == url:
                break
            target = self._redirects.get(target)
        return target == url

    async def _fetch_file(self, url: str) -> HttpReply:
        """Fetch robots.txt, a sitemap or llms.txt, with any media type."""
        return await self._fetcher.fetch(url, page=False)

    async def _fetch_allowed(self, url: str) -> HttpReply:
        if await self._robots_refusal(url) is not None:
            return HttpReply(url, error="robots.txt")
        return await self._fetch_file(url)

    def _report(self, seconds: float) -> CrawlReport:
        stopped_by = self._stopped_by()
        return CrawlReport(
            complete=stopped_by in ("", "max_depth"),
            stopped_by=stopped_by,
            counts=dict(self._counts),
            seconds=round(seconds, 3),
            traps=dict(self._traps.left),
            below=self._below,
        )

    def _stopped_by(self) -> str:
        if self._start_errors:
            return f"error: {'; '.join(self._start_errors)}"
        if self._fetcher.given_up:
            return f"error: the site stopped answering ({counted(GIVE_UP, 'request')} in a row without an answer)"
        if self._settings.retry_failed_only:
            return "retry_failed"
        if not (self._began or self._settings.only):
            return f"error: the start URLs redirect in a circle{_COOKIES_ASKED if self._fetcher.send_cookies else ''}"
        if self._frontier.exhausted:
            return "max_pages"
        return "max_depth" if self._frontier.cut_by_depth else ""


def _normal(url: str) -> str:
    return normalize_url(url) or ""


def _read_pointers(page: Page) -> tuple[tuple[str, ...], str | None, str]:
    """Return a page's links, its canonical URL, normalized for comparison with page URLs, and its text's digest."""
    links, canonical = page_pointers(page)
    written = normalize_url(canonical) if canonical else None
    words = reduced(decode(page.body, page.charset, detect=False))
    return links, None if written == page.url else written, words and digest(words)
