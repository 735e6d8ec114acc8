"""Finds and changes elements by class: what the rewriters share."""

from collections.abc import Iterable, Sequence

from lxml import etree
from lxml.etree import _Element as Element

from pipelines.indexing.reading.text import LINE_BREAK


def classes(element: Element) -> list[str]:
    """Return the class names of `element`."""
    return (element.get("class") or "").split()


def with_class(name: str, tag: str = "*") -> etree.XPath:
    """Return a search for the descendants that have the class `name`."""
    return etree.XPath(f".//{tag}[contains(concat(' ',normalize-space(@class),' '),' {name} ')]")


def drop(elements: Iterable[Element]) -> None:
    """Remove `elements` from their tree, but keep the text after each."""
    for element in list(elements):
        parent = element.getparent()
        if parent is not None:
            element.tail, tail = None, element.tail
            _append_text(parent, element.getprevious(), tail)
            parent.remove(element)


def _append_text(parent: Element, before: Element | None, text: str | None) -> None:
    if before is None:
        parent.text = (parent.text or "") + (text or "")
    else:
        before.tail = (before.tail or "") + (text or "")


def move(element: Element, parent: Element, place: int = 0) -> None:
    """Make `element` a child of `parent`; the text after it stays where it was."""
    tail, element.tail = element.tail, None
    old = element.getparent()
    if old is not None:
        _append_text(old, element.getprevious(), tail)
    parent.insert(place, element)
    if place == 0:
        element.tail, parent.text = parent.text, None


def listing(lines: Sequence[str] | str) -> Element:
    """Return a new `<pre>` with these lines."""
    pre = etree.Element("pre")
    pre.text = lines if isinstance(lines, str) else "\n".join(lines)
    return pre


def become_listing(element: Element, text: str) -> None:
    """Turn `element` into a `<pre>` that holds `text`."""
    tail = element.tail
    element.clear()
    element.tag, element.text, element.tail = "pre", text, tail


def lines_of(element: Element) -> str:
    """Return the text of a signature as a reader sees it: breaks and inner blocks begin a line."""
    for inner in element.iter("br", "div"):
        if inner.tag == "br":
            inner.tail = LINE_BREAK + (inner.tail or "")
        elif inner is not element:
            inner.text = LINE_BREAK + (inner.text or "")
            inner.tail = LINE_BREAK + (inner.tail or "")
    text = "".join(element.itertext()).replace("\xa0", " ").replace(LINE_BREAK, "\n")
    return "\n".join(line.rstrip() for line in text.split("\n") if line.strip()).strip()
