"""Finds frame elements within a page's content: its table of contents, menus, links to sources.

Independent of generators and sections.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from urllib.parse import unquote

from lxml import etree
from lxml.etree import _Element as Element

from pipelines.indexing.reading.html.elements import HEADINGS, TEXTS
from pipelines.indexing.reading.html.inline import IN_PARAGRAPH, is_inline
from pipelines.indexing.reading.html.lists import LISTS
from pipelines.indexing.reading.html.shown import drop
from pipelines.indexing.reading.text import as_paragraph
from pipelines.text.phrases import read_phrases

_PHRASES = read_phrases(__name__)
_BOXES = ("div", "ul", "ol", "dl", "table", "p", "td", "details")
# Fewer links, or fewer on lines of their own or between bars, are just as often recommendations by the author.
_LEAST_LINKS, _LEAST_PARTS = 4, 3
_AHEAD = 0.9  # share of links that lead to a later part of the page
_LINKED, _LINKED_LIST = 0.93, 0.75  # share of linked letters in contents; lists may have names for groups
_MENU = 0.9  # share of linked letters in a menu
_LEAD, _LEAD_SIGNS = 4, 5  # words and signs of the shortest sentence before a list: "There are three ways:"
_PAGERS, _PAGER_KEYS = frozenset(("prev", "previous", "next")), ("p", "P", "n", "N")
_BRACKETS = ("(", "[")
_CELLS = ("td", "th", "dt", "dd", "li")  # a symbol that fills one of these is a name
_PARTS = 100  # most pieces of a line to examine around a link
_LONGEST = 30  # characters of a link to a source
_BEFORE, _AFTER = re.compile(r"(?<![\s\[|·•])[\s\[|·•]++$"), re.compile(r"^\s*[\]|·•]+")
_ENDS = (".", "!", "?", ")", "…", "。", "|", "[", "·", "•", ";")
_FIRST_WORDS = etree.XPath("string((.//text()[normalize-space()])[1][not(ancestor::a[@href])])")
_UNLINKED, _BARS = etree.XPath(".//text()[not(ancestor::a)]", smart_strings=False), re.compile(r"\s*[|·•][\s|·•]*")
_UNLINKED_IMAGE = etree.XPath("boolean(.//img[@title or normalize-space(@alt)][not(ancestor::a)])")


@dataclass(slots=True)
class _Size:
    """Counts for an element: letters, linked letters, links, and the positions of the page parts they lead to.

    `headed` means that it contains a heading or a listing. `last` is the position of its last element.
    """

    letters: int = 0
    linked: int = 0
    links: int = 0
    last: int = 0
    headed: bool = False
    targets: list[int] = field(default_factory=list)


def contents_of(main: Element, page: str) -> list[Element]:
    """Return the lists in `main` that link to later parts of the page. `page` is its file name, used in such links."""
    links = {link: name for link in main.iter("a") if (name := _part_of(link, page))}
    if not links:
        return []
    order = {element: place for place, element in enumerate(main.iter())}
    places = {name: order[one] for one in order for name in (one.get("id"), one.get("name")) if name}
    sizes = _sizes(main, order, {link: places.get(name, -1) for link, name in links.items()})
    found: list[Element] = []
    for box in _outermost(main, sizes, _lists_parts):
        contents = [] if _is_led(box) else _with_label(box, main)
        if _is_long(box, sizes[box].links, labelled=len(contents) > 1):
            found += contents
    return found


def _is_long(box: Element, links: int, *, labelled: bool) -> bool:
    """Return whether a box has enough links for contents: one in a labelled list, a few on lines or between bars."""
    if links >= _LEAST_LINKS or ((labelled or _is_labelled(box)) and next(box.iter(*LISTS, "dl"), None) is not None):
        return True
    lines = {next(one for one in link.iterancestors() if not is_inline(one)) for link in box.iter("a")}
    return links >= _LEAST_PARTS and (len(lines) >= links or bool(_BARS.fullmatch("".join(_UNLINKED(box)))))


def menus_of(main: Element) -> list[Element]:
    """Return the boxes of links before the first heading of a page."""
    order = {element: place for place, element in enumerate(main.iter())}
    first = next((place for element, place in order.items() if element.tag in HEADINGS), -1)

    def is_menu(_: Element, size: _Size) -> bool:
        return size.last < first and size.links >= _LEAST_LINKS and size.linked >= _MENU * size.letters

    return list(_outermost(main, _sizes(main, order, {}), is_menu)) if first > 0 else []


def drop_tools(main: Element) -> None:
    """Drop links to the source of the text before them or to the top, with the brackets and bars around them."""
    for link in list(main.iter("a")):
        if is_tool(link) or _is_jump(link):
            _drop_tool(link)


def _drop_tool(link: Element) -> None:
    before, parent = link.getprevious(), link.getparent()
    if parent is None:
        return
    left, right = (parent.text if before is None else before.tail) or "", link.tail or ""
    if left.rstrip().endswith("(") and right.lstrip().startswith(")"):
        left, right = left.rstrip()[:-1], right.lstrip()[1:]
    parent.remove(link)
    kept = _BEFORE.sub("", left) + _AFTER.sub("", right)
    if before is None:
        parent.text = kept
    else:
        before.tail = kept


def drop_pagers(main: Element) -> None:
    """Drop the boxes of links to the previous and the next page: they are marked as such, and all words are links."""
    boxes = [_box_of_links(link, main) for link in main.iter("a") if _is_pager(link)]
    drop(main, [box for box in boxes if not is_inline(box)])


def _is_pager(link: Element) -> bool:
    relations = (link.get("rel") or "").lower().split()
    return not _PAGERS.isdisjoint(relations) or link.get("accesskey") in _PAGER_KEYS


def _box_of_links(link: Element, main: Element) -> Element:
    """Return the outermost small box around a link in which all words are links; the link itself if there is none."""
    box = link
    for outer in link.iterancestors():
        is_large = next(islice(outer.iter(), _PARTS, None), None) is not None
        if outer is main or is_large or not _is_all_links(outer):
            break
        box = outer
    return box


def _is_all_links(box: Element) -> bool:
    return linked_share(box) == 1 and next(box.iter(*HEADINGS, "pre"), None) is None and not _UNLINKED_IMAGE(box)


def linked_share(box: Element) -> float:
    """Return the share of a box's letters that are in links, 0 if it has no letters."""
    linked = sum(_letters("".join(link.itertext())) for link in box.iter("a"))
    return linked / (_letters("".join(box.itertext())) or 1)


