"""Renders declarative shadow roots into the page, as a browser does.

A `<template shadowrootmode>` replaces the content of its host element. The host's own children appear only in a
`<slot>` that takes them. Independent of content.
"""

from collections.abc import Iterator, Sequence
from typing import TypeAlias

from lxml import etree
from lxml.etree import _Element as Element

_MODES = ("open", "closed")
_FILLED = "raydex-slot"  # no page has such an element

Node: TypeAlias = str | Element


def show_shadow_roots(root: Element) -> None:
    """Replace the children of each shadow host by the content that it shows, innermost hosts first."""
    templates = [template for template in root.iter("template") if template.get("shadowrootmode") in _MODES]
    for template in reversed(templates):
        host = template.getparent()
        if host is not None and not any(other in templates for other in template.itersiblings(preceding=True)):
            _show(host, template)  # a browser attaches only the first template
    if templates:
        etree.strip_tags(root, _FILLED)


def _show(host: Element, template: Element) -> None:
    own = [node for node in _nodes(host) if node is not template]
    shown = list(_nodes(template))
    slots: dict[str, Element] = {}
    for slot in template.iter("slot"):
        slots.setdefault(slot.get("name") or "", slot)
    _hold(host, shown)
    for name, slot in slots.items():
        given = [node for node in own if (not name if isinstance(node, str) else (node.get("slot") or "") == name)]
        if any(node.strip() if isinstance(node, str) else True for node in given):
            _hold(slot, given)  # otherwise the slot shows its own content
        slot.tag = _FILLED


def _nodes(element: Element) -> Iterator[Node]:
    """Yield the texts and children of `element` in order."""
    yield element.text or ""
    for child in element:
        yield child
        yield child.tail or ""


def _hold(element: Element, nodes: Sequence[Node]) -> None:
    """Replace the contents of `element` by `nodes`."""
    for child in list(element):
        element.remove(child)
    element.text, last = "", None
    for node in nodes:
        if not isinstance(node, str):
            element.append(node)
            node.tail, last = "", node
        elif last is None:
            element.text += node
        else:
            last.tail = (last.tail or "") + node
