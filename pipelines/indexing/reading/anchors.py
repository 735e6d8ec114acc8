"""Finds the names that links lead to in running text: `<a name>`, and empty `<a id>` and `<span id>`.

Such a name belongs to what follows it. Knows single elements only: no sections.
"""

from collections.abc import Iterator, Sequence

from lxml.etree import _Element as Element

from pipelines.indexing.reading.html.elements import HEADINGS, holds_words
from pipelines.indexing.reading.text import Span, as_marked, as_paragraph, introduces

_BOLD = ("b", "strong", "big")
_LONGEST_BOLD, _LONGEST_PLAIN = 30, 12  # words of a title: a question in bold type, a name
_CODE = ("code", "tt", "kbd", "samp")
MARKED = ("a", *_CODE)  # elements that leave marks in a text
MUCH = 30  # words that are worth a section of their own without a title: two sentences


class TextRun:
    """The text between two blocks, with the names `before` its first word and those `after` its last one.

    It knows its code, and its links with their targets as they are written.
    """

    def __init__(self, text: str | None = None) -> None:
        self.words: list[str] = []
        self._spans: list[Span] = []
        self.before: list[str] = []
        self.after: list[str] = []
        self._worded = self._plain = False
        self.add_text(text)

    def __bool__(self) -> bool:
        return self._worded

    @classmethod
    def of(cls, element: Element) -> "TextRun":
        """Return the text of `element`."""
        run = cls()
        run.add(element)
        return run

    def add(self, element: Element, bold: bool = False) -> None:
        """Add the text and the names of an inline element, without the text after it."""
        tag, first = element.tag, len(self.words)
        if tag in ("a", "span") and (name := _name_of(element)):
            (self.after if self._worded else self.before).append(name)
        bold = bold or tag in _BOLD
        self.add_text(element.text, bold)
        for child in element:
            self.add(child, bold)
            self.add_text(child.tail, bold)
        if tag in _CODE:
            self._spans.append((first, len(self.words), "code", ""))
        elif tag == "a" and (target := element.get("href")):
            self._spans.append((first, len(self.words), "link", target))

    def add_text(self, text: str | None, bold: bool = False) -> None:
        """Add `text`, which stands in bold type or not."""
        if not text:
            return
        self.words.append(text)
        if text.strip():
            self.after = []
            self._worded, self._plain = True, self._plain or not bold

    @property
    def text(self) -> str:
        """The text as a paragraph with its marks."""
        return as_marked(self.words, self._spans)

    @property
    def title(self) -> str:
        """The text as a title, "" if it is none: a line in bold type, or a few words that are no sentence."""
        text = as_paragraph("".join(self.words)).replace("\n", " ")
        most = _LONGEST_PLAIN if self._plain else _LONGEST_BOLD
        is_sentence = self._plain and (text.endswith(":") or not introduces(text))
        return "" if is_sentence or len(text.split()) > most else text


def _name_of(element: Element) -> str:
    """Return the name of a target of links: an empty `a` or `span`, or an `a` that leads nowhere; "" if it is none."""
    name = element.get("id") or element.get("name") or ""
    if not name or name.startswith("index-") or element.get("class") == "indexterm":
        return ""
    return name if _is_anchor(element) or not holds_words(element) else ""


def _is_anchor(element: Element) -> bool:
    return element.tag == "a" and element.get("href") is None


def name_around(element: Element) -> Iterator[str]:
    """Yield the name of an `a` that stands around blocks, such as a heading."""
    if _is_anchor(element) and not element.get("id") and (name := element.get("name")):
        yield name


def inner_ids(heading: Element) -> Iterator[str]:
    """Yield the ids and names in a heading."""
    for inner in heading.iter("a", "span"):
        name = inner.get("id") or inner.get("name")
        if name and inner.get("class") != "indexterm":
            yield name


def named_parts(rows: Sequence[tuple[str, list[Element]]]) -> list[tuple[list[str], str, list[str]]]:
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


def is_named_item(item: Element, *, named: bool) -> bool:
    """Return whether an item of a list begins with a name, or is `named` by one before it, and holds MUCH."""
    if not (named or (len(item) and item[0].tag in ("a", "span", "p") and TextRun.of(item[0]).before)):
        return False
    return not holds_heading(item) and len("".join(item.itertext()).split()) >= MUCH


def holds_heading(element: Element) -> bool:
    """Return whether a heading stands in `element`: in an item or entry, because its end tag is missing."""
    return next(element.iter(*HEADINGS), None) is not None


def follows(words: int, element: Element | None, least: int) -> bool:
    """Return whether `words` and those from `element` on, up to the next heading or name, are `least`."""
    while element is not None and words < least:
        if holds_heading(element) or TextRun.of(element).before:
            return False
        words += len("".join(element.itertext()).split()) + len((element.tail or "").split())
        element = element.getnext()
    return words >= least
