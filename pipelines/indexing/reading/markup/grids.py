"""Rewrites tables that are drawn with ARIA roles (GitBook, React components) as tables."""

from lxml import etree
from lxml.etree import _Element as Element

_GRIDS = etree.XPath(".//*[not(self::table)][@role='table' or @role='grid'][.//*[@role='row']]")
_PARTS = {
    "row": "tr", "cell": "td", "gridcell": "td", "rowheader": "th", "columnheader": "th", "rowgroup": "tbody",
}  # fmt: skip


def rewrite_grids(root: Element) -> None:
    """Give the parts of each grid the tags of their roles."""
    for grid in _GRIDS(root):
        grid.tag = "table"
        for part in grid.iterdescendants(etree.Element):
            part.tag = _PARTS.get(part.get("role") or "", part.tag)
