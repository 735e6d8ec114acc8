"""Defines rules for MDX: drops imports, exports and expressions, keeps readable text of components.

An element without an end is text.
"""

import re
import sys
from html import escape
from itertools import pairwise
from typing import NamedTuple

from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock, paragraph
from markdown_it.rules_core import StateCore
from markdown_it.rules_inline import StateInline

from pipelines.indexing.reading.formats.components import attributes_of, records_in, shown_of
from pipelines.indexing.reading.formats.rules import (
    ENDS,
    last_place,
    line_at,
    place_of,
    push_paragraph,
    read_rest,
    with_targets,
)
from pipelines.indexing.reading.verbatim import matches_outside_code

_MODULE = re.compile(
    r"(?:import\s++(?:[\"'{*]|[\w$]++(?:\s*+,|\s++from\b))|export\s++(?:default|const|let|var|function|class|async|\{|\*))"
)
# What only MDX has: the import of a component, whose name has a capital letter, and an attribute in braces.
_IMPORT = re.compile(
    r"^import[ \t]+(?:[\w$]+[ \t]*,[ \t]*)?\{?[ \t]*([A-Z][\w$]*)[^\n\"']*\bfrom[ \t]+[\"'][^\"'\n]+[\"']", re.MULTILINE
)
_BRACES = re.compile(r"<[A-Z][\w.]*\s[^<>{}]*=\{(?!\{)")  # `={{ … }}` may be of a template
_MDX_FENCE = re.compile(
    r"^[ \t]*(`{3,})mdx-code-block[ \t]*\n((?>(?:(?![ \t]*\1)[^\n]*\n)*))[ \t]*\1[ \t]*$", re.MULTILINE
)
_TAG = re.compile(r"<(?P<close>/?)(?P<name>[A-Za-z][\w.:-]*|(?=>))")
_HEADING_ID = re.compile(
    r"(?<![ \t])[ \t]*\[(?:#(?=[\w.:-]*[^\W\d])([\w.:-]++)|!?toc)\][ \t]*\Z"
)  # of Fumadocs: `## Title [#id]`
_COMMENT_ID = re.compile(r"\{/\*\s*(#[\w:.-]+)\s*\*/\}")
_TEXT = re.compile(r"""\s*(?:"([^"]*)"|'([^']*)'|`([^`$]*)`)\s*""", re.DOTALL)
_TARGET = re.compile(r"\{[^{}\n]*\}(?=[\s)])")
_KEPT = {"id": "id", "name": "name", "href": "href", "alt": "alt", "className": "class", "class": "class"}
_VOID = frozenset(("br", "col", "embed", "hr", "img", "input", "source", "track", "wbr"))
_INLINE = frozenset(
    ("a", "abbr", "b", "br", "cite", "code", "del", "em", "i", "img", "ins", "kbd", "mark", "q", "s", "small", "span",
     "strong", "sub", "sup", "u", "wbr")
)  # fmt: skip
# Characters; keeps the scan linear. The largest expression in real documentation has 2,000.
_MAX_EXPRESSION = 20_000
_DEEP = 3  # columns of indentation beyond which markdown-it does not look for the end of a paragraph
_VALUE = re.compile(r"(?<=[\s\"'])value=[\"']([^\"'\n]*)[\"']")
_LABELS, _VALUES = "mdx: labels by value", "mdx: a text, and the values of its tags"  # keys in `env`
_FAILED = "mdx: a text, and the place in it up to which no brace is closed"  # key in `env`
_TICK = re.compile(r"(?<!\\)`")  # begins or ends a template literal
_SIGNS = re.compile(r"\\.|[{}\"'`]|/\*", re.DOTALL)  # an escaped sign is none


class _Piece(NamedTuple):
    """A tag, comment or expression: its end, its words, its HTML, and its name if it is an HTML tag.

    `apart` means that it is a separate block at the beginning of a line, `component` that its words are a title.
    """

    end: int
    words: str = ""
    html: str = ""
    name: str = ""
    apart: bool = False
    component: bool = False


def mdx(parser: MarkdownIt) -> None:
    """Parse modules, elements and expressions."""
    parser.disable(["code", "html_block", "html_inline"])
    parser.block.ruler.before("table", "module", _module)
    parser.block.ruler.before("fence", "element", _block, ENDS)
    parser.block.ruler.at("paragraph", _paragraph)
    parser.inline.ruler.before("html_inline", "element", _inline)
    parser.core.ruler.before("inline", "heading_id", _heading_ids)
    with_targets(parser, _target)


def without_mdx_fences(text: str) -> str:
    """Return a text without the fences ```` ```mdx-code-block ````, which only hide components from translators."""
    return _MDX_FENCE.sub(r"\2", text) if "mdx-code-block" in text else text


