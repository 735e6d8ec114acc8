"""Defines rules for the Markdown of VitePress and VuePress, which contains Vue expressions."""

import re

from markdown_it import MarkdownIt
from markdown_it.rules_core import StateCore
from markdown_it.rules_inline import StateInline

from pipelines.indexing.reading.formats.rules import inline_tokens, with_targets

_EXPRESSION = re.compile(r"\{\{[^{}\n]*\}\}")
_TARGET = re.compile(r"(?:\{\{[^{}\n]*\}\}|[^\s(){]|\{)+")


def vue(parser: MarkdownIt) -> None:
    """Drop expressions, except those shown in code."""
    parser.inline.ruler.before("backticks", "expression", _expression)
    parser.core.ruler.push("expressions_in_html", _drop_in_html)
    with_targets(parser, _target)


def _expression(state: StateInline, silent: bool) -> bool:
    found = _EXPRESSION.match(state.src, state.pos, state.posMax) if state.src[state.pos] == "{" else None
    if found is None:
        return False
    state.pos = found.end()
    return True


def _drop_in_html(state: StateCore) -> None:
    for token in inline_tokens(state.tokens):
        if token.type in ("html_block", "html_inline"):
            token.content = _EXPRESSION.sub("", token.content)


def _target(text: str, start: int, end: int) -> tuple[str, int] | None:
    """Return "" for a link target that contains an expression, and the end position."""
    found = _TARGET.match(text, start, end)
    return ("", found.end()) if found and _EXPRESSION.search(found[0]) else None
