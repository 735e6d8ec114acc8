"""Reads and changes single elements: their names, their text, their place in the tree."""

from collections.abc import Iterable

from lxml import etree
from lxml.etree import _Element as Element

HEADINGS = ("h1", "h2", "h3", "h4", "h5", "h6")
_NAMES = etree.XPath("//@class | //@role | //input/@type", smart_strings=False)


def names_of(root: Element) -> frozenset[str]:
    """Return the class names and roles of all elements and the types of inputs: they tell generators apart."""
    return frozenset(" ".join(_NAMES(root)).split())


def holds_words(element: Element) -> bool:
    """Return whether `element` has any text."""
    return any(map(str.strip, element.itertext()))


def drop(elements: Iterable[Element]) -> None:
    """Remove `elements` from their tree, but keep the text after each."""
    for element in list(elements):
        parent = element.getparent()
        if parent is None:
            continue
        if element.tail:
            before = element.getprevious()
            if before is None:
                parent.text = (parent.text or "") + element.tail
            else:
                before.tail = (before.tail or "") + element.tail
        parent.remove(element)
