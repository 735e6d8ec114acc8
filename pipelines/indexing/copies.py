"""Finds pages with the same text: what one names as canonical, and other spellings of one URL.

A page with a text of its own is a page of its own, whatever it names as canonical: themes name the front page on every
page.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from pipelines.indexing.reading.child_process import Child
from pipelines.indexing.reading.read import PageReader
from pipelines.indexing.reading.sketch import is_same, sketch_page
from pipelines.indexing.reading.text import UnreadablePage
from pipelines.store import Store

UNREAD = "-"  # stands for the sketch of a page that can't be read
SKETCHED = 64  # pages whose sketches are saved at once
# Default documents, and suffixes that servers add by themselves or that name a twin in Markdown.
_DEFAULT = re.compile(r"/(?:index|default|README)(?:\.(?:html?|xhtml|php|aspx?|jsp|mdx?))*\Z")
_SUFFIX = re.compile(r"(?:\.(?:html?|mdx?))+\Z")


@dataclass(frozen=True, slots=True)
class NamedPage:
    """A stored page: its URL, the one that it names as canonical, the hash of its bytes, whether it is HTML."""

    url: str
    canonical: str | None
    content_hash: str
    is_html: bool


def find_copies(store: Store, collection: str, child: Child) -> dict[str, str]:
    """Return the pages of a collection that are copies, with the URLs of their originals.

    Pages that may be are read in `child`, once for each text that they have.
    """
    pages = [NamedPage(**row) for row in store.page_names(collection)]
    pairs = may_be_copies(pages)
    hashes = {page.url: page.content_hash for page in pages}
    unequal = {url for pair in pairs for url in pair if len({hashes[each] for each in pair}) > 1}
    sketches = _sketches(store, collection, sorted(unequal), child)

    def same(one: str, other: str) -> bool:
        both = [sketches.get(url, UNREAD) for url in (one, other)]
        return hashes[one] == hashes[other] or (UNREAD not in both and is_same(*both))

    return copies_of(pages, same)


def _sketches(store: Store, collection: str, urls: Sequence[str], child: Child) -> dict[str, str]:
    known = store.page_sketches(collection, urls)
    todo = [url for url in urls if url not in known]
    read = PageReader(sketch_page, child=child)
    for start in range(0, len(todo), SKETCHED):
        fresh: dict[str, str] = {}
        for page in store.page_bodies(collection, todo[start : start + SKETCHED]):
            fresh[page.url] = UNREAD
            with suppress(UnreadablePage):
                fresh[page.url] = read(page)
        store.save_sketches(collection, fresh)
        known |= fresh
    return known


def may_be_copies(pages: Iterable[NamedPage]) -> list[tuple[str, str]]:
    """Return the pairs of pages that are one if their texts are the same."""
    by_url = {page.url: page for page in pages}
    named = [(page.url, page.canonical) for page in by_url.values() if page.canonical in by_url]
    pairs = [(url, target) for url, target in named if target and target != url]
    for group in _spelt_alike(by_url.values()):
        pairs += [(page.url, group[0].url) for page in group[1:]]
    return pairs


def copies_of(pages: Iterable[NamedPage], same: Callable[[str, str], bool]) -> dict[str, str]:
    """Return the originals of the copies among `pages`, by URL; `same` tells whether two URLs have one text.

    Where the pages that name each other form a circle, the one with the best URL is the original.
    """
    by_url = {page.url: page for page in pages}
    leads: dict[str, str] = {}
    for page in by_url.values():
        if (
            page.canonical
            and page.canonical != page.url
            and page.canonical in by_url
            and same(page.url, page.canonical)
        ):
            leads[page.url] = page.canonical
    for group in _spelt_alike(by_url.values()):
        best = next((page.url for page in group if page.url not in leads), group[0].url)
        for page in group:
            if page.url != best and page.url not in leads and same(page.url, best):
                leads[page.url] = best
    ends = {url: _end(url, leads, by_url) for url in leads}
    return {url: end for url, end in ends.items() if end != url}


def _end(url: str, leads: Mapping[str, str], pages: Mapping[str, NamedPage]) -> str:
    """Return where `leads` lead from `url`: their end, or the best page of a circle."""
    way = [url]
    while (following := leads.get(way[-1])) is not None:
        if following in way:
            return min(way[way.index(following) :], key=lambda each: _rank(pages[each]))
        way.append(following)
    return way[-1]


def _spelt_alike(pages: Iterable[NamedPage]) -> list[list[NamedPage]]:
    """Return groups of pages whose URLs differ in how they are spelt alone, each with the best URL first."""
    groups: defaultdict[str, list[NamedPage]] = defaultdict(list)
    for page in pages:
        groups[plain_url(page.url)].append(page)
    return [sorted(group, key=_rank) for group in groups.values() if len(group) > 1]


def _rank(page: NamedPage) -> tuple[bool, bool, bool, int, str]:
    """Return what sorts the better URL first: HTML, for its anchors; https; without empty parts; short."""
    parts = urlsplit(page.url)
    return not page.is_html, parts.scheme != "https", "//" in parts.path, len(page.url), page.url


def plain_url(url: str) -> str:
    """Return what the URLs of one page have in common, however they are spelt: no page is known by it."""
    parts = urlsplit(url)
    path = re.sub(r"/{2,}", "/", unquote(parts.path))
    path = _SUFFIX.sub("", _DEFAULT.sub("/", path)).rstrip("/")
    return f"{parts.netloc}{path}?{parts.query}"
