"""Gets the URLs of a site from its sitemap, inventory, search index, llms.txt and start page.

The crawler fetches them, so its guards apply: robots.txt, no private address, limits of size. There is also a time
limit for all of it. If a site does not respond, its last list is used.
"""

import re
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

from pipelines.indexing.crawling.crawl import CrawlFailed, CrawlSettings, survey
from pipelines.indexing.crawling.reachable import find_unreachable
from pipelines.indexing.crawling.scope import normalize_url
from pipelines.indexing.folders.folder import Folder, NoSuchFolder
from pipelines.indexing.sources.source import SourceReading
from pipelines.text.progress import silent

# Where Sphinx and MkDocs list the pages of a site, below its base URL.
INDEXES = ("objects.inv", "search/search_index.json")
# Seconds for a site to respond at all, and to list its URLs; a run also works without them.
ANSWERS_S, TELLS_S = 3.0, 20.0
# A site that lists less than this share of its last list is broken, or returns one page for every URL.
MOST_LOST = 0.5
# Names that are reserved for examples and tests (RFC 2606, 6761); no server has them.
_RESERVED = re.compile(r"(?:^|\.)(?:example(?:\.(?:com|net|org))?|test|invalid|localhost)$")


class WrongSitemap(NoSuchFolder):
    """The file that lists the URLs of a folder's site can't be read, or lists no URL of the site."""

    key = "sitemap"


def listed_urls(folder: Folder, reading: SourceReading, ask: bool = True) -> tuple[Sequence[str], str]:
    """Return the URLs that the site of a folder lists, and where the list comes from; empty if there is none.

    Without `ask`, the last list is returned. Raises WrongSitemap for a sitemap file that can't be read.
    """
    store, name, base = reading.store, reading.collection, folder.base_url
    given = folder.sitemap
    if folder.url_style != "auto" and not given:
        return (), ""  # a set URL style needs no list
    if is_file(given):
        return read_listing(given, base), given
    urls, known = _ask(folder, reading) if ask else (), store.listing(name, base)
    if len(urls) >= MOST_LOST * len(known) and set(urls) - {base}:
        store.save_listing(name, base, urls)
        return urls, given or f"the site at {base}"
    if given and ask:
        reading.tell(f"warning: sitemap {given} lists no URL below {base}, or does not answer")
    return known, f"the site at {base}, when it last answered," if known else ""


def _ask(folder: Folder, reading: SourceReading) -> Sequence[str]:
    host = urlsplit(folder.base_url).hostname or ""
    if urlsplit(folder.base_url).scheme == "file" or _RESERVED.search(host):
        return ()
    sitemaps = (folder.sitemap,) if folder.sitemap else ()
    site = CrawlSettings(
        start_urls=(folder.base_url,),
        timeout_s=ANSWERS_S,
        retries=0,
        max_redirects=3,
        listed_in=sitemaps,
        indexes=tuple(f"{folder.base_url}{name}" for name in INDEXES),
        allow_private=folder.allow_private,
    )
    if find_unreachable([site], silent, ANSWERS_S):
        return ()
    found: list[str] = []
    with suppress(CrawlFailed):
        found = survey(site, reading.database_url, reading.collection, TELLS_S)
    return [url for url in found if url.startswith(folder.base_url)]


def is_file(listing: str) -> bool:
    """Return whether a given list of URLs is a file, existing or not."""
    return bool(listing) and not listing.startswith(("http://", "https://"))


def read_listing(path: str, base: str) -> Sequence[str]:
    """Return the URLs of a sitemap, inventory, search index or llms.txt in a file. Raises WrongSitemap."""
    from pipelines.indexing.crawling.seeds import parse_listing  # slow to load: it imports Scrapy

    try:
        body = Path(path).read_bytes()
    except OSError as error:
        raise WrongSitemap(f"sitemap {path!r} can't be read: {error.strerror}") from error
    links = parse_listing(body)
    urls = [url for link in links if (url := normalize_url(link, base))]
    if not any(url.startswith(base) for url in urls):
        others = f"; it lists {urls[0]}" if urls else ""
        raise WrongSitemap(f"sitemap {path!r} lists no URL below {base}{others}: give another --base-url or sitemap")
    return list(dict.fromkeys(urls))
