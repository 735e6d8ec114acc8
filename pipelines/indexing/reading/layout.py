"""Detects the layout of a site (banners, pagers, the site's name) from text that its pages repeat.

Layout repeats word for word outside a page's own heading. Text under that heading is content, however often it repeats
(a warning, an install command, a license), unless all its words are links. Code is never layout. Independent of HTML
and the store.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from operator import itemgetter
from typing import Any, TypeGuard

from pydantic import TypeAdapter

from pipelines.indexing.reading.links import origin
from pipelines.page.flow import GAP, flat_blocks
from pipelines.page.tree import (
    Box,
    Code,
    Definitions,
    Document,
    Group,
    Item,
    List,
    Node,
    Note,
    Paragraph,
    Section,
    Span,
    Tab,
    Table,
    leaves_of,
)
from pipelines.records import digest

# In samples of 100 pages, nearly all of Django's and SQLite's pages have the site's layout. In Ray's, PostgreSQL's and
# Python's documentation, no line outside a heading is on half of the pages. Known layout is kept down to KEPT_SHARE, so
# that a single page more or less does not change the result.
LEAST_PAGES, SHARE, KEPT_SHARE = 8, 0.5, 0.35
# Share of pages whose <title> must begin or end alike: half of Django's end in "release notes — Django …".
LABEL_SHARE = 0.9
# Longest layout text under a heading that many pages share ("Last update:"); a license or a warning is longer.
LONGEST_SHARED = 100
_OPEN = Group | Note | Tab | Definitions | Item  # boxes of which a part may be layout
_SEPARATORS = " \t\n-–—|·•:»/"


@dataclass(frozen=True, slots=True)
class Layout:
    """The repeated text of one site: titles, headings, and paragraphs outside the pages' own headings.

    `pages` is the number of pages in the sample. Their `<title>` begins with `before` and ends with `after`. `counts`
    are the numbers of pages with each of `titles` and `lines`, for information only.
    """

    pages: int = 0
    titles: tuple[str, ...] = ()
    headings: tuple[str, ...] = ()
    lines: tuple[str, ...] = ()
    before: str = ""
    after: str = ""
    counts: tuple[int, ...] = field(default=(), repr=False, compare=False)

    def __bool__(self) -> bool:
        return bool(self.titles or self.lines)

    def strip(self, document: Document) -> Document:
        """Return `document` without the layout: its title, headings, and paragraphs outside its own heading."""
        if not self:
            return document
        own = next((heading for heading in _all_headings(document) if heading not in self.headings), "")
        sections = (self._without_lines(section, bool(own)) for section in document.sections)
        kept = tuple(self._without_titles(section) for section in sections if section.content)
        label = document.label.removeprefix(self.before).removesuffix(self.after).strip(_SEPARATORS)
        title = own or label if document.title in self.titles else ""
        return replace(document, title=title or document.title, sections=kept)

    def _without_lines(self, section: Section, headed: bool) -> Section:
        outside = self.titles if not headed else self.headings
        longest: int | None = 0  # below the page's own heading
        if all(heading in outside for heading in section.headings):
            longest = None if all(heading in self.titles for heading in section.headings) else LONGEST_SHARED
        content = self._without_paragraphs(section.content, longest)
        return section if content is None else replace(section, content=content)

    def _without_paragraphs(self, nodes: Sequence[Node], longest: int | None) -> list[Node] | None:
        """Return the blocks without layout lines, or None if there are none to remove."""
        kept: list[Node] = []
        changed = False
        for node in nodes:
            if not _is_open(node) or (longest is not None and isinstance(node, Definitions)):
                is_line = self._is_line(node, longest)
                changed |= is_line
                kept += [] if is_line else [node]
                continue
            inner = self._without_paragraphs(node.blocks, longest)
            changed |= inner is not None
            kept += [node] if inner is None else [replace(node, blocks=inner)] if inner else []
        return kept if changed else None

    def _is_line(self, node: Node, longest: int | None) -> bool:
        if isinstance(node, Code):
            return False
        text = _text_of(node)
        if isinstance(node, Definitions):
            return text in self.lines and _is_linked(node)
        return text in self.lines and (longest is None or len(text) <= longest or _is_linked(node))

    def _without_titles(self, section: Section) -> Section:
        headings = section.headings
        while len(headings) > 1 and headings[0] in self.titles:
            headings = headings[1:]
        return section if headings is section.headings else replace(section, headings=headings)


@dataclass(frozen=True, slots=True)
class Layouts:
    """The layouts of the sites in a collection, by scheme and host."""

    sites: tuple[tuple[str, Layout], ...] = ()

    def of(self, url: str) -> Layout:
        """Return the layout of the site of `url`; an empty one if the site has none."""
        site = origin(url)
        return next((layout for name, layout in self.sites if name == site), Layout())

    @property
    def digest(self) -> str:
        """A hash of all layouts, "" if there are none. The index stores it with each page."""
        kept = [(site, repr(replace(layout, pages=0))) for site, layout in self.sites]
        return digest(*(part for pair in kept for part in pair))[:8] if kept else ""

    def as_json(self) -> dict[str, Any]:
        """Return the layouts as plain values for `from_json`."""
        return {site: asdict(layout) for site, layout in self.sites}

    @classmethod
    def from_json(cls, values: Mapping[str, Mapping[str, Any]]) -> "Layouts":
        """Restore layouts from the values of `as_json` after a round trip through JSON."""
        return cls(tuple(sorted(TypeAdapter(dict[str, Layout]).validate_python(values).items(), key=itemgetter(0))))


NO_LAYOUTS = Layouts()


def learn_layout(documents: Sequence[Document], known: Layout | None = None) -> Layout:
    """Return the repeated text of `documents`, a sample of one site; an empty layout for fewer than LEAST_PAGES.

    Entries of `known`, the layout of an earlier run, are kept while they are on KEPT_SHARE of the pages.
    """
    pages, known = [document for document in documents if document.sections], known or Layout()
    titles = _repeated([{page.title, _banner(page)} for page in pages], known.titles)
    headings = _repeated([set(_all_headings(page)) for page in pages], known.headings)
    outside = tuple(sorted({*titles, *headings}))
    found = [{*_outside_lines(page, outside), *_lines_of_links(page)} for page in pages]
    lines = _repeated(found, known.lines)
    counts = (*titles.values(), *lines.values())
    labels = [page.label.split() for page in pages if page.label] if titles else []
    before, after = " ".join(_common_start(labels)), " ".join(_common_start([label[::-1] for label in labels])[::-1])
    return Layout(len(pages), tuple(titles), outside, tuple(lines), before, after, counts)


def _repeated(pages: Sequence[Iterable[str]], known: Iterable[str]) -> dict[str, int]:
    """Return the strings on at least LEAST_PAGES pages and a SHARE of all `pages`, sorted, with their counts."""
    counts = Counter(text for page in pages for text in page)
    shares = dict.fromkeys(known, KEPT_SHARE)
    least = {text: max(LEAST_PAGES, shares.get(text, SHARE) * len(pages)) for text in counts}
    return {text: count for text, count in sorted(counts.items()) if text and count >= least[text]}


def _banner(page: Document) -> str:
    """Return the heading before the page's title, or "" if there is none."""
    headings = list(_all_headings(page))
    return headings[0] if page.title in headings else ""


