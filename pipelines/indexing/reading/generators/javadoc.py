"""Javadoc: grids become tables, signatures become code, and the title comes before its package.

Until Java 15, each part was a list with one item, and the title was outside the content.
"""

from bs4 import BeautifulSoup, Tag

from pipelines.indexing.reading.html.soup import become_listing, children, lines_of


def rewrite(soup: BeautifulSoup) -> None:
    """Turn a page into plain HTML."""
    for part in soup.select(".blockList, .blockListLast"):
        part.name = "div"
    for title in soup.select("div[class=header] > h2[class=title]"):
        title.name = "h1"
        if title.parent:
            del title.parent["class"]
            title.parent.insert(0, title)
    for title in soup.select("div[class=header] > * ~ h1"):
        if title.parent:
            title.parent.insert(0, title)
    for signature in soup.select("div.member-signature, div.type-signature"):
        become_listing(signature, lines_of(signature))
    for table in soup.select("div.summary-table"):
        _rewrite_table(soup, table)


def _rewrite_table(soup: BeautifulSoup, table: Tag) -> None:
    cells = children(table)
    heads = ["table-header" in cell.get_attribute_list("class") for cell in cells]
    if not any(heads):
        return
    table.name = "table"
    for start in range(0, len(cells), sum(heads)):
        row = soup.new_tag("tr")
        table.append(row)
        for cell, is_head in zip(cells[start : start + sum(heads)], heads[start:], strict=False):
            cell.name = "th" if is_head else "td"
            row.append(cell)
