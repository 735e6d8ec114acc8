"""Defines rules for MyST: directives, roles, labels, comments, and links without text.

A directive with text becomes its title and its text, a directive with code becomes code, and a role becomes its words.
"""

import re
from collections.abc import Iterator
from pathlib import PurePosixPath
from textwrap import indent

from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock
from markdown_it.rules_core import StateCore
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token
from mdit_py_plugins.colon_fence import colon_fence_plugin
from mdit_py_plugins.myst_blocks import myst_block_plugin

from pipelines.indexing.reading.formats.rules import push_paragraph
from pipelines.indexing.reading.formats.sphinx_markup import box_title, change_note, directive_kind, shown_role
from pipelines.indexing.reading.formats.values import rows_of_values
from pipelines.indexing.reading.front_matter import front_matter
from pipelines.indexing.reading.verbatim import replace_outside_code

_DIRECTIVE = re.compile(r"\{(?P<name>[\w:.+-]+)\}[ \t]*+(?P<argument>.*)")
_ROLE = re.compile(r"\{([\w:+-]{1,50})\}(`+)(?!`)(.{1,5000}?)(?<!`)\2(?!`)", re.DOTALL)
_UNNAMED = re.compile(r"\[\]\(([^()<>\s]+)\)")  # a link without text, shown as the name of its target
_OPTIONS = re.compile(r"\A(?:[ \t]*---[ \t]*\n(?:.*\n)*?[ \t]*---[ \t]*(?:\n|\Z)|(?:[ \t]*:[\w-]+:.*(?:\n|\Z))*)")
_FENCES = ("fence", "colon_fence")
_SUBSTITUTION = re.compile(r"\{\{[ \t]*([\w-]+)[ \t]*\}\}")


def with_substitutions(text: str) -> str:
    """Return a text with the substitutions that its front matter defines (`{{ name }}`), except in code."""
    settings = front_matter(text).get("myst") if "substitutions:" in text else None
    values = settings.get("substitutions") if isinstance(settings, dict) else None
    if not isinstance(values, dict):
        return text
    known = {str(name): str(value) for name, value in values.items()}
    return replace_outside_code(_SUBSTITUTION, lambda found: known.get(found[1], found[0]), text)


def myst(parser: MarkdownIt) -> None:
    """Parse the MyST extensions of Markdown."""
    parser.use(myst_block_plugin).use(colon_fence_plugin)
    parser.add_render_rule("myst_target", _render_target)
    for name in ("myst_line_comment", "myst_block_break"):
        parser.add_render_rule(name, lambda *_: "")
    parser.core.ruler.after("block", "directives", _read_directives)
    parser.inline.ruler.before("backticks", "role", _role)
    parser.inline.ruler.before("link", "unnamed", _unnamed)


def _render_target(_renderer: object, tokens: list[Token], place: int, *_: object) -> str:
    return f'<a id="{re.sub(r"[^a-z0-9]+", "-", tokens[place].content.lower()).strip("-")}"></a>\n'


# ---------------------------------------------------------------------------------------------- directives


def _read_directives(state: StateCore) -> None:
    """Replace each directive by its content."""
    if any(token.type in _FENCES for token in state.tokens):
        state.tokens = list(_read(state, state.tokens, 0))


def _read(state: StateCore, tokens: list[Token], depth: int) -> Iterator[Token]:
    for token in tokens:
        directive = _DIRECTIVE.fullmatch(token.info.strip()) if token.type in _FENCES else None
        if directive:
            yield from _read_directive(state, directive, token, depth)
        elif token.type == "colon_fence":
            yield from _read_text(state, token.info.strip(), token.content, token.level, depth)
        else:
            yield token


