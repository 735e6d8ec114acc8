"""Reads the tree of a page as items: text, headings, listings, tables, and what holds other items.

An item is read when the next stage asks for it: what is left out there is never read. Knows no sections: which item
begins one is decided there.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple, TypeAlias
from urllib.parse import urlsplit

from lxml import etree
from lxml.etree import _Element as Element

from pipelines.indexing.reading.generators import BOXES, CONTENTS, SECTIONS
from pipelines.indexing.reading.html import blocks
from pipelines.indexing.reading.html.elements import HEADINGS
from pipelines.indexing.reading.html.flow import IN_PARAGRAPH, MUCH, TextRun, flow_of, holds_heading, is_inline
from pipelines.indexing.reading.html.tabs import LABEL
from pipelines.indexing.reading.set_text import parts_of
from pipelines.markdown.text import join_texts
from pipelines.records import Block
from pipelines.text.phrases import read_names

BULLET = "- "
_NAMES = read_names(__name__)
# Boxes beside the text: a heading in a box is the box's title, and the text after the box does not belong to it.
_BOX = BOXES | {"callout"}
_LONG_TAB = 1500  # characters, about as many as a chunk holds
# Indexes written by programs: of 5,000 lists on five sites, those of at least so many links that are as much as a name
# or two beside each list pages; shorter ones do where they are hardly anything but links.
_INDEX_LINKS, _INDEX_SHARE = 100, 0.4
_CONTENTS_CHARACTERS, _CONTENTS_SHARE = 1500, 0.9  # as many as a chunk holds
_SENTENCES = 0.05  # a link
_AWAY = 0.1  # of the links: a list of links to other sites is what somebody recommends
_SENTENCE = re.compile(r"[^\s.!?]{2}[.!?](?=\s|$)|[。！？]")
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


class Container(NamedTuple):
    """What has an id or a `label` and holds a section."""

    anchors: list[str]
    label: str
    parts: "Items"


class GroupedItems(NamedTuple):
    """What belongs together: a row, a definition list, a box or tab beside the text; a `note` shows where it ends."""

    kind: Literal["row", "definitions", "note", "quotation", "tab"]
    parts: "Items"


class ItemList(NamedTuple):
    """A list: one of links only is a table of `contents`. `index_size` is that of an index of pages, else 0."""

    numbering: Numbering
    index_size: int
    contents: bool
    parts: "Items"


class ListItem(NamedTuple):
    """An item of a list with its number; a `named` one begins with a name, a `long` one is worth a section."""

    number: str | None
    named: bool
    long: bool
    parts: "Items"


class ListEntry(NamedTuple):
    """An entry of a definition list: with `ids`, or a name before it, a section if it is `linked`, else `terms`.

    One that is `endless` holds headings, because its end tag is missing.
    """

    linked: bool
    ids: Sequence[str]
    heading: str
    signatures: Sequence[Block]
    endless: bool
    terms: Sequence[str]
    parts: "Items"


# A `str` is a paragraph, a Block a listing.
Leaf: TypeAlias = TextRun | str | Block | blocks.PageHeading | blocks.DataTable
Items: TypeAlias = Iterable[Leaf | Container | GroupedItems | ItemList | ListItem | ListEntry]


class ItemReader:
    """Reads elements of the page at `url`."""

    def __init__(self, url: str) -> None:
        self._site = urlsplit(url).netloc

    def items_in(self, element: Element) -> Items:
        """Yield everything in `element`: the runs of text, and what stands between them."""
        for part in flow_of(element):
            if not isinstance(part, TextRun):
                yield from self._block(part)
            elif part or part.before or part.after or part.names_block:
                yield part

    def _block(self, element: Element) -> Items:
        tag = element.tag
        if tag == "p":
            return (
                [TextRun.of(element, element.getnext())] if is_inline(element, IN_PARAGRAPH) else self.items_in(element)
            )
        if tag in HEADINGS:
            return [blocks.heading_of(element)]
        if tag == "table":
            table = blocks.table_of(element)
            return [table] if table else self.items_in(element)
        if tag in ("ul", "ol", "menu", "dir", "li"):
            return [self._list_item(element) if tag == "li" else self._list(element)]
        if tag == "dl":
            return self._definitions(element)
        return self._listing(element) if tag == "pre" else self._box(element)

    def _listing(self, pre: Element) -> Items:
        """Yield a listing; what reads as a text that man sets in lines, with its headings and entries, is none."""
        block = blocks.code_block(pre)
        classes = (pre.get("class") or "").split()
        is_code = not blocks.PLAIN.issuperset(classes) or blocks.named_language(pre) or pre.find(".//code") is not None
        parts = parts_of(block.text) if block and not is_code else []
        for text, term, heading, lined in parts:
            if heading:
                yield blocks.PageHeading(text, [], 2, minor=False)
            elif lined:
                yield Block("code", text)
            else:
                yield ListEntry(False, (), "", (), False, [term], [text]) if term else text
        if block and not parts:
            yield block

    def _box(self, element: Element) -> Items:
        classes = (element.get("class") or "").split()
        contents = not CONTENTS.isdisjoint(classes) or ("contents" in classes and not _NAMES["toc"].isdisjoint(classes))
        if contents and not any(map(_is_section, element.iterdescendants("section", "div"))):  # Sphinx's singlehtml
            return []
        if label := element.get(LABEL):
            return self._tab(label, element)
        if _is_section(element):
            anchor = element.get("id") or (element[0].get("id") if element.tag == "article" else None)
            return [Container([anchor] if anchor else [], "", self.items_in(element))]
        if element.tag == "blockquote" or not _BOX.isdisjoint(classes):
            # A quotation that only holds a box is docutils' way to indent.
            indents = element.tag == "blockquote" and len(element) == 1 and element[0].tag == "div"
            return [GroupedItems("quotation" if indents else "note", self.items_in(element))]
        if element.tag == "details" or _is_row(element):
            return [GroupedItems("row", self.items_in(element))]
        is_line = element.tag == "div" and all(map(is_inline, element))
        return [TextRun.of(element, element.getnext())] if is_line else self.items_in(element)

    def _tab(self, label: str, panel: Element) -> Items:
        """Yield a tab with its label: before its content, or as heading where that fills a chunk or has headings."""
        if len("".join(panel.itertext())) > _LONG_TAB or holds_heading(panel):
            yield Container([], label, self.items_in(panel))
            return
        first = panel[0] if len(panel) and not (panel.text or "").strip() else panel
        if first.tag == "p" or first is panel:
            first.text = f"{label}: {first.text or ''}"
        else:
            yield f"{label}:"
        yield GroupedItems("tab", self.items_in(panel))

    # -- lists --------------------------------------------------------------------------------------------

    def _list(self, element: Element) -> ItemList:
        size = sum(map(len, element.itertext())) if self._is_index(element) else 0
        return ItemList(Numbering(element), size, not size and self._is_contents(element), self.items_in(element))

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

    def _list_item(self, element: Element) -> ListItem:
        element.text = re.sub(r"^\s*[-–•]\s+", "", element.text or "")  # a sign beside the bullet
        named = len(element) > 0 and element[0].tag in ("a", "span", "p") and bool(TextRun.of(element[0]).before)
        long = not holds_heading(element) and len("".join(element.itertext()).split()) >= MUCH
        return ListItem(element.get("value"), named, long, self.items_in(element))

    # -- definition lists ---------------------------------------------------------------------------------

    def _definitions(self, element: Element) -> Items:
        classes = (element.get("class") or "").split()
        if "toc" in classes:
            return self._box(element)
        return [GroupedItems("definitions", self._entries(element, linked=_NAMES["not_entries"].isdisjoint(classes)))]

    def _entries(self, element: Element, *, linked: bool) -> Items:
        terms: list[Element] = []
        for child in [*element, None]:
            if child is not None and child.tag == "dt":
                terms.append(child)
                continue
            definition = child if child is not None and child.tag == "dd" else None
            if terms or definition is not None:
                yield self._entry(terms, definition, linked=linked and bool(terms))
                terms = []
            if child is None or child is definition:
                continue
            if is_inline(child):
                yield TextRun.of(child)
            elif child.tag == "div":
                yield from self._definitions(child)
            else:
                if (run := TextRun().end(child)).names_block:
                    yield run
                yield from self._block(child)

    def _entry(self, terms: Sequence[Element], definition: Element | None, *, linked: bool) -> ListEntry:
        named = next((term for term in terms if term.get("id")), None)
        ids = [name for term in terms if (name := term.get("id"))]
        ids = ids or [name for term in terms for name in TextRun.of(term).before]
        lines = [] if linked and ids else list(map(blocks.line_of, terms))
        lines = [join_texts([line, ":"]) if line[-1:].isalnum() else line for line in lines]
        heading = blocks.signature_name(terms[0] if named is None else named) if linked else ""
        signatures = [blocks.signature_block(terms)] if linked else []
        endless = definition is not None and named is None and holds_heading(definition)
        parts = () if definition is None else self.items_in(definition)
        shown = [block for block in signatures if block.text not in ("", heading)]
        return ListEntry(linked, [*dict.fromkeys(ids[::-1])], heading, shown, endless, lines, parts)


def _is_section(element: Element) -> bool:
    anchor, classes = element.get("id"), (element.get("class") or "").split()
    if element.tag == "div" and not SECTIONS.isdisjoint(classes):
        return bool(anchor) or classes[0] == "refsynopsisdiv"
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
