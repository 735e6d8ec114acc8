"""Walks the elements of an HTML page and builds the page of them.

Which of them begins a section is decided by the builder.
"""

import re
from collections.abc import Sequence
from urllib.parse import urlsplit

from lxml import etree
from lxml.etree import _Element as Element

from pipelines.indexing.reading.generators import BOXES, CONTENTS, INDEX_TERMS, SECTIONS, UNLINKED_SECTIONS
from pipelines.indexing.reading.html.elements import HEADINGS
from pipelines.indexing.reading.html.inline import (
    IN_PARAGRAPH,
    InlineText,
    flow_of,
    holds_heading,
    is_inline,
    line_in,
    words_from,
)
from pipelines.indexing.reading.html.listings import PLAIN, code_block, named_language, signature_block, signature_name
from pipelines.indexing.reading.html.tables import table_of
from pipelines.indexing.reading.html.tabs import LABEL
from pipelines.indexing.reading.set_text import parts_of
from pipelines.page.builder import MUCH, PageHeading, SectionBuilder
from pipelines.page.plain import plain
from pipelines.page.tree import Code, Definitions, Group, Note, Span, Spans, Tab, text_spans
from pipelines.text.phrases import read_names

BULLET = "- "
_NAMES = read_names(__name__)
_LONG_TAB = 1500  # characters, about as many as a chunk holds
# Indexes written by programs: of 5,000 lists on five sites, those of at least so many links that are as much as a name
# or two beside each list pages; shorter ones do where they are hardly anything but links.
_INDEX_LINKS, _INDEX_SHARE = 100, 0.4
_CONTENTS_CHARACTERS, _CONTENTS_SHARE = 1500, 0.9  # as many as a chunk holds
_SENTENCES = 0.05  # a link
_AWAY = 0.1  # of the links: a list of links to other sites is what somebody recommends
_SENTENCE = re.compile(r"[^\s.!?]{2}[.!?](?=\s|$)|[。！？]")
_DEEP = 4  # the level from which a heading without an id is a part of its section (Parameters, Returns, Example)
_BETWEEN_LINKS = etree.XPath(".//text()[not(ancestor::a)]", smart_strings=False)


class Numbering:
    """Marks the items of a list as the page shows them: by bullets, numbers, letters or Roman numerals."""

    def __init__(self, element: Element) -> None:
        classes = (element.get("class") or "").split()
        named = next((_NUMBERED[name] for name in classes if name in _NUMBERED), "1")
        self._style = (element.get("type") or named) if element.tag == "ol" else ""
        self._step = 1 if element.get("reversed") is None else -1
        first = 1 if self._step == 1 else sum(child.tag == "li" for child in element)
        self._next = _number(element.get("start"), first)

    def mark(self, value: str | None) -> str:
        """Return what stands before the next item, which may give its number as `value`."""
        number = _number(value, self._next)
        self._next = number + self._step
        return f"{_numeral(number, self._style)}. " if self._style in ("1", *_LETTERS, *_ROMAN) else BULLET


_NUMBERED = {"arabic": "1", "loweralpha": "a", "upperalpha": "A", "lowerroman": "i", "upperroman": "I"}  # docutils
_LETTERS, _ROMAN = ("a", "A"), ("i", "I")
_TENS = ("", "x", "xx", "xxx", "xl", "l", "lx", "lxx", "lxxx", "xc")
_ONES = ("", "i", "ii", "iii", "iv", "v", "vi", "vii", "viii", "ix")


def _number(text: str | None, otherwise: int) -> int:
    return int(text) if text and re.fullmatch(r"\s*-?\d{1,9}\s*", text) else otherwise


