"""Walks the tree of a page and writes its text into sections.

Three structures occur in documentation and may be nested: containers with an id, headings in a row
(Markdown and most other sites), and entries of definition lists (APIs, settings, glossaries).
"""

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from operator import attrgetter
from urllib.parse import urlsplit

from lxml.etree import _Element as Element

from pipelines.indexing.reading import blocks
from pipelines.indexing.reading.anchors import (
    MUCH,
    TextRun,
    follows,
    holds_heading,
    inner_ids,
    is_named_item,
    name_around,
    named_parts,
)
from pipelines.indexing.reading.generators import BOXES, CONTENTS, SECTIONS
from pipelines.indexing.reading.html.elements import HEADINGS
from pipelines.indexing.reading.html.page_kind import is_index, leads_away, letters
from pipelines.indexing.reading.html.tabs import LABEL
from pipelines.indexing.reading.links import Targets
from pipelines.indexing.reading.sections import OpenSections, SectionFrame
from pipelines.markdown.text import LIST, below, in_list, join_texts
from pipelines.records import Block, Section
from pipelines.text.phrases import read_names

_NAMES = read_names(__name__)
_BLOCK = _NAMES["block"]
_BLOCK_IN_P = _BLOCK - {"p"}
_TAG = attrgetter("tag")
# Boxes beside the text: a heading in a box is the box's title, and the text after the box does not belong to it.
_BOX = BOXES | {"callout"}
_TITLED, _UNTITLED, _ROW = 7, 8, 9  # levels below all headings, of sections that begin at a name in the text
_DEEP = 4  # the level from which a heading without an id is a part of its section (Parameters, Returns, Example)
_LONG_TAB = 1500  # characters, about as many as a chunk holds
_BESIDE = 0.1  # of the characters of an index: what it is, and how to use it


def section_html(main: Element, url: str) -> tuple[Section, ...]:
    """Return the sections of the page at `url` with the content `main`, in page order.

    A table of contents is no text of its own: the pages that it links to are the sources. A page that holds little
    besides an index has no sections.
    """
    writer = SectionWriter(url)
    writer.walk(main)
    sections = tuple(writer.sections.finish(url))
    shown = sum(len(block.text) for section in sections for block in section.blocks)
    return sections if shown > _BESIDE * writer.left_out else ()


