"""Counts how often each page of the documentation was cited, and lists pages that never were.

Knows sources and URLs; knows no database.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from posixpath import commonpath, dirname, relpath
from urllib.parse import urlsplit

from pipelines.store import AskedQuestion, OpenedSource


@dataclass(frozen=True, slots=True)
class PageUse:
    """How many answers cited a page, and how many searches found it among the first hits.

    `indexed` is False for a page that the live index no longer has.
    """

    url: str
    title: str
    cited: int
    found: int
    indexed: bool = True


@dataclass(frozen=True, slots=True)
class AreaUse:
    """A folder of the site: its pages, how many of them were cited, and how many answers cited them."""

    name: str
    pages: int
    cited_pages: int
    cited: int


@dataclass(frozen=True, slots=True)
class OpenedPage:
    """How often readers opened a page from an answer or a search, and its sections: (source, clicks), most first."""

    url: str
    clicks: int
    sections: tuple[tuple[str, int], ...]


def count_opened(opened: Iterable[OpenedSource]) -> list[OpenedPage]:
    """Return the pages that readers opened, the most opened first."""
    pages: dict[str, Counter[str]] = {}
    for one in opened:
        pages.setdefault(page_of(one.source), Counter())[one.source] += one.clicks
    counted = [OpenedPage(url, each.total(), tuple(each.most_common())) for url, each in pages.items()]
    return sorted(counted, key=lambda page: (-page.clicks, page.url))


def use_of_pages(rows: Iterable[AskedQuestion], titles: Mapping[str, str]) -> list[PageUse]:
    """Return the use of every page of the live index (`titles` by URL) and of every other cited page.

    The most cited come first, then the most often found.
    """
    cited: Counter[str] = Counter()
    found: Counter[str] = Counter()
    for row in rows:
        if row.known:  # "I do not know" lists the closest sections, which answer nothing
            cited.update({page_of(source) for source in row.cited})
        found.update({page_of(source) for source in row.found})
    urls = dict.fromkeys([*titles, *cited])
    uses = [PageUse(url, titles.get(url) or url, cited[url], found[url], url in titles) for url in urls]
    return sorted(uses, key=lambda use: (-use.cited, -use.found, use.url))


def use_of_areas(uses: Sequence[PageUse]) -> list[AreaUse]:
    """Return the folders of the site below the common path of all pages, the one with the most pages first."""
    folders = {use: dirname(_path(use.url)) for use in uses if use.indexed}
    shared = commonpath(folders.values()) if folders else ""
    areas: dict[str, list[PageUse]] = {}
    for use, folder in folders.items():
        areas.setdefault(_below(folder, shared), []).append(use)
    counted = [
        AreaUse(name, len(each), sum(use.cited > 0 for use in each), sum(use.cited for use in each))
        for name, each in areas.items()
    ]
    return sorted(counted, key=lambda area: (-area.pages, area.name))


def _below(folder: str, shared: str) -> str:
    """Return the first folder below `shared` on the path to `folder`."""
    return "(top)" if folder == shared else f"{relpath(folder, shared or '.').partition('/')[0]}/"


def _path(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.netloc}{parts.path}".lstrip("/")  # a file:// URL has only a path


def page_of(source: str) -> str:
    """Return the URL of a source without its anchor."""
    return source.partition("#")[0]