def is_tool(link: Element) -> bool:
    """Return whether a link at the end of its line, or on its own line, leads to the source of the entry before it."""
    said = as_paragraph("".join(link.itertext()))
    if len(said) > _LONGEST or not _PHRASES["tool"].fullmatch(said) or (link.get("href") or "#").startswith("#"):
        return False
    block = next((one for one in link.iterancestors() if not is_inline(one)), None)
    if block is None or not _PHRASES["tools"].fullmatch(as_paragraph("".join(islice(_after(link, block), _PARTS)))):
        return False
    before = as_paragraph("".join(_before(link, block)[::-1]))
    if not before:
        return block.tag in ("p", "div") or (
            block.tag == "dd" and not all(map(is_inline, link.itersiblings(preceding=True)))
        )
    if said.startswith(_BRACKETS) and said.endswith((")", "]")):
        return True
    signed = next(link.iterancestors("dt", "summary", *HEADINGS), None) is not None
    return signed or before.endswith(_ENDS) or bool(_PHRASES["after_tool"].search(before))


def _is_jump(link: Element) -> bool:
    """Return whether a link leads to the top or to the content of the page, or back from a note to its mark.

    Such words and arrows may also name keys, programs and parts of the page. They jump if they come after a sentence or
    a heading, or begin a line that is not a heading. Arrows and "top" must also end the line, and not fill a cell.
    """
    said = as_paragraph("".join(link.itertext()))
    if len(said) > _LONGEST or not (link.get("href") or "").startswith("#"):
        return False
    if _PHRASES["back"].fullmatch(said):
        return True
    in_words, is_top = (bool(phrase.fullmatch(said)) for phrase in (_PHRASES["jump"], _PHRASES["top"]))
    block = next((one for one in link.iterancestors() if not is_inline(one)), None)
    if block is None or not (in_words or is_top or _PHRASES["arrow"].fullmatch(said)):
        return False
    before = "".join(_before(link, block)[::-1]).rstrip()
    if said.startswith(_BRACKETS) or before.endswith(_BRACKETS):
        is_apart = True
    elif before:
        is_apart = not is_top and (before.endswith(_ENDS) or block.tag in HEADINGS)
    else:
        is_apart = block.tag not in (HEADINGS if in_words else (*HEADINGS, *_CELLS))
    return is_apart and (in_words or not any(map(str.isalnum, "".join(islice(_after(link, block), _PARTS)))))


def _before(link: Element, block: Element) -> list[str]:
    """Return the texts of a line before a link, nearest first."""
    texts: list[str] = []
    for one in (link, *link.iterancestors()):
        if one is block:
            break
        for sibling in one.itersiblings(preceding=True):
            texts.append(sibling.tail or "")
            if not _is_within_line(sibling):
                return texts
            texts.append("".join(sibling.itertext()))
            if len(texts) > _PARTS:
                return texts
        if (parent := one.getparent()) is not None:
            texts.append(parent.text or "")
    return texts


