"""Parses HTML into a tree, safely for hostile pages.

libxml2 is fast, but some pages take it minutes, and it silently loses the text of others. This module handles both.
Text is cleaned here, after entities have become characters, so no other code cleans it again. Independent of the tree's
content.
"""

import re
from html import escape

from lxml import etree
from lxml.etree import _Element as Element

from pipelines.indexing.reading.html.shadow import show_shadow_roots
from pipelines.text.cleaning import clean_page, is_clean_page

# libxml2 compares each attribute of a tag with all others: 1,000 take 2 ms, 10,000 take 127 ms, 100,000 take 2 min.
_MAX_ATTRIBUTES = 1000
_LONG = 2 * _MAX_ATTRIBUTES  # characters of a tag, with the text after it, that may have that many attributes
# Elements that need an end tag in HTML.
_ENDED = "a|b|code|dd|div|dt|em|i|li|p|pre|script|section|span|strong|td|th|title|tr"
_CDATA = "<![CDATA["
_CAPITALS = 'CLASS="'
_SHOWN = {"img": "alt", "math": "alttext", "html": "lang"}  # attributes that become text


def _as_html(text: str) -> str:
    """Return XHTML as HTML: without CDATA sections, and with end tags instead of self-closing tags."""
    first, *rest = text.split(_CDATA)
    parts = [first]
    for part in rest:
        data, end, after = part.partition("]]>")
        parts.append(escape(data, quote=False) + after if end else _CDATA + part)
    text = "".join(parts)
    return re.sub(rf"<({_ENDED})((?:\s[^<>]*)?)/>", r"<\1\2></\1>", text)


def parse_html(text: str) -> Element:
    """Return the tree of an HTML page with cleaned text.

    The tree is empty if the page is empty, or is nested deeper than 256 levels: libxml2 silently drops text there.
    """
    if text.lstrip("\ufeff \t\n").startswith("<?xml"):
        text = _as_html(text)
    parser = etree.HTMLParser(encoding="utf-8", remove_comments=True, remove_pis=True, no_network=True)
    try:
        root = etree.fromstring(_without_long_tags(text).encode("utf-8", "ignore"), parser)
    except etree.XMLSyntaxError:
        return etree.Element("html")
    if root is None or any("Excessive depth" in entry.message for entry in parser.error_log):
        return etree.Element("html")  # None: only comments, a doctype or end tags
    show_shadow_roots(root)
    _end_terms(root)
    if _CAPITALS in text:
        _lower_names(root)
    _clean(root)
    return root


def _lower_names(root: Element) -> None:
    """Write the class names of pages in capitals (DSSSL) in small letters, as all other generators do."""
    for element in root.iter(etree.Element):
        if (names := element.get("class") or "").isupper():
            element.set("class", names.lower())


def _end_terms(root: Element) -> None:
    """Move each term or definition out of an open one. It ends the open one in HTML, but not in libxml2."""
    for element in list(root.iter("dt", "dd")):
        parent = element.getparent()
        if parent is not None and parent.tag in ("dt", "dd"):
            parent.addnext(element)


def _clean(root: Element) -> None:
    """Clean all text of a page, and the attributes that become text."""
    for element in root.iter(*_SHOWN):
        if shown := element.get(name := _SHOWN[element.tag]):
            element.set(name, clean_page(shown))
    if is_clean_page(etree.tostring(root, encoding="unicode", method="text")):  # most pages are, all at once
        return
    for element in root.iter():
        element.text = element.text and clean_page(element.text)
        element.tail = element.tail and clean_page(element.tail)


def _without_long_tags(text: str) -> str:
    first, *tags = text.split("<")
    if max(map(len, tags), default=0) < _LONG:
        return text
    return "".join([first, *(_cut_attributes(f"<{tag}") if len(tag) >= _LONG else f"<{tag}" for tag in tags)])


def _cut_attributes(part: str) -> str:
    """Return a tag and the text after it, without the tag's attributes if there are too many."""
    quoted = re.match(r"""(?>(?:[^>"']|"[^"]*"|'[^']*')*)""", part)
    end = quoted.end() if quoted and part[quoted.end() : quoted.end() + 1] == ">" else part.find(">")
    end = len(part) if end < 0 else end
    words = re.sub(r""""[^"]*"|'[^']*'""", "", part[:end]).split(None, _MAX_ATTRIBUTES)
    return words[0] + part[end:] if len(words) > _MAX_ATTRIBUTES else part
