"""Reads an element as a flow of inline text and the blocks between.

Inline text keeps the anchor names in it: `<a name>`, and empty `<a id>` and `<span id>`. A name belongs to the content
after it. Independent of sections.
"""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from operator import attrgetter
from typing import NamedTuple

from lxml import etree
from lxml.etree import _Element as Element

from pipelines.indexing.reading.generators import INDEX_IDS, INDEX_TERMS
from pipelines.indexing.reading.html.elements import HEADINGS, STYLES, holds_words
from pipelines.indexing.reading.text import as_paragraph
from pipelines.page.flow import introduces
from pipelines.page.plain import merged, on_one_line
from pipelines.page.tree import Span, Spans, Style, text_spans
from pipelines.text.phrases import read_names

_NAMES = read_names(__name__)
_BLOCKS = _NAMES["blocks"]
IN_PARAGRAPH = _BLOCKS - {"p"}  # an element with one of these inside is not running text
_TAG = attrgetter("tag")
_BOLD = ("b", "strong", "big")
_LONGEST_BOLD, _LONGEST_PLAIN = 30, 12  # most words in a title: a question in bold type, a name
_CODE = ("code", "tt", "kbd", "samp")
MARKED = ("a", *_CODE, *STYLES)  # elements recorded as marks of a text


class Mark(NamedTuple):
    """Attributes of some pieces of a text, from the first to the last (exclusive)."""

    first: int
    last: int
    code: bool = False
    target: str = ""
    style: Style = ""


class InlineText:
    """The text between two blocks, with the anchor names `before` its first word and `after` its last one."""

    def __init__(self, text: str | None = None, following: Element | None = None) -> None:
        self.words: list[str] = []
        self.following = following  # the element after the text
        self.names_block = False  # whether a waiting name may belong to `following`
        self._marks: list[Mark] = []
        self.before: list[str] = []
        self.after: list[str] = []
        self._worded = self._plain = False
        self.add_text(text)

    def __bool__(self) -> bool:
        return self._worded

    @classmethod
    def of(cls, element: Element, following: Element | None = None) -> "InlineText":
        """Return the text of `element`. `following` is the element after it."""
        text = cls(following=following)
        text.add(element)
        return text

    def end(self, following: Element) -> "InlineText":
        """Return the text, ended by `following`. An `a` around a block, such as a heading, may name the block."""
        self.following, self.names_block = following, following.tag in _NAMES["named"]
        if _is_anchor(following) and not following.get("id") and (name := following.get("name")):
            self.after.append(name)
        return self

    def add(self, element: Element, bold: bool = False) -> None:
        """Add the text and the names of an inline element, without the text after it."""
        tag, first = element.tag, len(self.words)
        if tag in ("a", "span") and (name := name_of(element)):
            (self.after if self._worded else self.before).append(name)
        bold = bold or tag in _BOLD
        self.add_text(element.text, bold)
        for child in element:
            self.add(child, bold)
            self.add_text(child.tail, bold)
        if tag in _CODE:
            self._marks.append(Mark(first, len(self.words), code=True))
        elif tag == "a" and (target := element.get("href")):
            self._marks.append(Mark(first, len(self.words), target=target))
        elif tag in STYLES:
            self._marks.append(Mark(first, len(self.words), style=STYLES[tag]))

    def add_text(self, text: str | None, bold: bool = False) -> None:
        """Add `text`, in bold type or not."""
        if not text:
            return
        self.words.append(text)
        if text.strip():
            self.after = []
            self._worded, self._plain = True, self._plain or not bold

    @property
    def spans(self) -> Spans:
        """The text as a paragraph."""
        return spans_of(self.words, self._marks)

    @property
    def title(self) -> str:
        """The text as a title: a line in bold type, or a few words that are not a sentence; "" for other text."""
        text = as_paragraph("".join(self.words)).replace("\n", " ")
        most = _LONGEST_PLAIN if self._plain else _LONGEST_BOLD
        is_sentence = self._plain and (text.endswith(":") or not introduces(text))
        return "" if is_sentence or len(text.split()) > most else text


def spans_of(pieces: Sequence[str], marks: Sequence[Mark]) -> Spans:
    """Return the text of `pieces` as a paragraph with the marks as span attributes.

    Spaces at either end of a marked range are left unmarked.
    """
    text = as_paragraph("".join(pieces))
    if not text or not marks:
        return text_spans(text)
    starts, ends = _places(pieces)
    around = [
        (*_inner(text, starts[mark.first], ends[mark.last - 1]), mark) for mark in marks if mark.first < mark.last
    ]
    around = sorted((one for one in around if one[0] < one[1]), key=lambda one: (one[0], -one[1]))
    places = sorted({0, len(text), *(at for start, end, _ in around for at in (start, end))})
    spans: list[Span] = []
    over: list[tuple[int, int, Mark]] = []
    begun = 0
    for at, next_at in pairwise(places):
        over = [one for one in over if one[1] > at]
        while begun < len(around) and around[begun][0] == at:
            over.append(around[begun])
            begun += 1
        spans.append(_span(text[at:next_at], [mark for _, _, mark in over]))
    return merged(spans)


