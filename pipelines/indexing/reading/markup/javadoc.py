"""Rewrites Javadoc: grids become tables, signatures become code, a title precedes its package.

Until Java 15 each part was a list of one item, and the title stood outside the content.
"""

from lxml import etree
from lxml.etree import _Element as Element

from pipelines.indexing.reading.markup.elements import become_listing, classes, drop, lines_of, move, with_class

_TABLES = with_class("summary-table", "div")
_SIGNATURES = etree.XPath(".//div[@class='member-signature' or @class='type-signature']")
_LISTS = etree.XPath(".//*[@class='blockList' or @class='blockListLast']")
_HEADERS = etree.XPath(".//div[@class='header'][h2[@class='title']]")
_OTHER_TABS = etree.XPath(".//caption//span[@class='tableTab' or @class='tabEnd']")
_TITLES = etree.XPath(".//div[@class='header']/h1[preceding-sibling::*]")


def rewrite_javadoc(root: Element) -> None:
    """Rewrite the tables, the signatures and the title of a Javadoc page."""
    for part in _LISTS(root):
        part.tag = "div"
    for header in _HEADERS(root):
        del header.attrib["class"]
        for title in header.findall("h2"):
            title.tag = "h1"
            move(title, header)
    drop(_OTHER_TABS(root))
    for title in _TITLES(root):
        if (header := title.getparent()) is not None:
            move(title, header)
    for signature in _SIGNATURES(root):
        become_listing(signature, lines_of(signature))
    for table in _TABLES(root):
        _rewrite_table(table)


def _rewrite_table(table: Element) -> None:
    cells = list(table)
    columns = sum("table-header" in classes(cell) for cell in cells)
    if not columns:
        return
    table.tag = "table"
    for cell in cells:
        cell.tag = "th" if "table-header" in classes(cell) else "td"
    for start in range(0, len(cells), columns):
        etree.SubElement(table, "tr").extend(cells[start : start + columns])
