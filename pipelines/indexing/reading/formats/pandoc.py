"""Defines rules for the Markdown of Pandoc, as Quarto and R Markdown publish it: cells, spans, tables."""

import re
from itertools import takewhile
from textwrap import dedent

from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock
from markdown_it.rules_core import StateCore
from markdown_it.rules_inline import StateInline

from pipelines.indexing.reading.formats.rules import ENDS, push_words

# `[words]{.class}`; the words may contain code and one level of brackets.
_SPAN = re.compile(r"\[((?>(?:[^\[\]\n]|\[[^\[\]\n]*\])+))\]\{[^{}\n]*\}")
_CELL = re.compile(r"\{(\w+)\b([^{}]*)\}$")
_OPTION = re.compile(r"^[ \t]*(?:#|//|--|%%)\|[ \t]*([\w.-]+)[ \t]*:[ \t]*(.*)\n?", re.MULTILINE)
_ECHO = re.compile(r"\b(?:echo|include)[ \t]*[=:][ \t]*(\w+)")
_PAGE_HIDES = re.compile(r"^execute:[ \t]*(?:\{[^{}\n]*|\n(?:[ \t][^\n]*\n)*?[ \t]+)\becho:[ \t]*false", re.MULTILINE)
# A cell of R that hides the code of the cells after it.
_LATER_HIDE = re.compile(r"\bopts_chunk\$set\((?:[^()]|\([^()]*\)){0,1000}?\becho[ \t]*=[ \t]*(?:F\b|FALSE)")
_ESCAPED = re.compile(r"\{(\{\{<[^{}\n]*>\}\})\}")  # a shortcode that is shown
_GRID, _GRID_LINE = re.compile(r"\+(?:[-=:]+\+)+\s*$"), re.compile(r"[+|]")
_MOST_LINES = 500  # of a grid table; docutils reads this many in 0.1 s
_NO_TABLE = "pandoc: a text, and the line up to which it has no table"  # key in `env`
_DRAWN = frozenset(("mermaid", "dot"))


def pandoc(parser: MarkdownIt) -> None:
    """Show the code of cells that show it, without their options, and the words of bracketed spans."""
    parser.block.ruler.before("table", "grid_table", _grid_table, ENDS)
    parser.core.ruler.after("block", "cells", _show_cells)
    parser.inline.ruler.before("link", "bracketed_span", _span)


def pandoc_slug(title: str) -> str:
    """Return the id that Pandoc gives a heading."""
    plain = re.sub(r"[^\w\s.-]", "", title).strip().lower()
    return re.sub(r"\s+", "-", re.sub(r"^[\W\d_]+", "", plain)) or "section"


def _show_cells(state: StateCore) -> None:
    """Remove cells that only compute or draw, and raw blocks; a cell in double braces shows one."""
    kept = []
    front = state.tokens[0].content if state.tokens and state.tokens[0].type == "front_matter" else ""
    hides = _PAGE_HIDES.search(front) is not None
    for token in state.tokens:
        info = token.info.strip() if token.type == "fence" else ""
        cell = _CELL.match(info)
        if cell:
            options = "\n".join(f"{name}: {value}" for name, value in _OPTION.findall(token.content))
            hidden = cell[1] in _DRAWN or _is_hidden(f"{cell[2]}\n{options}", hides)
            hides = hides or _LATER_HIDE.search(token.content) is not None
            if hidden:
                continue
            token.info, token.content = cell[1], _OPTION.sub("", token.content)
        elif info.startswith("{="):
            continue
        elif info.startswith("{{"):
            token.info = info.strip("{}")
        if token.type == "fence":
            token.content = _ESCAPED.sub(r"\1", token.content)
        kept.append(token)
    state.tokens = kept


def _is_hidden(options: str, hides: bool) -> bool:
    """Return whether a cell hides its code; `hides` is the answer for a cell without an option."""
    given = [value.lower() in ("f", "false") for value in _ECHO.findall(options)]
    return any(given) if given else hides


def _grid_table(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """Parse a table drawn with `+---+` and `|`, whose cells contain blocks. No lines are searched twice in vain."""
    text, until = state.env.get(_NO_TABLE, ("", 0))
    first = state.getLines(start, start + 1, state.blkIndent, False).rstrip()
    if (text is state.src and start < until) or not _GRID.match(first) or state.is_code_block(start):
        return False
    below = (
        state.getLines(line, line + 1, state.blkIndent, False).rstrip()
        for line in range(start, min(end, start + _MOST_LINES))
    )
    lines = list(takewhile(_GRID_LINE.match, below))
    from docutils.parsers.rst.tableparser import GridTableParser, TableMarkupError  # slow to load
    from docutils.statemachine import StringList

    try:
        drawn = [line.replace(":", line[2]) if _GRID.match(line) else line for line in lines]
        _, head, body = GridTableParser().parse(StringList(drawn))
    except (TableMarkupError, AssertionError, IndexError):
        state.env[_NO_TABLE] = state.src, start + len(lines)
        return False
    if silent:
        return True
    state.push("html_block", "", 0).content = "<table>"
    for tag, rows in (("th", head), ("td", body)):
        for row in rows:
            state.push("html_block", "", 0).content = "<tr>"
            for cell in row:
                state.push("html_block", "", 0).content = f"<{tag}>"
                if cell is not None:
                    state.md.block.parse(dedent("\n".join(cell[3])), state.md, state.env, state.tokens)
                state.push("html_block", "", 0).content = f"</{tag}>"
            state.push("html_block", "", 0).content = "</tr>"
    state.push("html_block", "", 0).content = "</table>"
    state.line = start + len(lines)
    return True


def _span(state: StateInline, silent: bool) -> bool:
    found = _SPAN.match(state.src, state.pos, state.posMax) if state.src[state.pos] == "[" else None
    if found is None:
        return False
    if not silent:
        push_words(state, found[1])
    state.pos = found.end()
    return True
