"""Turns elements into blocks of text: prose, listings, tables, signatures.

Listings keep their lines, tables become rows, and a signature becomes a line and a name. Knows single elements only: no
sections and no anchors.
"""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import accumulate, islice

from lxml.etree import _Element as Element

from pipelines.indexing.reading.anchors import MARKED, TextRun
from pipelines.indexing.reading.generators import CODE_LINES
from pipelines.indexing.reading.html.elements import HEADINGS
from pipelines.indexing.reading.text import LINE_BREAK, as_listing, as_paragraph, introduces
from pipelines.markdown.text import Mark, Text, join_texts, marks_of
from pipelines.records import Block

BULLET = "- "
CELL = " | "  # between the cells of a row
_AROUND = 3  # elements around a listing that may name its language
_NAMES_LANGUAGE = ("language", "lang", "highlight", "highlight-source", "code")
# What names no language, and what Pygments calls otherwise.
_LANGUAGES = {
    **dict.fromkeys(("default", "none", "text", "plaintext", "plain", "txt", "nohighlight", "block"), ""),
    **dict.fromkeys(("python3", "ipython3", "ipython", "py"), "python"),
}
# The languages of signatures, by the domains of Sphinx.
_DOMAINS = {"py": "python", "c": "c", "cpp": "cpp", "js": "javascript", "rust": "rust", "java": "java"}
_OWN_BLOCK = ("pre", "table", "dl", *HEADINGS)


class Prose:
    """Collects the blocks of one section; paragraphs and list items in a row become one block.

    A group is what belongs together: an item, a note, a list under the sentence that introduces it.
    """

    def __init__(self) -> None:
        self.blocks: list[Block] = []
        self._lines: list[str] = []
        self._prose = Block("prose", "")  # the block that `_lines` will become
        self._heads: list[str] = []  # of the open groups; "" until the first paragraph
        self._level = 0  # open groups when the last paragraph came

    def __bool__(self) -> bool:
        return bool(self.blocks or self._lines)

    @contextmanager
    def group(self, head: str = "") -> Iterator[None]:
        """Put what is added meanwhile under `head`, else under the first paragraph that is added."""
        self._heads.append(head)
        place = len(self._heads)
        yield
        del self._heads[place - 1 :]

    @property
    def lead(self) -> str:
        """The paragraph before, if it introduces what follows and is not the head of its group; else ""."""
        last = self._lines[-1] if self._lines and self._level == len(self._heads) else ""
        return last if last and introduces(last) and last not in self._heads else ""

    def add_paragraph(self, text: str, *, tight: bool = False) -> None:
        """Add a paragraph, or with `tight` a line that belongs to the paragraph before it."""
        under = self._under()
        if self._lines and under != self._prose.under:
            self._end_prose()
        if self._lines:
            self._lines.append("\n" if tight else "\n\n")
        else:
            self._prose = Block("prose", "", under=under, tight=tight and bool(self.blocks))
        self._lines.append(text)
        self._level = len(self._heads)
        if self._heads and not self._heads[-1]:
            self._heads[-1] = text

    def add_block(self, block: Block) -> None:
        """Add a listing or a table: under the paragraph that introduces it, or with the listing before it."""
        under, lead = self._under(), self.lead
        if lead:
            under = (*under, lead)
        elif not self._lines and self.blocks and block.kind == self.blocks[-1].kind == "code":
            before = self.blocks[-1].under
            under = before if before[: len(under)] == under else under
        self._end_prose()
        self.blocks.append(replace(block, under=under))

    def finish(self) -> tuple[Block, ...]:
        """Return all blocks in order."""
        self._end_prose()
        return tuple(self.blocks)

    def _under(self) -> tuple[str, ...]:
        return tuple(filter(None, self._heads))

    def _end_prose(self) -> None:
        if self._lines:
            self.blocks.append(replace(self._prose, text=join_texts(self._lines)))
            self._lines = []


class Numbering:
    """Marks the items of a list as the page shows them: by bullets, numbers, letters or Roman numerals."""

    def __init__(self, element: Element) -> None:
        classes = (element.get("class") or "").split()
        named = next((_NUMBERED[name] for name in classes if name in _NUMBERED), "1")
        self._style = (element.get("type") or named) if element.tag == "ol" else ""
        self._step = 1 if element.get("reversed") is None else -1
        first = 1 if self._step == 1 else sum(child.tag == "li" for child in element)
        self._next = _number(element.get("start"), first)

    def mark(self, item: Element) -> str:
        """Return what stands before the next `item`."""
        number = _number(item.get("value"), self._next)
        self._next = number + self._step
        return f"{_numeral(number, self._style)}. " if self._style in ("1", *_LETTERS, *_ROMAN) else BULLET


_NUMBERED = {"arabic": "1", "loweralpha": "a", "upperalpha": "A", "lowerroman": "i", "upperroman": "I"}  # docutils
_LETTERS, _ROMAN = ("a", "A"), ("i", "I")
_TENS = ("", "x", "xx", "xxx", "xl", "l", "lx", "lxx", "lxxx", "xc")
_ONES = ("", "i", "ii", "iii", "iv", "v", "vi", "vii", "viii", "ix")


def _number(text: str | None, otherwise: int) -> int:
    return int(text) if text and re.fullmatch(r"\s*-?\d{1,9}\s*", text) else otherwise


