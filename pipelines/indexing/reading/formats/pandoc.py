"""Defines rules for Pandoc's Markdown as Quarto and R Markdown publish it: cells of code, bracketed spans."""

import re

from markdown_it import MarkdownIt
from markdown_it.rules_core import StateCore
from markdown_it.rules_inline import StateInline

from pipelines.indexing.reading.formats.rules import push_words

# `[words]{.class}`; the words may contain code and one level of brackets.
_SPAN = re.compile(r"\[((?>[^\[\]\n]|\[[^\[\]\n]*\])++)\]\{[^{}\n]*\}")
_CELL = re.compile(r"\{(\w+)\b([^{}]*)\}$")
_OPTION = re.compile(r"^[ \t]*(?:#|//|--|%%)\|[ \t]*([\w.-]+)[ \t]*:[ \t]*(.*)\n?", re.MULTILINE)
_HIDDEN = re.compile(r"\b(?:echo|include)[ \t]*[=:][ \t]*(?i:f\b|false)")
_DRAWN = frozenset(("mermaid", "dot"))


def pandoc(parser: MarkdownIt) -> None:
    """Show the code of cells that show it, without their options, and the words of bracketed spans."""
    parser.core.ruler.after("block", "cells", _show_cells)
    parser.inline.ruler.before("link", "bracketed_span", _span)


def pandoc_slug(title: str) -> str:
    """Return the id that Pandoc gives a heading."""
    plain = re.sub(r"[^\w\s.-]", "", title).strip().lower()
    return re.sub(r"\s+", "-", re.sub(r"^[\W\d_]+", "", plain)) or "section"


def _show_cells(state: StateCore) -> None:
    """Remove cells that only compute or draw, and raw blocks; a cell in double braces shows one."""
    kept = []
    for token in state.tokens:
        info = token.info.strip() if token.type == "fence" else ""
        cell = _CELL.match(info)
        if cell:
            options = "\n".join(f"{name}: {value}" for name, value in _OPTION.findall(token.content))
            if cell[1] in _DRAWN or _HIDDEN.search(f"{cell[2]}\n{options}"):
                continue
            token.info, token.content = cell[1], _OPTION.sub("", token.content)
        elif info.startswith("{="):
            continue
        elif info.startswith("{{"):
            token.info = info.strip("{}")
        kept.append(token)
    state.tokens = kept


def _span(state: StateInline, silent: bool) -> bool:
    found = _SPAN.match(state.src, state.pos, state.posMax) if state.src[state.pos] == "[" else None
    if found is None:
        return False
    if not silent:
        push_words(state, found[1])
    state.pos = found.end()
    return True
