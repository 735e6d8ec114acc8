"""Gives an API entry without a definition the text after it.

Pages are like that where authors did not indent the text of an entry. Entries that follow one another without
text between them share the definition of the last one.
"""

from lxml import etree
from lxml.etree import _Element as Element

_LISTS = etree.XPath(".//dl[dt[@id]]")
_ENDS = etree.XPath(
    "boolean(self::p[@class='rubric'] | descendant-or-self::*[self::section or self::dt[@id] or self::h1 or self::h2 "
    "or self::h3 or self::h4 or self::h5 or self::h6])"
)
_HOLDS_MORE = etree.XPath("boolean(.//img | .//svg | .//math | .//table)")


def fill_entries(root: Element) -> None:
    """Put the text after each list of entries whose last one is empty into that one's definition."""
    for entries in reversed(_LISTS(root)):
        definition = _empty_definition(entries)
        if definition is not None:
            _adopt_text(entries, definition)
            if _is_empty(definition):
                _join_next(entries)


def _empty_definition(entries: Element) -> Element | None:
    """Return the definition of the last entry if it is empty; it is made where there is none."""
    last = entries[-1]
    if last.tag == "dt" and last.get("id"):
        return etree.SubElement(entries, "dd")
    before = last.getprevious()
    is_entry = last.tag == "dd" and before is not None and before.tag == "dt" and before.get("id")
    return last if is_entry and _is_empty(last) else None


def _is_empty(definition: Element) -> bool:
    return not "".join(definition.itertext()).strip() and not _HOLDS_MORE(definition)


def _adopt_text(entries: Element, definition: Element) -> None:
    """Move what follows `entries` into `definition`, up to the next entry, heading or name of one."""
    found = []
    for after in entries.itersiblings():
        if _ENDS(after):
            break
        found.append(after)
    while found and _belongs_to_next(found[-1]):
        found.pop()
    definition.text, entries.tail = entries.tail, None
    definition.extend(found)


def _belongs_to_next(element: Element) -> bool:
    """Return whether `element` is a name, or introduces something: the next entries."""
    words = "".join(element.itertext()).strip()
    return not (element.tail or "").strip() and (not words or (element.tag == "p" and words.endswith(":")))


def _join_next(entries: Element) -> None:
    """Move entries that nothing follows into the list of the same kind right after them."""
    after = entries.getnext()
    if after is None or after.tag != "dl" or after.get("class") != entries.get("class") or (entries.tail or "").strip():
        return
    first = after[0] if len(after) else None
    if first is not None and first.tag == "dt" and first.get("id"):
        entries.remove(entries[-1])
        terms = list(entries)
        for place, term in enumerate(terms):
            after.insert(place, term)
        if (parent := entries.getparent()) is not None:
            parent.remove(entries)
