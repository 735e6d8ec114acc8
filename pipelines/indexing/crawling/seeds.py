"""Reads the seeds of a crawl besides its start URLs: sitemaps and llms.txt.

Every input is limited in size. This module decides nothing about scope.
"""

import re
import zlib
from collections.abc import AsyncIterator, Iterable
from contextlib import suppress
from typing import Any

from lxml.etree import LxmlError
from scrapy.utils.gz import gunzip
from scrapy.utils.sitemap import Sitemap

from pipelines.indexing.crawling.robots import Fetch, fetch_file
from pipelines.indexing.crawling.scope import normalize_url, site
from pipelines.indexing.reading.links import markdown_links
from pipelines.text.parsing import NotParsed, parse_json

# The sitemap protocol allows 50,000 URLs a file and 50,000 files; no documentation site comes near that.
MAX_SITEMAPS = 500
# A list of a site's pages that decompresses to more bytes is cut off here.
MAX_LISTING = 20 << 20
_INVENTORY = re.compile(r"^(.*?\S)\s++[^\s:]++:\S++\s++-?\d++\s++(\S*+)\s", re.MULTILINE)
_GZIP_MAGIC = b"\x1f\x8b\x08"


async def read_sitemaps(fetch: Fetch, sitemaps: Iterable[str], max_bytes: int) -> AsyncIterator[str]:
    """Yield the page URLs of sitemaps, and of sitemaps on the same sites that their indexes list."""
    waiting = list(dict.fromkeys(filter(None, map(normalize_url, sitemaps))))
    sites, seen = set(map(site, waiting)), set(waiting)
    while waiting and len(seen) <= MAX_SITEMAPS:
        url = waiting.pop(0)
        kind, found = parse_sitemap(await _fetch_body(fetch, url), max_bytes)
        pages = [page for page in (normalize_url(location, url) for location in found) if page]
        if kind == "sitemapindex":
            fresh = [page for page in pages if page not in seen and site(page) in sites]
            waiting += fresh
            seen.update(fresh)
            continue
        for page in pages:
            yield page


async def read_llms_txt(fetch: Fetch, url: str) -> list[str]:
    """Return the page URLs that an llms.txt links to."""
    text = (await _fetch_body(fetch, url)).decode("utf-8", "replace")
    if text.lstrip().startswith("<"):  # this site returns its front page for every URL
        return []
    found = (normalize_url(link, url) for link in markdown_links(text))
    return list(dict.fromkeys(filter(None, found)))


async def read_listing(fetch: Fetch, url: str) -> list[str]:
    """Return the page URLs in an inventory or a search index at `url`."""
    body = await _fetch_body(fetch, url)
    if body.lstrip().startswith(b"<"):  # this site returns a page for every URL
        return []
    folder = url[: url.rindex("/") + 1].removesuffix("search/")
    found = (normalize_url(place, folder) for place in parse_listing(body))
    return list(dict.fromkeys(filter(None, found)))


async def _fetch_body(fetch: Fetch, url: str) -> bytes:
    """Return the body at `url` after redirects within its site; empty if there is none."""
    reply = await fetch_file(fetch, url)
    return reply.body if reply.status == 200 else b""


def parse_sitemap(body: bytes, max_bytes: int) -> tuple[str, list[str]]:
    """Return the kind ("urlset" or "sitemapindex") and the locations of a sitemap, gzipped or not, or list of URLs.

    A broken sitemap, or one that decompresses to more than `max_bytes`, returns ("", []).
    """
    try:
        if body.startswith(_GZIP_MAGIC):
            body = gunzip(body, max_size=max_bytes)
        if not body.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"<"):
            return "urlset", _read_plain_list(body)
        sitemap = Sitemap(body)
        return sitemap.type, [entry["loc"] for entry in sitemap]
    except (OSError, EOFError, ValueError, StopIteration, LxmlError):
        return "", []


def _read_plain_list(body: bytes) -> list[str]:
    lines = (line.strip() for line in body.decode("utf-8-sig", "replace").splitlines())
    return [line for line in lines if line.startswith(("http://", "https://"))]


def parse_listing(body: bytes) -> list[str]:
    """Return the links of a sitemap, an objects.inv of Sphinx, a search index of MkDocs or an llms.txt."""
    if body.startswith(b"# Sphinx inventory version 2"):
        with suppress(zlib.error):
            packed = b"".join(body.split(b"\n", 4)[4:])
            lines = zlib.decompressobj().decompress(packed, MAX_LISTING).decode("utf-8", "replace")
            found = (place.replace("$", name) for name, place in _INVENTORY.findall(lines))
            return list(dict.fromkeys(place.partition("#")[0] for place in found))
        return []
    if body.lstrip()[:1] in (b"{", b"["):
        with suppress(NotParsed):
            return list(dict.fromkeys(_locations(parse_json(body))))
    if b"](" in body and not body.lstrip().startswith(b"<"):
        return markdown_links(body.decode("utf-8", "replace"))
    return parse_sitemap(body, MAX_LISTING)[1]


def _locations(index: Any) -> list[str]:
    entries = index.get("docs") if isinstance(index, dict) else index
    listed = [entry for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else []
    places = [entry.get("location", entry.get("url")) for entry in listed]
    return [place.partition("#")[0] for place in places if isinstance(place, str)]
