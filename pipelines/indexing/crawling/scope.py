"""Normalizes URLs and decides which of them belong to a crawl.

These are pure functions of strings. The module knows no network, no robots.txt and no database.
"""

import re
from collections.abc import Iterable
from functools import lru_cache
from urllib.parse import unquote, urljoin, urlsplit, urlunsplit

from w3lib.url import safe_url_string

from pipelines.indexing.reading.formats import format_of_name
from pipelines.text.phrases import read_names, read_phrases

DEFAULT_PORTS = {"http": 80, "https": 443}
# Longer URLs are traps or generated queries; browsers and servers also begin to disagree here.
MAX_URL_LENGTH = 2048
BINARY_SUFFIXES = read_names(__name__)["binary_suffixes"]
_TRACKING = read_phrases(__name__)["tracking"]


@lru_cache(maxsize=1 << 16)  # every page of a site repeats its navigation, and a link takes 30 µs
def normalize_url(url: str, base: str = "", *, keep_tracking: bool = False) -> str | None:
    """Return the URL that identifies a page: escaped, lower-case host, no fragment, default port or tracking.

    `url` may be relative to `base`. Dot segments are resolved as in a browser; no other rule rewrites the path. Return
    None for a URL that may not be fetched: another scheme than http(s), a user name, no host or an impossible one, too
    long.
    """
    try:
        parts = urlsplit(safe_url_string(urljoin(base, url.strip())))
        port = parts.port
    except ValueError:
        return None
    if parts.scheme not in DEFAULT_PORTS or not parts.hostname or "@" in parts.netloc:
        return None
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    netloc = host if port in (None, DEFAULT_PORTS[parts.scheme]) else f"{host}:{port}"
    query = parts.query if keep_tracking else _without_tracking(parts.query)
    result = urlunsplit((parts.scheme, netloc, _resolve_dots(parts.path), query, ""))
    return result if len(result) <= MAX_URL_LENGTH else None


def spellings(urls: Iterable[str]) -> set[str]:
    """Return the URLs as given, which is how pages of files have them, and normalized, as pages of sites have them."""
    given = list(urls)
    return {*given, *filter(None, map(normalize_url, given))}


def _without_tracking(query: str) -> str:
    named = "=" in query
    return "&".join(part for part in query.split("&") if not (named and _TRACKING.fullmatch(part.partition("=")[0])))


def _resolve_dots(path: str) -> str:
    """Return `path` without dot segments (also written %2e), "/" if it is empty."""
    plain = re.sub("%2e", ".", path, flags=re.IGNORECASE) if "%2" in path else path
    if "/." not in plain:
        return path or "/"
    return urljoin("http://host/", "./" + plain.lstrip("/"))[len("http://host") :]


def site(url: str) -> str:
    """Return host and port of a normalized URL; http and https on their default ports are one site."""
    return urlsplit(url).netloc


def directory(url: str) -> str:
    """Return the path up to its last slash: both `/docs/a.html` and `/docs/` are in `/docs/`."""
    path = urlsplit(url).path
    return path[: path.rfind("/") + 1]


def looks_binary(url: str) -> bool:
    """Return whether the file name's suffix rules out a page."""
    name = urlsplit(url).path.rsplit("/", 1)[-1]
    entry = format_of_name(unquote(name))
    if entry is not None:
        return not entry.linked
    return unquote(name).rsplit(".", 1)[-1].lower() in BINARY_SUFFIXES if "." in name else False


class Scope:
    """The URLs of one crawl: host and port of a start URL, its directory and below, matching the patterns.

    A start URL itself always belongs to it, so `include` need only match the pages further down. A start URL without a
    final slash, `/docs`, may be a page of the directory above or a directory itself; only its links show which.
    """

    def __init__(self, start_urls: Iterable[str], include: Iterable[str], exclude: Iterable[str], no_parent: bool):
        self._starts = frozenset(start_urls)
        self._roots = {url: directory(url) if no_parent else "/" for url in self._starts}
        self._sites = frozenset(map(site, self._starts))
        self._open = {url for url in self._starts if no_parent and not include and _may_be_folder(url)}
        self._include = [re.compile(pattern) for pattern in include]
        self._exclude = [re.compile(pattern) for pattern in exclude]

    @property
    def is_settled(self) -> bool:
        """Whether the scope is final, so that links of pages no longer change it."""
        return not self._open

    def settle(self, start: str, links: Iterable[str] | None) -> str:
        """Return the directory that the pages below `start` turned out to be in, or "".

        `start` is that directory if it links, or redirects, to pages below it. If the page could not be read (None),
        only it and pages below it stay in the scope: those belong to it either way.
        """
        if start not in self._open:
            return ""
        self._open.discard(start)
        folder = f"{urlsplit(start).path}/"
        if links is None:
            self._roots[start] = folder
            return ""
        if not any(site(url) == site(start) and urlsplit(url).path.startswith(folder) for url in links):
            return ""
        self._roots[start] = folder
        return folder

    def same_site(self, url: str) -> bool:
        return site(url) in self._sites

    def __contains__(self, url: str) -> bool:
        return url in self._starts or (self._below(url) and self._matches(url) and not looks_binary(url))

    def _below(self, url: str) -> bool:
        host, path = site(url), f"{urlsplit(url).path}/"  # `/docs` is in `/docs/`
        return any(host == site(start) and path.startswith(root) for start, root in self._roots.items())

    def _matches(self, url: str) -> bool:
        if any(pattern.search(url) for pattern in self._exclude):
            return False
        return not self._include or any(pattern.search(url) for pattern in self._include)


def _may_be_folder(url: str) -> bool:
    """Return whether the last part of a path may name a directory: it is not a file in a supported format."""
    name = urlsplit(url).path.rpartition("/")[2]
    return bool(name) and format_of_name(unquote(name)) is None
