"""Parses HTML into a tree, safely for hostile pages.

libxml2 is quick, but some pages cost it minutes and of others it silently loses the text: both are known here. Knows
nothing of what the tree holds.
"""

import re
from html import unescape

from lxml import etree
from lxml.etree import _Element as Element

# libxml2 compares each attribute of a tag with all others: 1,000 take 2 ms, 10,000 take 127 ms, 100,000 two minutes.
_MAX_ATTRIBUTES = 1000
_LONG_TAG = rf"<[^<]{{{2 * _MAX_ATTRIBUTES},}}"  # with the text after it; it may have that many attributes


def parse_html(text: str) -> Element | None:
    """Return the tree of an HTML page.

    None if it has none: it is empty, or nested deeper than libxml2's 256 levels, where it silently drops text.
    """
    parser = etree.HTMLParser(encoding="utf-8", remove_comments=True, remove_pis=True, no_network=True)
    try:
        root = etree.fromstring(re.sub(_LONG_TAG, _cut_attributes, text).encode("utf-8", "ignore"), parser)
    except etree.XMLSyntaxError:
        return None
    return None if any("Excessive depth" in entry.message for entry in parser.error_log) else root


def _cut_attributes(found: re.Match[str]) -> str:
    """Return a tag and the text after it, without the tag's attributes if there are too many."""
    part = found[0]
    quoted = re.match(r"""(?:[^>"']|"[^"]*"|'[^']*')*+""", part)
    end = quoted.end() if quoted and part[quoted.end() : quoted.end() + 1] == ">" else part.find(">")
    end = len(part) if end < 0 else end
    words = re.sub(r""""[^"]*"|'[^']*'""", "", part[:end]).split(None, _MAX_ATTRIBUTES)
    return words[0] + part[end:] if len(words) > _MAX_ATTRIBUTES else part


def strip_tags(text: str) -> str:
    """Return the text between tags in linear time: for pages that can't be parsed."""
    kept, skipping = [], ""
    for part in text.split("<"):
        tag, sign, rest = part.partition(">")
        name = tag.split(None, 1)[0].lower() if tag.strip() else ""
        if skipping:
            skipping = "" if name == "/" + skipping else skipping
        elif name in ("script", "style"):
            skipping = name
        if not skipping:
            kept.append(rest if sign else "")
    return unescape("\n".join(kept))
