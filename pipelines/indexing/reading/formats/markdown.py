"""Renders Markdown as the HTML that GitHub would make of it, with the ids of headings."""

import re
from functools import cache
from itertools import pairwise

from markdown_it import MarkdownIt
from markdown_it.token import Token
from mdit_py_plugins.front_matter import front_matter_plugin

_ATTRIBUTES = re.compile(r"\s*\{:?\s*#([\w:.-]+)[^{}]*\}\s*$")
_NOT_IN_SLUG = re.compile(r"[^\w\- ]")
_FIELD = re.compile(r"^(title|lang|language):[ \t]*(\S.*)$", re.MULTILINE)


def render(text: str) -> tuple[str, dict[str, str]]:
    """Return the HTML of `text`, and the fields title, lang and language of its front matter."""
    tokens = _parser().parse(text)
    front = tokens[0].content if tokens and tokens[0].type == "front_matter" else ""
    _give_ids(tokens)
    fields = {name: value.strip().strip("\"'") for name, value in _FIELD.findall(front)}
    return _parser().renderer.render(tokens, _parser().options, {}), fields


@cache
def _parser() -> MarkdownIt:
    return MarkdownIt("commonmark").enable(["table", "strikethrough"]).use(front_matter_plugin)


def _give_ids(tokens: list[Token]) -> None:
    seen: dict[str, int] = {}
    for opening, inline in pairwise(tokens):
        if opening.type == "heading_open":
            opening.attrSet("id", _own_id(inline) or _unique(slug(_words(inline)), seen))


def _own_id(inline: Token) -> str | None:
    """Return the id of `## Title {#id}` and remove it from the title; None if there is none."""
    last = inline.children[-1] if inline.children else None
    match = _ATTRIBUTES.search(last.content) if last is not None and last.type == "text" else None
    if last is None or match is None:
        return None
    last.content = last.content[: match.start()]
    return match.group(1)


def _words(inline: Token) -> str:
    return "".join(child.content for child in inline.children or () if child.type in ("text", "code_inline"))


def slug(title: str) -> str:
    """Return the id that GitHub gives a heading."""
    return _NOT_IN_SLUG.sub("", title.strip().lower()).replace(" ", "-")


def _unique(name: str, seen: dict[str, int]) -> str:
    count = seen.get(name, 0)
    seen[name] = count + 1
    return f"{name}-{count}" if count else name
