"""Mends what is marked up as something else, whatever generator wrote it: headings and grids."""

from lxml import etree
from lxml.etree import _Element as Element

from pipelines.indexing.reading.html.elements import HEADINGS

_LISTS = etree.XPath("ul | ol | dl | table | pre")
_GRIDS = etree.XPath(".//*[not(self::table)][@role='table' or @role='grid'][.//*[@role='row']]")
_PARTS = {
    "row": "tr", "cell": "td", "gridcell": "td", "rowheader": "th", "columnheader": "th", "rowgroup": "tbody",
}  # fmt: skip


def mend_headings(root: Element) -> None:
    """Make XHTML 2's `<h>` a heading, and put what stands in a heading from a list or table on after it."""
    for heading in root.iter("h"):
        heading.tag = HEADINGS[-1]
    for heading in list(root.iter(*HEADINGS)):
        if len(heading) and (lists := _LISTS(heading)):
            rest = [lists[0], *lists[0].itersiblings()]
            tail, heading.tail = heading.tail, None
            for element in reversed(rest):
                heading.addnext(element)
            rest[-1].tail = (rest[-1].tail or "") + (tail or "")


def mend_grids(root: Element) -> None:
    """Give the parts of each grid of elements with ARIA roles the tags of their roles: it is a table."""
    for grid in _GRIDS(root):
        grid.tag = "table"
        for part in grid.iterdescendants(etree.Element):
            part.tag = _PARTS.get(part.get("role") or "", part.tag)
