"""Gives links without words the title of the file or section that they lead to, as generators do.

These are `[](guide.md)` and {doc}`guide` in MyST, :doc:`guide` in Sphinx, `xref:guide.adoc[]` in Antora, and references
to a label in another file: :ref:`label`, {ref}`label`, `[](#label)`. This module reads no file; its caller passes
functions that find a title.
"""

import re
from collections.abc import Callable
from functools import partial
from itertools import pairwise

from pipelines.indexing.reading.formats import (
    ASCIIDOC,
    MARKDOWN,
    RESTRUCTURED_TEXT,
    SOURCES,
    DocumentFormat,
    format_of_name,
)
from pipelines.indexing.reading.front_matter import FRONT_MATTER
from pipelines.indexing.reading.verbatim import replace_outside_code

# From a file's path, relative to another file's or to a folder above that, to the file's title; "" if there is no file.
Find = Callable[[str, str], str]

_ROLE = (
    r"(?P<role>:doc:|\{doc\})`(?P<name>[^`<>\n]+)`"
    r"|(?P<ref>:(?:std:)?ref:|\{(?:std:)?ref\})`(?P<label>[^`<>!][^`<>]{0,200})`"
)
_LINKS: dict[DocumentFormat, re.Pattern[str]] = {
    MARKDOWN: re.compile(rf"{_ROLE}|(?<![\]!\w])\[\]\((?:(?P<target>[^()<>\s#]+)|#(?P<place>[^()<>\s]+))\)"),
    RESTRUCTURED_TEXT: re.compile(_ROLE),
    ASCIIDOC: re.compile(r"\bxref:(?P<page>[^\[\s#]+\.adoc)\[\]"),
}
_HEAD = 20_000  # characters in which a title is looked for
_MARKED = {
    MARKDOWN: re.compile(r"^#[ \t]+(.+?)[ \t#]*$", re.MULTILINE),
    ASCIIDOC: re.compile(r"^=[ \t]+(.+)$", re.MULTILINE),
}
_RULE = re.compile(r"([^\w\s])\1+")
# A role names a page without its suffix.
_SUFFIXES = ("", *(f".{suffix}" for entry in (MARKDOWN, RESTRUCTURED_TEXT) for suffix in entry.suffixes))


def with_titles(path: str, text: str, find: Find, find_label: Find) -> str:
    """Return the text of the file at `path`, with titles added to links that have no words.

    `find_label` returns the title of a label in another file than `path`, "" if there is none.
    """
    entry = format_of_name(path) or MARKDOWN
    pattern = _LINKS.get(entry)
    return replace_outside_code(pattern, partial(_titled, path, find, find_label), text, entry) if pattern else text


def title_of(text: str, entry: DocumentFormat) -> str:
    """Return the title of a source, without code markup; "" if it has none."""
    text = text[:_HEAD].replace("\r\n", "\n")
    if entry is RESTRUCTURED_TEXT:
        lines = [line.strip() for line in text.split("\n")]
        pairs = (above for above, below in pairwise(lines) if _is_title(above, below))
        found = next(pairs, "")
    else:
        match = _MARKED[entry].search(FRONT_MATTER.sub("", text)) if entry in _MARKED else None
        found = re.sub(r"(?<!\s)\s*+\{[^{}]*+\}$", "", match[1]) if match else ""
    return re.sub(r"[`*]|:[\w:]{1,50}:(?=`)|(?<!\s)\s*+<[^<>]++>", "", found).strip()


def _is_title(above: str, below: str) -> bool:
    return bool(above and _RULE.fullmatch(below) and len(below) >= len(above) and not _RULE.fullmatch(above))


def _titled(path: str, find: Find, find_label: Find, match: re.Match[str]) -> str:
    said = {name: value for name, value in match.groupdict().items() if value}
    if "label" in said:
        title = find_label(said["label"], path)
        return f"{said['ref']}`{title} <{said['label']}>`" if title else match[0]
    if "place" in said:
        title = find_label(said["place"], path)
        return f"[{title}](#{said['place']})" if title else match[0]
    if "name" in said:
        title = _title_at(path, said["name"].strip(), find, _SUFFIXES)
        return f"{said['role']}`{title} <{said['name']}>`" if title else match[0]
    if "target" in said:
        title = _title_at(path, said["target"], find)
        return f"[{title}]({said['target']})" if title else match[0]
    module, colon, name = said["page"].rpartition(":")
    title = _title_at(path, f"{module}/pages/{name}" if colon else name, find)
    return f"xref:{said['page']}[{title}]" if title else match[0]


def _title_at(path: str, name: str, find: Find, suffixes: tuple[str, ...] = ("",)) -> str:
    """Return the title of the first file with that name; a leading slash makes it relative to a folder above."""
    names = (name.lstrip("/") + suffix for suffix in suffixes)
    return next(filter(None, (find(each, path) for each in names if format_of_name(each) in SOURCES)), "")
