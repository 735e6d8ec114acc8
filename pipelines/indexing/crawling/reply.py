"""Turns an HTTP reply into the record of a page.

It also decides from the headers whether a body is worth downloading. These are pure functions of replies. The module
knows no network and decides nothing about retries.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from email.message import Message
from urllib.parse import urlsplit

from pipelines.fetched import FetchedPage, KnownPage, PageState
from pipelines.indexing.crawling.scope import normalize_url
from pipelines.indexing.reading.formats import HTML, TEXT, VAGUE_TYPES, format_of_body, format_of_name, format_of_type
from pipelines.text.phrases import read_names

REDIRECTS = frozenset((301, 302, 303, 307, 308))
GONE = frozenset((404, 410))
# Only gzip is requested, because it decompresses in little memory; the window of zstd may take 128 MiB.
UNPACKED_CODINGS = frozenset(("gzip", "x-gzip", "deflate"))
_UNREAD_CODINGS = read_names(__name__)["unread_codings"]
_TOKEN = r"[!#$%&'*+.^_`|~\w-]+"
_MEDIA_TYPE = re.compile(rf"\s*({_TOKEN}/{_TOKEN})\s*(?:;|\Z)", re.ASCII)
_GZIP_MAGIC = b"\x1f\x8b"
# Control bytes that no text contains (WHATWG, MIME Sniffing 3, "binary data byte", and DEL); this many bytes are
# checked.
_BINARY = re.compile(rb"[\0-\x08\x0b\x0e-\x1a\x1c-\x1f\x7f]")
_SNIFFED = 1445
_BYTE_ORDER_MARKS = (b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")  # byte order marks of a text, from the same section


@dataclass(frozen=True, slots=True)
class HttpReply:
    """The result of one request: a status with headers (lower-case names) and body, or an error.

    `too_large` marks a body beyond the size limit, which is not retried. `unwanted` is the reason why the body was not
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
    """Return media type and declared charset of a Content-Type header; for vague types, the file name decides.

    Of several values, the last valid media type counts, as in browsers; "" if none is valid.
    """
    kind, charset = "", None
    for value in re.findall(r'(?:[^,"]|"[^"]*"?)+', content_type):
        if (found := _MEDIA_TYPE.match(value)) is None or found[1] == "*/*":
            continue
        before, kind = kind, found[1].lower()
        charset = _charset(value) or (charset if kind == before else None)
    known = format_of_name(urlsplit(url).path) if kind in VAGUE_TYPES else None
    known = known or format_of_type(kind)
    return known.media_type if known else "" if kind.startswith("unknown/") else kind, charset


def _charset(value: str) -> str | None:
    message = Message()
    message["Content-Type"] = value
    charset = message.get_param("charset")
    return charset.strip() or None if isinstance(charset, str) else None


def encoding_refusal(headers: dict[str, str]) -> str:
    """Return why a body is not downloaded because of an encoding that was not requested; "" if it is downloaded."""
    unread = [coding for coding in _codings(headers.get("content-encoding", "")) if coding in _UNREAD_CODINGS]
    return f"content encoding {', '.join(unread)!r}" if unread else ""


def packed_by(encodings: str, body: bytes) -> list[str]:
    """Return the encodings in a Content-Encoding header that `body` really has, the first one first.

    Some servers put other values there (a charset, `aws-chunked`, `none`), or name encodings for plain bodies.
    """
    codings = [coding for coding in _codings(encodings) if coding in UNPACKED_CODINGS]
    is_plain = format_of_body(body) or (codings[-1:] in (["gzip"], ["x-gzip"]) and not body.startswith(_GZIP_MAGIC))
    return [] if is_plain else codings


def _codings(encodings: str) -> Iterator[str]:
    return (coding.strip().lower() for coding in encodings.split(","))


def page_refusal(headers: dict[str, str], url: str) -> str:
    """Return from its headers why a page's body is not downloaded; "" if it is, or if it has no type."""
    kind, _ = parse_content_type(headers.get("content-type", ""), url)
    return f"content type {kind!r}" if kind and not format_of_type(kind) else encoding_refusal(headers)


def redirect_target(reply: HttpReply) -> str | None:
    """Return the URL that a redirect leads to; None for any other reply, or if it is not an http(s) URL.

    The URL keeps tracking parameters: a server that adds them would redirect the URL without them back here.
    """
    location = reply.headers.get("location") if reply.status in REDIRECTS else None
    return normalize_url(location, reply.url, keep_tracking=True) if location else None


def page_from_reply(reply: HttpReply, known: KnownPage | None) -> FetchedPage:
    """Return the record of one page, without links and canonical URL, which are in its body."""
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
    kind = _sniff(kind, reply)
    if not format_of_type(kind):
        return _other(reply, known, "skipped", f"content type {kind!r}")
    etag = reply.headers.get("etag") or None
    return FetchedPage(reply.url, "ok", 200, etag, reply.body, kind, charset)


def _sniff(kind: str, reply: HttpReply) -> str:
    """Return the media type of a body whose declared type, `kind`, may be wrong.

    If none was declared, any tag at the beginning makes it HTML. A body declared as plain text is HTML if it begins
    like a page, because servers use that type for files they do not know.
    """
    if kind == TEXT.media_type and format_of_name(urlsplit(reply.url).path) is None:
        return (format_of_body(reply.body) or TEXT).media_type
    if kind:
        return kind
    tagged = reply.body[:1024].lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"<")
    entry = format_of_body(reply.body) or (HTML if tagged else None)
    if entry is None and _is_text(reply.body):
        entry = TEXT
    return entry.media_type if entry else "application/octet-stream"


def _is_text(body: bytes) -> bool:
    return body.startswith(_BYTE_ORDER_MARKS) or (body != b"" and not _BINARY.search(body, 0, _SNIFFED))


def _redirect(reply: HttpReply, known: KnownPage | None) -> FetchedPage:
    target = redirect_target(reply)
    if target is None:
        return _other(reply, known, "failed", "redirect without a usable Location")
    return FetchedPage(reply.url, "redirect", reply.status, links=(target,))


def _other(reply: HttpReply, known: KnownPage | None, state: PageState, error: str) -> FetchedPage:
    """Return a page without a body; a failed one keeps its known links, so that the pages behind it are visited."""
    links = known.links if known is not None and state == "failed" else ()
    return FetchedPage(reply.url, state, reply.status, links=links, error=error)
