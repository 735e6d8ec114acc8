"""Finds the page of a URL under the spellings that an index may have; puts a page's hits first."""

import re
from collections.abc import Sequence
from typing import Literal, Protocol, TypeVar
from urllib.parse import unquote, urlsplit

Focus = Literal["", "page", "whole"]


class PageItem(Protocol):
    """A part of a page: a hit, or a candidate for one."""

    @property
    def chunk_id(self) -> str: ...

    @property
    def url(self) -> str: ...

    @property
    def ordinal(self) -> int: ...


PageItemT = TypeVar("PageItemT", bound=PageItem)


def page_first(hits: Sequence[PageItemT], url: str, k: int, in_order: bool = False) -> list[PageItemT]:
    """Return `hits` with the hits of the page at `url` first; with `in_order`, in the page's order.

    They include the start of the page, which says what it is about. The `k`-th place is left to the best other hit.
    """
    own, others = [hit for hit in hits if hit.url == url], [hit for hit in hits if hit.url != url]
    ordered = sorted(own, key=lambda hit: hit.ordinal)
    first = ordered if in_order else [*own[: max(1, k - 2)], *ordered[:1], *own]
    own = list({hit.chunk_id: hit for hit in first}.values())
    return [*own[: k - 1], *others[:1], *own[k - 1 :], *others[1:]]


def page_spellings(url: str) -> Sequence[str]:
    """Return the URLs that the page at `url` may have in an index, likeliest first; none if it isn't a web page.

    They have no fragment, user or default port. They are with and without the query; as a folder, as a file and as
    neither; and with either scheme, since a site is often indexed with one and read with the other.
    """
    try:
        parts = urlsplit(url.strip())
        host, port = parts.hostname or "", parts.port
    except ValueError:
        return ()
    if parts.scheme not in ("http", "https") or not host:
        return ()
    host += f":{port}" if port not in (None, 80, 443) else ""
    paths = _path_spellings(parts.path or "/")
    queries = [f"?{parts.query}", ""] if parts.query else [""]
    schemes = (parts.scheme, "http" if parts.scheme == "https" else "https")
    return [f"{scheme}://{host}{path}{query}" for scheme in schemes for query in queries for path in paths]


def _path_spellings(path: str) -> list[str]:
    bare = re.sub(r"/(?:index\.html?)?$|\.html?$", "", path)
    folders = [f"{bare}/", f"{bare}/index.html", bare, f"{bare}.html", f"{bare}.htm", f"{bare}/index.htm", f"{bare}.md"]
    spellings = dict.fromkeys([path, *folders])
    return list(dict.fromkeys([*spellings, *(unquote(spelling) for spelling in spellings)]))


def fragment_of(url: str) -> str:
    """Return the anchor in a URL, or ""; a text fragment (`#:~:text=`) is no anchor."""
    return unquote(url.partition("#")[2].partition(":~:")[0])
