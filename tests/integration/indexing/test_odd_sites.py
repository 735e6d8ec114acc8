"""Sites with odd replies, as in practice: wrong headers, redirects for a cookie, folders without a slash."""

import gzip
from collections.abc import Callable
from pathlib import Path

import pytest
from kit.crawling import Crawled
from kit.web import Answer, Handler, Route, Site, page, redirect

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("warm")]


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    return tmp_path / "ledger.jsonl"


HTML, PACKED = "text/html; charset=utf-8", gzip.compress(page("/next").encode())
NO_TYPE: list[str] = []  # the header is not sent
HEADERS: dict[str, dict[str, str | list[str]]] = {
    "a type that is sent twice": {"Content-Type": ["text/html", HTML]},
    "two types, of which the first is none": {"Content-Type": ["html", HTML]},
    "two types in one": {"Content-Type": "text/html; charset=utf-8, text/html"},
    "no type of all": {"Content-Type": "html"},
    "a type of plain text": {"Content-Type": "text/plain"},
    "plain text, then HTML": {"Content-Type": ["text/plain", HTML]},
    "an unknown type": {"Content-Type": "unknown/unknown"},
    "no type": {"Content-Type": NO_TYPE},
    "an empty parameter": {"Content-Type": "text/html;;charset=UTF-8"},
    "an unknown charset": {"Content-Type": "text/html; charset=utf8mb4"},
    "a charset as an encoding": {"Content-Encoding": "UTF-8"},
    "the encoding of an upload": {"Content-Encoding": "aws-chunked"},
    "no encoding, and that": {"Content-Encoding": "identity, none"},
    "an encoding of mail": {"Content-Encoding": ["8bit", "binary"]},
    "a packing that is none": {"Content-Encoding": "gzip"},
}
PACKINGS = {"gzip": ["gzip"], "gzip, and a charset": ["gzip, utf-8"], "gzip, and nothing": ["gzip", "identity"],
            "an upload, and gzip": ["aws-chunked,gzip"]}  # fmt: skip


@pytest.mark.parametrize("headers", HEADERS.values(), ids=HEADERS)
def test_page_with_a_wrong_header_is_read_and_its_links_are_followed(ledger, headers):
    odd = Answer(page("/next"), headers=headers)
    html = Answer(f"<!-- made by x -->\n<!DOCTYPE html>{odd.body!s}", headers=headers)
    with Site({"/": html, "/next": page()}) as site:
        crawled = Crawled(site, ledger)
    assert crawled.ok == ["/", "/next"]
    assert crawled.rows["/"]["content_type"] == "text/html"


@pytest.mark.parametrize("codings", PACKINGS.values(), ids=PACKINGS)
def test_compressed_body_is_unpacked_despite_wrong_headers(ledger, codings):
    with Site({"/": Answer(PACKED, headers={"Content-Encoding": codings}), "/next": page()}) as site:
        assert Crawled(site, ledger).ok == ["/", "/next"]


def test_plain_text_stays_text_and_binary_data_is_not_read(ledger):
    code = "<b>Bold</b> is how HTML writes it.\n"
    types: dict[str, Route] = {
        "/plain": Answer(code, headers={"Content-Type": "text/plain"}),
        "/page.txt": Answer("<!doctype html>\n<p>A template.", headers={"Content-Type": "text/plain"}),
        "/words": Answer("Only words.\n", headers={"Content-Type": NO_TYPE}),
        "/image": Answer(b"GIF89a\0\1\2" * 9, headers={"Content-Type": NO_TYPE}),
        "/zip": Answer(b"PK\3\4", headers={"Content-Type": "application/zip"}),
        "/brotli": Answer(b"\x5b\xff\xff", headers={"Content-Encoding": "utf-8, br"}),
    }
    with Site({"/": page(*types), **types}) as site:
        crawled = Crawled(site, ledger)
    assert crawled.ok == ["/", "/page.txt", "/plain", "/words"]
    assert {crawled.rows[path]["content_type"] for path in crawled.ok[1:]} == {"text/plain"}
    assert "'br'" in crawled.rows["/brotli"]["error"]


