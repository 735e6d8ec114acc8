"""Fixes unsuitable markup: headings, grids, code in tables, API entries.

An entry without a definition takes the text after it, which some authors don't indent. Consecutive entries without text
between them share the definition of the last one.
"""

import re
from itertools import takewhile

from lxml import etree
from lxml.etree import _Element as Element

from pipelines.indexing.reading.html.elements import HEADINGS

_ROLES = etree.XPath(".//*[@role='heading']")
_CELLS = ("td", "th")
_LEVELS = ("1", "2", "3", "4", "5", "6")
_LISTS = etree.XPath("ul | ol | dl | table | pre")
_GRIDS = etree.XPath(".//*[not(self::table)][@role='table' or @role='grid'][.//*[@role='row']]")
_PARTS = {
    "row": "tr", "cell": "td", "gridcell": "td", "rowheader": "th", "columnheader": "th", "rowgroup": "tbody",
}  # fmt: skip
_ENTRY_LISTS = etree.XPath(".//dl[dt[@id]]")
_ENTRY_ENDS = etree.XPath(
    "boolean(self::p[@class='rubric'] | descendant-or-self::*[self::section or self::dt[@id] or self::h1 or self::h2 "
    "or self::h3 or self::h4 or self::h5 or self::h6])"
)
_COLUMNS = etree.XPath(".//table[not(.//th or .//pre or .//ul or .//ol or .//dl or .//img or .//tr[count(td) > 1])]")
_HIGHLIGHTED = etree.XPath(".//span[@class] | .//code | .//tt")
_LEAST_PARTS, _MOST_WORDS = 3, 2  # of code in a table: minimum highlighted parts, and maximum average words in each
_LEAST_SHARE = 0.9  # of its letters that must be highlighted
_BLANKS = re.compile(r"[ \t\r\n\f]+")
_HOLDS_MORE = etree.XPath("boolean(.//img | .//svg | .//math | .//table)")


def mend_headings(root: Element) -> None:
    """Fix headings and preformatted elements.

    XHTML 2's `<h>` and elements with the role of a heading become headings, and other elements that keep line breaks
    become `<pre>`. If a heading contains a list or table, this and the rest of the heading move after it. The id of a
    link around a heading is the heading's.
    """
    for listing in root.iter("xmp", "listing", "plaintext", "textarea"):
        listing.tag = "pre"
    for heading in root.iter("h"):
        heading.tag = HEADINGS[-1]
    for heading in _ROLES(root):
        level = heading.get("aria-level") or ""
        if heading.tag not in (*HEADINGS, *_CELLS) and level in _LEVELS:
            heading.tag = HEADINGS[int(level) - 1]
    for heading in list(root.iter(*HEADINGS)):
        link = heading.getparent()
        if link is not None and link.tag == "a" and link.get("id") and not heading.get("id") and len(link) == 1:
            heading.set("id", link.attrib.pop("id"))
        if len(heading) and (lists := _LISTS(heading)):
            rest = [lists[0], *lists[0].itersiblings()]
            tail, heading.tail = heading.tail, None
            for element in reversed(rest):
                heading.addnext(element)
            rest[-1].tail = (rest[-1].tail or "") + (tail or "")


def mend_grids(root: Element) -> None:
    """Turn each grid of elements with ARIA roles into a table, with the tags for the roles."""
    for grid in _GRIDS(root):
        grid.tag = "table"
        for part in grid.iterdescendants(etree.Element):
            part.tag = _PARTS.get(part.get("role") or "", part.tag)


def mend_code_tables(root: Element) -> None:
    """Turn each one-column table that contains highlighted code, one line per cell, into a listing."""
    done: set[Element] = set()  # converted tables, and the tables inside them
    for table in _COLUMNS(root):
        if table not in done and _is_code(table):
            done.update(table.iter("table"))
            lines = [line for cell in table.iter("td") if cell.find(".//table") is None for line in _lines_of(cell)]
            names = [name for one in table.iter("a", "span") if (name := one.get("id") or one.get("name"))]
            table[:] = [etree.Element("a", name=name) for name in names]
            table.tag, table.text = "pre", None
            code = "\n".join(lines)
            if len(table):
                table[-1].tail = code
            else:
                table.text = code


def _is_code(table: Element) -> bool:
    """Return whether nearly all of a table's text is in short highlighted parts."""
    parts = [part for part in _HIGHLIGHTED(table) if not _HIGHLIGHTED(part)]
    within = "".join(text for part in parts for text in part.itertext())
    letters = sum(map(str.isalnum, "".join(table.itertext())))
    if len(parts) < _LEAST_PARTS or len(within.split()) > _MOST_WORDS * len(parts):
        return False
    return bool(letters) and sum(map(str.isalnum, within)) >= _LEAST_SHARE * letters


def _lines_of(cell: Element) -> list[str]:
    """Return the lines of a cell of code, with the indentation given by no-break spaces."""
    texts = ["".join(one.itertext()) for one in cell.findall(".//p")] or ["".join(cell.itertext())]
    return [_BLANKS.sub(" ", text).strip(" ").replace("\xa0", " ").rstrip() for text in texts]


def mend_entries(root: Element) -> None:
    """Move the text after each list of entries into the definition of its last entry, if that is empty."""
    for entries in reversed(_ENTRY_LISTS(root)):
        definition = _empty_definition(entries)
        if definition is not None:
            _adopt_text(entries, definition)
            if _is_empty(definition):
                _join_next(entries)


def _empty_definition(entries: Element) -> Element | None:
    """Return the definition of the last entry if it is empty; a missing one is created."""
    last = entries[-1]
    if last.tag == "dt" and last.get("id"):
        return etree.SubElement(entries, "dd")
    before = last.getprevious()
    is_entry = last.tag == "dd" and before is not None and before.tag == "dt" and before.get("id")
    return last if is_entry and _is_empty(last) else None


def _is_empty(definition: Element) -> bool:
    return not "".join(definition.itertext()).strip() and not _HOLDS_MORE(definition)


def _adopt_text(entries: Element, definition: Element) -> None:
    """Move the siblings after `entries` into `definition`, up to the next entry or heading or its name."""
    found = list(takewhile(lambda after: not _ENTRY_ENDS(after), entries.itersiblings()))
    while found and _belongs_to_next(found[-1]):
        found.pop()
    definition.text, entries.tail = entries.tail, None
    definition.extend(found)


def _belongs_to_next(element: Element) -> bool:
    """Return whether `element` is a name or an introduction, and thus belongs to the next entries."""
    words = "".join(element.itertext()).strip()
    return not (element.tail or "").strip() and (not words or (element.tag == "p" and words.endswith(":")))


def _join_next(entries: Element) -> None:
    """Move entries that no text follows into the list of the same kind right after them."""
    after = entries.getnext()
    if after is None or after.tag != "dl" or after.get("class") != entries.get("class") or (entries.tail or "").strip():
        return
    first = after[0] if len(after) else None
    if first is not None and first.tag == "dt" and first.get("id"):
        entries.remove(entries[-1])
        after[:0] = list(entries)
        if (parent := entries.getparent()) is not None:
            parent.remove(entries)