def _after(link: Element, block: Element) -> Iterator[str]:
    """Yield the texts of a line after a link."""
    for one in (link, *link.iterancestors()):
        if one is block:
            break
        yield one.tail or ""
        for sibling in one.itersiblings():
            if not _is_within_line(sibling):
                return
            yield "".join(sibling.itertext())
            yield sibling.tail or ""


def _is_within_line(element: Element) -> bool:
    return element.tag != "br" and is_inline(element)


# ---------------------------------------------------------------------------------------------- boxes of links


def _part_of(link: Element, page: str) -> str:
    """Return the name of the page part that a link leads to, "" if it leads elsewhere."""
    place, _, name = (link.get("href") or "").partition("#")
    return unquote(name) if place in ("", page) else ""


def _sizes(main: Element, order: Mapping[Element, int], own: Mapping[Element, int]) -> dict[Element, _Size]:
    """Return the counts for each element in `main`. `own` maps links within the page to the positions they lead to."""
    sizes = {element: _Size() for element in order}
    for element in list(order)[::-1]:
        size = sizes[element]
        size.letters += _letters(element.text)
        size.last = max(size.last, order[element])
        size.headed |= element.tag in HEADINGS or element.tag == "pre"
        if element.tag == "a" and element.get("href"):
            size.linked, size.links = size.letters, size.links + 1
            if element in own:
                size.targets.append(own[element])
        parent = element.getparent()
        if element is not main and parent is not None:
            outer = sizes[parent]
            outer.letters += size.letters + _letters(element.tail)
            outer.linked, outer.links = outer.linked + size.linked, outer.links + size.links
            outer.last, outer.headed = max(outer.last, size.last), outer.headed or size.headed
            outer.targets += size.targets
    return sizes


def _letters(text: str | None) -> int:
    return sum(map(str.isalpha, text)) if text else 0


def _lists_parts(box: Element, size: _Size) -> bool:
    """Return whether a box is the page's contents: nearly all its words link to later parts of the page.

    Below a label, it may link to any parts.
    """
    least = _LINKED_LIST if box.tag in LISTS else _LINKED
    if size.headed or not size.links or size.linked < least * size.letters:
        return False
    if sum(place > size.last for place in size.targets) >= _AHEAD * size.links:
        return True
    if sum(place >= 0 for place in size.targets) < _AHEAD * size.links:
        return False
    before = box.getprevious()  # contents in a column after the text lead back
    return before is not None and _is_label("".join(before.itertext()))


def _outermost(
    main: Element, sizes: Mapping[Element, _Size], is_frame: Callable[[Element, _Size], bool]
) -> Iterator[Element]:
    """Yield the outermost boxes for which `is_frame` is true."""
    end = -1
    for place, (element, size) in enumerate(sizes.items()):
        if place > end and element is not main and element.tag in _BOXES and is_frame(element, size):
            end = size.last
            yield element


def _is_led(box: Element) -> bool:
    """Return whether a sentence introduces a list: the line or the paragraph before it."""
    before, parent = box.getprevious(), box.getparent()
    said = as_paragraph("".join(_before(box, parent)[::-1])) if parent is not None else ""
    if not said and before is not None and is_inline(before, IN_PARAGRAPH):
        said = as_paragraph("".join(before.itertext()))
    if said.endswith("："):  # in languages without spaces between words
        return len(said) > _LEAD_SIGNS
    return said.endswith(":") and len(said.rstrip(": ").split()) >= _LEAD and not _is_label(said)


def _is_labelled(box: Element) -> bool:
    """Return whether a box of links begins with its label, which is not a link."""
    return _is_label(str(_FIRST_WORDS(box)))


def _is_label(text: str) -> bool:
    return bool(_PHRASES["label"].fullmatch(as_paragraph(text)))


def _with_label(box: Element, main: Element) -> list[Element]:
    """Return a table of contents and the label before it. A heading that has text below the table is not its label."""
    place, below = box, box.getnext()
    while place.getprevious() is None and (parent := place.getparent()) is not None and parent is not main:
        if (parent.text or "").strip():
            break
        place, below = parent, parent.getnext() if below is None else below
    label = place.getprevious()
    if label is None or label.tag in HEADINGS[:1] or (label.tail or "").strip():
        return [box]
    is_title = label.tag in HEADINGS and below is not None and below.tag in TEXTS
    return [label, box] if not is_title and _is_label("".join(label.itertext())) else [box]
