"""robots.txt follows the clauses and examples of RFC 9309."""

import asyncio

import pytest

from pipelines.indexing.crawling.reply import HttpReply
from pipelines.indexing.crawling.robots import Robots, parse_robots

EXAMPLE = b"""\
User-Agent: *
Disallow: *.gif$
Disallow: /example/
Allow: /publications/

User-Agent: foobot
Disallow:/
Allow:/example/page.html
Allow:/example/allowed.gif

User-Agent: barbot
User-Agent: bazbot
Disallow: /example/page.html

User-Agent: quxbot
"""


def rules(body: bytes, status: int = 200):
    return parse_robots(HttpReply("http://h/robots.txt", status, body=body))


@pytest.mark.parametrize(
    ("agent", "path", "allowed"),
    [
        ("otherbot", "/publications/", True),
        ("otherbot", "/example/", False),
        ("otherbot", "/x/y.gif", False),
        ("otherbot", "/x/y.gif?z", True),
        ("foobot", "/example/page.html", True),
        ("foobot", "/example/allowed.gif", True),
        ("FooBot", "/publications/", False),
        ("bazbot", "/example/page.html", False),
        ("barbot", "/example/other.html", True),
        ("quxbot", "/example/page.html", True),
    ],
)
def test_example_of_the_rfc_is_read_as_it_says(agent, path, allowed):
    assert rules(EXAMPLE).allow(f"http://h{path}", agent) is allowed


def test_longest_match_wins():
    parsed = rules(b"User-agent: *\nAllow: /example/page/\nDisallow: /example/page/disallowed.gif\n")
    assert parsed.allow("http://h/example/page/a.gif", "raydex")
    assert not parsed.allow("http://h/example/page/disallowed.gif", "raydex")


@pytest.mark.parametrize(
    ("status", "allowed"), [(200, False), (301, True), (401, True), (403, True), (404, True), (429, True), (500, False)]
)
def test_client_errors_allow_and_server_errors_forbid(status, allowed):
    parsed = rules(b"User-agent: *\nDisallow: /\n", status)
    assert parsed.allow("http://h/", "raydex") is allowed
    assert bool(parsed.unreachable) is (status >= 500)


def test_no_reply_forbids_and_says_why():
    parsed = parse_robots(HttpReply("http://h/robots.txt", error="no answer"))
    assert not parsed.allow("http://h/", "raydex")
    assert parsed.unreachable == "http://h/robots.txt could not be fetched (no answer)"


@pytest.mark.parametrize("filler", [b"", b"# words words words words\n" * 19_000], ids=["nothing", "482 KiB"])
def test_byte_order_mark_hides_no_rule_and_500_kibibytes_are_read(filler):
    assert not rules(b"\xef\xbb\xbfUser-agent: *\n" + filler + b"Disallow: /\n").allow("http://h/", "raydex")


@pytest.mark.parametrize("junk", [b"\x00\xff\xfe", b"<html>not found</html>", b"\xef\xbb\xbf", b"Disallow: /\n"])
def test_other_content_than_robots_txt_allows_everything(junk):
    assert rules(junk).allow("http://h/", "raydex")


def load(*replies: HttpReply, url: str = "http://h/page") -> tuple[bool, list[str]]:
    """Return whether `url` is allowed, and the requests needed to decide that."""
    by_url, asked = {reply.url: reply for reply in replies}, list[str]()

    async def fetch(url: str) -> HttpReply:
        asked.append(url)
        return by_url[url]

    async def ask() -> bool:
        robots = Robots(fetch, "Raydex/0.1 (words)")
        first, second = await asyncio.gather(robots.rules(url), robots.rules(url))
        assert first is second
        return first.allow(url, robots.agent)

    return asyncio.run(ask()), asked


ROBOTS = "http://h/robots.txt"


def moved(url: str, to: str) -> HttpReply:
    return HttpReply(url, 301, {"location": to})


def test_five_redirects_are_followed_and_the_file_is_fetched_once():
    chain = [moved(f"http://h/{n}", f"/{n + 1}") for n in range(1, 5)]
    last = HttpReply("http://h/5", 200, body=b"User-agent: raydex\nDisallow: /page\n")
    allowed, asked = load(moved(ROBOTS, "/1"), *chain, last)
    assert not allowed
    assert asked == [ROBOTS, *(f"http://h/{n}" for n in range(1, 6))]


def test_endless_redirects_and_redirects_to_other_hosts_allow():
    assert load(moved(ROBOTS, "/robots.txt"))[0]
    assert load(moved(ROBOTS, "http://x/robots.txt"))[0]


def test_each_origin_has_its_own_rules():
    safe = HttpReply("https://h/robots.txt", 200, body=b"User-agent: *\nDisallow: /\n")
    replies = HttpReply(ROBOTS, 404), safe
    assert load(*replies, url="http://h/a") == (True, [ROBOTS])
    assert load(*replies, url="https://h/a") == (False, [safe.url])
