"""Walks the tree of a page and writes its text into sections.

Three structures occur in documentation and may be nested: containers with an id (Sphinx, DocBook), headings in a row
(Markdown and most other sites), and entries of definition lists (APIs, settings, glossaries).
"""

from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from lxml.etree import _Element as Element

from pipelines.indexing.reading.blocks import (
    BULLET,
    Numbering,
    Prose,
    code_block,
    is_data_table,
    is_signature,
    signature_name,
    table_block,
    text_of,
)
from pipelines.indexing.reading.html import HEADINGS, empty_targets
from pipelines.indexing.reading.markup.tabs import LABEL
from pipelines.indexing.reading.text import as_paragraph
from pipelines.records import Block


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


_BLOCK = _names(
    "address article aside blockquote body center dd details dialog dir div dl dt fieldset figcaption figure "
    "footer form h1 h2 h3 h4 h5 h6 header hgroup hr legend li main menu nav ol optgroup option p pre section "
    "tbody td tfoot th thead tr ul caption colgroup"
)
_HOLDS_BLOCK = tuple(_BLOCK)
_DOCBOOK = _names(
    "book part chapter appendix preface reference refentry refsynopsisdiv refsect1 refsect2 refsect3 refsection "
    "sect1 sect2 sect3 sect4 sect5 simplesect glossary bibliography section"
)
# Boxes beside the text: a heading in a box is the box's title, and the text after the box does not belong to it.
_BOX = _names("note tip warning caution important admonition alert callout sidebar")
_TOC = _names("toctree-wrapper toc local-toc")
_LAYOUT = _names("content main main-content page-content documentation")  # ids that themes give, not authors
_TOC_KINDS = _names("topic local")
_DEEP = 4  # the level from which a heading without an id is a part of its section (Parameters, Returns, Example)
_LONG_TAB = 1500  # characters, about as many as a chunk holds
_NOT_ENTRIES = _names("footnote citation field-list toc")


@dataclass(eq=False)
class SectionFrame:
    """A section in progress: a container, the scope of a heading (`level` 1 to 6) or an entry of a list."""

    parent: "SectionFrame | None"
    anchors: list[str] = field(default_factory=list)
    heading: str = ""
    level: int = 0
    container: bool = True
    text: Prose = field(default_factory=Prose)
    is_source: bool = False  # it holds more than lists of links to other pages

    def path(self) -> "list[SectionFrame]":
        """Return the frames from the page to this one."""
        path = [self]
        while path[-1].parent is not None:
            path.append(path[-1].parent)
        return path[::-1]


