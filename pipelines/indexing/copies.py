"""Finds pages with the same text, by their canonical URLs and by other spellings of one URL.

A page with different text is never a copy, even if it names another page as canonical: some themes name the front page
on every page.
"""

import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import dataclass
from queue import SimpleQueue
from urllib.parse import unquote, urlsplit

from pipelines.embedding.cpu import count_cpus
from pipelines.indexing.reading.child_process import Child
from pipelines.indexing.reading.read import PageReader
from pipelines.indexing.reading.sketch import is_same, sketch_page
from pipelines.indexing.reading.text import UnreadablePage
from pipelines.records import Page
from pipelines.store import Store
from pipelines.text.counts import counted
from pipelines.text.progress import Passing, Progress

UNREAD = "-"  # the sketch of a page that can't be read
SKETCHED = 64  # sketches are saved in batches of this many pages
MOST_CHILDREN = 8  # processes that read pages at once: each may take as much memory as one page needs
# Default documents, and suffixes that servers add by themselves or that mark a Markdown version.
_DEFAULT = re.compile(r"/(?:index|default|README)(?:\.(?:html?|xhtml|php|aspx?|jsp|mdx?))*\Z")
_SUFFIX = re.compile(r"(?:\.(?:html?|mdx?)){1,4}\Z")

SameText = Callable[[str, str], bool]  # whether the pages at two URLs have the same text


@dataclass(frozen=True, slots=True)
class NamedPage:
    """A stored page: its URL, its canonical URL, the hash of its bytes, and whether it is HTML."""

    url: str
    canonical: str | None
    content_hash: str
    is_html: bool


def find_copies(store: Store, collection: str, child: Child, tell: Progress) -> dict[str, str]:
    """Return the pages of a collection that are copies, with the URLs of their originals.

    Candidates are read once for each version of their text: a few in `child`, many in several processes.
    """
    candidates = CopyCandidates.among(NamedPage(**row) for row in store.page_names(collection))
    sketches = _sketches(store, collection, candidates.to_sketch(), child, tell)
    hashes = {url: page.content_hash for url, page in candidates.pages.items()}

    def same(one: str, other: str) -> bool:
        if hashes[one] == hashes[other]:
            return True
        both = sketches.get(one, UNREAD), sketches.get(other, UNREAD)
        return UNREAD not in both and is_same(*both)

    return candidates.copies(same)


def _sketches(store: Store, collection: str, urls: Sequence[str], child: Child, tell: Progress) -> dict[str, str]:
    known = store.page_sketches(collection, urls)
    todo = [url for url in urls if url not in known]
    children = min(count_cpus(), MOST_CHILDREN, math.ceil(len(todo) / SKETCHED))
    with ExitStack() as stack:
        readers = SimpleQueue[PageReader[str]]()
        for number in range(children):
            own = stack.enter_context(closing(Child())) if number else child
            readers.put(PageReader(sketch_page, child=own))
        threads = stack.enter_context(ThreadPoolExecutor(max(1, children)))
        for start in range(0, len(todo), SKETCHED):
            tell(Passing(f"comparing {counted(len(todo), 'page')} that may be copies of others, {start:,} done"))
            pages = store.page_bodies(collection, todo[start : start + SKETCHED])
            sketches = threads.map(lambda page: _sketch(page, readers), pages)
            fresh = {page.url: sketch for page, sketch in zip(pages, sketches, strict=True)}
            store.save_sketches(collection, fresh)
            known |= fresh
    return known


def _sketch(page: Page, readers: "SimpleQueue[PageReader[str]]") -> str:
    """Return the sketch of a page, made by one of `readers`; UNREAD if the page can't be read."""
    read = readers.get()
    try:
        return read(page)
    except UnreadablePage:
        return UNREAD
    finally:
        readers.put(read)


