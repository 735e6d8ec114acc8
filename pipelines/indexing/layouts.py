"""Learns the layouts of a collection's sites from samples, and looks for its selectors in them.

Layouts are stored with the hash of their sample, so a run whose sample has not changed reads nothing.
"""

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from itertools import groupby
from typing import Any, TypeVar

from pipelines.indexing.reading.child_process import Child
from pipelines.indexing.reading.html.site import SelectorCheck
from pipelines.indexing.reading.layout import LEAST_PAGES, Layout, Layouts, learn_layout
from pipelines.indexing.reading.links import origin
from pipelines.indexing.reading.read import PageReader, read_page
from pipelines.indexing.reading.text import UnreadablePage
from pipelines.page.tree import Document
from pipelines.records import SECTIONING_VERSION, digest
from pipelines.store import Store

# An element on half of a site's pages is on 20 or fewer of 64 with a probability of 0.2%. Reading 64 pages takes 1 s.
SAMPLE = 64
# Pages that are searched for matches of selectors: if one matches nothing, parsing all 256 takes 1 s.
CHECKED = 256

T = TypeVar("T")


def known_layouts(store: Store, collection: str) -> Layouts:
    """Return the layouts that an earlier run learned."""
    return Layouts.from_json(store.layouts(collection)[1])


def learn_layouts(store: Store, collection: str, html: Mapping[str, Any], child: Child) -> Layouts:
    """Learn and store the layouts of a collection's sites from stored pages, read with `html` in `child`.

    If the sample has not changed, return the stored layouts.
    """
    pages = store.layout_sample(collection, LEAST_PAGES, SAMPLE)
    read_with = [json.dumps(html, sort_keys=True)] if html else []
    sample = digest(str(SECTIONING_VERSION), *(part for page in pages.items() for part in page), *read_with)
    before, saved = store.layouts(collection)
    known = Layouts.from_json(saved)
    if sample == before or not (pages or saved):
        return known
    read = PageReader(partial(read_page, html=html), child=child)
    layouts = _learn(store, collection, list(pages), known, read)
    store.save_layouts(collection, sample, layouts.as_json())
    return layouts


def find_unmatched(store: Store, collection: str, selectors: Collection[str], child: Child) -> tuple[list[str], int]:
    """Return the `selectors` that match nothing on CHECKED stored pages of each site, and the number of those pages.

    The search ends as soon as every selector has matched.
    """
    left, pages = set(selectors), store.layout_sample(collection, 1, CHECKED)
    check = PageReader(SelectorCheck(selectors), child=child)
    for matched in _each(store, collection, pages if selectors else (), check):
        left -= matched
        if not left:
            break
    return [text for text in selectors if text in left and pages], len(pages)


def _learn(store: Store, collection: str, urls: list[str], known: Layouts, read: PageReader[Document]) -> Layouts:
    sites: list[tuple[str, Layout]] = []
    for site, group in groupby(sorted(urls, key=lambda url: (origin(url), url)), key=origin):
        layout = learn_layout(list(_each(store, collection, group, read)), known.of(site))
        if layout:
            sites.append((site, layout))
    return Layouts(tuple(sites))


def _each(store: Store, collection: str, urls: Iterable[str], read: PageReader[T]) -> Iterator[T]:
    """Yield the result of `read` for each readable page, one by one."""
    for url in urls:
        for page in store.page_bodies(collection, [url]):
            with suppress(UnreadablePage):
                yield read(page)
