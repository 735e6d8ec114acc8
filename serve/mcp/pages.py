"""Finds a page of an index by its URL, and returns it, or a section or part of it, as Markdown.

A page is parsed again from the body that the index was built from; if that is gone, it is assembled from its chunks.
"""

import functools
import itertools
import re
from collections.abc import Callable, Sequence
from typing import Any
from urllib.parse import unquote, urldefrag

from rapidfuzz import fuzz, process

from pipelines.indexing.layouts import known_layouts
from pipelines.indexing.reading.read import read_page
from pipelines.indexing.reading.text import UnreadablePage
from pipelines.llm.tokens import estimate
from pipelines.page.tree import Document
from pipelines.records import Index
from pipelines.store import Store
from serve.mcp.markdown import MarkdownSection, sections_of_chunks, sections_of_document, with_headings, write_sections
from serve.mcp.quoting import HeadingLine, clean, pack
from serve.mcp.results import OutlineEntry, PagePart

# In tokens of `estimate`; about 4,000 tokens of a current model, so that several pages fit into a context window.
PAGE_TOKENS = 6_000
MOST_OUTLINED = 60  # maximum sections: a reference page has hundreds, which search_docs finds better
KEPT = 32  # cached parsed pages: agents read more of the pages they have found; the largest take a quarter of a second
NEAR, ALIKE = 3, 60  # suggestions for a missing page: how many, and their minimum similarity in percent


class NoSuchPage(LookupError):
    """No page of the collections has that URL, or the page has no such section or part."""


