"""Sitemaps and llms.txt provide their URLs, and hostile ones do no harm."""

import asyncio
import gzip
from itertools import pairwise

import pytest

from pipelines.indexing.crawling.reply import HttpReply
from pipelines.indexing.crawling.seeds import MAX_SITEMAPS, parse_sitemap, read_llms_txt, read_sitemaps

MB = 1 << 20


def urlset(*urls: str) -> bytes:
    return f"<urlset>{''.join(f'<url><loc> {url} </loc></url>' for url in urls)}</urlset>".encode()


def index(*urls: str) -> bytes:
    return f"<sitemapindex>{''.join(f'<sitemap><loc>{url}</loc></sitemap>' for url in urls)}</sitemapindex>".encode()


def pages(files: dict[str, bytes], *first: str) -> tuple[list[str], list[str]]:
    """Return the pages in the sitemaps `first`, and the requested URLs."""
    asked: list[str] = []

    async def fetch(url: str) -> HttpReply:
        asked.append(url)
        return HttpReply(url, 200, body=files[url]) if url in files else HttpReply(url, 404)

    async def collect() -> list[str]:
        return [page async for page in read_sitemaps(fetch, first, MB)]

    return asyncio.run(collect()), asked


def test_index_of_compressed_sitemaps_is_followed():
    files = {
        "http://h/s.xml": index("http://h/a.xml.gz", "/b.xml", "http://other/c.xml"),
        "http://h/a.xml.gz": gzip.compress(urlset("http://h/1", "/2#part")),
        "http://h/b.xml": urlset("https://[your-host]/", "http://h/3"),
    }
    found, asked = pages(files, "http://h/s.xml", "http://h/missing.xml")
    assert sorted(found) == ["http://h/1", "http://h/2", "http://h/3"]
    assert "http://other/c.xml" not in asked


def test_index_that_names_itself_ends():
    assert pages({"http://h/s.xml": index("http://h/s.xml")}, "http://h/s.xml") == ([], ["http://h/s.xml"])


def test_endless_index_ends():
    class Endless(dict):
        def __contains__(self, url: object) -> bool:
            return True

        def __missing__(self, url: str) -> bytes:
            return index(*(f"{url}/{n}" for n in range(100)))

    assert len(pages(Endless(), "http://h/s")[1]) <= MAX_SITEMAPS


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"   ",
        b"\x1f\x8b\x08broken",
        gzip.compress(bytes(64 * MB)),
        gzip.compress(b"<urlset>" + b" " * 2 * MB),
        b"<",
        b"<html><body>Not found</body></html>",
        b"<!DOCTYPE u [<!ENTITY x SYSTEM 'file:///etc/passwd'>]><urlset><url><loc>&x;</loc></url></urlset>",
        b"<urlset>" + b"<a>" * 50_000,
        b"<urlset><url><loc></loc></url><url></url></urlset>",
        b"\x00\x00\x00\x00",
    ],
)
def test_broken_or_hostile_file_names_no_page(body):
    assert not [url for url in parse_sitemap(body, MB)[1] if url]


def test_entities_do_not_multiply():
    names = "abcdefghij"
    entities = "".join(f"<!ENTITY {new} '{f'&{old};' * 10}'>" for old, new in pairwise(names))
    bomb = f"<!DOCTYPE u [<!ENTITY a 'ha'>{entities}]><urlset><url><loc>&j;</loc></url></urlset>".encode()
    assert sum(map(len, parse_sitemap(bomb, MB)[1])) < 1000


def test_broken_sitemap_gives_the_urls_before_the_break():
    assert parse_sitemap(b"<urlset><url><loc>http://h/a</loc></url><url><loc>http", MB)[1][:1] == ["http://h/a"]


def test_plain_list_is_a_sitemap_too():
    assert parse_sitemap(b"\xef\xbb\xbfhttp://h/a\r\n\nhttps://h/b\n# words\n", MB) == (
        "urlset",
        ["http://h/a", "https://h/b"],
    )


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("# T\n- [A](/a.md): x\n- [B](http://h/b#c) [A](/a.md)\n", ["http://h/a.md", "http://h/b"]),
        ("[x](<http://h/y>) ![img](i.png) [m](mailto:a@b) [h](https://[your-host]/)", ["http://h/y", "http://h/i.png"]),
        ("<!doctype html><a href='/a'>", []),
        ("", []),
    ],
)
def test_llms_txt_names_its_links(text, found):
    async def fetch(url: str) -> HttpReply:
        return HttpReply(url, 200, body=text.encode())

    assert asyncio.run(read_llms_txt(fetch, "http://h/llms.txt")) == found
