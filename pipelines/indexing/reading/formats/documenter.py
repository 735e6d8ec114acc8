"""Defines rules for the Markdown of Documenter, for Julia: references, ids, blocks for the generator."""

import re

from markdown_it import MarkdownIt
from markdown_it.rules_core import StateCore

from pipelines.indexing.reading.formats.rules import with_targets

_TARGET = re.compile(r"@(?:ref|extref|id)\b[^()\n]*")
_TITLE_ID = re.compile(r"\[((?>(?:[^\[\]\n]|\[[^\[\]\n]*\])+))\]\(@id[ \t]++([^()\s][^()\n]*)\)\s*$")
_HIDDEN = re.compile(r"^[^\n]*#\s?hide[ \t]*\n", re.MULTILINE)
_KIND = re.compile(r"\A[ \t]*([^\s;]*)")  # of a block: `@example a; continued = true`
_CODE = frozenset(("@example", "@repl", "jldoctest"))  # blocks that show their code


def documenter(parser: MarkdownIt) -> None:
    """Parse `[words](@ref place)`, `# [Title](@id own)` and blocks such as `@example` and `@docs`."""
    parser.core.ruler.after("block", "documenter", _read)
    with_targets(parser, _target)


def documenter_slug(title: str) -> str:
    """Return the id that Documenter gives a heading."""
    plain = re.sub(r"&", "-and-", re.sub(r"\s+", "-", title))
    kept = "".join(
        sign for sign in plain if sign.isalpha() or sign.isdigit() or not (sign.isspace() or sign in "$+<=>^`|~")
    )
    return re.sub(r"--+", "-", kept).strip("-")


def _read(state: StateCore) -> None:
    kept = []
    heading = False
    for token in state.tokens:
        if token.type == "inline" and heading:
            token.content = _TITLE_ID.sub(lambda own: f"{own[1]} {{#{documenter_slug(own[2])}}}", token.content)
        heading = token.type == "heading_open"
        name = _KIND.findall(token.info)[0] if token.type == "fence" else ""
        if name in _CODE:
            token.info, token.content = "julia", _HIDDEN.sub("", token.content)
        elif name.startswith("@"):
            continue
        kept.append(token)
    state.tokens = kept


def _target(text: str, start: int, end: int) -> tuple[str, int] | None:
    """Return "" for the target of a reference, and the end position."""
    found = _TARGET.match(text, start, end)
    return ("", found.end()) if found else None
