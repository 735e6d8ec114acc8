"""Defines custom element names and headings, and checks elements for names and text."""

from itertools import chain

from lxml import etree
from lxml.etree import _Element as Element

from pipelines.page.tree import Style

# Custom elements for styled text, and for the text of images and formulas.
IMAGE, MATH, RAISED, LOWERED = "raydex-image", "raydex-math", "raydex-raised", "raydex-lowered"
STYLES: dict[str, Style] = {
    **dict.fromkeys(("s", "del", "strike"), "strike"), RAISED: "sup", LOWERED: "sub", IMAGE: "image", MATH: "math"
}  # fmt: skip
HEADINGS = ("h1", "h2", "h3", "h4", "h5", "h6")
TEXTS = ("p", "ul", "ol", "pre", "dl", "table", "blockquote")
# Three expressions, because libxml2 sorts the results of a union.
_NAMES = [etree.XPath(path, smart_strings=False) for path in ("//@class", "//@role", "//input/@type")]


def names_of(root: Element) -> frozenset[str]:
    """Return the class names and roles of all elements and the types of inputs, which identify the generator."""
    return frozenset(" ".join(chain.from_iterable(names(root) for names in _NAMES)).split())


def holds_words(element: Element) -> bool:
    """Return whether `element` contains any text."""
    return any(map(str.strip, element.itertext()))
