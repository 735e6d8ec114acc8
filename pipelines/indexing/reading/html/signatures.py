"""Finds signatures of API entries that are marked up as text, and turns them into terms.

Links lead to a signature by its name: either its box has the name as id and begins with the signature, or the name is
inside the signature. Independent of generators and sections.
"""

import re
from collections import Counter
from collections.abc import Iterator

from lxml import etree
from lxml.etree import _Element as Element

from pipelines.indexing.reading.html.elements import HEADINGS, holds_words
from pipelines.indexing.reading.html.inline import is_inline
from pipelines.text.phrases import read_names

SIGNATURE = "raydex-signature"  # the class of a term that is a signature
_KEYWORDS = read_names(__name__)["keywords"]
_LINES = ("p", "div", "pre", "blockquote")  # elements that consist of a signature
_FIRST = (*_LINES, "code", "span", "tt", "strong", "b")
_HOLDERS = ("dt", "td", "th", "li", "a", "pre", *HEADINGS)  # a signature inside one of these is not a separate entry
_ENTRIES = ("div", "section", "article")  # boxes that may contain an entry
_WRAPPERS = ("div", "blockquote", "center", "p")
_CODE = ("pre", "code", "tt", "samp")
_LONGEST = 800  # characters of a signature
_MOST_BEFORE = 4  # words before the name: "public static final int"
_AFTER_NAME = re.compile(r"[(\[<{;]|\s*(?:::|:=|->|→|=>|=\s)|\s\(.*\)\s*;$|\s\{ ?\|", re.DOTALL)
_BEGUN = re.compile(r"[^(,]+")  # the name in an anchor that includes parameter types
_WORD = re.compile(
    r"[^\s()\[\]{}<>,;:\"|&=→]+"
)  # including the characters that names may have in Ruby, Lisp and Haskell
_ESCAPED = re.compile(r"[~-]([2-7][0-9a-fA-F])(?![^\W_])")  # an escaped character in anchors of Scribble and RDoc
_STOP = (".", "!", "?", "…", ":", ",")


def mend_signatures(root: Element) -> None:
    """Turn each signature with a name into a list entry: a term, whose definition is the text after it."""
    for box in [box for box in root.iterdescendants(*_ENTRIES) if box.get("id") is not None]:
        line = _first_line(box)
        if line is not None and is_signature(line, box.get("id") or ""):
            _become_entry(line, [box.attrib.pop("id")], box)
    found = [(line, names) for line, names in _lines_with_names(root) if is_signature(line, names[0])]
    outer = [_outermost(line) for line, _ in found]
    boxes = Counter(one.getparent() for one in outer)
    for one, (_, names) in zip(outer, found, strict=True):
        box = one.getparent()
        is_own = box is not None and box.tag in _ENTRIES and boxes[box] == 1 and _is_first(one, box)
        _become_entry(one, names, box if is_own else None)


def name_in(text: str, anchor: str) -> str:
    """Return the name in a signature from which its anchor is derived, or "": `fill` for "fill(value)-method".

    It is the beginning of the anchor, or else the first word of the signature that occurs in the anchor. A keyword is a
    name only if it is declared first, as `union` in "union :: Map -> Map".
    """
    begun = _BEGUN.match(anchor)
    every = _WORD.findall(text)
    words = [word for word in every if word not in _KEYWORDS]
    for name in (begun[0], begun[0].replace("-", "_")) if begun else ():
        if name in words or (not name[0].isalnum() and f" {name}(" in f" {text}"):
            return name
    plain = _ESCAPED.sub(lambda found: chr(int(found[1], 16)), anchor)
    words += [word for word in every[:1] if word in _KEYWORDS and _AFTER_NAME.match(text.removeprefix(word))]
    return next((word for word in words if _holds(plain, word) or _holds(anchor, word)), "")


