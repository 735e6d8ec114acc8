"""Fetch one URL politely through Scrapy's downloader: pace, retries, limits.

Every request of a crawl, be it a page, robots.txt or a sitemap, goes through `Fetcher.fetch`. It follows no
redirect: the frontier decides about each hop. Knows no page and no ledger.
"""

import asyncio
import random
import time
from traceback import clear_frames
from typing import Any
from urllib.parse import urlsplit

from scrapy import Request, signals
from scrapy.core.downloader.handlers.http11 import HTTP11DownloadHandler
from scrapy.crawler import Crawler
from scrapy.exceptions import (
    CannotResolveHostError,
    DownloadCancelledError,
    DownloadConnectionRefusedError,
    DownloadFailedError,
    DownloadTimeoutError,
    IgnoreRequest,
    ResponseDataLossError,
    StopDownload,
)
from scrapy.http import Headers
from twisted.internet.error import ConnectError, ConnectionClosed

from pipelines.formats import accept_header
from pipelines.indexing.crawling.crawl import CrawlSettings
from pipelines.indexing.crawling.network import GuardedResolver
from pipelines.indexing.crawling.reply import Reply, no_page, unreadable
from pipelines.retry_after import parse_retry_after

ACCEPT = accept_header()
RETRIED_STATUS = frozenset((408, 429, 500, 502, 503, 504, 520, 521, 522, 523, 524))
BUSY_STATUS = frozenset((429, 503))
# After so many pages failed one after the other the site is down: each further one gets a single attempt.
PATIENCE = 10
# After so many requests in a row without any answer (refused, timed out, no such name) the site is given up:
# at a full time-out each, a large site would take hours to say nothing.
GIVE_UP = 50
# Response heads of real servers stay below 16 KiB; Twisted bounds a line, not their number.
MAX_HEAD_BYTES = 256 * 1024
_LOST = (
    DownloadConnectionRefusedError,
    CannotResolveHostError,
    DownloadFailedError,
    ResponseDataLossError,
    ConnectError,
    ConnectionClosed,
)
_PLAIN_WORDS = {
    DownloadConnectionRefusedError: "connection refused",
    CannotResolveHostError: "the host name does not resolve",
}


class BoundedHandler(HTTP11DownloadHandler):
    """Scrapy's HTTP/1.1 handler, with a bound on the size of a response's head."""

    def __init__(self, crawler: Crawler):
        super().__init__(crawler)
        plain = self._pool._factory

        class BoundedFactory(plain):  # type: ignore[misc, valid-type]
            def buildProtocol(self, addr: Any) -> Any:
                return _bounded(super().buildProtocol(addr))

        self._pool._factory = BoundedFactory


def _bounded(protocol: Any) -> Any:
    """`protocol`, dropping its connection when a response's head is longer than MAX_HEAD_BYTES."""
    receive, request, head = protocol.dataReceived, protocol.request, 0

    def bounded_receive(data: bytes) -> None:
        nonlocal head
        if protocol._parser is not None and protocol._parser.state in ("STATUS", "HEADER"):
            head += len(data)
            if head > MAX_HEAD_BYTES:
                protocol.transport.abortConnection()
                return
        receive(data)

    def counted_request(*args: Any) -> Any:
        nonlocal head
        head = 0
        return request(*args)

    protocol.dataReceived, protocol.request = bounded_receive, counted_request
    return protocol


class Pace:
    """When the next request may start: `delay` seconds after the last one, and after every pause."""

    def __init__(self, delay: float):
        self.delay = delay
        self._next = 0.0

    async def turn(self) -> None:
        while (now := time.monotonic()) < self._next:
            await asyncio.sleep(self._next - now)
        self._next = now + self.delay

    def pause(self, seconds: float) -> None:
        self._next = max(self._next, time.monotonic() + seconds)


