"""Reads lists: the markers of their items, and which lists consist almost only of links.

Independent of sections.
"""

import re
from typing import NamedTuple
from urllib.parse import urlsplit

from lxml import etree
from lxml.etree import _Element as Element

from pipelines.page.tree import Spans
from pipelines.page.urls import absolute_url

LISTS = ("ul", "ol", "menu", "dir")
BULLET = "- "
# Limits for generated indexes, from 5,000 lists on five sites. Lists with at least this many links, and at most a name
# or two next to each, list pages. Shorter lists do so only if they consist almost entirely of links.
_INDEX_LINKS, _INDEX_SHARE = 100, 0.4
_CONTENTS_CHARACTERS, _CONTENTS_SHARE = 1500, 0.9  # about the size of a chunk
_LINE_LINKS = 4  # fewer links on a line are recommendations by the author
_SENTENCES = 0.05  # per link
_AWAY = 0.1  # of the links; a list of links to other sites is somebody's recommendations
_SENTENCE = re.compile(r"[^\s.!?]{2}[.!?](?=\s|$)|[。！？]")
_BETWEEN_LINKS = etree.XPath(".//text()[not(ancestor::a)]", smart_strings=False)

_NUMBERED = {"arabic": "1", "loweralpha": "a", "upperalpha": "A", "lowerroman": "i", "upperroman": "I"}  # docutils
_LETTERS, _ROMAN = ("a", "A"), ("i", "I")
_TENS = ("", "x", "xx", "xxx", "xl", "l", "lx", "lxx", "lxxx", "xc")
_ONES = ("", "i", "ii", "iii", "iv", "v", "vi", "vii", "viii", "ix")


class Numbering:
    """Gives list items the markers that the page shows: bullets, numbers, letters or Roman numerals."""

    def __init__(self, element: Element) -> None:
        classes = (element.get("class") or "").split()
        named = next((_NUMBERED[name] for name in classes if name in _NUMBERED), "1")
        self._style = (element.get("type") or named) if element.tag == "ol" else ""
        self._step = 1 if element.get("reversed") is None else -1
        first = 1 if self._step == 1 else sum(child.tag == "li" for child in element)
        self._next = _number(element.get("start"), first)

    def mark(self, value: str | None) -> str:
        """Return the marker of the next item, which may set its number by `value`."""
        number = _number(value, self._next)
        self._next = number + self._step
        return f"{_numeral(number, self._style)}. " if self._style in ("1", *_LETTERS, *_ROMAN) else BULLET


def _number(text: str | None, otherwise: int) -> int:
    return int(text) if text and re.fullmatch(r"\s*-?\d{1,9}\s*", text) else otherwise


def _numeral(number: int, style: str) -> str:
    if style in _LETTERS and 1 <= number <= 26:
        return chr(ord(style) + number - 1)
    if style in _ROMAN and 1 <= number < 100:
        numeral = _TENS[number // 10] + _ONES[number % 10]
        return numeral.upper() if style == "I" else numeral
    return str(number)


class ListSize(NamedTuple):
    """Counts for a list: links, links `away` to other sites, anchors to `nowhere`, characters, letters.

    `linked` counts the letters in links.
    """

    links: int = 0
    away: int = 0
    nowhere: int = 0
    characters: int = 0
    letters: int = 0
    linked: int = 0


class LinkLists:
    """Decides which lists on a page of `site` are indexes or tables of contents.

    Each text is counted once, however deeply its list is nested.
    """

    def __init__(self, site: str) -> None:
        self._site = site
        self._sizes: dict[Element, ListSize] = {}

    def index_size(self, items: Element) -> int:
        """Return the number of characters of an index of this site, 0 for any other list.

        An index is long, consists mostly of links, and has no sentences.
        """
        size = self._size(items)
        if size.links < _INDEX_LINKS and size.characters < _CONTENTS_CHARACTERS:
            return 0
        least = _INDEX_SHARE if size.links >= _INDEX_LINKS else _CONTENTS_SHARE
        if size.linked < least * (size.letters or 1) or size.away > _AWAY * size.links:
            return 0
        between = " ".join("".join(_BETWEEN_LINKS(items)).split())
        return size.characters if len(_SENTENCE.findall(between)) <= _SENTENCES * size.links else 0

    def is_contents(self, items: Element) -> bool:
        """Return whether a list is a table of contents: all its words are links to pages of this site."""
        size = self._size(items)
        return size.links > 0 and not (size.away or size.nowhere) and size.linked == size.letters

    def lists_pages(self, spans: Spans) -> bool:
        """Return whether a line is a table of contents: several links to pages of this site and no other words."""
        links = [span for span in spans if span.target]
        if len(links) < _LINE_LINKS or any(self._leads_away(span.target) for span in links):
            return False
        return not any(any(map(str.isalnum, span.text)) for span in spans if not span.target)

    def _size(self, items: Element) -> ListSize:
        if items not in self._sizes:
            self._count(items)
        return self._sizes[items]

    def _count(self, outermost: Element) -> None:
        """Count the contents of a list and of its nested lists in one pass."""
        links = away = nowhere = characters = letters = linked = 0
        around = 0  # number of links around the text
        begun: list[tuple[ListSize, int]] = []
        for event, element in etree.iterwalk(outermost, events=("start", "end")):
            is_list, is_link = element.tag in LISTS, element.tag == "a" and element.get("href")
            if event == "start":
                if is_list or element is outermost:
                    begun.append((ListSize(links, away, nowhere, characters, letters, linked), around))
                if is_link:
                    links, away, around = links + 1, away + self._leads_away(is_link), around + 1
                nowhere += element.tag == "a" and not is_link
                text = element.text
            else:
                around -= bool(is_link)
                if is_list or element is outermost:
                    before, outer = begun.pop()
                    now = ListSize(links, away, nowhere, characters, letters, linked)
                    size = ListSize(*(many - few for many, few in zip(now, before, strict=True)))
                    self._sizes[element] = size._replace(linked=size.linked - outer * size.letters)
                text = None if element is outermost else element.tail
            if text:
                found = sum(map(str.isalpha, text))
                characters, letters, linked = characters + len(text), letters + found, linked + found * around

    def _leads_away(self, href: str) -> bool:
        """Return whether a link leads to another site or is not a valid URL."""
        return href.startswith(("http:", "https:")) and urlsplit(absolute_url("", href)).netloc != self._site
