"""Joins the links of a page with its URL. Independent of crawl scopes and the network."""

from functools import lru_cache
from urllib.parse import urljoin, urlsplit


@lru_cache(1 << 16)  # pages in a folder share the links in their menus
def absolute_url(base: str, href: str) -> str:
    """Return the absolute target of `href` on the page at `base`, or "" if it is not an http(s) URL with a host."""
    try:
        url = urljoin(base, href.strip())
        parts = urlsplit(url)
        return url if parts.scheme in ("http", "https") and parts.hostname else ""
    except ValueError:
        return ""
