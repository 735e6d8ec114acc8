"""Walks the elements of an HTML page and reports their content to the section builder.

The builder decides which elements begin a section.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from urllib.parse import urlsplit

from lxml.etree import _Element as Element

from pipelines.indexing.reading.generators import BOXES, CONTENTS, INDEX_TERMS, SECTIONS, UNLINKED_SECTIONS
from pipelines.indexing.reading.html.elements import HEADINGS
from pipelines.indexing.reading.html.inline import (
    IN_PARAGRAPH,
    InlineText,
    begins_at_name,
    count_words,
    flow_of,
    holds_heading,
    is_inline,
    line_in,
    names_between,
    words_from,
)
from pipelines.indexing.reading.html.listings import (
    PLAIN,
    code_block,
    named_language,
    names_by_line,
    signature_block,
    signature_name,
)
from pipelines.indexing.reading.html.lists import BULLET, LISTS, LinkLists, Numbering
from pipelines.indexing.reading.html.tables import table_of
from pipelines.indexing.reading.html.tabs import LABEL
from pipelines.indexing.reading.set_text import SetText, parts_of
from pipelines.page.builder import MUCH, PageHeading, SectionBuilder
from pipelines.page.plain import plain
from pipelines.page.tree import Code, Definitions, Group, Note, Span, Spans, Tab, text_spans
from pipelines.text.phrases import read_names

_NAMES = read_names(__name__)
_LONG_TAB = 1500  # characters, about the size of a chunk
_DEEP = 4  # from this level on, a heading without an id stays in its section (Parameters, Returns, Example)


class TreeWalker:
    """Walks elements of the page at `url`, and adds their content to `builder`."""

    def __init__(self, url: str, builder: SectionBuilder) -> None:
        self._builder = builder
        self._link_lists = LinkLists(urlsplit(url).netloc)
        self._numberings: list[Numbering] = []  # one for each open list

    def walk(self, element: Element) -> None:
        """Add the contents of `element`: the blocks, and the texts between them."""
        for part in flow_of(element):
            if not isinstance(part, InlineText):
                self._block(part)
            elif part or part.before or part.after or part.names_block:
                self._text(part)

    def _text(self, text: InlineText) -> None:
        """Add text as a paragraph, or as the title of the section that begins at an anchor name before it."""
        builder = self._builder
        builder.target(*text.before)
        if text and not (builder.waiting and self._begins(text, text.title, len("".join(text.words).split()))):
            builder.paragraph(text.spans, contents=self._link_lists.lists_pages(text.spans))
        builder.target(*text.after)
        if text.names_block and builder.waiting:
            self._begins(text, "", 0)

    def _begins(self, text: InlineText, title: str, words: int) -> bool:
        return self._builder.begin(title, words, words_from(text.following, MUCH))

    def _block(self, element: Element) -> None:
        tag = element.tag
        if tag == "p":
            if is_inline(element, IN_PARAGRAPH):
                self._text(InlineText.of(element, element.getnext()))
            else:
                self.walk(element)
        elif tag in HEADINGS:
            self._builder.heading(_heading_of(element))
        elif tag == "table":
            self._table(element)
        elif tag == "li":
            self._list_item(element)
        elif tag in LISTS:
            self._list(element)
        elif tag == "dl":
            self._definitions(element)
        elif tag == "pre":
            self._listing(element)
        else:
            self._box(element)

    def _table(self, element: Element) -> None:
        if table := table_of(element):
            self._builder.table(*table)
        else:
            self.walk(element)

    def _listing(self, pre: Element) -> None:
        """Add a listing. Text typeset in lines, like a man page, becomes headings, entries and paragraphs instead."""
        code, builder = code_block(pre), self._builder
        classes = (pre.get("class") or "").split()
        is_code = not PLAIN.issuperset(classes) or named_language(pre) or pre.find(".//code") is not None
        if parts := parts_of(code.text) if code and not is_code else []:
            self._set_text(parts, names_by_line(pre))
        else:
            builder.code(code)

    def _set_text(self, parts: Sequence[SetText], names: Mapping[int, list[str]]) -> None:
        """Add the parts of a typeset text, with sections at its headings and at the anchor names in it."""
        builder, named = self._builder, _names_by_part(names, parts)
        for place, part in enumerate(parts):
            text = part.text
            builder.target(*named[place])
            if part.heading:
                builder.heading(PageHeading(text_spans(text), (), 2))
                continue
            if builder.waiting:
                title = part.title
                rest = text.partition(title)[2] if title else ""
                below = chain([rest], _texts_below(place, parts, named))
                builder.begin(title, len(text.split()), count_words((f" {one}" for one in below), MUCH))
            if part.lined:
                builder.code(Code(text))
            elif part.term:
                with builder.entry((), "", [text_spans(part.term)], linked=False):
                    builder.paragraph(text_spans(text))
            else:
                builder.paragraph(text_spans(text))

    def _box(self, element: Element) -> None:
        classes, builder = (element.get("class") or "").split(), self._builder
        contents = not CONTENTS.isdisjoint(classes) or ("contents" in classes and not _NAMES["toc"].isdisjoint(classes))
        if contents and not any(
            map(_is_section, element.iterdescendants("section", "div"))
        ):  # except in Sphinx's singlehtml
            return
        if label := element.get(LABEL):
            self._tab(label, element)
        elif _is_section(element):
            anchor = element.get("id") or (element[0].get("id") if element.tag == "article" else None)
            with builder.container([anchor] if anchor else []):
                self.walk(element)
        # A heading in a box is the title of the box only; the text after the box is not part of it.
        elif element.tag == "blockquote" or not BOXES.isdisjoint(classes):
            # docutils indents with a quotation that contains only a box.
            indents = element.tag == "blockquote" and len(element) == 1 and element[0].tag == "div"
            with builder.box(Group() if indents else Note(), apart=True):
                self.walk(element)
        elif element.tag == "details" or _is_row(element):
            with builder.box(Group()):
                self.walk(element)
        elif element.tag == "div" and all(map(is_inline, element)):
            self._text(InlineText.of(element, element.getnext()))
        else:
            self.walk(element)

    def _tab(self, label: str, panel: Element) -> None:
        """Add a tab with its label, which becomes a heading if the content fills a chunk or has headings."""
        if len("".join(panel.itertext())) > _LONG_TAB or holds_heading(panel):
            with self._builder.container([], label):
                self.walk(panel)
        else:
            with self._builder.box(Tab(label=label), apart=True):
                self.walk(panel)

    # -- lists --------------------------------------------------------------------------------------------

    def _list(self, element: Element) -> None:
        size = self._link_lists.index_size(element)
        if self._builder.leave_out(size):
            return
        self._numberings.append(Numbering(element))
        with self._builder.items(contents=not size and self._link_lists.is_contents(element)):
            self.walk(element)
        self._numberings.pop()

    def _list_item(self, element: Element) -> None:
        element.text = re.sub(r"^\s*[-–•]\s+", "", element.text or "")  # a bullet typed in addition to the list's own
        named = len(element) > 0 and element[0].tag in ("a", "span", "p") and begins_at_name(element[0])
        long = count_words(element.itertext(), MUCH) >= MUCH and not holds_heading(element)
        marker = self._numberings[-1].mark(element.get("value")) if self._numberings else BULLET
        with self._builder.item(marker, named=named, long=long):
            self.walk(element)

    # -- definition lists ---------------------------------------------------------------------------------

    def _definitions(self, element: Element) -> None:
        classes = (element.get("class") or "").split()
        if not CONTENTS.isdisjoint(classes):
            self._box(element)
            return
        own_id = (
            element.get("id") if element.tag == "div" else None
        )  # a div may wrap the terms and definitions of an entry
        with self._builder.box(Definitions()):
            self._entries(element, [own_id] if own_id else [], linked=_NAMES["not_entries"].isdisjoint(classes))

    def _entries(self, element: Element, names: list[str], *, linked: bool) -> None:
        """Add the entries of a list. `names` are the anchor names of the first one."""
        terms: list[Element] = []
        for child in [*element, None]:
            if child is not None and child.tag == "dt":
                terms.append(child)
                continue
            if terms and child is not None and (between := names_between(child)):
                names += between
                continue
            definition = child if child is not None and child.tag == "dd" else None
            if terms or definition is not None:
                self._entry(terms, names, definition, linked=linked and bool(terms))
                terms, names = [], []
            if child is None or child is definition:
                continue
            if is_inline(child):
                self._text(InlineText.of(child))
            elif child.tag == "div":
                self._definitions(child)
            else:
                if (text := InlineText().end(child)).names_block:
                    self._text(text)
                self._block(child)

    def _entry(
        self, terms: Sequence[Element], names: Sequence[str], definition: Element | None, *, linked: bool
    ) -> None:
        named = next((term for term in terms if term.get("id")), None)
        ids = [name for term in terms if (name := term.get("id"))]
        ids = ids or [name for term in terms for name in InlineText.of(term).before]
        ids = [*names, *ids]
        heading = signature_name(terms[0] if named is None else named, ids[0] if ids else "") if linked else ""
        endless = definition is not None and named is None and holds_heading(definition)
        shown = [] if linked and ids else list(map(line_in if definition is None else _term_of, terms))
        ids = [*dict.fromkeys(ids[::-1])]
        with self._builder.entry(ids, heading, shown, linked=linked, endless=endless) as is_section:
            if is_section and (signature := signature_block(terms)).text not in ("", heading):
                self._builder.code(signature)
            if definition is not None:
                self.walk(definition)


def _names_by_part(names: Mapping[int, list[str]], parts: Sequence[SetText]) -> list[list[str]]:
    """Return the anchor names in each part of a typeset text, given the names by line."""
    begins = [part.line for part in parts]
    named: list[list[str]] = [[] for _ in parts]
    for line, found in names.items():
        named[bisect_right(begins, line) - 1] += found
    return named


def _texts_below(place: int, parts: Sequence[SetText], named: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield the parts of a typeset text that belong to the section that begins at `place`.

    It ends before a heading or a part with an anchor name; if it has a title, the latter needs one as well.
    """
    titled = bool(parts[place].title)
    for at in range(place + 1, len(parts)):
        if parts[at].heading or (named[at] and (parts[at].title or not titled)):
            return
        yield parts[at].text