class Fetcher:
    """Fetches URLs of one host through a running Scrapy engine."""

    def __init__(self, crawler: Crawler, settings: CrawlSettings, resolver: GuardedResolver):
        self._crawler, self._settings, self._resolver = crawler, settings, resolver
        self._failures_in_row = self._silent_in_row = 0
        self.pace = Pace(settings.delay_s)
        crawler.signals.connect(self._check_headers, signal=signals.headers_received)

    async def fetch(self, url: str, etag: str | None = None, page: bool = True) -> Reply:
        """The reply for `url` after bounded retries; never raises for what a server does.

        With `page`, a body of a type that is not read is not downloaded.
        """
        attempt = 0
        while True:
            await self.pace.turn()
            reply = await self._attempt(url, etag, page)
            if not reply.transient or attempt >= self._retries(reply):
                self._count(reply)
                return reply
            await self._back_off(reply, attempt)
            attempt += 1

    @property
    def given_up(self) -> bool:
        """Whether the site has not answered at all for so long that asking on is pointless."""
        return self._silent_in_row >= GIVE_UP

    def _count(self, reply: Reply) -> None:
        self._failures_in_row = self._failures_in_row + 1 if reply.transient else 0
        self._silent_in_row = self._silent_in_row + 1 if reply.transient and reply.status is None else 0

    def _retries(self, reply: Reply) -> int:
        if self._failures_in_row >= PATIENCE:
            return 0
        return min(self._settings.retries, 1) if reply.timed_out else self._settings.retries

    async def _back_off(self, reply: Reply, attempt: int) -> None:
        """Wait before the next attempt; a server that is busy is left alone by all requests."""
        wait = self._settings.backoff_s * 2**attempt * random.uniform(1, 1.5)
        if reply.status in BUSY_STATUS:
            asked = parse_retry_after(reply.headers.get("retry-after", "")) or 0.0
            self.pace.pause(min(max(wait, asked), self._settings.max_retry_after_s))
        else:
            await asyncio.sleep(wait)

    async def _attempt(self, url: str, etag: str | None, page: bool) -> Reply:
        request = self._request(url, etag, page)
        try:
            response = await self._crawler.engine.download_async(request)
        except Exception as error:
            return self._error_reply(url, error)
        return Reply(
            url,
            response.status,
            _plain(response.headers),
            response.body,
            transient=response.status in RETRIED_STATUS,
            unwanted=request.meta.get("unwanted", ""),
        )

    def _request(self, url: str, etag: str | None, page: bool) -> Request:
        headers = {"User-Agent": self._settings.user_agent, "Accept": ACCEPT, "Accept-Encoding": "gzip"}
        if etag:
            headers["If-None-Match"] = etag
        meta = {"download_timeout": self._settings.timeout_s, "page": page}
        return Request(url, headers=headers, meta=meta)

    def _error_reply(self, url: str, error: Exception) -> Reply:
        if refused := self._resolver.refusals.get(urlsplit(url).hostname or ""):
            return Reply(url, error=f"refused: {refused}", refused=refused)
        if isinstance(error, DownloadTimeoutError):
            message = f"no complete answer within {self._settings.timeout_s:g} s"
            return Reply(url, error=message, transient=True, timed_out=True)
        if isinstance(error, DownloadCancelledError | IgnoreRequest):
            _forget_frames(error)
            return Reply(url, error=f"larger than {self._settings.max_page_bytes:,} bytes", too_large=True)
        lost = isinstance(error, _LOST)
        words = _PLAIN_WORDS.get(type(error)) or f"{type(error).__name__}: {error}"
        return Reply(url, error=words[:500], transient=lost)

    def _check_headers(self, headers: Headers, request: Request, **_: Any) -> None:
        """Scrapy asks when the head of a response is there: the body of one that is not read stays away."""
        plain = _plain(headers)
        reason = no_page(plain, request.url) if request.meta["page"] else unreadable(plain)
        if reason:
            request.meta["unwanted"] = reason
            raise StopDownload(fail=False)


def _forget_frames(error: BaseException | None) -> None:
    """Let go what the functions that raised `error` held: half a bomb, until the garbage collector came by."""
    while error is not None:
        clear_frames(error.__traceback__)
        error = error.__cause__


def _plain(headers: Headers) -> dict[str, str]:
    return {name.decode("latin-1").lower(): b",".join(values).decode("latin-1") for name, values in headers.items()}
