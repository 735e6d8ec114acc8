"""Finds the page that a URL names by the spellings that an index may have; puts its hits first."""

import re
from collections.abc import Sequence
from typing import Literal, Protocol, TypeVar
from urllib.parse import unquote, urlsplit

Focus = Literal["", "page", "whole"]


class PageItem(Protocol):
    """A part of a page: a hit, or what will be one."""

    @property
    def chunk_id(self) -> str: ...

    @property
    def url(self) -> str: ...

    @property
    def ordinal(self) -> int: ...


PageItemT = TypeVar("PageItemT", bound=PageItem)


def page_first(hits: Sequence[PageItemT], url: str, k: int, in_order: bool = False) -> list[PageItemT]:
    """Return `hits` with those of the page at `url` first, `in_order` as they stand there.

    The beginning of the page, which says what it is, is among them; the `k`-th place is left to the best other hit.
    """
    own, others = [hit for hit in hits if hit.url == url], [hit for hit in hits if hit.url != url]
    ordered = sorted(own, key=lambda hit: hit.ordinal)
    first = ordered if in_order else [*own[: max(1, k - 2)], *ordered[:1], *own]
    own = list({hit.chunk_id: hit for hit in first}.values())
    return [*own[: k - 1], *others[:1], *own[k - 1 :], *others[1:]]


def page_spellings(url: str) -> Sequence[str]:
    """Return the URLs that the page at `url` may have in an index, the likeliest first; none if it is no web page.

    Without fragment, user and the scheme's own port; with its query and without; as a folder, a file and neither; with
    either scheme, since a site is often indexed under one and read under the other.
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
    """Return the anchor that a URL names, "" for none; not a text fragment (`#:~:text=`)."""
    return unquote(url.partition("#")[2].partition(":~:")[0])