def _heading_of(element: Element) -> PageHeading:
    """Return a heading with its id, or with the first name in it."""
    for block in element.iterdescendants("div", "p"):
        block.text = f" {block.text or ''}"
    inner = [part for part in element.iter("a", "span") if part.get("class") not in INDEX_TERMS]
    own_id = element.get("id") or next((name for part in inner if (name := part.get("id") or part.get("name"))), None)
    around = element.getparent()
    if not own_id and around is not None and _holds_only(around, element):
        own_id = around.get("id")
    level = int(element.tag[1])
    minor = level >= _DEEP or next(element.iterancestors("a"), None) is not None
    return PageHeading(line_in(element), [own_id] if own_id else [], level, minor)


def _term_of(element: Element) -> Spans:
    """Return a term followed by a colon."""
    spans = line_in(element)
    return (*spans, Span(":")) if plain(spans)[-1:].isalnum() else spans


def _is_section(element: Element) -> bool:
    anchor, classes = element.get("id"), (element.get("class") or "").split()
    if element.tag == "div" and not SECTIONS.isdisjoint(classes):
        return bool(anchor) or not UNLINKED_SECTIONS.isdisjoint(classes)
    if element.tag == "article" and len(element) and element[0].tag in HEADINGS:
        return bool(anchor or element[0].get("id"))
    if not anchor or (element.tag == "div" and anchor in _NAMES["layout"]):
        return False
    if element.tag == "section":
        return True
    # An element with nothing but a heading in it names the heading, whose text comes after the element.
    return len(element) > 0 and element[0].tag in HEADINGS and not _holds_only(element, element[0])


def _holds_only(around: Element, element: Element) -> bool:
    """Return whether `around` contains nothing but `element`."""
    return len(around) == 1 and not f"{around.text or ''}{element.tail or ''}".strip()


def _is_row(element: Element) -> bool:
    """Return whether `element` is one of several rows, whose first paragraph is a name or a signature."""
    return element.tag == "tr" and (element.getprevious() is not None or element.getnext() is not None)