def _span(text: str, over: Sequence[Mark]) -> Span:
    """Return the span for a string covered by the marks `over`, the outermost first."""
    target = next((mark.target for mark in over if mark.target), "")
    style: Style = next((mark.style for mark in over[::-1] if mark.style), "")
    return Span(text, any(mark.code for mark in over), target, style)


def _inner(text: str, start: int, end: int) -> tuple[int, int]:
    """Return where the words between two positions begin and end."""
    while start < end and text[start].isspace():
        start += 1
    while start < end and text[end - 1].isspace():
        end -= 1
    return start, end


def _places(pieces: Sequence[str]) -> tuple[list[int], list[int]]:
    """Return where each piece starts and ends in the paragraph that `as_paragraph` makes of all pieces."""
    starts: list[int] = []
    ends: list[int] = []
    size, gap = 0, False  # `gap`: a space or line break precedes the next word
    for piece in pieces:
        words = " ".join(piece.split())
        if words and size:
            size += gap or piece[0].isspace()
        starts.append(size)
        size += len(words)
        ends.append(size)
        gap = piece[-1].isspace() if words else gap or bool(size and piece)
    return starts, ends


def spans_in(element: Element) -> Spans:
    """Return all text of `element` as one paragraph."""
    if next(element.iter(*MARKED), None) is not None:
        return InlineText.of(element).spans
    return text_spans(as_paragraph("".join(element.itertext())))


def line_in(element: Element) -> Spans:
    """Return all text of `element` on one line."""
    return on_one_line(spans_in(element))


def flow_of(element: Element) -> list[InlineText | Element]:
    """Return the contents of `element` in order: the blocks, and the texts before, between and after them."""
    flow: list[InlineText | Element] = []
    text = InlineText(element.text)
    for child in element:
        if is_inline(child):
            text.add(child)
            text.add_text(child.tail)
        else:
            flow += text.end(child), child
            text = InlineText(child.tail)
    return [*flow, text]


def is_inline(element: Element, blocks: frozenset[str] = _BLOCKS) -> bool:
    """Return whether `element` is not one of `blocks` and contains none of them."""
    return blocks.isdisjoint(map(_TAG, element.iter()))


def name_of(element: Element) -> str:
    """Return the anchor name of an empty `a` or `span`, or of an `a` without a target; "" for other elements."""
    name = element.get("id") or element.get("name") or ""
    if not name or name.startswith(INDEX_IDS) or element.get("class") in INDEX_TERMS:
        return ""
    return name if _is_anchor(element) or not holds_words(element) else ""


def _is_anchor(element: Element) -> bool:
    return element.tag == "a" and element.get("href") is None


def names_between(element: Element) -> list[str]:
    """Return the names of an element without words between a term and its definition; they belong to the term."""
    following = element.getnext()
    if following is None or following.tag != "dd" or (element.tail or "").strip() or holds_words(element):
        return []
    return InlineText.of(element).before if is_inline(element) else []


def holds_heading(element: Element) -> bool:
    """Return whether `element`, an item or entry, contains a heading because its end tag is missing."""
    return next(element.iter(*HEADINGS), None) is not None


def words_from(element: Element | None, most: int) -> int:
    """Return the number of words from `element` to the next heading or name, counting up to `most`."""
    words = 0
    while element is not None and words < most and not holds_heading(element) and not begins_at_name(element):
        words += count_words(element.itertext(), most) + count_words([element.tail or ""], most)
        element = element.getnext()
    return words


def begins_at_name(element: Element) -> bool:
    """Return whether `element` has an anchor before its first word."""
    for event, part in etree.iterwalk(element, events=("start", "end")):
        if event == "start" and part.tag in ("a", "span") and name_of(part):
            return True
        text = part.text if event == "start" else part.tail if part is not element else None
        if text and text.strip():
            return False
    return False


def count_words(texts: Iterable[str], most: int) -> int:
    """Return the number of words in the joined `texts`, counting up to `most`."""
    words, is_open = 0, False  # whether the last word may continue in the next text
    for text in texts:
        found = len(text.split())
        words += found - (found > 0 and is_open and not text[0].isspace())
        is_open = not text[-1].isspace() if found else is_open and not text
        if words >= most:
            return most
    return words
