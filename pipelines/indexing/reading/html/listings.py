"""Reads listings and signatures: code with its lines, its language, and the name of an API entry.

It handles single elements, independent of sections.
"""

import re
from collections.abc import Sequence
from itertools import islice

from lxml import etree
from lxml.etree import _Element as Element

from pipelines.indexing.reading.generators import CODE_LINES
from pipelines.indexing.reading.html.inline import name_of, spans_in
from pipelines.indexing.reading.html.signatures import SIGNATURE, name_in
from pipelines.indexing.reading.text import LINE_BREAK, as_listing, as_paragraph
from pipelines.page.plain import plain
from pipelines.page.tree import Code

_AROUND = 3  # elements around a listing that may name its language
_NAMES_LANGUAGE = ("language", "lang", "highlight", "highlight-source", "code")
PLAIN = frozenset(
    ("default", "none", "text", "plaintext", "plain", "txt", "nohighlight", "block")
)  # class names that mean no language
# Aliases, mapped to the names that Pygments uses.
_LANGUAGES = {**dict.fromkeys(PLAIN, ""), **dict.fromkeys(("python3", "ipython3", "ipython", "py"), "python")}
# The languages of signatures by Sphinx domain.
_DOMAINS = {"py": "python", "c": "c", "cpp": "cpp", "js": "javascript", "rust": "rust", "java": "java"}


def code_block(pre: Element) -> Code | None:
    """Return a `<pre>` with its line breaks and indentation, None if it is empty."""
    for line in pre.iter("div", "span"):
        if not CODE_LINES.isdisjoint((line.get("class") or "").split()) and _ends_without_break(line):
            line.tail = "\n" + (line.tail or "")
    text = as_listing("".join(pre.itertext()))
    return Code(text, language_of(pre)) if text else None


def names_by_line(pre: Element) -> dict[int, list[str]]:
    """Return the anchor names in a listing by the number of their line, counted like the lines of `code_block`."""
    names: dict[int, list[str]] = {}
    line = blank = 0
    begun = False  # whether a line with text has begun
    for event, element in etree.iterwalk(pre, events=("start", "end")):
        if event == "start" and element is not pre and (name := name_of(element)):
            names.setdefault(line, []).append(name)
        text = element.text if event == "start" else element.tail if element is not pre else None
        for piece in (text or "").replace(LINE_BREAK, "\n").splitlines(keepends=True):
            begun |= bool(piece.strip())
            line += piece.endswith("\n")
            blank += piece.endswith("\n") and not begun
    return {max(0, number - blank): found for number, found in names.items()}


def language_of(pre: Element) -> str:
    """Return the language of a listing by its Pygments name; "" if none is given."""
    found = named_language(pre)
    return _LANGUAGES.get(found, found)


def named_language(pre: Element) -> str:
    """Return the language given by the classes of a listing or its containers, as written; "" if there is none."""
    inner = pre[0] if len(pre) == 1 else None
    around = (inner, pre, *islice(pre.iterancestors("div", "figure", "td", "dl"), _AROUND))
    names = (name for element in around if element is not None for name in (element.get("class") or "").split())
    return next((name for name in map(_language, names) if name), "")


def _language(name: str) -> str:
    """Return the language in a class name: language-x, highlight-x, highlight-source-x."""
    kind, _, language = name.lower().rpartition("-")
    return language if kind in _NAMES_LANGUAGE else ""


def _ends_without_break(line: Element) -> bool:
    """Return whether the highlighter left the line break after `line` to the style sheet."""
    breaks = ("\n", LINE_BREAK)
    is_last = line.getnext() is None or (line.tail or "").startswith(breaks)
    return not is_last and not "".join(line.itertext()).endswith(breaks)


def signature_name(term: Element, anchor: str = "") -> str:
    """Return the dotted name of the API entry `term`, such as "ray.data.Dataset.map"; the whole text of other terms.

    For a term that is code, it is the name from which its `anchor` is derived.
    """
    parts = (
        "".join(part.itertext())
        for part in term.iter("span", "code", "tt")
        if {"descclassname", "sig-prename", "descname", "sig-name"} & set((part.get("class") or "").split())
    )
    name = as_paragraph("".join(parts))
    if not name and (is_code_term(term) or SIGNATURE in (term.get("class") or "").split()):
        name = name_in(plain(spans_in(term)), anchor)
    if not name:
        first, *rest = re.split(r"(?<=.)[\n]", plain(spans_in(term)).removeprefix(": "), maxsplit=1)
        if rest and first.count("(") > first.count(")"):  # parameters on lines of their own
            return name_in(first, anchor) or first.partition("(")[0].strip()
        return first[:200]
    own = term.get("id") or ""
    is_python = "py" in (term.get("class") or "").split()
    return own if is_python and own.endswith(f".{name}") else name


def signature_block(terms: Sequence[Element]) -> Code:
    """Return a listing of the signatures `terms`, or of other terms that share one definition."""
    language = next((_DOMAINS[name] for name in (terms[0].get("class") or "").split() if name in _DOMAINS), "")
    return Code("\n".join(filter(None, map(_signature, terms))), language)


def is_code_term(term: Element) -> bool:
    """Return whether a term is a listing."""
    return len(term) > 0 and next(term.iter("pre"), None) is not None


def _signature(term: Element) -> str:
    """Return the text of a term; a listing in it keeps its lines."""
    codes = [code for pre in term.iter("pre") if (code := code_block(pre))]
    return "\n".join(code.text for code in codes) if codes else plain(spans_in(term)).removeprefix(": ")
