"""Defines rules for Python-Markdown extensions: admonitions, tabs, code in tables, mkdocstrings."""

import re

from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock

from pipelines.indexing.reading.formats.rules import ENDS, place_of
from pipelines.page.parser import table_filled

_BOX = re.compile(
    r"(?P<sign>!!!|\?\?\?\+?|===[!+]?)[ \t]*+(?P<kind>(?>(?:[ \t]*+[^\"\n \t]++)*))[ \t]*+"
    r"(?:(?<=[ \t])\"(?P<title>[^\n]*)\"[^\s\"]*+[ \t]*+)?$"
)
_DOCSTRINGS = re.compile(r":::[ \t]+[^\s:]\S*[ \t]*$", re.MULTILINE)
_INDENT = 4
_RULE = re.compile(r"[-:|][-:| \t]*$")  # the delimiter row of a table
_CODE = re.compile(r"(?<!`)(`+)(?!`).*?(?<!`)\1(?!`)")


def boxes(parser: MarkdownIt) -> None:
    """Parse `!!! note "Title"` and `??? note` with indented text."""
    parser.block.ruler.before("fence", "indented_box", _box, ENDS)


def python_markdown(parser: MarkdownIt) -> None:
    """Parse content tabs (`=== "Title"` with indented text), and tables whose code may contain pipes.

    A place for the documentation of a Python name (`::: package.name` with indented options) is dropped.
    """
    parser.block.ruler.before("fence", "docstrings", _docstrings, ENDS)
    parser.block.ruler.before("fence", "content_tab", _tab, ENDS)
    parser.block.ruler.at("table", _table, {"alt": ["paragraph", "reference"]})


def _box(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    return _indented(state, start, end, silent, "!?")


def _tab(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    return _indented(state, start, end, silent, "=")


def _docstrings(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    place = place_of(state, start)
    found = state.src.startswith(":::", place) and _DOCSTRINGS.match(state.src, place, state.eMarks[start])
    if not found or state.is_code_block(start):
        return False
    if not silent:
        state.line = _below(state, start, end)
    return True


def _below(state: StateBlock, start: int, end: int) -> int:
    """Return the line after the indented lines below the line `start`."""
    last = start + 1
    while last < min(end, state.lineMax) and (state.isEmpty(last) or state.sCount[last] >= state.blkIndent + _INDENT):
        last += 1
    return last


def _indented(state: StateBlock, start: int, end: int, silent: bool, signs: str) -> bool:
    """Parse a box whose line begins with one of `signs`, and the indented lines below it."""
    place = place_of(state, start)
    if state.src[place : place + 1] not in signs or state.is_code_block(start):
        return False
    box = _BOX.match(state.src[place : state.eMarks[start]])
    if box is None or (box["title"] is None if "=" in signs else not box["kind"] and box["title"] is None):
        return False
    if silent:
        return True
    kind, _, words = box["kind"].partition(" ")
    title = words or kind.title() if box["title"] is None else box["title"]
    inner, last = state.blkIndent + _INDENT, _below(state, start, end)
    opening = state.push("box_open", "div", 1)
    opening.attrs = {"class": f"admonition {'tab' if '=' in signs else kind.lower()}"}
    opening.map = [start, last]
    if title:
        state.push("paragraph_open", "p", 1).attrs = {"class": "admonition-title"}
        inline = state.push("inline", "", 0)
        inline.content, inline.children, inline.map = title, [], [start, start + 1]
        state.push("paragraph_close", "p", -1)
    outer = state.blkIndent, state.lineMax, state.parentType
    state.blkIndent, state.lineMax, state.parentType = inner, last, "box"
    state.md.block.tokenize(state, start + 1, last)
    state.blkIndent, state.lineMax, state.parentType = outer
    state.push("box_close", "div", -1)
    state.line = last
    return True


def _table(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """Parse a table in which pipes within code do not separate cells."""
    if silent or start + 1 >= end or not _RULE.match(state.src, place_of(state, start + 1), state.eMarks[start + 1]):
        return table_filled(state, start, end, silent)
    last = start
    while last < min(end, state.lineMax) and not state.isEmpty(last) and state.sCount[last] >= state.blkIndent:
        last += 1
    rows = state.getLines(start, last, state.blkIndent, True)
    if "`" not in rows:
        return table_filled(state, start, end, silent)
    escaped = _CODE.sub(lambda code: re.sub(r"\\?\|", r"\\|", code[0]), rows)
    inner = StateBlock(escaped, state.md, state.env, state.tokens)
    inner.level = state.level
    if not table_filled(inner, 0, inner.lineMax, silent):
        return False
    state.line = start + inner.line
    return True