@dataclass(frozen=True)
class CopyCandidates:
    """Pages by URL, and the groups among them that may have the same text.

    `named` maps pages to the page that they name as canonical. `plain` maps pages to the page at their URL without the
    query, if it has the same bytes. `spelt` are groups whose URLs differ only in spelling, the best URL first.
    """

    pages: Mapping[str, NamedPage]
    named: Mapping[str, str]
    plain: Mapping[str, str]
    spelt: Sequence[Sequence[str]]

    @classmethod
    def among(cls, pages: Iterable[NamedPage]) -> "CopyCandidates":
        """Return the candidates among the stored pages of a collection."""
        by_url = {page.url: page for page in pages}
        named, plain = dict[str, str](), dict[str, str]()
        groups: defaultdict[str, list[NamedPage]] = defaultdict(list)
        for url, page in by_url.items():
            groups[spelling_key(url)].append(page)
            if page.canonical and page.canonical != url and page.canonical in by_url:
                named[url] = page.canonical
            short = by_url.get(url.partition("?")[0])
            if short and short is not page and short.content_hash == page.content_hash:
                plain[url] = short.url
        spelt = [[page.url for page in sorted(group, key=_rank)] for group in groups.values() if len(group) > 1]
        return cls(by_url, named, plain, spelt)

    def to_sketch(self) -> list[str]:
        """Return the pages whose sketches are compared: candidates with different bytes."""
        urls = set[str]()
        for group in (*self.named.items(), *self.spelt):
            if len({self.pages[url].content_hash for url in group}) > 1:
                urls.update(group)
        return sorted(urls)

    def copies(self, same: SameText) -> dict[str, str]:
        """Return the originals of the pages that are copies, by URL.

        Among linked pages, the original is the one that names no other page. If all do, it is the best URL among the
        named ones.
        """
        named = {url: to for url, to in self.named.items() if same(url, to)}
        texts = [text for group in self.spelt for text in _texts(group, same)]
        copies = {*named, *self.plain}
        for text in texts:  # a page with the same text as a copy is a copy, too
            if any(named.get(url, url) not in text for url in text):
                copies.update(text)
        links = [*named.items(), *self.plain.items(), *((text[0], url) for text in texts for url in text)]
        targets = set(named.values())

        def rank(url: str) -> tuple[object, ...]:
            return url in copies, url in copies and url not in targets, *_rank(self.pages[url])

        originals = ((min(joined, key=rank), joined) for joined in _joined(links))
        return {url: original for original, joined in originals for url in joined if url != original}


def _texts(urls: Iterable[str], same: SameText) -> list[list[str]]:
    """Group `urls` by text."""
    texts: list[list[str]] = []
    for url in urls:
        text = next((text for text in texts if same(text[0], url)), None)
        if text is None:
            texts.append([url])
        else:
            text.append(url)
    return texts


def _joined(links: Iterable[tuple[str, str]]) -> list[list[str]]:
    """Return the groups of URLs that `links` connect, directly or through others."""
    groups: dict[str, list[str]] = {}
    for pair in links:
        smaller, larger = sorted((groups.setdefault(url, [url]) for url in pair), key=len)
        if smaller is not larger:
            larger += smaller
            groups |= dict.fromkeys(smaller, larger)
    return list({id(group): group for group in groups.values()}.values())


def _rank(page: NamedPage) -> tuple[bool, bool, bool, int, str]:
    """Return a sort key that puts the better URL first: HTML, for its anchors; https; without empty parts; short."""
    parts = urlsplit(page.url)
    return not page.is_html, parts.scheme != "https", "//" in parts.path, len(page.url), page.url


def spelling_key(url: str) -> str:
    """Return a key that is equal for URLs that differ only in spelling. It is never shown or stored."""
    parts = urlsplit(url)
    path = re.sub(r"/{2,}", "/", unquote(parts.path))
    path = _SUFFIX.sub("", _DEFAULT.sub("/", path)).rstrip("/")
    return f"{parts.netloc}{path}?{parts.query}"
