"""Reads elements: their names, and whether they hold text."""

from lxml import etree
from lxml.etree import _Element as Element

from pipelines.page.tree import Style

# Elements of text in a style, and those that the names of images and formulas are put into.
IMAGE, MATH, RAISED, LOWERED = "raydex-image", "raydex-math", "raydex-raised", "raydex-lowered"
STYLES: dict[str, Style] = {
    **dict.fromkeys(("s", "del", "strike"), "strike"), RAISED: "sup", LOWERED: "sub", IMAGE: "image", MATH: "math"
}  # fmt: skip
HEADINGS = ("h1", "h2", "h3", "h4", "h5", "h6")
_NAMES = etree.XPath("//@class | //@role | //input/@type", smart_strings=False)


def names_of(root: Element) -> frozenset[str]:
    """Return the class names and roles of all elements and the types of inputs: they tell generators apart."""
    return frozenset(" ".join(_NAMES(root)).split())


def holds_words(element: Element) -> bool:
    """Return whether `element` has any text."""
    return any(map(str.strip, element.itertext()))