class SectionWriter:
    """Walks the tree once and writes text into the innermost open frame."""

    def __init__(self, url: str = "") -> None:
        self._site = urlsplit(url).netloc
        self._linking = False  # within a list of links
        self.frames = [SectionFrame(None)]
        self._open = [self.frames[0]]
        self._targets: list[str] = []  # ids since the last text: they belong to the next one
        self._depth = 0  # of lists
        self._numberings: list[Numbering] = []  # of the open lists
        self._marker = ""
        self._tight = False
        self._boxes = 0

    # -- the tree -----------------------------------------------------------------------------------------

    def walk(self, element: Element) -> None:
        """Write everything in `element`; text between its blocks becomes paragraphs."""
        words = [element.text or ""]
        for child in element:
            if self._is_inline(child):
                words.append("".join(child.itertext()))
                self._note_targets(child, words[-1])
            else:
                self._paragraph(words)
                self._element(child)
                words = []
            words.append(child.tail or "")
        self._paragraph(words)

    def _is_inline(self, child: Element) -> bool:
        if child.tag in _BLOCK:
            return False
        return len(child) == 0 or next(child.iter(*_HOLDS_BLOCK), None) is None

    def _element(self, element: Element) -> None:
        tag = element.tag
        if tag == "p":
            self._block_of_text(element)
        elif tag in HEADINGS:
            self._heading(element)
        elif tag == "pre":
            self._add(code_block(element))
        elif tag == "table":
            self._table(element)
        elif tag == "dl":
            self._definitions(element)
        elif tag in ("ul", "ol", "menu", "dir"):
            self._list(element)
        elif tag == "li":
            self._item(element)
        else:
            self._other(element)

    def _other(self, element: Element) -> None:
        classes = (element.get("class") or "").split()
        if not _TOC.isdisjoint(classes) or ("contents" in classes and not _TOC_KINDS.isdisjoint(classes)):
            return
        if label := element.get(LABEL):
            self._tab(label, element)
        elif self._is_section(element, classes):
            anchor = element.get("id")
            self._write_into(SectionFrame(self._open[-1], self._take_targets([anchor] if anchor else [])), element)
        elif element.tag == "blockquote" or not _BOX.isdisjoint(classes):
            self._boxes += 1
            self._group(element)
            self._boxes -= 1
        elif element.tag == "details" or _is_row(element):
            self._group(element)
        else:
            self.walk(element)

    def _group(self, element: Element, head: str = "") -> None:
        """Write `element` as what belongs together: under `head`, else under its own first paragraph."""
        with self._open[-1].text.group(head):
            self.walk(element)

    def _tab(self, label: str, panel: Element) -> None:
        """Write a tab with its label: before its content, or as heading where that fills a chunk or has headings."""
        if len("".join(panel.itertext())) > _LONG_TAB or next(panel.iter(*HEADINGS), None) is not None:
            self._write_into(SectionFrame(self._open[-1], [], label), panel)
            return
        first = panel[0] if len(panel) and not (panel.text or "").strip() else panel
        if first.tag == "p" or first is panel:
            first.text = f"{label}: {first.text or ''}"
        else:
            self._paragraph([f"{label}:"])
        self._boxes += 1
        self.walk(panel)
        self._boxes -= 1

    def _is_section(self, element: Element, classes: Sequence[str]) -> bool:
        if element.tag == "div" and not _DOCBOOK.isdisjoint(classes):
            return bool(element.get("id")) or classes[0] == "refsynopsisdiv"
        if not element.get("id"):
            return False
        if element.get("id") in _LAYOUT and element.tag == "div":
            return False
        return element.tag == "section" or (len(element) > 0 and element[0].tag in HEADINGS)

    def _write_into(self, frame: SectionFrame, *elements: Element) -> None:
        """Write `elements` into `frame`, and close every heading opened in it."""
        depth, lists, tight = len(self._open), self._depth, self._tight
        self._push(frame)
        self._depth, self._marker, self._tight, self._targets = 0, "", False, []
        for element in elements:
            self.walk(element)
        del self._open[depth:]
        self._depth, self._tight, self._targets = lists, tight, []

    def _push(self, frame: SectionFrame) -> None:
        self.frames.append(frame)
        self._open.append(frame)

    # -- anchors ------------------------------------------------------------------------------------------

    def _note_targets(self, element: Element, text: str) -> None:
        if element.tag in ("a", "span", "p") and not text.strip():
            self._targets += empty_targets(element)

    def _take_targets(self, anchors: list[str]) -> list[str]:
        """Return and clear the ids that wait for their text, outermost first, then `anchors`."""
        taken, self._targets = [*self._targets, *anchors], []
        return taken

    def _heading(self, element: Element) -> None:
        title = text_of(element).replace("\n", " ")
        own_id = element.get("id") or next(_inner_ids(element), None)
        anchors = [own_id] if own_id else []
        if not title or (self._boxes and not anchors):
            self._targets += anchors
            self._paragraph([title])
            return
        level = int(element.tag[1])
        innermost = self._open[-1]
        own = not anchors or anchors[-1] in innermost.anchors
        if own and innermost.container and innermost.parent and not innermost.heading and not innermost.text:
            innermost.heading, innermost.level = title, level
            innermost.anchors = self._take_targets([*anchors, *innermost.anchors])
            return
        if not anchors and not self._targets and self._is_unlinkable(element, level):
            self._paragraph([f"{title}:" if title[-1].isalnum() else title])
            return
        while not self._open[-1].container and self._open[-1].level >= level:
            self._open.pop()
        self._push(SectionFrame(self._open[-1], self._take_targets(anchors), title, level, container=False))

    def _is_unlinkable(self, heading: Element, level: int) -> bool:
        """Return whether a heading without an id is a line of its section: a deep one, or the title of a card."""
        return level >= _DEEP or next(heading.iterancestors("a"), None) is not None

    # -- text ---------------------------------------------------------------------------------------------

    def _block_of_text(self, element: Element) -> None:
        if len(element) and next(element.iter(*_BLOCK_IN_P), None) is not None:
            self.walk(element)
            return
        text = "".join(element.itertext())
        self._note_targets(element, text)
        self._paragraph([text])

    def _paragraph(self, words: Sequence[str]) -> None:
        text = as_paragraph("".join(words))
        if not text:
            return
        indent = "  " * max(0, self._depth - (1 if self._marker else 0))
        text = indent + self._marker + text if self._depth else text
        self._open[-1].text.add_paragraph(text, tight=self._tight)
        self._open[-1].is_source |= not self._linking
        self._marker, self._targets = "", []
        self._tight = self._tight or self._depth > 0

    def _add(self, block: Block | None) -> None:
        if block is not None:
            self._open[-1].text.add_block(block)
            self._open[-1].is_source = True
            self._marker, self._targets = "", []

    def _table(self, element: Element) -> None:
        if not is_data_table(element):
            self.walk(element)
            return
        for caption in element.iter("caption"):
            self._paragraph([text_of(caption)])
        self._add(table_block(element))

    # -- lists --------------------------------------------------------------------------------------------

    def _list(self, element: Element) -> None:
        outer, linking, text = self._tight, self._linking, self._open[-1].text
        self._linking = linking or self._is_contents(element)
        self._depth += 1
        self._numberings.append(Numbering(element))
        with text.group(text.lead) if text.lead else nullcontext():
            self.walk(element)
        self._numberings.pop()
        self._depth -= 1
        self._tight, self._marker, self._linking = outer, "", linking

    def _is_contents(self, items: Element) -> bool:
        """Return whether a list is a table of contents: all its words are links to pages of this site."""
        links = list(items.iter("a"))
        if not links or any(self._leads_away(link.get("href") or "") for link in links):
            return False
        return sum(map(_letters, links)) == _letters(items)

    def _leads_away(self, href: str) -> bool:
        return not href or (href.startswith(("http:", "https:")) and urlsplit(href).netloc != self._site)

    def _item(self, element: Element) -> None:
        if self._depth == 0:
            self._list_item_alone(element)
            return
        self._marker = self._numberings[-1].mark(element) if self._numberings else BULLET
        self._group(element)
        self._marker = ""

    def _list_item_alone(self, element: Element) -> None:
        self._depth += 1
        self._item(element)
        self._depth -= 1

    def _definitions(self, element: Element) -> None:
        """Write a definition list: an entry with an id is a section, any other a term above its definition."""
        classes = (element.get("class") or "").split()
        if "toc" in classes:
            self._other(element)
            return
        text = self._open[-1].text
        with text.group(text.lead) if text.lead else nullcontext():
            self._entries(element, classes)

    def _entries(self, element: Element, classes: Sequence[str]) -> None:
        terms: list[Element] = []
        for child in [*element, None]:
            if child is not None and child.tag == "dt":
                terms.append(child)
                continue
            if terms or (child is not None and child.tag == "dd"):
                definition = child if child is not None and child.tag == "dd" else None
                self._entry(terms, definition, linked=_NOT_ENTRIES.isdisjoint(classes))
                terms = []
                if definition is not None:
                    continue
            if child is not None:
                self._definitions(child) if child.tag == "div" else self._element(child)

    def _entry(self, terms: Sequence[Element], definition: Element | None, *, linked: bool) -> None:
        ids = [name for term in terms if (name := term.get("id"))] if linked else []
        if ids:
            self._linked_entry(ids, terms, definition)
            return
        outer = self._tight
        with self._open[-1].text.group():
            for term in terms:
                words = text_of(term)
                self._paragraph([words + ":" if words[-1:].isalnum() else words])
            self._tight = True
            if definition is not None:
                self.walk(definition)
        self._tight = outer

    def _linked_entry(self, ids: Sequence[str], terms: Sequence[Element], definition: Element | None) -> None:
        named = next(term for term in terms if term.get("id"))
        anchors = self._take_targets([*dict.fromkeys(ids[::-1])])
        frame = SectionFrame(self._open[-1], anchors, signature_name(named))
        signatures = "\n".join(text_of(term) for term in terms if is_signature(term))
        if signatures and signatures != frame.heading:
            frame.text.add_block(Block("code", signatures))
            frame.is_source = True
        self._write_into(frame, *([definition] if definition is not None else []))


def _letters(element: Element) -> int:
    return sum(map(str.isalpha, "".join(element.itertext())))


_BLOCK_IN_P = tuple(_BLOCK - {"p"})


def _is_row(element: Element) -> bool:
    """Return whether `element` is one of several rows, whose first paragraph is a name or a signature."""
    return element.tag == "tr" and (element.getprevious() is not None or element.getnext() is not None)


def _inner_ids(heading: Element) -> Iterator[str]:
    for inner in heading.iter("a", "span"):
        name = inner.get("id") or inner.get("name")
        if name and inner.get("class") != "indexterm":
            yield name
