"""Mends headings: one of no rank gets the lowest, one without an end ends before a list or table."""

from lxml import etree
from lxml.etree import _Element as Element

from pipelines.indexing.reading.html import HEADINGS

_LISTS = etree.XPath("ul | ol | dl | table | pre")


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