def _all_headings(page: Document) -> Iterator[str]:
    return (heading for section in page.sections for heading in section.headings)


def _outside_lines(page: Document, outside: Iterable[str]) -> Iterator[str]:
    """Yield the paragraphs of `page` that have only headings from `outside` above them."""
    for section in page.sections:
        if all(heading in outside for heading in section.headings):
            yield from _paragraphs(section.content)


def _lines_of_links(page: Document) -> Iterator[str]:
    """Yield the lines of `page` that consist of links, under any heading."""
    for section in page.sections:
        yield from (_text_of(line) for line in _lines_in(section.content) if _is_linked(line))


def _is_linked(node: Node) -> bool:
    """Return whether all words of a node are links."""
    spans = [span for leaf in leaves_of([node]) for span in _spans_of(leaf)]
    return any(span.target for span in spans) and not any(
        any(map(str.isalnum, span.text)) for span in spans if not span.target
    )


def _spans_of(leaf: Paragraph | Code | Table) -> Iterator[Span]:
    if isinstance(leaf, Paragraph):
        yield from leaf.spans
    elif isinstance(leaf, Code):
        yield Span(leaf.text)
    else:
        yield from (span for row in (leaf.head, *leaf.rows) for cell in row for span in cell)


def _paragraphs(nodes: Sequence[Node]) -> Iterator[str]:
    """Yield the strings that may be layout: paragraphs, lists, entries and whole tables, but no code."""
    return map(_text_of, _lines_in(nodes))


def _lines_in(nodes: Sequence[Node]) -> Iterator[Node]:
    for node in nodes:
        if _is_open(node):
            yield from _lines_in(node.blocks)
        elif not isinstance(node, Code):
            yield node


def _is_open(node: Node) -> TypeGuard[Box]:
    """Return whether a part of a node may be layout: a menu whose current entry contains the page's contents."""
    if isinstance(node, List):
        return any(isinstance(item, Box) and len(item.blocks) > 1 for item in node.blocks)
    return isinstance(node, _OPEN)


def _text_of(node: Node) -> str:
    return GAP.join(block.text for block in flat_blocks([node]))


def _common_start(labels: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """Return the longest sequence of words with which at least LABEL_SHARE of `labels` begin."""
    starts = Counter(tuple(label[:end]) for label in labels for end in range(1, len(label)))
    least = max(LEAST_PAGES, LABEL_SHARE * len(labels))
    return max((start for start, count in starts.items() if count >= least), key=len, default=())
