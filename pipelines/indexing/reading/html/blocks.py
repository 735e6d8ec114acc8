"""Reads the elements that hold no others: lines, headings, listings, tables, signatures.

Listings keep their lines, tables become rows, and a signature becomes a line and a name. Knows single elements only: no
sections.
"""

import re
from collections.abc import Sequence
from itertools import accumulate, islice, zip_longest
from typing import NamedTuple

from lxml.etree import _Element as Element

from pipelines.indexing.reading.generators import BOXES, CODE_LINES
from pipelines.indexing.reading.html.elements import HEADINGS
from pipelines.indexing.reading.html.flow import MARKED, MUCH, TextRun
from pipelines.indexing.reading.text import LINE_BREAK, as_listing, as_paragraph
from pipelines.markdown.text import Mark, Text, join_texts, marks_of
from pipelines.records import Block

CELL = " | "  # between the cells of a row
_AROUND = 3  # elements around a listing that may name its language
_NAMES_LANGUAGE = ("language", "lang", "highlight", "highlight-source", "code")
PLAIN = frozenset(("default", "none", "text", "plaintext", "plain", "txt", "nohighlight", "block"))  # no languages
# What Pygments calls otherwise.
_LANGUAGES = {**dict.fromkeys(PLAIN, ""), **dict.fromkeys(("python3", "ipython3", "ipython", "py"), "python")}
# The languages of signatures, by the domains of Sphinx.
_DOMAINS = {"py": "python", "c": "c", "cpp": "cpp", "js": "javascript", "rust": "rust", "java": "java"}
_MOST_CELLS = 100_000  # of a table whose spans are filled: a hostile one would fill the memory
_DEEP = 4  # the level from which a heading without an id is a part of its section (Parameters, Returns, Example)
_OWN_BLOCK = ("pre", "table", "dl", *HEADINGS)


class PageHeading(NamedTuple):
    """A heading; one that is `minor` begins no section without an id: a deep one, or the title of a card."""

    title: str
    anchors: list[str]
    level: int
    minor: bool


class DataTable(NamedTuple):
    """A table below its captions, in parts: the names that each begins at, its title, its rows."""

    captions: list[str]
    parts: list[tuple[list[str], str, Block | None]]


def text_of(element: Element) -> str:
    """Return all text of `element` as one paragraph, with its marks."""
    if next(element.iter(*MARKED), None) is not None:
        return TextRun.of(element).text
    return as_paragraph("".join(element.itertext()))


def line_of(element: Element) -> str:
    """Return all text of `element` on one line, with its marks."""
    text = text_of(element)
    return Text(text.replace("\n", " "), marks_of(text)) if "\n" in text else text


def heading_of(element: Element) -> PageHeading:
    """Return a heading with its id, or the first name in it."""
    inner = [part for part in element.iter("a", "span") if part.get("class") != "indexterm"]
    own_id = element.get("id") or next((name for part in inner if (name := part.get("id") or part.get("name"))), None)
    level = int(element.tag[1])
    minor = level >= _DEEP or next(element.iterancestors("a"), None) is not None
    return PageHeading(text_of(element).replace("\n", " "), [own_id] if own_id else [], level, minor)


def code_block(pre: Element) -> Block | None:
    """Return a `<pre>` with its line breaks and indentation, None if it is empty."""
    for line in pre.iter("div", "span"):
        if not CODE_LINES.isdisjoint((line.get("class") or "").split()) and _ends_without_break(line):
            line.tail = "\n" + (line.tail or "")
    text = as_listing("".join(pre.itertext()))
    return Block("code", text, language=language_of(pre)) if text else None


def language_of(pre: Element) -> str:
    """Return the language of a listing, as Pygments calls it; "" if none is named."""
    found = named_language(pre)
    return _LANGUAGES.get(found, found)


def named_language(pre: Element) -> str:
    """Return what a listing's classes or those around it name as its language, which may be none; "" if nothing."""
    inner = pre[0] if len(pre) == 1 else None
    around = (inner, pre, *islice(pre.iterancestors("div", "figure", "td", "dl"), _AROUND))
    names = (name for element in around if element is not None for name in (element.get("class") or "").split())
    return next((name for name in map(_language, names) if name), "")


def _language(name: str) -> str:
    """Return the language that a class names: language-x, highlight-x, highlight-source-x."""
    kind, _, language = name.lower().rpartition("-")
    return language if kind in _NAMES_LANGUAGE else ""


def _ends_without_break(line: Element) -> bool:
    """Return whether the highlighter left the line break after `line` to the style sheet."""
    breaks = ("\n", LINE_BREAK)
    is_last = line.getnext() is None or (line.tail or "").startswith(breaks)
    return not is_last and not "".join(line.itertext()).endswith(breaks)


def table_of(table: Element) -> DataTable | None:
    """Return a table with rows of cells to read across, None if it is for layout or holds prose."""
    if not _is_data_table(table):
        return None
    _fill_spans(table)
    captions = [line_of(caption) for caption in table.iter("caption")]
    header, rows = _table_rows(table)
    parts = [(names, title, _table_block(header, lines)) for names, title, lines in _named_parts(rows)]
    return DataTable(captions, parts)


