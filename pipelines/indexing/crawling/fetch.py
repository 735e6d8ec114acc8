"""Fetches one URL politely through Scrapy's downloader: pace, retries, limits.

Every request of a crawl (page, robots.txt, sitemap) goes through `Fetcher.fetch`. It does not follow redirects; the
crawl decides about each hop. This module knows no page and no ledger.
"""

import asyncio
import math
import random
import time
from traceback import clear_frames
from typing import Any
from urllib.parse import urlsplit

from scrapy import Request, exceptions, signals
from scrapy.core.downloader.handlers.http11 import HTTP11DownloadHandler
from scrapy.crawler import Crawler
from scrapy.http import Headers, Response
from scrapy.http.cookies import CookieJar
from twisted.internet.error import ConnectError, ConnectionClosed
from twisted.internet.ssl import SSL

from pipelines.indexing.crawling.crawl import CrawlSettings
from pipelines.indexing.crawling.reply import HttpReply, encoding_refusal, packed_by, page_refusal
from pipelines.indexing.crawling.resolver import GuardedResolver
from pipelines.indexing.reading.formats import accept_header
from pipelines.indexing.reading.links import origin
from pipelines.text.counts import counted
from pipelines.text.retry_after import parse_retry_after

ACCEPT = accept_header()
RETRIED_STATUS = frozenset((408, 429, 500, 502, 503, 504, 520, 521, 522, 523, 524))
BUSY_STATUS = frozenset((429, 503))
# After this many failed pages in a row, the site is considered down: each further page gets a single attempt.
PATIENCE = 10
# After this many requests in a row without any response (refused, timed out, no such name), the crawl gives up. With a
# full timeout each, a large site that is down would take hours.
GIVE_UP = 50
# Response heads of real servers stay below 16 KiB. Twisted limits the length of a line, but not the number of lines.
MAX_HEAD_BYTES = 256 * 1024
# More cookies than browsers keep per site, and more characters in them than servers accept in a header.
MOST_COOKIES, MOST_COOKIE_CHARACTERS = 150, 8_000
_CONNECTION_ERRORS = (
    exceptions.DownloadConnectionRefusedError,
    exceptions.CannotResolveHostError,
    exceptions.DownloadFailedError,
    exceptions.ResponseDataLossError,
    ConnectError,
    ConnectionClosed,
)
_MESSAGES: dict[type[Exception], str] = {
    exceptions.DownloadConnectionRefusedError: "connection refused",
    exceptions.CannotResolveHostError: "the host name does not resolve",
}


class BoundedHandler(HTTP11DownloadHandler):
    """Scrapy's HTTP/1.1 handler with a limit on the size of a response's head."""

    def __init__(self, crawler: Crawler):
        super().__init__(crawler)
        plain = self._pool._factory

        class BoundedFactory(plain):
            def buildProtocol(self, addr: Any) -> Any:
                return _bound_head(super().buildProtocol(addr))

        self._pool._factory = BoundedFactory


class RealCodings:
    """A downloader middleware that corrects Content-Encoding to the body's real encodings before decompression."""

    def process_response(self, request: Request, response: Response, spider: Any = None) -> Response:
        if values := response.headers.getlist("Content-Encoding"):
            codings = packed_by(b",".join(values).decode("latin-1"), response.body)
            response.headers.setlist("Content-Encoding", codings)
            if not codings:
                del response.headers["Content-Encoding"]
        return response


def _bound_head(protocol: Any) -> Any:
    """Make `protocol` drop its connection if a response's head exceeds MAX_HEAD_BYTES; return it."""
    receive, request, head = protocol.dataReceived, protocol.request, 0

    def receive_bounded(data: bytes) -> None:
        nonlocal head
        if protocol._parser is not None and protocol._parser.state in ("STATUS", "HEADER"):
            head += len(data)
            if head > MAX_HEAD_BYTES:
                protocol.transport.abortConnection()
                return
        receive(data)

    def request_counted(*args: Any) -> Any:
        nonlocal head
        head = 0
        return request(*args)

    protocol.dataReceived, protocol.request = receive_bounded, request_counted
    return protocol


class RequestPacer:
    """Spaces requests: the next one starts `delay` seconds after the last one, and after every pause."""

    def __init__(self, delay: float):
        self.delay = delay
        self._next = -math.inf

    async def wait_turn(self) -> None:
        while (now := time.monotonic()) < self._next:
            await asyncio.sleep(self._next - now)
        self._next = now + self.delay

    def pause(self, seconds: float) -> None:
        self._next = max(self._next, time.monotonic() + seconds)


