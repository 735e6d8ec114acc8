"""Defines rules for docsify: notes that begin with a sign, and the attributes of headings."""

import re

from markdown_it import MarkdownIt
from markdown_it.rules_core import StateCore
from markdown_it.token import Token

_NOTE = re.compile(r"[!?]>[ \t]+")
_SETTING = re.compile(r"(?:<!--[ \t]*)?\{docsify-ignore(?:-all)?\}(?:[ \t]*-->)?|(?<=\s):id=([\w-]{1,200})")


def docsify(parser: MarkdownIt) -> None:
    """Parse `!> note`, `?> tip`, and the id in `## Title :id=own`."""
    parser.core.ruler.before("inline", "docsify", _read)


def _read(state: StateCore) -> None:
    done = list[Token]()
    tokens = iter(state.tokens)
    for token in tokens:
        if token.type not in ("paragraph_open", "heading_open"):
            done.append(token)
            continue
        inline, closing = next(tokens), next(tokens)
        if token.type == "heading_open":
            inline.content = _SETTING.sub(lambda said: f"{{#{said[1]}}}" if said[1] else "", inline.content).strip()
            done += token, inline, closing
        elif note := _NOTE.match(inline.content):
            inline.content = inline.content[note.end() :]
            token.hidden = closing.hidden = False  # a tight list hides its paragraphs
            box = Token("box_open", "div", 1, attrs={"class": "admonition"}, block=True, level=token.level)
            done += box, token, inline, closing, Token("box_close", "div", -1, block=True, level=token.level)
        else:
            done += token, inline, closing
    state.tokens = done