def negotiated(markdown: str, html: str) -> Callable[[Handler], Answer]:
    """Return a route that sends Markdown to clients that accept it."""

    def answer(handler: Handler) -> Answer:
        if "text/markdown" in handler.headers["Accept"]:
            return Answer(markdown, headers={"Content-Type": "text/markdown"})
        return Answer(html)

    return answer


def test_html_wins_over_a_markdown_twin_of_the_page(ledger):
    with Site({"/": negotiated("# T\n\n[a](/a)", page("/a")), "/a": Answer("# A\n", headers={
        "Content-Type": "text/markdown"})}) as site:  # fmt: skip
        crawled = Crawled(site, ledger)
    assert [crawled.rows[path]["content_type"] for path in crawled.ok] == ["text/html", "text/markdown"]


# ---------------------------------------------------------------------------------------------- cookies


def walled(to: str | None, answer: Route, name: str = "sid") -> Callable[[Handler], Route]:
    """Return a route that requires a cookie. Clients without it are sent to `to` (None: here), with the cookie."""

    def ask(handler: Handler) -> Route:
        if f"{name}=" in (handler.headers["Cookie"] or ""):
            return answer(handler) if callable(answer) else answer
        return Answer("", 302, {"Location": to or handler.path, "Set-Cookie": f"{name}=1; Path=/"})

    return ask


@pytest.mark.parametrize("sitemap", [False, True])
def test_cookie_set_by_the_first_reply_is_sent_back(ledger, sitemap):
    paths = [f"/{n}" for n in range(20)]
    routes = {"/": walled(None, page(*paths))} | {path: walled(None, page()) for path in paths}
    with Site(routes) as site:
        urls = "\n".join(site.url + path for path in paths)
        site.routes["/sitemap.xml"] = Answer(urls, headers={"Content-Type": "text/plain"})
        crawled = Crawled(site, ledger, sitemap=sitemap)
    assert crawled.ok == sorted(["/", *paths]) and crawled.report.complete


def test_cookie_can_be_set_during_a_redirect(ledger):
    def check(handler: Handler) -> Answer:
        return Answer("", 302, {"Location": "/", "Set-Cookie": ["a=1", "sid=2; Path=/; HttpOnly"]})

    def start(handler: Handler) -> Answer | str:
        return page("/a") if "sid=2" in (handler.headers["Cookie"] or "") else redirect("/check")

    with Site({"/": start, "/check": check, "/a": page()}) as site:
        crawled = Crawled(site, ledger)
    assert crawled.ok == ["/", "/a"] and crawled.report.complete


def test_site_that_demands_more_than_its_cookie_is_reported(ledger):
    def never(handler: Handler) -> Answer:
        return Answer("", 302, {"Location": "/", "Set-Cookie": "sid=1"})

    with Site({"/": never}) as site:
        report = Crawled(site, ledger).report
        assert len(site.paths()) == 2
    assert not report.complete and "in a circle, even with the cookies that the site sets" in report.stopped_by


def test_cookies_go_only_to_the_site_that_set_them_and_not_forever(ledger):
    def many(handler: Handler) -> Answer:
        return Answer(page("/a"), headers={"Set-Cookie": [f"c{n}={'x' * 3000}" for n in range(40)]})

    with Site({"/": page()}) as other, Site({}) as site:
        host = other.url
        site.routes |= {
            "/": Answer(page("/a", "/walled", "/out"), headers={"Set-Cookie": "lang=de"}),
            "/a": many, "/walled": walled(None, page("/b")), "/b": page(), "/out": redirect(f"{host}/"),
        }  # fmt: skip
        crawled = Crawled(site, ledger, concurrency=1)
        cookies = {request.path: request.headers.get("cookie", "") for request in site.requests}
        assert not other.requests
    assert crawled.ok == ["/", "/a", "/b", "/walled"]
    assert cookies["/"] == cookies["/a"] == "" and "sid=1" in cookies["/b"]
    assert max(map(len, cookies.values())) < 9_000