class SectionWriter:
    """Walks the tree once and writes text into the innermost open frame."""

    def __init__(self, url: str = "") -> None:
        self._site = urlsplit(url).netloc
        self._absolute = Targets(url)
        self._linking = False  # within a list of links
        self.left_out = 0  # characters of indexes
        self.sections = OpenSections()
        self._targets: list[str] = []  # ids since the last text: they belong to the next one
        self._within: tuple[int, ...] = ()  # the lists and notes around the text
        self._notes = 0
        self._numberings: list[blocks.Numbering] = []  # of the open lists
        self._marker = ""
        self._tight = False
        self._term = False  # the next paragraph stands below its term
        self._boxes = 0

    # -- the tree -----------------------------------------------------------------------------------------

    def walk(self, element: Element) -> None:
        """Write everything in `element`; text between its blocks becomes paragraphs."""
        run = TextRun(element.text)
        for child in element:
            if self._is_inline(child):
                run.add(child)
            else:
                self._write_run(run, child)
                self._targets += name_around(child)
                self._element(child)
                run = TextRun()
            run.add_text(child.tail)
        self._write_run(run, None)

    def _write_run(self, run: TextRun, following: Element | None) -> None:
        """Write text as a paragraph, or as the title of the section that a name before it begins."""
        self._targets += run.before
        if run and not self._begin(run, following):
            self._paragraph(run.text)
        self._targets += run.after

    def _is_inline(self, child: Element) -> bool:
        return _BLOCK.isdisjoint(map(_TAG, child.iter()))

    def _element(self, element: Element) -> None:
        tag = element.tag
        if tag in _NAMES["flow"]:
            self._begin(TextRun(), element)
        if tag == "p":
            self._block_of_text(element)
        elif tag in HEADINGS:
            self._heading(element)
        elif tag == "pre":
            self._add(blocks.code_block(element))
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
        if not CONTENTS.isdisjoint(classes) or ("contents" in classes and not _NAMES["toc"].isdisjoint(classes)):
            return
        if label := element.get(LABEL):
            self._tab(label, element)
        elif self._is_section(element, classes):
            self.sections.close_scopes(_TITLED)
            anchor = element.get("id")
            self._write_into(
                SectionFrame(self.sections.innermost, self._take_targets([anchor] if anchor else [])), element
            )
        elif element.tag == "blockquote" or not _BOX.isdisjoint(classes):
            self._box(element)
        elif element.tag == "details" or _is_row(element):
            self._group(element)
        else:
            self.walk(element)

    def _box(self, element: Element) -> None:
        """Write a note or a quotation; a quotation that only holds a box is docutils' way to indent."""
        self._boxes += 1
        outer = self._within
        if element.tag != "blockquote" or len(element) != 1 or element[0].tag != "div":
            self._notes += 1
            self._within += (self._notes,)
        self._group(element)
        self._within = outer
        self._boxes -= 1

    def _group(self, element: Element) -> None:
        """Write `element` as what belongs together, under its own first paragraph."""
        with self.sections.innermost.text.group():
            self.walk(element)

    def _tab(self, label: str, panel: Element) -> None:
        """Write a tab with its label: before its content, or as heading where that fills a chunk or has headings."""
        if len("".join(panel.itertext())) > _LONG_TAB or next(panel.iter(*HEADINGS), None) is not None:
            self._write_into(SectionFrame(self.sections.innermost, [], label), panel)
            return
        first = panel[0] if len(panel) and not (panel.text or "").strip() else panel
        if first.tag == "p" or first is panel:
            first.text = f"{label}: {first.text or ''}"
        else:
            self._paragraph(f"{label}:")
        self._boxes += 1
        self.walk(panel)
        self._boxes -= 1

    def _is_section(self, element: Element, classes: Sequence[str]) -> bool:
        if element.tag == "div" and not SECTIONS.isdisjoint(classes):
            return bool(element.get("id")) or classes[0] == "refsynopsisdiv"
        if not element.get("id"):
            return False
        if element.get("id") in _NAMES["layout"] and element.tag == "div":
            return False
        return element.tag == "section" or (len(element) > 0 and element[0].tag in HEADINGS)

    def _write_into(self, frame: SectionFrame, *elements: Element) -> None:
        """Write `elements` into `frame`, and close every heading opened in it."""
        within, tight = self._within, self._tight
        self._within, self._marker, self._tight, self._targets = (), "", False, []
        with self.sections.within(frame):
            for element in elements:
                self.walk(element)
        self._within, self._tight, self._targets = within, tight, []

    # -- anchors ------------------------------------------------------------------------------------------

    def _take_targets(self, anchors: list[str]) -> list[str]:
        """Return and clear the ids that wait for their text, outermost first, then `anchors`."""
        taken, self._targets = [*self._targets, *anchors], []
        return taken

    def _heading(self, element: Element) -> None:
        title = blocks.text_of(element).replace("\n", " ")
        own_id = element.get("id") or next(inner_ids(element), None)
        anchors = [own_id] if own_id else []
        if not title or (self._boxes and not anchors):
            self._targets += anchors
            self._paragraph(title)
            return
        level = int(element.tag[1])
        innermost = self.sections.innermost
        own = not anchors or anchors[-1] in innermost.anchors
        if own and innermost.container and innermost.parent and not innermost.heading and not innermost.text:
            innermost.heading, innermost.level = title, level
            innermost.anchors = self._take_targets([*anchors, *innermost.anchors])
            return
        if not anchors and not self._targets and self._is_unlinkable(element, level):
            self._paragraph(f"{title}:" if title[-1].isalnum() else title)
            return
        self.sections.open_scope(title, level, self._take_targets(anchors))

    def _begin(self, run: TextRun, following: Element | None) -> bool:
        """Begin a section where names wait: return whether `run` is its title; one without a title needs much text."""
        if not self._targets or self._boxes or LIST in self._within:
            return False
        innermost, title = self.sections.innermost, run.title
        if title and follows(0, following, 1):
            self.sections.open_scope(title, _TITLED, self._take_targets([]))
            return True
        words = len("".join(run.words).split())
        if not innermost.text:
            innermost.anchors = innermost.anchors or (self._targets if innermost.parent else [])
        elif not innermost.text.lead and follows(words, following, MUCH):
            self.sections.open_scope("", _UNTITLED, self._take_targets([]))
        return False

    def _is_unlinkable(self, heading: Element, level: int) -> bool:
        """Return whether a heading without an id is a line of its section: a deep one, or the title of a card."""
        return level >= _DEEP or next(heading.iterancestors("a"), None) is not None

    # -- text ---------------------------------------------------------------------------------------------

    def _block_of_text(self, element: Element) -> None:
        if _BLOCK_IN_P.isdisjoint(map(_TAG, element.iter())):
            self._write_run(TextRun.of(element), element.getnext())
        else:
            self.walk(element)

    def _paragraph(self, text: str) -> None:
        if not text:
            return
        depth = self._within.count(LIST)
        text = self._absolute(text)
        text = below(text) if self._tight and not depth and not self._term else text
        text = in_list(text, self._marker if depth else "", self._within)
        self.sections.innermost.text.add_paragraph(text, tight=self._tight)
        self.sections.innermost.is_source |= not self._linking
        self._marker, self._targets, self._term = "", [], False
        self._tight = self._tight or depth > 0

    def _add(self, block: Block | None) -> None:
        if block is not None:
            self.sections.innermost.text.add_block(replace(block, within=self._within))
            self.sections.innermost.is_source = True
            self._marker, self._targets = "", []

    def _table(self, element: Element) -> None:
        if not blocks.is_data_table(element):
            self.walk(element)
            return
        for caption in element.iter("caption"):
            self._paragraph(blocks.line_of(caption))
        header, rows = blocks.table_rows(element)
        header, rows = self._absolute(header), [(self._absolute(line), cells) for line, cells in rows]
        with self.sections.within():
            for names, title, lines in named_parts(rows):
                if names:
                    self.sections.open_scope(title, _ROW, names)
                self._add(blocks.table_block(header, lines))

    # -- lists --------------------------------------------------------------------------------------------

    def _list(self, element: Element) -> None:
        if LIST not in self._within and is_index(element, self._site):
            self.left_out += sum(map(len, element.itertext()))
            return
        outer, within, linking, text = self._tight, self._within, self._linking, self.sections.innermost.text
        self._linking = linking or self._is_contents(element)
        self._within += (LIST,)
        self._numberings.append(blocks.Numbering(element))
        with text.group(text.lead) if text.lead else nullcontext():
            self.walk(element)
        self._numberings.pop()
        self._within, self._tight, self._marker, self._linking = within, outer, "", linking

    def _is_contents(self, items: Element) -> bool:
        """Return whether a list is a table of contents: all its words are links to pages of this site."""
        links = list(items.iter("a"))
        if not links or any(leads_away(link.get("href") or "", self._site) for link in links):
            return False
        return sum(map(letters, links)) == letters(items)

    def _item(self, element: Element) -> None:
        outer = self._within
        self._within = outer if LIST in outer else (*outer, LIST)
        self._marker = self._numberings[-1].mark(element) if self._numberings else blocks.BULLET
        if not self._boxes and is_named_item(element, named=bool(self._targets)):
            self._write_into(SectionFrame(self.sections.innermost, self._take_targets([])), element)
        else:
            self._group(element)
        self._within, self._marker = outer, ""

    def _definitions(self, element: Element) -> None:
        """Write a definition list: an entry with an id is a section, any other a term above its definition."""
        classes = (element.get("class") or "").split()
        if "toc" in classes:
            self._other(element)
            return
        text = self.sections.innermost.text
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
                self._entry(terms, definition, linked=_NAMES["not_entries"].isdisjoint(classes))
                terms = []
                if definition is not None:
                    continue
            if child is not None and self._is_inline(child):
                self._write_run(TextRun.of(child), None)
            elif child is not None:
                self._definitions(child) if child.tag == "div" else self._element(child)

    def _entry(self, terms: Sequence[Element], definition: Element | None, *, linked: bool) -> None:
        ids = [name for term in terms if (name := term.get("id"))]
        ids = ids or [name for term in terms for name in TextRun.of(term).before]
        if linked and terms and (ids or self._targets):
            self._linked_entry(ids, terms, definition)
            return
        outer = self._tight
        with self.sections.innermost.text.group():
            for term in terms:
                words = blocks.line_of(term)
                self._paragraph(join_texts([words, ":"]) if words[-1:].isalnum() else words)
            self._tight, self._term = True, bool(terms)
            if definition is not None:
                self.walk(definition)
        self._tight = outer

    def _linked_entry(self, ids: Sequence[str], terms: Sequence[Element], definition: Element | None) -> None:
        named = next((term for term in terms if term.get("id")), None)
        heading = blocks.signature_name(terms[0] if named is None else named)
        anchors = self._take_targets([*dict.fromkeys(ids[::-1])])
        self.sections.close_scopes(_UNTITLED)
        endless = definition is not None and named is None and holds_heading(definition)
        frame = SectionFrame(self.sections.innermost, anchors, heading, _UNTITLED if endless else 0, not endless)
        signatures = blocks.signature_block(terms)
        if signatures.text not in ("", heading):
            frame.text.add_block(signatures)
            frame.is_source = True
        if endless and definition is not None:
            self.sections.open(frame)
            self.walk(definition)
        else:
            self._write_into(frame, *([definition] if definition is not None else []))


def _is_row(element: Element) -> bool:
    """Return whether `element` is one of several rows, whose first paragraph is a name or a signature."""
    return element.tag == "tr" and (element.getprevious() is not None or element.getnext() is not None)