def is_mdx(text: str) -> bool:
    """Return whether Markdown has components of JSX outside its code, so its generator reads it as MDX."""
    imported = {f"<{found[1]}" for found in matches_outside_code(_IMPORT, text)}
    return any(name in text for name in imported) or bool(matches_outside_code(_BRACES, text))


def _heading_ids(state: StateCore) -> None:
    """Write the ids of headings as in other dialects."""
    for opening, inline in pairwise(state.tokens):
        if opening.type == "heading_open":
            inline.content = _HEADING_ID.sub(lambda own: f" {{#{own[1]}}}" if own[1] else "", inline.content)


def _target(text: str, start: int, end: int) -> tuple[str, int] | None:
    found = _TARGET.match(text, start, end)
    return ("", found.end()) if found else None


# ---------------------------------------------------------------------------------------------- blocks and lines


def _module(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """Parse imports and exports, which end before an empty line outside all brackets and templates.

    If its brackets are never closed, the module ends at the first empty line.
    """
    if silent or state.blkIndent or state.sCount[start] or not _MODULE.match(state.src, state.bMarks[start]):
        return False
    depth, ticks, first = 0, 0, 0
    for line in range(start, end):
        if state.isEmpty(line):
            first = first or line
            if not depth and not ticks % 2:
                state.line = line
                return True
        parts = _TICK.split(state.src[state.bMarks[line] : state.eMarks[line]])
        code = "".join(part for number, part in enumerate(parts, ticks) if not number % 2)
        depth = max(0, depth + sum(map(code.count, "{[(")) - sum(map(code.count, "}])")))
        ticks += len(parts) - 1
    state.line = first if first and (depth or ticks % 2) else end
    return True


def _block(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """Parse the tags and expressions that begin a line and are not part of a sentence.

    They fill their lines, or are tags of block elements, or span several lines. The text after them is a new block.
    """
    pieces = _leading(state, start, last_place(state, start, end))
    if not pieces:
        return False
    for piece in () if silent else pieces:
        if piece.html:
            state.push("html_block", "", 0).content = f"{piece.html}\n"
        else:
            push_paragraph(state, f"**{piece.words}**" if piece.component and piece.words else piece.words, start)
    if not silent:
        _read_after(state, pieces[-1], line_at(state, pieces[-1].end, start), end)
    return True


def _paragraph(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """Parse a paragraph, which an element interrupts at any indentation: MDX has no indented code."""
    paragraph(state, start, end, silent)
    for line in range(start + 1, state.line):
        if state.sCount[line] - state.blkIndent > _DEEP and _leading(state, line, last_place(state, line, end)):
            state.tokens[-2].content = state.getLines(start, line, state.blkIndent, False).strip()
            state.tokens[-3].map = state.tokens[-2].map = [start, line]
            state.line = line
            break
    return True


def _leading(state: StateBlock, start: int, limit: int) -> list[_Piece]:
    """Return the pieces at the beginning of a line, up to the last one that ends a block."""
    found, count = list[_Piece](), 0
    place = place_of(state, start)
    while (piece := _piece(state, place, limit)) and (piece.apart or not piece.html):
        found.append(piece)
        line = line_at(state, piece.end, start)
        place = state.skipSpaces(piece.end)
        if piece.apart or line > start or place >= state.eMarks[line]:
            count = len(found)
        if line > start or place >= state.eMarks[line]:
            break
    return found[:count]


def _read_after(state: StateBlock, piece: _Piece, line: int, end: int) -> None:
    """Parse the text after a piece in its line. Text before the piece's end tag in this line is not a paragraph."""
    rest = state.src[piece.end : state.eMarks[line]].strip()
    if piece.name and rest.endswith(f"</{piece.name}>"):
        inline = state.push("inline", "", 0)
        inline.content, inline.children, inline.map = rest, [], [line, line + 1]
        state.line = line + 1
    else:
        read_rest(state, piece.end, line, end)


def _inline(state: StateInline, silent: bool) -> bool:
    """Parse a tag as HTML or as its words, and an expression as its text."""
    piece = _piece(state, state.pos, state.posMax)
    if piece is None:
        return False
    if not silent and piece.html:
        state.push("html_inline", "", 0).content = piece.html
    elif not silent and piece.words:
        state.append_pending(f" {piece.words} " if piece.component else piece.words)
    state.pos = piece.end
    return True


# ---------------------------------------------------------------------------------------------- tags and expressions


def _piece(state: StateBlock | StateInline, place: int, limit: int) -> _Piece | None:
    """Return the tag, comment or expression that begins at `place` and ends before `limit`, if any."""
    if state.src.startswith("{", place, limit):
        return _expression(state, place, limit)
    if state.src.startswith("<!--", place, limit):
        end = state.src.find("-->", place, min(limit, place + _MAX_EXPRESSION))
        return _Piece(end + len("-->")) if end > 0 else None
    return _element(state, place, limit) if state.src.startswith("<", place, limit) else None


def _expression(state: StateBlock | StateInline, place: int, limit: int) -> _Piece | None:
    if own := _COMMENT_ID.match(state.src, place, limit):
        return _Piece(own.end(), f"{{{own[1]}}}")
    end = -1 if state.src.startswith("{#", place) else _end_of_expression(state, place, limit)
    words = _TEXT.fullmatch(state.src, place + 1, end - 1) if end > 0 else None
    return _Piece(end, next(filter(None, words.groups()), "") if words else "") if end > 0 else None


def _element(state: StateBlock | StateInline, place: int, limit: int) -> _Piece | None:
    tag = _TAG.match(state.src, place, limit)
    end = _end_of_tag(state, tag.end(), limit) if tag else -1
    if tag is None or end < 0:
        return None
    name, said = tag["name"], state.src[tag.end() : end - 1]
    attributes = attributes_of(said)
    if not name[:1].islower() or "." in name:
        labels, records = _labels(state, said)
        words = shown_of(attributes) or labels.get(attributes.get("value", ""), "")
        items = "".join(f"<li>{escape(record, quote=False)}</li>" for record in records)
        html = f"<p>{escape(words, quote=False)}</p><ul>{items}</ul>" if records else ""
        return _Piece(end, words, html, apart=bool(html), component=True)
    kept = "".join(f' {_KEPT[key]}="{value}"' for key, value in attributes.items() if key in _KEPT)
    closing = f"</{name}>" if said.endswith("/") and name not in _VOID else ""
    html = f"<{tag['close']}{name}{kept}>{closing}"
    return _Piece(end, "", html, "" if tag["close"] else name, name not in _INLINE)


def _labels(state: StateBlock | StateInline, said: str) -> tuple[dict[str, str], list[str]]:
    """Return the labels by value of all objects in tags so far, and the text of the other objects in this tag.

    `<Tabs values={[{ label: "npm", value: "n" }]}>` names the tab `<TabItem value="n">` of the same text.
    """
    labels, records = state.env.setdefault(_LABELS, {}), list[str]()
    for record in records_in(said):
        if "label" in record and record.get("value") in _values(state):
            labels[record["value"]] = record["label"]
        else:
            records += filter(None, [shown_of(record)])
    return labels, records


def _values(state: StateBlock | StateInline) -> frozenset[str]:
    """Return the values in the attributes `value` of a text's tags."""
    text, values = state.env.get(_VALUES, (None, frozenset()))
    if text is not state.src:
        values = frozenset(found[1] for found in _VALUE.finditer(state.src))
        state.env[_VALUES] = state.src, values
    return values


def _end_of_tag(state: StateBlock | StateInline, place: int, limit: int) -> int:
    """Return the position after the ">" of a tag, or -1. Values in quotes and braces may contain ">"."""
    while place < limit:
        sign = state.src[place]
        if sign == ">":
            return place + 1
        if sign in "\"'":
            place = state.src.find(sign, place + 1, limit)
        elif sign == "{":
            place = _end_of_expression(state, place, limit) - 1
        elif sign == "<":
            return -1
        if place < 0:
            return -1
        place += 1
    return -1


def _end_of_expression(state: StateBlock | StateInline, place: int, limit: int) -> int:
    """Return the result of end_of_braces; after a failed search, nearby braces are not searched again."""
    text, until = state.env.get(_FAILED, ("", 0))
    if text is state.src and place < until:
        return -1
    end = end_of_braces(state.src, place, limit)
    if end < 0:
        state.env[_FAILED] = state.src, place + 1 + min(limit - place, _MAX_EXPRESSION) // 20
    return end


def end_of_braces(text: str, place: int, limit: int = sys.maxsize) -> int:
    """Return the position after the brace that closes the one at `place`, or -1 if none does within _MAX_EXPRESSION."""
    depth, quote, after = 0, "", place
    for found in _SIGNS.finditer(text, place, min(limit, len(text), place + _MAX_EXPRESSION)):
        sign, number = found[0], found.start()
        if number < after or sign[0] == "\\":
            continue
        if quote:
            quote = "" if sign == quote else quote
        elif sign == "/*":
            after = text.find("*/", number, place + _MAX_EXPRESSION) + 2
            if after < 2:
                return -1
        elif sign in "\"'`":
            quote = sign
        else:
            depth += 1 if sign == "{" else -1
            if not depth:
                return number + 1
    return -1