# ---------------------------------------------------------------------------------------------- scope

MENU = ("/docs", "/blog", "/pricing")


@pytest.mark.parametrize(
    ("start", "moved"),
    [("/docs/", ("/docs/", "/docs")), ("/docs", ("", "")), ("/docs", ("/docs", "/docs/")),
     ("/docs", ("/docs", "/docs/intro"))],
    ids=["moved to no slash", "no slash", "moved to a slash", "moved to the first page"],
)  # fmt: skip
@pytest.mark.parametrize("sitemap", [False, True])
def test_start_url_without_a_slash_is_a_folder_if_it_links_into_it(ledger, start, moved, sitemap):
    inside = ("/docs/intro", "/docs/a")
    routes: dict[str, Route] = {path: page(*MENU, *inside) for path in (*MENU, "/docs/", *inside, "/")}
    if moved[0]:
        routes[moved[0]] = redirect(moved[1], 308)
    with Site(routes) as site:
        urls = "\n".join(site.url + path for path in (*MENU, *inside))
        site.routes["/sitemap.xml"] = Answer(urls, headers={"Content-Type": "text/plain"})
        crawled = Crawled(site, ledger, start=(start,), sitemap=sitemap)
        assert crawled.report.complete
        assert set(crawled.ok) >= set(inside) and not {"/blog", "/pricing", "/"} & set(site.paths())
        if start == "/docs":
            assert crawled.report.below == ["/docs/"]


@pytest.mark.parametrize(
    "start",
    [Answer("", 404), Answer("", 410), Answer("", 503), redirect("http://elsewhere.test/docs"),
     Answer("x", headers={"Content-Type": "video/mp4"}), None],
    ids=["404", "410", "503", "moved away", "no page", "robots.txt"],
)  # fmt: skip
def test_unread_start_url_without_a_slash_opens_no_sibling(ledger, start):
    """The host's other pages are left alone, and none of them is considered gone."""
    with Site({path: page() for path in ("/blog", "/docs2", "/docs/a")}) as site:
        site.routes["/docs"] = start or page("/docs/a")
        if start is None:
            site.routes["/robots.txt"] = Answer("User-agent: *\nDisallow: /docs$")
        urls = "\n".join(site.url + path for path in ("/blog", "/docs2", "/docs/a"))
        site.routes["/sitemap.xml"] = Answer(urls, headers={"Content-Type": "text/plain"})
        crawled = Crawled(site, ledger, start=("/docs",), sitemap=True, retries=0)
    assert crawled.ok == ["/docs/a"] and not crawled.report.complete
    assert not {"/blog", "/docs2"} & set(site.paths()) and crawled.report.below == []


def test_sibling_links_a_wider_scope_or_patterns_do_not_make_a_folder(ledger):
    pages = ("/guide/intro", "/guide/setup", "/docs", "/docs/a", "/blog")
    with Site({path: page(*pages) for path in pages}) as site:
        assert Crawled(site, ledger, start=("/guide/intro",)).ok == ["/guide/intro", "/guide/setup"]
        assert Crawled(site, ledger, start=("/docs",), run=2).ok == ["/docs", "/docs/a"]
        assert "/blog" in Crawled(site, ledger, start=("/docs",), no_parent=False, run=3).ok
        assert Crawled(site, ledger, start=("/docs",), include=("/docs|/blog",), run=4).ok == [
            "/blog",
            "/docs",
            "/docs/a",
        ]
        assert Crawled(site, ledger, start=("/docs", "/blog"), run=5).ok == sorted(pages)
