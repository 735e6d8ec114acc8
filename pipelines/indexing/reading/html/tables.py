"""Reads tables: rows of cells to read across, with the anchor names at which parts begin.

It handles single elements, independent of sections.
"""

import re
from collections.abc import Sequence
from itertools import zip_longest
from typing import NamedTuple

from lxml.etree import _Element as Element

from pipelines.indexing.reading.generators import BOXES
from pipelines.indexing.reading.html.elements import HEADINGS
from pipelines.indexing.reading.html.inline import InlineText, line_in, spans_in
from pipelines.page.builder import MUCH
from pipelines.page.plain import joined, plain, row_spans
from pipelines.page.tree import Row, Span, Spans, Table

_MOST_CELLS = 100_000  # limit for filling in colspans and rowspans; a hostile table would exhaust memory
_ALL = 100  # the least colspan that means all columns
_APART = ("div", "p", "li", "dd", "tr", "td", "th", "caption", "table")  # elements whose words never join adjacent ones
_OWN_BLOCK = ("pre", "table", "dl", *HEADINGS)


class DataTable(NamedTuple):
    """A table with its captions, in parts: the anchor names at its start, its title, its rows."""

    captions: list[Spans]
    parts: list[tuple[list[str], str, Table | None]]


def table_of(table: Element) -> DataTable | None:
    """Return a table with rows of cells to read across; None for a layout table or one that contains prose."""
    if not _is_data_table(table):
        return None
    _fill_spans(table)
    captions = [line_in(caption) for caption in _own(table, "caption")]
    head, rows = _table_rows(table)
    return DataTable(captions, [(names, title, _part(head, lines)) for names, title, lines in _named_parts(rows)])


def _fill_spans(table: Element) -> None:
    """Fill in the cells covered by colspans and rowspans, which keeps later cells in their columns.

    Headings are repeated; other cells stay empty.
    """
    if not table.xpath("boolean(.//@colspan or .//@rowspan)"):
        return  # most tables have none, and some have 100,000 cells
    rows = _own(table, "tr")
    _cap_spans(rows)
    if sum(_span(cell, "colspan") * _span(cell, "rowspan") for cell in table.iter("td", "th")) > _MOST_CELLS:
        return
    for number, (row, cells) in enumerate(zip(rows, map(list, rows), strict=True)):
        heads = len(cells) > 1 and _is_header(cells)
        for cell in cells if heads else cells[:-1]:
            for _ in range(1, _span(cell, "colspan")):
                filler = cell.makeelement(cell.tag, rowspan=cell.get("rowspan", ""))
                filler.text = plain(spans_in(cell)) if heads else ""
                cell.addnext(filler)
        for place, cell in enumerate(row):
            for below in rows[number + 1 : number + _span(cell, "rowspan")]:
                if below.getparent() is row.getparent():
                    below.insert(place, cell.makeelement(cell.tag))


def _span(cell: Element, name: str) -> int:
    found = re.match(r"\s*(\d{1,9})", cell.get(name) or "")
    return max(int(found[1]), 1) if found else 1


def _cap_spans(rows: Sequence[Element]) -> None:
    """Limit spans to the size of the table: authors write 100 for all columns or rows, and 0 for all rows."""
    spans = ([_span(cell, "colspan") for cell in row] for row in rows)
    width = max((sum(span if span < _ALL else 1 for span in row) for row in spans), default=1)
    for row in rows:
        for place, cell in enumerate(row):
            if _span(cell, "colspan") >= _ALL:
                cell.set("colspan", str(max(width - place, 1)))
            if cell.get("rowspan") == "0" or _span(cell, "rowspan") > len(rows):
                cell.set("rowspan", str(len(rows)))


def _is_data_table(table: Element) -> bool:
    box = [] if (parent := table.getparent()) is None or len(parent) > 1 else (parent.get("class") or "").split()
    if table.get("role") in ("presentation", "none") or not BOXES.isdisjoint(box) or _holds_page(table):
        return False
    if any(next(inner.iter(*_OWN_BLOCK), None) is not None for inner in table.iter("td")):
        return not _holds_blocks(table)
    rows = _rows(table)
    if len(rows) == 1 and any(len(cell.findall("p")) > 1 for cell in rows[0]):
        return False  # columns of paragraphs
    return any(len(cells) > 1 for cells in rows)


def _holds_page(table: Element) -> bool:
    """Return whether a cell is a part of the page with its sections: it has an h1, or several headings over text."""
    headed = {cell: len(list(cell.iter(*HEADINGS))) for cell in table.iter("td") if cell.find(".//p") is not None}
    return any(count > 1 or cell.find(".//h1") is not None for cell, count in headed.items() if count)


def _holds_blocks(table: Element) -> bool:
    """Return whether a cell contains lines of code, a definition list or a grid, which do not fit into a row."""
    listings = ("".join(inner.itertext()).strip() for inner in table.iter("pre"))
    return (
        any("\n" in text for text in listings)
        or any(len(list(one.iter("dt"))) > 1 for one in table.iter("dl"))
        or any(len(rows) > 1 and max(map(len, rows)) > 1 for rows in map(_rows, _own(table, "table")))
    )


def _rows(table: Element) -> list[list[Element]]:
    return [*filter(None, ([cell for cell in row if cell.tag in ("td", "th")] for row in _own(table, "tr")))]


def _own(table: Element, tag: str) -> list[Element]:
    """Return the elements of a table that are not in nested tables."""
    return [one for one in table.iter(tag) if next(one.iterancestors("table"), None) is table]


def _table_rows(table: Element) -> tuple[Row, list[tuple[Row, list[Element]]]]:
    """Return the header of a table, with its rows merged, and the other rows with the elements of their cells."""
    heads: list[Row] = []
    rows: list[tuple[Row, list[Element]]] = []
    for cells in _rows(table):
        texts = tuple(map(_cell, cells))
        if not any(texts):
            continue
        if not rows and _is_header(cells):
            heads.append(texts)
        else:
            rows.append((texts, cells))
    columns = zip_longest(*heads, fillvalue=())
    return tuple(joined([*filter(None, column)], Span(" ")) for column in columns), rows


def _named_parts(rows: Sequence[tuple[Row, list[Element]]]) -> list[tuple[list[str], str, list[Row]]]:
    """Return the parts of a table that begin at an anchor name: the names, the first cell as title, and the rows.

    A table whose named rows are short is a single part.
    """
    parts: list[tuple[list[str], str, list[Row]]] = [([], "", [])]
    for row, cells in rows:
        if names := [name for cell in cells if len(cell) for name in InlineText.of(cell).before]:
            parts.append((names, InlineText.of(cells[0]).title, []))
        parts[-1][2].append(row)
    if len(parts) == 1:
        return parts
    words = sum(len(plain(row_spans(row)).split()) for names, _, lines in parts if names for row in lines)
    if words < MUCH * (len(parts) - 1):
        return [([], "", [row for row, _ in rows])]
    return parts if parts[0][2] else parts[1:]


def _part(head: Row, rows: list[Row]) -> Table | None:
    """Return a table with these rows, or None if it is empty."""
    table = Table(head, rows)
    return table if any(table.rows[0]) or len(table.rows) > 1 else None


def _cell(cell: Element) -> Spans:
    for block in cell.iterdescendants(*_APART):
        block.tail = f" {block.tail or ''}"
        block.text = f" {block.text or ''}"
    return line_in(cell)


def _is_header(cells: Sequence[Element]) -> bool:
    parent = cells[0].getparent()
    section = parent.getparent() if parent is not None else None
    return (section is not None and section.tag == "thead") or all(cell.tag == "th" for cell in cells)