def _fill_spans(table: Element) -> None:
    """Put a cell wherever one reaches into, else those after it are in wrong columns: a heading again, else nothing."""
    if sum(_span(cell, "colspan") * _span(cell, "rowspan") for cell in table.iter("td", "th")) > _MOST_CELLS:
        return
    rows = list(table.iter("tr"))
    for number, (row, cells) in enumerate(zip(rows, map(list, rows), strict=True)):
        heads = len(cells) > 1 and _is_header(cells)
        for cell in cells if heads else cells[:-1]:
            for _ in range(1, _span(cell, "colspan")):
                filler = cell.makeelement(cell.tag, rowspan=cell.get("rowspan", ""))
                filler.text = text_of(cell) if heads else ""
                cell.addnext(filler)
        for place, cell in enumerate(row):
            for below in rows[number + 1 : number + _span(cell, "rowspan")]:
                below.insert(place, cell.makeelement(cell.tag))


def _span(cell: Element, name: str) -> int:
    found = re.fullmatch(r"\d{1,2}", cell.get(name) or "")
    return int(found[0]) if found else 1


def _is_data_table(table: Element) -> bool:
    box = [] if (parent := table.getparent()) is None or len(parent) > 1 else (parent.get("class") or "").split()
    if table.get("role") in ("presentation", "none") or not BOXES.isdisjoint(box):
        return False
    if any(next(inner.iter(*_OWN_BLOCK), None) is not None for inner in table.iter("td")):
        return not _holds_blocks(table)
    rows = _rows(table)
    if len(rows) == 1 and any(len(cell.findall("p")) > 1 for cell in rows[0]):
        return False  # columns of paragraphs
    return any(len(cells) > 1 for cells in rows)


def _holds_blocks(table: Element) -> bool:
    """Return whether a cell holds a listing of several lines or a list of definitions: neither fits into a row."""
    listings = ("".join(inner.itertext()).strip() for inner in table.iter("pre"))
    return any("\n" in text for text in listings) or any(len(list(one.iter("dt"))) > 1 for one in table.iter("dl"))


def _rows(table: Element) -> list[list[Element]]:
    return [*filter(None, ([cell for cell in row if cell.tag in ("td", "th")] for row in table.iter("tr")))]


def _table_rows(table: Element) -> tuple[str, list[tuple[str, list[Element]]]]:
    """Return the header of a table, of several rows as well, and each other row as a line, cells joined by " | "."""
    heads: list[list[str]] = []
    rows: list[tuple[str, list[Element]]] = []
    for cells in _rows(table):
        texts = [_cell(cell) for cell in cells]
        if not any(texts):
            continue
        if not rows and _is_header(cells):
            heads.append(texts)
        else:
            rows.append((_side_by_side(texts), cells))
    columns = zip_longest(*heads, fillvalue="")
    return _side_by_side([join_texts([*filter(None, column)], " ") for column in columns]), rows


def _named_parts(rows: Sequence[tuple[str, list[Element]]]) -> list[tuple[list[str], str, list[str]]]:
    """Return the parts of a table that begin at a name: the names, the first cell as title, and the lines.

    A table whose named rows are short is one part.
    """
    parts: list[tuple[list[str], str, list[str]]] = [([], "", [])]
    for line, cells in rows:
        if names := [name for cell in cells if len(cell) for name in TextRun.of(cell).before]:
            parts.append((names, TextRun.of(cells[0]).title, []))
        parts[-1][2].append(line)
    words = sum(len(line.split()) for names, _, lines in parts if names for line in lines)
    if words < MUCH * (len(parts) - 1) or len(parts) == 1:
        return [([], "", [line for line, _ in rows])]
    return parts if parts[0][2] else parts[1:]


def _table_block(header: str, lines: Sequence[str]) -> Block | None:
    """Return the block of a table with these lines; one of a header alone has it for its line, an empty one is None."""
    lines, header = (lines, header) if lines else ([header], "")
    return Block("table", join_texts(lines, "\n"), header) if lines[0] else None


def _side_by_side(cells: Sequence[str]) -> str:
    row = join_texts(cells, CELL)
    ends = [*accumulate(len(cell) + len(CELL) for cell in cells)][:-1]
    return Text(row, sorted((*marks_of(row), *(Mark(end - len(CELL), end, "cell") for end in ends))))


def _cell(cell: Element) -> str:
    for block in cell.iter("div", "p", "li", "dd"):
        block.tail = f" {block.tail or ''}"
        block.text = f" {block.text or ''}"
    return line_of(cell)


def _is_header(cells: Sequence[Element]) -> bool:
    parent = cells[0].getparent()
    section = parent.getparent() if parent is not None else None
    return (section is not None and section.tag == "thead") or all(cell.tag == "th" for cell in cells)


def signature_name(term: Element) -> str:
    """Return the dotted name of the API entry `term`, such as "ray.data.Dataset.map"; any other term in full."""
    parts = (
        "".join(part.itertext())
        for part in term.iter("span", "code", "tt")
        if {"descclassname", "sig-prename", "descname", "sig-name"} & set((part.get("class") or "").split())
    )
    name = as_paragraph("".join(parts))
    if not name:
        return re.split(r"(?<=.)[\n]", text_of(term).removeprefix(": "), maxsplit=1)[0][:200]
    anchor = term.get("id") or ""
    is_python = "py" in (term.get("class") or "").split()
    return anchor if is_python and anchor.endswith(f".{name}") else name


def signature_block(terms: Sequence[Element]) -> Block:
    """Return the listing of the signatures `terms`, or of what else leads to one definition."""
    language = next((_DOMAINS[name] for name in (terms[0].get("class") or "").split() if name in _DOMAINS), "")
    return Block("code", "\n".join(text_of(term).removeprefix(": ") for term in terms), language=language)
