"""Defines how kramdown and Python-Markdown read HTML: a block ends with its element."""

import re
from bisect import bisect_left
from functools import lru_cache

from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock

from pipelines.indexing.reading.formats.rules import line_at, place_of

_TAG = re.compile(r"<(/?)([a-zA-Z][\w-]*+)(?>(?:[^<>\"']|\"[^\"]*\"|'[^']*')*)>")
_INNER = re.compile(r"<\w[^<>]*\smarkdown(?=[=\s>])|^[ \t]*(?:`{3}|~{3})", re.MULTILINE)  # Markdown, or a fence


def whole_html(parser: MarkdownIt) -> None:
    """Extend each HTML block to the end of its first element, unless Markdown may be inside."""
    rules = parser.block.ruler
    block = next(rule.fn for rule in rules.__rules__ if rule.name == "html_block")

    def whole(state: StateBlock, start: int, end: int, silent: bool) -> bool:
        place = place_of(state, start)
        if state.src[place : place + 1] != "<" or not block(state, start, end, silent):  # most lines are no HTML
            return False
        closes = None if silent else _ends(state.src).get(place)
        last = line_at(state, closes, start) + 1 if closes else 0
        if state.line < last <= end:
            state.line = last
            state.tokens[-1].content = state.getLines(start, last, state.blkIndent, True)
            state.tokens[-1].map = [start, last]
        return True

    rules.at("html_block", whole, {"alt": ["paragraph", "reference", "blockquote"]})


@lru_cache(maxsize=1)
def _ends(text: str) -> dict[int, int]:
    """Return where each element without Markdown inside begins, and the last position of its closing tag."""
    ends: dict[int, int] = {}
    opened: dict[str, list[int]] = {}
    for tag in _TAG.finditer(text):
        name = tag[2].lower()
        if tag[1]:
            if places := opened.get(name):
                ends[places.pop()] = tag.end() - 1
        elif not tag[0].endswith("/>"):
            opened.setdefault(name, []).append(tag.start())
    inner = [found.start() for found in _INNER.finditer(text)]
    return {start: end for start, end in ends.items() if bisect_left(inner, start) == bisect_left(inner, end)}