class Fetcher:
    """Fetches the URLs of one host through a running Scrapy engine.

    Cookies are kept, but only sent with `send_cookies`, and only to the host that set them. A page should look the same
    to the crawler as to any reader, independent of the page a crawl came from.
    """

    def __init__(self, crawler: Crawler, settings: CrawlSettings, resolver: GuardedResolver):
        self._crawler, self._settings, self._resolver = crawler, settings, resolver
        self._failures_in_row = self._silent_in_row = 0
        self.pacer = RequestPacer(settings.delay_s)
        self.send_cookies = False
        self._cookies: dict[str, CookieJar] = {}
        crawler.signals.connect(self._check_headers, signal=signals.headers_received)

    async def fetch(self, url: str, etag: str | None = None, page: bool = True) -> HttpReply:
        """Return the reply for `url` after a limited number of retries; no server behavior raises an error.

        With `page`, a body in an unsupported format is not downloaded.
        """
        attempt = 0
        while True:
            await self.pacer.wait_turn()
            reply = await self._attempt(url, etag, page)
            if not reply.transient or attempt >= self._count_retries(reply):
                self._count(reply)
                return reply
            await self._back_off(reply, attempt)
            attempt += 1

    @property
    def given_up(self) -> bool:
        """Whether the last GIVE_UP requests got no response at all."""
        return self._silent_in_row >= GIVE_UP

    def _count(self, reply: HttpReply) -> None:
        self._failures_in_row = self._failures_in_row + 1 if reply.transient else 0
        self._silent_in_row = self._silent_in_row + 1 if reply.transient and reply.status is None else 0

    def _count_retries(self, reply: HttpReply) -> int:
        if self._failures_in_row >= PATIENCE:
            return 0
        return min(self._settings.retries, 1) if reply.timed_out else self._settings.retries

    async def _back_off(self, reply: HttpReply, attempt: int) -> None:
        """Wait before the next attempt; while a server is busy, all requests wait."""
        wait = self._settings.backoff_s * 2**attempt * random.uniform(1, 1.5)
        if reply.status in BUSY_STATUS:
            asked = parse_retry_after(reply.headers.get("retry-after", "")) or 0.0
            self.pacer.pause(min(max(wait, asked), self._settings.max_retry_after_s))
        else:
            await asyncio.sleep(wait)

    async def _attempt(self, url: str, etag: str | None, page: bool) -> HttpReply:
        request = self._request(url, etag, page)
        try:
            response = await self._crawler.engine.download_async(request)
        except Exception as error:
            return self._error_reply(url, error)
        self._keep_cookies(request, response)
        return HttpReply(
            url,
            response.status,
            _plain_headers(response.headers),
            response.body,
            transient=response.status in RETRIED_STATUS,
            unwanted=request.meta.get("unwanted", ""),
        )

    def _request(self, url: str, etag: str | None, page: bool) -> Request:
        headers = {"User-Agent": self._settings.user_agent, "Accept": ACCEPT, "Accept-Encoding": "gzip"}
        if etag:
            headers["If-None-Match"] = etag
        meta = {"download_timeout": self._settings.timeout_s, "page": page}
        request = Request(url, headers=headers, meta=meta)
        if self.send_cookies and (jar := self._cookies.get(origin(url))) is not None:
            jar.add_cookie_header(request)
        return request

    def has_cookies(self, url: str) -> bool:
        """Return whether the site of `url` has set cookies."""
        return len(self._cookies.get(origin(url), ())) > 0

    def _keep_cookies(self, request: Request, response: Response) -> None:
        """Keep the cookies that a reply sets; drop all of a site's cookies if they are too many or too long."""
        if not response.headers.getlist("Set-Cookie"):
            return
        jar = self._cookies.setdefault(origin(request.url), CookieJar())
        jar.extract_cookies(response, request)
        size = sum(len(cookie.name) + len(cookie.value or "") for cookie in jar)
        if len(jar) > MOST_COOKIES or size > MOST_COOKIE_CHARACTERS:
            jar.clear()

    def _error_reply(self, url: str, error: Exception) -> HttpReply:
        if refused := self._resolver.refusals.get(urlsplit(url).hostname or ""):
            return HttpReply(url, error=f"refused: {refused}")
        if isinstance(error, exceptions.DownloadTimeoutError):
            message = f"no complete answer within {self._settings.timeout_s:g} s"
            return HttpReply(url, error=message, transient=True, timed_out=True)
        if isinstance(error, exceptions.DownloadCancelledError | exceptions.IgnoreRequest):
            _clear_frames(error)
            return HttpReply(url, error=f"larger than {counted(self._settings.max_page_bytes, 'byte')}", too_large=True)
        lost = isinstance(error, _CONNECTION_ERRORS)
        words = _MESSAGES.get(type(error)) or _tls_reason(error) or f"{type(error).__name__}: {error}"
        return HttpReply(url, error=words[:500], transient=lost)

    def _check_headers(self, headers: Headers, request: Request, **_: Any) -> None:
        """Stop the download of an unreadable body; Scrapy calls this once a response's head has arrived."""
        plain = _plain_headers(headers)
        reason = page_refusal(plain, request.url) if request.meta["page"] else encoding_refusal(plain)
        if reason:
            request.meta["unwanted"] = reason
            raise exceptions.StopDownload(fail=False)


def _tls_reason(error: Exception) -> str:
    """Return why a TLS connection failed, in OpenSSL's words; "" for any other failure."""
    causes = [failure.value for failure in getattr(error.__cause__, "reasons", None) or ()]
    told = [cause.args[0] for cause in causes if isinstance(cause, SSL.Error) and cause.args]
    said = [reason for one in told if isinstance(one, list) for *_, reason in one]
    return f"TLS: {said[-1]}" if said else ""


def _clear_frames(error: BaseException | None) -> None:
    """Free the local variables in the traceback of `error`: they contain half a decompression bomb."""
    while error is not None:
        clear_frames(error.__traceback__)
        error = error.__cause__


def _plain_headers(headers: Headers) -> dict[str, str]:
    return {name.decode("latin-1").lower(): b",".join(values).decode("latin-1") for name, values in headers.items()}
