"""An HTTP reply becomes the right record of a page."""

import pytest

from pipelines.fetched import FetchedPage, KnownPage
from pipelines.indexing.crawling.reply import HttpReply, packed_by, page_from_reply, page_refusal, parse_content_type

URL = "http://h/a"
KNOWN = KnownPage(URL, "ok", '"1"', "hash", ("http://h/b",))
HTML = {"content-type": "text/html"}


@pytest.mark.parametrize(
    ("header", "url", "kind", "charset"),
    [
        ("text/html", URL, "text/html", None),
        ("Text/HTML; Charset=UTF-8", URL, "text/html", "UTF-8"),
        ('text/html; charset="iso-8859-1"', URL, "text/html", "iso-8859-1"),
        ("application/octet-stream", "http://h/a.PDF", "application/pdf", None),
        ("", "http://h/a.md?x=1", "text/markdown", None),
        ("", "http://h/a", "", None),
        ("image/png", "http://h/a.html", "image/png", None),
        ("nonsense", URL, "", None),
        ("nonsense; charset=utf-8", "http://h/a.md", "text/markdown", None),
        ("text/html, text/html; charset=utf-8", URL, "text/html", "utf-8"),
        ("text/html; charset=utf-8, text/html", URL, "text/html", "utf-8"),
        ("text/html; charset=utf-8, text/css", URL, "text/css", None),
        ('text/html; a="b, text/css"; charset=latin1, */*', URL, "text/html", "latin1"),
        ("html, text/html", URL, "text/html", None),
        ("unknown/unknown", URL, "", None),
    ],
)
def test_type_comes_from_the_header_or_from_the_name_if_vague(header, url, kind, charset):
    assert parse_content_type(header, url) == (kind, charset)


@pytest.mark.parametrize(
    ("headers", "reason"),
    [
        (HTML, ""),
        ({}, ""),
        (HTML | {"content-encoding": "gzip"}, ""),
        (HTML | {"content-encoding": "br"}, "br"),
        (HTML | {"content-encoding": "gzip, zstd"}, "zstd"),
        (HTML | {"content-encoding": "x-compress"}, "x-compress"),
        (HTML | {"content-encoding": "UTF-8"}, ""),
        (HTML | {"content-encoding": "aws-chunked, identity"}, ""),
    ],
)
def test_head_tells_whether_a_body_is_wanted(headers, reason):
    assert reason in page_refusal(headers, URL)
    assert bool(page_refusal(headers, URL)) is bool(reason)


def test_page_body_is_its_raw_bytes():
    reply = HttpReply(URL, 200, HTML | {"etag": 'W/"x"'}, b"<p>\xff")
    assert page_from_reply(reply, None) == FetchedPage(URL, "ok", 200, 'W/"x"', b"<p>\xff", "text/html")


@pytest.mark.parametrize(
    ("body", "state", "kind"),
    [
        (b" \n<!doctype html>", "ok", "text/html"),
        (b"%PDF-1.7", "ok", "application/pdf"),
        (b"\x7fELF", "skipped", ""),
        (b"\xff\xfeh\0i\0", "ok", "text/plain"),
        (b"\xef\xbb\xbf\0", "ok", "text/plain"),
    ],
)
def test_first_bytes_decide_without_a_type(body, state, kind):
    page = page_from_reply(HttpReply(URL, 200, {}, body), None)
    assert page.state == state
    assert not kind or page.content_type == kind


@pytest.mark.parametrize(
    ("encodings", "body", "codings"),
    [
        ("gzip", b"\x1f\x8b\x08", ["gzip"]),
        ("GZip, UTF-8", b"\x1f\x8b\x08", ["gzip"]),
        ("aws-chunked, gzip, gzip", b"\x1f\x8b\x08", ["gzip", "gzip"]),
        ("deflate", b"x\x9c", ["deflate"]),
        ("gzip", b"plain", []),
        ("deflate", b"<!DOCTYPE html>", []),
        ("utf-8, none", b"\x1f\x8b\x08", []),
    ],
)
def test_body_is_unpacked_only_by_its_actual_compression(encodings, body, codings):
    assert packed_by(encodings, body) == codings


def test_not_modified_keeps_links_and_is_a_failure_if_unrequested():
    page = page_from_reply(HttpReply(URL, 304), KNOWN)
    assert (page.state, page.http_status, page.body, page.links) == ("ok", 304, None, KNOWN.links)
    assert page_from_reply(HttpReply(URL, 304), None).state == "failed"


@pytest.mark.parametrize(
    ("status", "state"),
    [(404, "gone"), (410, "gone"), (403, "failed"), (500, "failed"), (204, "skipped"), (206, "skipped")],
)
def test_status_determines_the_state(status, state):
    page = page_from_reply(HttpReply(URL, status, HTML), KNOWN)
    assert (page.state, page.http_status) == (state, status)
    assert page.links == (KNOWN.links if state == "failed" else ())


def test_silence_is_a_failure_and_an_oversized_page_is_skipped():
    assert page_from_reply(HttpReply(URL, error="timed out"), KNOWN) == FetchedPage(
        URL, "failed", links=KNOWN.links, error="timed out"
    )
    assert page_from_reply(HttpReply(URL, error="too large", too_large=True), None).state == "skipped"


@pytest.mark.parametrize(
    ("location", "links"),
    [("/b", ("http://h/b",)), ("b#c", ("http://h/b",)), ("//x/y", ("http://x/y",)), ("?q", ("http://h/a?q",))],
)
def test_redirect_names_its_target(location, links):
    page = page_from_reply(HttpReply(URL, 302, {"location": location}), KNOWN)
    assert (page.state, page.links) == ("redirect", links)


@pytest.mark.parametrize("location", ["", "file:///etc/passwd", "http://[bad", "javascript:x", "http://u:p@h/"])
def test_redirect_to_nowhere_is_a_failure(location):
    assert page_from_reply(HttpReply(URL, 302, {"location": location}), None).state == "failed"