class PageShelf:
    """The pages of the indexes in `store`. Its methods wait for the database and parse pages: call them in a thread.

    Pages are parsed in this process, because a run has already parsed the same body in time.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._document = functools.lru_cache(KEPT)(self._read_document)

    def read(self, indexes: Sequence[Index], url: str, section: str = "", part: int = 1) -> PagePart:
        """Return a part of the page at `url` in the first of `indexes` that has it. Raises NoSuchPage."""
        index, address = self._find(indexes, url)
        title, sections = self._sections(index, address)
        section = section.strip().lstrip("#") or unquote(urldefrag(url).fragment)
        chosen = _choose(sections, section, address) if section else sections
        named = _name_of(chosen, sections, section) if section else ""
        facts = {"url": address, "title": clean(title), "collection": index.collection, "section": named}
        page = PagePart(**facts, part=part, parts=part + 1, outline=[], text="")
        parts = _parts(page, chosen)
        if part > len(parts):
            raise NoSuchPage(f"part is {part}: {address} has {len(parts)}")
        page.parts = len(parts)
        page.outline = outline(chosen) if len(parts) > 1 and part == 1 else []
        page.text = "\n\n".join([*_place(parts[: part - 1]), *parts[part - 1]])
        return page

    def holders(self, indexes: Sequence[Index], url: str) -> list[str]:
        """Return the collections of those `indexes` that have the page at `url`."""
        return [index.collection for index in indexes if self._store.find_pages(index, _spellings(url))]

    def whole(self, index: Index, url: str) -> str:
        """Return the complete page at `url` as Markdown."""
        sections = self._sections(index, url, self._read_document)[1]
        return "\n\n".join(filter(None, write_sections(sections)))

    def _find(self, indexes: Sequence[Index], url: str) -> tuple[Index, str]:
        spellings = _spellings(url)
        for index in indexes:
            found = self._store.find_pages(index, spellings)
            if found:
                return index, min(found, key=lambda one: spellings.index(one) if one in spellings else len(spellings))
        near = [page for index in indexes for page in _alike(spellings[0], self._store.indexed_urls(index.id))]
        best = [page for page, _ in sorted(near, key=lambda one: -one[1])[:NEAR]]
        hint = f"; near it are {', '.join(best)}" if best else ""
        raise NoSuchPage(f"no page {spellings[0]!r} is indexed{hint}; `search_docs` finds pages by what they say")

    def _sections(
        self, index: Index, url: str, read: Callable[[Index, str], Document | None] | None = None
    ) -> tuple[str, list[MarkdownSection]]:
        document = (read or self._document)(index, url)
        if document and document.sections:
            return document.title, sections_of_document(document)
        chunks = self._store.chunks_of_pages(index.id, [url])
        return (chunks[0].title if chunks else url), sections_of_chunks(chunks)

    def _read_document(self, index: Index, url: str) -> Document | None:
        page = self._store.indexed_page(index, url)
        try:
            if page is None:
                return None
            return known_layouts(self._store, index.collection).of(url).strip(read_page(page, index.settings.html))
        except UnreadablePage:
            return None


def _parts(page: PagePart, sections: Sequence[MarkdownSection]) -> list[list[str]]:
    """Return the blocks of each part; a part has at most PAGE_TOKENS, including its frame and the outline.

    `page` is a part without its text that is followed by others.
    """
    texts = list(write_sections(sections))
    place = max((estimate(f"{one.headings}{one.anchors}") for one in sections), default=0)
    room = max(PAGE_TOKENS - estimate(page.to_text()) - place, PAGE_TOKENS // 2)
    parts = pack(texts, room)
    listed = sum(estimate(f"{entry.to_text()}\n") for entry in outline(sections))
    return parts if len(parts) == 1 else pack(texts, room, listed)


def outline(sections: Sequence[MarkdownSection]) -> list[OutlineEntry]:
    """Return the sections of a page, without the deepest levels if there are too many."""
    entries = [
        OutlineEntry(level=heading.level, heading=clean(heading.text), anchor=heading.anchor)
        for headings, _ in with_headings(sections)
        for heading in headings
    ]
    for deepest in range(max((entry.level for entry in entries), default=0), 0, -1):
        kept = [entry for entry in entries if entry.level <= deepest]
        if len(kept) <= MOST_OUTLINED:
            return kept
    return entries[:MOST_OUTLINED]


def _place(before: Sequence[Sequence[str]]) -> list[str]:
    """Return, on one line, the headings that apply to the text after `before`; none at the beginning."""
    path: dict[int, str] = {}
    for block in itertools.chain.from_iterable(before):
        if isinstance(block, HeadingLine):
            path = {above: text for above, text in path.items() if above < block.level} | {block.level: block}
    return [f"(continued: {' › '.join(line.strip('# ') for line in path.values())})"] if path else []


def _spellings(url: str) -> list[str]:
    """Return the URLs that the page at `url` may have in an index, the given one first."""
    plain = urldefrag(url.strip().strip("<>")).url
    bare = plain.removesuffix("/index.html").removesuffix(".html").rstrip("/")
    return list(dict.fromkeys([plain, bare, f"{bare}/", f"{bare}.html", f"{bare}/index.html"]))


def _choose(sections: Sequence[MarkdownSection], name: str, url: str) -> list[MarkdownSection]:
    """Return the section with that anchor or heading, and its subsections. Raises NoSuchPage.

    Case is ignored if no anchor matches exactly, and the number of a heading if no heading matches with it.
    """
    wanted = _plain(name)
    for chosen in (
        [one for one in sections if name in one.anchors],
        [one for one in sections if wanted in map(_plain, one.anchors)],
        [one for one in sections if wanted in map(_plain, one.headings)],
        [one for one in sections if _unnumbered(wanted) in map(_unnumbered, map(_plain, one.headings))],
    ):
        if chosen:
            return chosen
    names = list(dict.fromkeys(one.anchor or one.headings[-1] for one in sections if one.anchor or one.headings))
    near = [found for found, _ in _alike(name, names)]
    shown = f"near it are {', '.join(near)}" if near else f"it has {len(names)}, such as {', '.join(names[:NEAR])}"
    has = f"; {shown}" if names else ""
    raise NoSuchPage(f"{url} has no section {name!r}{has}; without `section` the page is read from its beginning")


def _alike(name: str, names: Sequence[str]) -> list[tuple[str, float]]:
    """Return the closest of `names` to `name`, each with its similarity; case is ignored."""
    scorer: Any = fuzz.ratio  # overloaded: rapidfuzz's own types don't accept it
    found = process.extract(name, names, scorer=scorer, processor=_plain, limit=NEAR, score_cutoff=ALIKE)
    return [(one, score) for one, score, _ in found]


def _name_of(chosen: Sequence[MarkdownSection], sections: Sequence[MarkdownSection], name: str) -> str:
    """Return the innermost anchor that means exactly these sections, `name` if there is none."""
    for anchor in reversed(chosen[0].anchors):
        if [one for one in sections if anchor in one.anchors] == chosen:
            return anchor
    return name


def _plain(name: str) -> str:
    return " ".join(name.casefold().split())


def _unnumbered(heading: str) -> str:
    """Return a heading without a generator's number prefix: "20.11.1. ", "3 ", "F.44. "."""
    return re.sub(r"^(?:\d+|[a-z](?=\.))(?:\.\d+)*\.?\s+", "", heading)
