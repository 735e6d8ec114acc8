"""Learns the layouts of a collection's sites from a sample of each, the same in every run.

What was learnt is kept with the hash of its sample, so a run in which the sample has not changed reads nothing.
"""

from contextlib import suppress
from itertools import groupby

from pipelines.indexing.reading.layout import LEAST_PAGES, Layout, Layouts, learn_layout, site_of
from pipelines.indexing.reading.read import PageReader, read_page
from pipelines.indexing.reading.text import UnreadablePage
from pipelines.records import SECTIONING_VERSION, Document, digest
from pipelines.store import Store

# Of 64 pages, one that stands for half of a site is on 20 or fewer with a chance of 0.2 %; reading them takes 1 s.
SAMPLE = 64


def known_layouts(store: Store, collection: str) -> Layouts:
    """Return the layouts that an earlier run learnt."""
    return Layouts.from_json(store.layouts(collection)[1])


def has_learnt(store: Store, collection: str) -> bool:
    """Return whether an earlier run, or this one, has looked for layouts, and found enough pages for it."""
    return bool(store.layouts(collection)[0])


def learn_layouts(store: Store, collection: str) -> Layouts:
    """Return the layouts of the sites of a collection as its stored pages show them, and keep them."""
    pages = store.layout_sample(collection, LEAST_PAGES, SAMPLE)
    sample = digest(str(SECTIONING_VERSION), *(part for page in pages.items() for part in page))
    before, saved = store.layouts(collection)
    known = Layouts.from_json(saved)
    if sample == before or not (pages or saved):
        return known
    layouts = _learn(store, collection, list(pages), known)
    store.save_layouts(collection, sample, layouts.as_json())
    return layouts


def _learn(store: Store, collection: str, urls: list[str], known: Layouts) -> Layouts:
    sites: list[tuple[str, Layout]] = []
    with PageReader(read_page) as read:
        for site, group in groupby(sorted(urls, key=lambda url: (site_of(url), url)), key=site_of):
            layout = learn_layout(_documents(store, collection, list(group), read), known.of(site))
            if layout:
                sites.append((site, layout))
    return Layouts(tuple(sites))


def _documents(store: Store, collection: str, urls: list[str], read: PageReader[Document]) -> list[Document]:
    documents = []
    for url in urls:
        for page in store.page_bodies(collection, [url]):
            with suppress(UnreadablePage):
                documents.append(read(page))
    return documents
