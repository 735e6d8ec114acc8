"""Defines rules for short names: of emojis (`:tada:`), and of Material's icons (`:material-check:`)."""

import re
from collections.abc import Callable, Sequence
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token

_NAME = re.compile(r":([a-z0-9_+-]{1,60}):(?!\w)")
_ICON = re.compile(r":((?:material|fontawesome|octicons|simple)-[a-z0-9-]{1,60}):(?!\w)(?:\{[^{}\n]{0,200}\})?")


def emojis(in_ids: Callable[[str, str], str]) -> Callable[[MarkdownIt], None]:
    """Return the rule that parses short names. `in_ids(name, emoji)` is the part of a heading's id."""

    def parse(state: StateInline, silent: bool) -> bool:
        found = _at(state, _NAME)
        shown = _emoji(found[0]) if found else ""
        if found is None or not shown:
            return False
        if not silent:
            token = state.push("emoji", "", 0)
            token.content, token.info = shown, in_ids(found[0], shown)
        state.pos = found.end()
        return True

    def add(parser: MarkdownIt) -> None:
        parser.inline.ruler.after("backticks", "emoji", parse)
        parser.add_render_rule("emoji", _render)

    return add


def named(name: str, emoji: str) -> str:
    """Return the short name: ids are made of the source."""
    return name


def shown(name: str, emoji: str) -> str:
    """Return the emoji: ids are made of the text that readers see."""
    return emoji


def left_out(name: str, emoji: str) -> str:
    """Return nothing: ids are made of the words."""
    return ""


def icons(parser: MarkdownIt) -> None:
    """Parse the icons of Material for MkDocs as HTML icons, whose class gives their meaning."""
    parser.inline.ruler.after("backticks", "icon", _icon)


def _icon(state: StateInline, silent: bool) -> bool:
    found = _at(state, _ICON)
    if found is None:
        return False
    if not silent:
        name = re.sub(r"(-x)?(-\d+)?$", lambda end: "-xmark" if end[1] else "", found[1], count=1)  # octicons-x-16
        state.push("html_inline", "", 0).content = f'<i class="{name}"></i>'
    state.pos = found.end()
    return True


def _at(state: StateInline, name: re.Pattern[str]) -> re.Match[str] | None:
    """Return the match of `name` at the current position, unless it is within a word."""
    start = state.pos
    if state.src[start] != ":" or (start and re.match(r"\w", state.src[start - 1])):
        return None
    return name.match(state.src, start, state.posMax)


def _emoji(name: str) -> str:
    """Return the emoji of a short name, "" if there is none."""
    from emoji import emojize  # loads a table of 5,000 names

    shown = emojize(name, language="alias")
    return "" if shown == name else shown


def _render(_renderer: Any, tokens: Sequence[Token], place: int, *_: Any) -> str:
    return tokens[place].content
