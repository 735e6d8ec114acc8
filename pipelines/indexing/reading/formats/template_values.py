"""Defines rules for values in templates (`{{ value }}`): Vue expressions, Nunjucks, Tera, Jinja.

Only the generator knows a value, except one that the page itself captures.
"""

import re
from textwrap import indent

from markdown_it import MarkdownIt
from markdown_it.rules_core import StateCore
from markdown_it.rules_inline import StateInline

from pipelines.indexing.reading.formats.components import shown_words
from pipelines.indexing.reading.formats.rules import inline_tokens, push_words, with_targets
from pipelines.page.markdown import fence

_VALUE = re.compile(r"\{\{([^{}\n]*)\}\}|\{#\s[^{}\n]{0,1000}#\}")  # a value, or a comment
_TARGET = re.compile(r"(?:\{\{[^{}\n]*\}\}|[^\s(){]|\{)+")
_CAPTURE = re.compile(
    r"(?P<raw>\{%-?\s*raw\s*-?%\}(?>(?:(?!\{%-?\s*endraw).)*))"  # shown as it is
    r"|\{%-?\s*(?:(?:set|capture)\s+(?P<name>\w+)|(?P<end>end(?:set|capture)))\s*-?%\}"
    r"|(?P<margin>^[ \t]*)?\{\{-?[ \t]*(?P<used>\w+)(?P<filters>[ \t]*\|[^{}\n]*)?[ \t]*-?\}\}",
    re.MULTILINE | re.DOTALL,
)
_RAW = re.compile(r"\{%-?\s*(?:end)?raw\s*-?%\}\n?")
_HIGHLIGHT = re.compile(r"\|\s*highlight\(\s*[\"']?([\w+#-]*)")


def values(parser: MarkdownIt) -> None:
    """Replace values by the words in their arguments, except those shown in code."""
    parser.inline.ruler.before("backticks", "value", _value)
    parser.core.ruler.push("values_in_html", _drop_in_html)
    with_targets(parser, _target)


def with_captures(text: str) -> str:
    """Return a text in which `{{ name }}` is what `{% set name %}…{% endset %}` or `capture` captured before it.

    With the filter `highlight("js")` it is code.
    """
    if "endset" not in text and "endcapture" not in text:
        return text
    captured: dict[str, str] = {}
    done, at, name, start = list[str](), 0, "", 0
    for found in _CAPTURE.finditer(text):
        if found["name"] and not name:
            done.append(text[at : found.start()])
            name, at, start = found["name"], found.start(), found.end()
        elif found["end"] and name:
            captured[name], name, at = _RAW.sub("", text[start : found.start()]), "", found.end()
        elif not name and found["used"] in captured:
            done += text[at : found.start()], _shown(captured[found["used"]], found)
            at = found.end()
    return "".join([*done, text[at:]])


def _shown(text: str, used: re.Match[str]) -> str:
    code, margin = _HIGHLIGHT.search(used["filters"] or ""), used["margin"] or ""
    return indent(f"\n{fence(text.strip(chr(10)).rstrip(), code[1])}\n", margin) if code else margin + text.strip()


def _value(state: StateInline, silent: bool) -> bool:
    found = _VALUE.match(state.src, state.pos, state.posMax) if state.src[state.pos] == "{" else None
    if found is None:
        return False
    if not silent:
        push_words(state, shown_words(found[1] or ""))
    state.pos = found.end()
    return True


def _drop_in_html(state: StateCore) -> None:
    for token in inline_tokens(state.tokens):
        if token.type in ("html_block", "html_inline"):
            token.content = _VALUE.sub("", token.content)


def _target(text: str, start: int, end: int) -> tuple[str, int] | None:
    """Return "" for a link target that contains a value, and the end position."""
    found = _TARGET.match(text, start, end)
    return ("", found.end()) if found and _VALUE.search(found[0]) else None