def _read_directive(state: StateCore, directive: re.Match[str], fence: Token, depth: int) -> Iterator[Token]:
    name, argument, text = directive["name"].lower(), directive["argument"], _OPTIONS.sub("", fence.content)
    kind = directive_kind(name, argument)
    if name == "eval-rst":
        from pipelines.indexing.reading.formats.restructured_text import render  # slow to load

        yield Token("html_block", "", 0, content=f"<div>{render(fence.content)}</div>\n", level=fence.level)
    elif kind == "code" or name == "parsed-literal":
        yield _fence(text, fence)
    elif name == "math":
        yield Token("math_block", "", 0, content=text.strip(), level=fence.level)
    elif name in ("image", "figure"):
        alt = _option("alt", fence.content.removesuffix(text))
        yield from _read_text(state, alt, text if name == "figure" else "", fence.level, depth)
    elif name == "list-table":
        heads = _option("header-rows", fence.content.removesuffix(text))
        yield from _read_text(state, argument and f"**{argument}**", "", fence.level, depth)
        yield from _as_table(_read_text(state, "", text, fence.level, depth), int(heads) if heads.isdecimal() else 0)
    elif name == "csv-table":
        options = fence.content.removesuffix(text)
        head, heads = _option("header", options), _option("header-rows", options)
        rows = rows_of_values(
            [*filter(None, [head]), *text.strip().splitlines()], _delimiter(_option("delim", options))
        )
        count = (int(heads) if heads.isdecimal() else 0) + bool(head)
        yield from _read_text(state, argument and f"**{argument}**", "", fence.level, depth)
        yield from _as_table(_read_text(state, "", _as_lists(rows), fence.level, depth), count)
    elif kind == "object":
        yield _fence(f"{argument}\n", fence)
        yield from _read_text(state, "", text, fence.level, depth)
    elif kind == "box":
        yield Token("box_open", "div", 1, attrs={"class": "admonition"}, block=True, level=fence.level)
        yield from _read_text(state, f"**{argument or box_title(name)}**", text, fence.level, depth)
        yield Token("box_close", "div", -1, block=True, level=fence.level)
    elif kind != "silent":
        note = change_note(name, argument) if kind == "change" else f"**{argument}**" if kind == "titled" else ""
        yield from _read_text(state, note if argument else "", text, fence.level, depth)


def _option(name: str, options: str) -> str:
    found = re.search(rf"^[ \t]*:?{name}:[ \t]*+(.+)", options, re.MULTILINE)
    return found[1].strip() if found else ""


def _delimiter(option: str) -> str:
    return {"tab": "\t", "space": " "}.get(option, option if len(option) == 1 else ",")


def _as_lists(rows: list[list[str]]) -> str:
    """Return rows as the nested lists of a list-table."""
    cells = (
        ("* - " if not n else "  - ") + indent(cell, " " * 4).strip() for row in rows for n, cell in enumerate(row)
    )
    return "\n".join(cells)


def _as_table(tokens: Iterator[Token], heads: int) -> Iterator[Token]:
    """Yield lists in a list as the cells of a table, whose first `heads` rows are its header."""
    base, rows = -1, 0
    for token in tokens:
        base = token.level if base < 0 else base
        depth = token.level - base
        if depth > 3 or not token.type.startswith(("bullet_list", "list_item")):
            yield token
        elif depth != 2:
            rows += depth == 1 and token.nesting > 0
            tag = {0: "table", 1: "tr"}.get(depth, "th" if rows <= heads else "td")
            yield token.copy(tag=tag, type=f"{tag}_{'open' if token.nesting > 0 else 'close'}")


def _fence(text: str, directive: Token) -> Token:
    return Token("fence", "code", 0, content=text, markup="```", map=directive.map, level=directive.level)


def _read_text(state: StateCore, title: str, text: str, level: int, depth: int) -> Iterator[Token]:
    """Parse the text of a directive below its title."""
    inner = StateBlock(text, state.md, state.env, [])
    inner.level = level
    push_paragraph(inner, title, 0)
    if depth < state.md.options["maxNesting"]:
        state.md.block.tokenize(inner, 0, inner.lineMax)
    yield from _read(state, inner.tokens, depth + 1)


# ---------------------------------------------------------------------------------------------- within a line


def _role(state: StateInline, silent: bool) -> bool:
    """Parse a role as the text that a reader sees: its title, or its target with `~` and `!` applied."""
    if state.src[state.pos] != "{" or not (role := _ROLE.match(state.src, state.pos, state.posMax)):
        return False
    if not silent:
        shown, is_code = shown_role(role[1], role[3])
        if is_code:
            state.push("code_inline", "code", 0).content = shown
        else:
            state.append_pending(shown)
    state.pos = role.end()
    return True


def _unnamed(state: StateInline, silent: bool) -> bool:
    """Parse a link without text as the last name in its target. A label, which may be on any page, gives no link."""
    link = _UNNAMED.match(state.src, state.pos, state.posMax) if state.src[state.pos] == "[" else None
    if link is None or re.match(r"[\w!\]]", state.src[max(state.pos - 1, 0)]):
        return False
    if not silent:
        name = PurePosixPath(link[1].rpartition("#")[2]).stem
        if name != link[1]:
            state.push("link_open", "a", 1).attrs = {"href": state.md.normalizeLink(link[1])}
        state.append_pending(name)
        if name != link[1]:
            state.push("link_close", "a", -1)
    state.pos = link.end()
    return True