def _numeral(number: int, style: str) -> str:
    if style in _LETTERS and 1 <= number <= 26:
        return chr(ord(style) + number - 1)
    if style in _ROMAN and 1 <= number < 100:
        numeral = _TENS[number // 10] + _ONES[number % 10]
        return numeral.upper() if style == "I" else numeral
    return str(number)


class TreeWalker:
    """Walks elements of the page at `url`, and adds what they hold to `builder`."""

    def __init__(self, url: str, builder: SectionBuilder) -> None:
        self._site = urlsplit(url).netloc
        self._builder = builder
        self._numberings: list[Numbering] = []  # of the open lists

    def walk(self, element: Element) -> None:
        """Add everything in `element`: the spans of text, and what stands between them."""
        for part in flow_of(element):
            if not isinstance(part, InlineText):
                self._block(part)
            elif part or part.before or part.after or part.names_block:
                self._text(part)

    def _text(self, run: InlineText) -> None:
        """Add text as a paragraph, or as the title of the section that a name before it begins."""
        builder = self._builder
        builder.target(*run.before)
        if run and not (builder.waiting and self._begins(run, run.title, len("".join(run.words).split()))):
            builder.paragraph(run.spans)
        builder.target(*run.after)
        if run.names_block and builder.waiting:
            self._begins(run, "", 0)

    def _begins(self, run: InlineText, title: str, words: int) -> bool:
        return self._builder.begin(title, words, words_from(run.following, MUCH))

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
        elif tag in ("ul", "ol", "menu", "dir"):
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
        """Add a listing; what reads as a text that man sets in lines, with its headings and entries, is none."""
        code, builder = code_block(pre), self._builder
        classes = (pre.get("class") or "").split()
        is_code = not PLAIN.issuperset(classes) or named_language(pre) or pre.find(".//code") is not None
        parts = parts_of(code.text) if code and not is_code else []
        for text, term, heading, lined in parts:
            if heading:
                builder.heading(PageHeading(text_spans(text), (), 2))
            elif lined:
                builder.code(Code(text))
            elif term:
                with builder.entry((), "", [text_spans(term)], linked=False):
                    builder.paragraph(text_spans(text))
            else:
                builder.paragraph(text_spans(text))
        if not parts:
            builder.code(code)

    def _box(self, element: Element) -> None:
        classes, builder = (element.get("class") or "").split(), self._builder
        contents = not CONTENTS.isdisjoint(classes) or ("contents" in classes and not _NAMES["toc"].isdisjoint(classes))
        if contents and not any(map(_is_section, element.iterdescendants("section", "div"))):  # Sphinx's singlehtml
            return
        if label := element.get(LABEL):
            self._tab(label, element)
        elif _is_section(element):
            anchor = element.get("id") or (element[0].get("id") if element.tag == "article" else None)
            with builder.container([anchor] if anchor else []):
                self.walk(element)
        # A heading in a box is the box's title, and the text after the box does not belong to it.
        elif element.tag == "blockquote" or not BOXES.isdisjoint(classes):
            # A quotation that only holds a box is docutils' way to indent.
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
        """Add a tab with its label, which is a heading where the content fills a chunk or has headings."""
        if len("".join(panel.itertext())) > _LONG_TAB or holds_heading(panel):
            with self._builder.container([], label):
                self.walk(panel)
        else:
            with self._builder.box(Tab(label=label), apart=True):
                self.walk(panel)

    # -- lists --------------------------------------------------------------------------------------------

    def _list(self, element: Element) -> None:
        size = sum(map(len, element.itertext())) if self._is_index(element) else 0
        if self._builder.leave_out(size):
            return
        self._numberings.append(Numbering(element))
        with self._builder.items(contents=not size and self._is_contents(element)):
            self.walk(element)
        self._numberings.pop()

    def _is_index(self, items: Element) -> bool:
        """Return whether a list is an index of the pages of this site: long, most of it links, and no sentences."""
        links = [link for link in items.iter("a") if link.get("href")]
        if len(links) < _INDEX_LINKS and sum(map(len, items.itertext())) < _CONTENTS_CHARACTERS:
            return False
        share = sum(map(_letters, links)) / (_letters(items) or 1)
        least = _INDEX_SHARE if len(links) >= _INDEX_LINKS else _CONTENTS_SHARE
        if share < least or sum(map(self._leads_away, links)) > _AWAY * len(links):
            return False
        between = " ".join("".join(_BETWEEN_LINKS(items)).split())
        return len(_SENTENCE.findall(between)) <= _SENTENCES * len(links)

    def _is_contents(self, items: Element) -> bool:
        """Return whether a list is a table of contents: all its words are links to pages of this site."""
        links = list(items.iter("a"))
        return bool(links) and not any(map(self._leads_away, links)) and sum(map(_letters, links)) == _letters(items)

    def _leads_away(self, link: Element) -> bool:
        """Return whether a link leads to another site, or nowhere."""
        href = link.get("href") or ""
        return not href or (href.startswith(("http:", "https:")) and urlsplit(href).netloc != self._site)

    def _list_item(self, element: Element) -> None:
        element.text = re.sub(r"^\s*[-–•]\s+", "", element.text or "")  # a sign beside the bullet
        named = len(element) > 0 and element[0].tag in ("a", "span", "p") and bool(InlineText.of(element[0]).before)
        long = not holds_heading(element) and len("".join(element.itertext()).split()) >= MUCH
        marker = self._numberings[-1].mark(element.get("value")) if self._numberings else BULLET
        with self._builder.item(marker, named=named, long=long):
            self.walk(element)

    # -- definition lists ---------------------------------------------------------------------------------

    def _definitions(self, element: Element) -> None:
        classes = (element.get("class") or "").split()
        if not CONTENTS.isdisjoint(classes):
            self._box(element)
            return
        with self._builder.box(Definitions()):
            self._entries(element, linked=_NAMES["not_entries"].isdisjoint(classes))

    def _entries(self, element: Element, *, linked: bool) -> None:
        terms: list[Element] = []
        for child in [*element, None]:
            if child is not None and child.tag == "dt":
                terms.append(child)
                continue
            definition = child if child is not None and child.tag == "dd" else None
            if terms or definition is not None:
                self._entry(terms, definition, linked=linked and bool(terms))
                terms = []
            if child is None or child is definition:
                continue
            if is_inline(child):
                self._text(InlineText.of(child))
            elif child.tag == "div":
                self._definitions(child)
            else:
                if (run := InlineText().end(child)).names_block:
                    self._text(run)
                self._block(child)

    def _entry(self, terms: Sequence[Element], definition: Element | None, *, linked: bool) -> None:
        named = next((term for term in terms if term.get("id")), None)
        ids = [name for term in terms if (name := term.get("id"))]
        ids = ids or [name for term in terms for name in InlineText.of(term).before]
        heading = signature_name(terms[0] if named is None else named) if linked else ""
        endless = definition is not None and named is None and holds_heading(definition)
        shown = [] if linked and ids else list(map(_term_of, terms))
        ids = [*dict.fromkeys(ids[::-1])]
        with self._builder.entry(ids, heading, shown, linked=linked, endless=endless) as is_section:
            if is_section and (signature := signature_block(terms)).text not in ("", heading):
                self._builder.code(signature)
            if definition is not None:
                self.walk(definition)


def _heading_of(element: Element) -> PageHeading:
    """Return a heading with its id, or the first name in it."""
    inner = [part for part in element.iter("a", "span") if part.get("class") not in INDEX_TERMS]
    own_id = element.get("id") or next((name for part in inner if (name := part.get("id") or part.get("name"))), None)
    level = int(element.tag[1])
    minor = level >= _DEEP or next(element.iterancestors("a"), None) is not None
    return PageHeading(line_in(element), [own_id] if own_id else [], level, minor)


def _term_of(element: Element) -> Spans:
    """Return a term with a colon after it."""
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
    return element.tag == "section" or (len(element) > 0 and element[0].tag in HEADINGS)


def _is_row(element: Element) -> bool:
    """Return whether `element` is one of several rows, whose first paragraph is a name or a signature."""
    return element.tag == "tr" and (element.getprevious() is not None or element.getnext() is not None)


def _letters(element: Element) -> int:
    return sum(map(str.isalpha, "".join(element.itertext())))
