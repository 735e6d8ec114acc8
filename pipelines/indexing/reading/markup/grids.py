"""Rewrites tables that are none, and what are tables without being one.

A grid of elements with ARIA roles (GitBook, React components) is a table; Asciidoctor's admonitions are not.
"""

from lxml import etree
from lxml.etree import _Element as Element

_GRIDS = etree.XPath(".//*[not(self::table)][@role='table' or @role='grid'][.//*[@role='row']]")
_ADMONITIONS = etree.XPath(".//div[contains(@class,'admonitionblock')]/table")
_PARTS = {
    "row": "tr", "cell": "td", "gridcell": "td", "rowheader": "th", "columnheader": "th", "rowgroup": "tbody",
}  # fmt: skip


def rewrite_grids(root: Element) -> None:
    """Give the parts of each grid the tags of their roles, and the tables of admonitions the role of a layout."""
    for table in _ADMONITIONS(root):
        table.set("role", "presentation")
    for grid in _GRIDS(root):
        grid.tag = "table"
        for part in grid.iterdescendants(etree.Element):
            part.tag = _PARTS.get(part.get("role") or "", part.tag)
