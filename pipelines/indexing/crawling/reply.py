"""Turns an HTTP reply into the record of a page.

Also decides by its headers whether a body is worth downloading. Pure functions of replies. Knows no network and decides
nothing about retries.
"""

from dataclasses import dataclass, field
from email.message import Message
from urllib.parse import urlsplit

from pipelines.fetched import FetchedPage, KnownPage, PageState
from pipelines.indexing.crawling.scope import normalize_url
from pipelines.indexing.reading.formats import HTML, VAGUE_TYPES, format_of_body, format_of_name, format_of_type

REDIRECTS = frozenset((301, 302, 303, 307, 308))
GONE = frozenset((404, 410))
# Only gzip is requested: it unpacks in little memory; the window of zstd alone may take 128 MiB.
READABLE_ENCODINGS = frozenset(("", "identity", "gzip", "x-gzip", "deflate"))


@dataclass(frozen=True, slots=True)
class HttpReply:
    """The result of one request: a status with headers (lower-case names) and body, or an error.

    `too_large` marks a body beyond the size limit, which is not retried, `unwanted` is the reason why the body was not
    downloaded.
    """

    url: str
    status: int | None = None
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    error: str = ""
    transient: bool = False
    timed_out: bool = False
    too_large: bool = False
    unwanted: str = ""


def parse_content_type(content_type: str, url: str) -> tuple[str, str | None]:
    """Return media type and declared charset of a Content-Type header; where it is vague the file name decides."""
    message = Message()
    message["Content-Type"] = content_type or "application/octet-stream"
    kind = message.get_content_type() if content_type else ""
    charset = message.get_param("charset")
    known = format_of_name(urlsplit(url).path) if kind in VAGUE_TYPES else None
    known = known or format_of_type(kind)
    kind = known.media_type if known else kind
    return kind, charset if isinstance(charset, str) and charset else None


def encoding_refusal(headers: dict[str, str]) -> str:
    """Return why a body is not downloaded if its encoding was not requested; "" if it was."""
    encodings = headers.get("content-encoding", "").lower()
    if all(encoding.strip() in READABLE_ENCODINGS for encoding in encodings.split(",")):
        return ""
    return f"content encoding {encodings!r}"


def page_refusal(headers: dict[str, str], url: str) -> str:
    """Return why the body of a page is not downloaded, judged by its headers; "" if it is, or if it has no type."""
    kind, _ = parse_content_type(headers.get("content-type", ""), url)
    return f"content type {kind!r}" if kind and not format_of_type(kind) else encoding_refusal(headers)


def redirect_target(reply: HttpReply) -> str | None:
    """Return the URL that a redirect leads to; None for any other reply, or if it is not an http(s) URL.

    It keeps tracking parameters: a server that adds them would send the URL without them back here.
    """
    location = reply.headers.get("location") if reply.status in REDIRECTS else None
    return normalize_url(location, reply.url, keep_tracking=True) if location else None


def page_from_reply(reply: HttpReply, known: KnownPage | None) -> FetchedPage:
    """Return the record of one page, without links and canonical URL, which stand in its body."""
    if reply.status is None:
        return _other(reply, known, "skipped" if reply.too_large else "failed", reply.error)
    if reply.status in GONE:
        return FetchedPage(reply.url, "gone", reply.status)
    if reply.status in REDIRECTS:
        return _redirect(reply, known)
    if reply.status == 304 and known is not None and known.etag:
        return FetchedPage(reply.url, "ok", 304, known.etag, links=known.links)
    if 200 <= reply.status < 300:
        return _success(reply, known)
    return _other(reply, known, "failed", f"the server answered {reply.status}")


def _success(reply: HttpReply, known: KnownPage | None) -> FetchedPage:
    kind, charset = parse_content_type(reply.headers.get("content-type", ""), reply.url)
    if reply.status != 200:
        return _other(reply, known, "skipped", f"the server answered {reply.status}")
    if reply.unwanted:
        return _other(reply, known, "skipped", reply.unwanted)
    kind = kind or _sniff(reply.body)
    if not format_of_type(kind):
        return _other(reply, known, "skipped", f"content type {kind!r}")
    etag = reply.headers.get("etag") or None
    return FetchedPage(reply.url, "ok", 200, etag, reply.body, kind, charset)


def _sniff(body: bytes) -> str:
    """Return the media type of a body without a declared one; any tag at its beginning makes it HTML."""
    entry = format_of_body(body) or (HTML if body[:1024].lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"<") else None)
    return entry.media_type if entry else "application/octet-stream"


def _redirect(reply: HttpReply, known: KnownPage | None) -> FetchedPage:
    target = redirect_target(reply)
    if target is None:
        return _other(reply, known, "failed", "redirect without a usable Location")
    return FetchedPage(reply.url, "redirect", reply.status, links=(target,))


def _other(reply: HttpReply, known: KnownPage | None, state: PageState, error: str) -> FetchedPage:
    """Return a page without a body; a failed one keeps its known links, so that the pages behind it are visited."""
    links = known.links if known is not None and state == "failed" else ()
    return FetchedPage(reply.url, state, reply.status, links=links, error=error)