def _numeral(number: int, style: str) -> str:
    if style in _LETTERS and 1 <= number <= 26:
        return chr(ord(style) + number - 1)
    if style in _ROMAN and 1 <= number < 100:
        numeral = _TENS[number // 10] + _ONES[number % 10]
        return numeral.upper() if style == "I" else numeral
    return str(number)


def text_of(element: Element) -> str:
    """Return all text of `element` as one paragraph, with its marks."""
    if next(element.iter(*MARKED), None) is not None:
        return TextRun.of(element).text
    return as_paragraph("".join(element.itertext()))


def line_of(element: Element) -> str:
    """Return all text of `element` on one line, with its marks."""
    text = text_of(element)
    return Text(text.replace("\n", " "), marks_of(text)) if "\n" in text else text


def code_block(pre: Element) -> Block | None:
    """Return a `<pre>` with its line breaks and indentation, None if it is empty."""
    for line in pre.iter("div", "span"):
        if not CODE_LINES.isdisjoint((line.get("class") or "").split()) and _ends_without_break(line):
            line.tail = "\n" + (line.tail or "")
    text = as_listing("".join(pre.itertext()))
    return Block("code", text, language=language_of(pre)) if text else None


def language_of(pre: Element) -> str:
    """Return the language of a listing, as its classes or those around it name it; "" if none does."""
    inner = pre[0] if len(pre) == 1 else None
    around = (inner, pre, *islice(pre.iterancestors("div", "figure", "td", "dl"), _AROUND))
    names = (name for element in around if element is not None for name in (element.get("class") or "").split())
    found = next((name for name in map(_language, names) if name), "")
    return _LANGUAGES.get(found, found)


def _language(name: str) -> str:
    """Return the language that a class names: language-x, highlight-x, highlight-source-x."""
    kind, _, language = name.lower().rpartition("-")
    return language if kind in _NAMES_LANGUAGE else ""


def _ends_without_break(line: Element) -> bool:
    """Return whether the highlighter left the line break after `line` to the style sheet."""
    after = line.tail or ""
    inside = "".join(line.itertext())
    if line.getnext() is None or after.startswith(("\n", LINE_BREAK)):
        return False
    return not inside.endswith(("\n", LINE_BREAK))


def is_data_table(table: Element) -> bool:
    """Return whether `table` has rows of cells to read across; others are for layout, or hold prose."""
    if table.get("role") in ("presentation", "none") or next(table.iter("table", *HEADINGS), table) is not table:
        return False
    if any(next(inner.iter(*_OWN_BLOCK), None) is not None for inner in table.iter("td")):
        return not _holds_blocks(table)
    rows = list(_rows(table))
    if len(rows) == 1 and any(len(cell.findall("p")) > 1 for cell in rows[0]):
        return False  # columns of paragraphs
    return any(len(cells) > 1 for cells in rows)


def _holds_blocks(table: Element) -> bool:
    """Return whether a cell holds a listing of several lines, a definition list or a table: none fits into a row."""
    for inner in table.iter("pre", "dl"):
        if inner.tag == "dl" or "\n" in "".join(inner.itertext()).strip():
            return True
    return next(table.iter("table"), table) is not table


def _rows(table: Element) -> Iterator[list[Element]]:
    for row in table.iter("tr"):
        cells = [cell for cell in row if cell.tag in ("td", "th")]
        if cells:
            yield cells


def table_rows(table: Element) -> tuple[str, list[tuple[str, list[Element]]]]:
    """Return the header of a table, and each other row as a line, cells joined by " | ", with its cells."""
    header = ""
    rows: list[tuple[str, list[Element]]] = []
    for cells in _rows(table):
        line = _side_by_side([_cell(cell) for cell in cells])
        if not line.replace("|", "").strip():
            continue
        if not rows and _is_header(cells):
            header = _side_by_side([header, line]) if header else line
        else:
            rows.append((line, cells))
    return header, rows


def table_block(header: str, lines: Sequence[str]) -> Block | None:
    """Return the block of a table with these lines; one of a header alone has it for its line, an empty one is None."""
    lines, header = (lines, header) if lines else ([header], "")
    return Block("table", join_texts(lines, "\n"), header) if lines[0] else None


def _side_by_side(cells: Sequence[str]) -> str:
    row = join_texts(cells, CELL)
    ends = [*accumulate(len(cell) + len(CELL) for cell in cells)][:-1]
    return Text(row, sorted((*marks_of(row), *(Mark(end - len(CELL), end, "cell") for end in ends))))


def _cell(cell: Element) -> str:
    for block in cell.iter("div", "p", "li"):
        block.tail = f" {block.tail or ''}"
        block.text = f" {block.text or ''}"
    return line_of(cell)


def _is_header(cells: Sequence[Element]) -> bool:
    parent = cells[0].getparent()
    section = parent.getparent() if parent is not None else None
    return (section is not None and section.tag == "thead") or all(cell.tag == "th" for cell in cells)


def signature_name(term: Element) -> str:
    """Return the dotted name of the API entry `term`, such as "ray.data.Dataset.map"; any other term in full."""
    name = "".join(
        "".join(part.itertext())
        for part in term.iter("span", "code", "tt")
        if {"descclassname", "sig-prename", "descname", "sig-name"} & set((part.get("class") or "").split())
    )
    name = as_paragraph(name)
    if not name:
        return re.split(r"(?<=.)[\n]", text_of(term), maxsplit=1)[0][:200]
    anchor = term.get("id") or ""
    is_python = "py" in (term.get("class") or "").split()
    return anchor if is_python and anchor.endswith(f".{name}") else name


def signature_block(terms: Sequence[Element]) -> Block:
    """Return the listing of those of `terms` that are signatures."""
    language = next((_DOMAINS[name] for name in (terms[0].get("class") or "").split() if name in _DOMAINS), "")
    return Block("code", "\n".join(text_of(term) for term in terms if _is_signature(term)), language=language)


def _is_signature(term: Element) -> bool:
    """Return whether `term` is the signature of an API entry, not a plain word or option."""
    return "sig" in (term.get("class") or "").split() or next(term.iter("span", "code", "tt"), None) is not None
