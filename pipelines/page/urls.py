"""Joins the links of a page with its URL. Knows no scope and no network."""

from functools import lru_cache
from urllib.parse import urljoin, urlsplit


@lru_cache(1 << 16)  # pages of one folder have the same links in their menus
def absolute_url(base: str, href: str) -> str:
    """Return where `href` on the page at `base` leads, "" if that is no http(s) URL of a host."""
    try:
        url = urljoin(base, href.strip())
        parts = urlsplit(url)
        return url if parts.scheme in ("http", "https") and parts.hostname else ""
    except ValueError:
        return ""