def _holds(anchor: str, word: str) -> bool:
    return (
        len(word) > 1 and word in anchor and re.search(rf"(?:^|[\W_]){re.escape(word)}(?:$|[\W_])", anchor) is not None
    )


def is_signature(line: Element, anchor: str) -> bool:
    """Return whether `line` is code that declares the name in its `anchor`, and not a sentence that mentions it."""
    text = " ".join("".join(line.itertext()).split()).rstrip("¶#§ ")
    name = name_in(text, anchor) if len(text) <= _LONGEST else ""
    if not name:
        return False
    before, _, after = text.partition(name)
    if len(before.split()) > _MOST_BEFORE:
        return False
    if _is_all_code(line) or text.startswith(f"({name}") or (text == name and anchor.endswith(f"-{name}")):
        return True
    if text.endswith(_STOP) and not after.startswith(("(", "[")):
        return False
    declared = not _KEYWORDS.isdisjoint(before.split())
    return declared or (bool(_AFTER_NAME.match(after)) and not text.endswith("."))


def _is_all_code(line: Element) -> bool:
    if line.tag in _CODE:
        return True
    inner = [child for child in line if holds_words(child)]
    bare = not (line.text or "").strip() and not any((child.tail or "").strip() for child in line)
    return bare and len(inner) == 1 and inner[0].tag in _CODE


def _first_line(box: Element) -> Element | None:
    """Return the first element of a box if it is a separate line without blocks in it."""
    if (box.text or "").strip():
        return None
    first = next((child for child in box if holds_words(child)), None)
    if first is None or first.tag not in _FIRST or not all(map(is_inline, first)) or (first.tail or "").strip():
        return None
    following = first.getnext()
    ends = first.tag in _LINES or following is None or not is_inline(following)
    return first if ends else None


def _named(root: Element) -> Iterator[Element]:
    """Yield the elements within a line that a link may lead to."""
    for element in root.iterdescendants("a", "span", "strong", "b", "code"):
        if element.get("id") is not None or (element.tag == "a" and element.get("name") is not None):
            yield element


def _lines_with_names(root: Element) -> Iterator[tuple[Element, list[str]]]:
    """Yield the lines that contain names, with these names."""
    lines: dict[Element, list[str]] = {}
    for named in _named(root):
        name = named.get("id") or named.get("name") or ""
        line = next(named.iterancestors(*_LINES), None)
        if line is not None and not name.startswith("index-"):
            lines.setdefault(line, []).append(name)
    for line, names in lines.items():
        if next(line.iterancestors(*_HOLDERS), None) is None and all(map(is_inline, line)):
            yield line, names


def _outermost(line: Element) -> Element:
    """Return the outermost box around a line that contains nothing else."""
    outer = line
    for box in line.iterancestors():
        if box.tag not in _WRAPPERS or box.get("id") or (box.text or "").strip() or (outer.tail or "").strip():
            break
        if any(child is not outer and holds_words(child) for child in box):
            break
        outer = box
    return outer


def _is_first(line: Element, box: Element) -> bool:
    return not (box.text or "").strip() and next((child for child in box if holds_words(child)), None) is line


def _become_entry(line: Element, names: list[str], box: Element | None) -> None:
    """Replace `line` by a list with one entry and `line` as its term. The rest of its `box` becomes the definition."""
    parent = line.getparent()
    if parent is None:
        return
    entries = etree.Element("dl")
    entries.tail, line.tail = line.tail, None
    parent.replace(line, entries)
    for name in names[:0:-1]:
        etree.SubElement(entries, "dt", id=name)
    term = etree.SubElement(entries, "dt", {"id": names[0], "class": SIGNATURE})
    term.append(line)
    if box is not None:
        definition = etree.SubElement(entries, "dd")
        definition.text, entries.tail = entries.tail, None
        definition.extend(list(entries.itersiblings()))
    for named in list(_named(term)):
        named.attrib.pop("id", None)
        named.attrib.pop("name", None)
