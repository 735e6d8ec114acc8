"""Reads an element as a flow: runs of text, and the blocks between them.

A run has the names in it that links lead to: `<a name>`, and empty `<a id>` and `<span id>`. Such a name belongs to
what follows it. Knows no sections.
"""

from operator import attrgetter

from lxml.etree import _Element as Element

from pipelines.indexing.reading.html.elements import HEADINGS, holds_words
from pipelines.indexing.reading.text import Span, as_marked, as_paragraph, introduces
from pipelines.text.phrases import read_names

_NAMES = read_names(__name__)
_BLOCKS = _NAMES["blocks"]
IN_PARAGRAPH = _BLOCKS - {"p"}  # where one stands in a paragraph, that is no running text
_TAG = attrgetter("tag")
_BOLD = ("b", "strong", "big")
_LONGEST_BOLD, _LONGEST_PLAIN = 30, 12  # words of a title: a question in bold type, a name
_CODE = ("code", "tt", "kbd", "samp")
MARKED = ("a", *_CODE)  # elements that leave marks in a text
MUCH = 30  # words that are worth a section of their own without a title: two sentences


class TextRun:
    """The text between two blocks, with the names `before` its first word and those `after` its last one.

    It knows its code, and its links with their targets as they are written.
    """

    def __init__(self, text: str | None = None, following: Element | None = None) -> None:
        self.words: list[str] = []
        self.following = following  # the element that ends it
        self.names_block = False  # a name that waits may be that of this element
        self._spans: list[Span] = []
        self.before: list[str] = []
        self.after: list[str] = []
        self._worded = self._plain = False
        self.add_text(text)

    def __bool__(self) -> bool:
        return self._worded

    @classmethod
    def of(cls, element: Element, following: Element | None = None) -> "TextRun":
        """Return the text of `element`, which ends where `following` begins."""
        run = cls(following=following)
        run.add(element)
        return run

    def end(self, following: Element) -> "TextRun":
        """Return the text, ended by `following`; an `a` around a block, such as a heading, may name that."""
        self.following, self.names_block = following, following.tag in _NAMES["named"]
        if _is_anchor(following) and not following.get("id") and (name := following.get("name")):
            self.after.append(name)
        return self

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


def flow_of(element: Element) -> list[TextRun | Element]:
    """Return what is in `element`, in its order: the blocks, and the runs of text before, between and after them."""
    flow: list[TextRun | Element] = []
    run = TextRun(element.text)
    for child in element:
        if is_inline(child):
            run.add(child)
            run.add_text(child.tail)
        else:
            flow += run.end(child), child
            run = TextRun(child.tail)
    return [*flow, run]


def is_inline(element: Element, blocks: frozenset[str] = _BLOCKS) -> bool:
    """Return whether `element` is none of `blocks` and holds none."""
    return blocks.isdisjoint(map(_TAG, element.iter()))


def _name_of(element: Element) -> str:
    """Return the name of a target of links: an empty `a` or `span`, or an `a` that leads nowhere; "" if it is none."""
    name = element.get("id") or element.get("name") or ""
    if not name or name.startswith("index-") or element.get("class") == "indexterm":
        return ""
    return name if _is_anchor(element) or not holds_words(element) else ""


def _is_anchor(element: Element) -> bool:
    return element.tag == "a" and element.get("href") is None


def holds_heading(element: Element) -> bool:
    """Return whether a heading stands in `element`: in an item or entry, because its end tag is missing."""
    return next(element.iter(*HEADINGS), None) is not None


def words_from(element: Element | None, most: int) -> int:
    """Return how many words stand from `element` on, up to the next heading or name; counts no further than `most`."""
    words = 0
    while element is not None and words < most and not holds_heading(element) and not TextRun.of(element).before:
        words += len("".join(element.itertext()).split()) + len((element.tail or "").split())
        element = element.getnext()
    return words
