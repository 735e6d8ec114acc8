"""Rules for templates in Markdown: tags of Liquid, shortcodes of Hugo, helpers of mdBook.

A tag leaves its words: as a paragraph where it begins a line, else in its place. What looks like a tag in code is none.
"""

import re

from markdown_it import MarkdownIt
from markdown_it.common.utils import escapeHtml
from markdown_it.rules_block import StateBlock
from markdown_it.rules_core import StateCore
from markdown_it.rules_inline import StateInline

from pipelines.indexing.reading.formats.components import shown_words
from pipelines.indexing.reading.formats.rules import (
    ENDS,
    inline_tokens,
    last_place,
    line_at,
    place_of,
    push_paragraph,
    push_words,
    read_rest,
    with_targets,
)

_TAG_FORM = (
    r"\{%(?:[^%\n]|%(?!\})|\n(?!\s*\n)){0,1000}+%\}|\{\{[<%](?:[^{\n]|\n(?!\s*\n)){0,1000}?[>%]\}\}|\{\{#[^{}\n]*\}\}"
)
# What begins an address, and every other value that only the generator knows.
_VALUE_FORM = (
    r"\{\{-?[ \t]*(?:site\.(?:base)?url|"
    r"(?P<quote>[\"'])(?P<path>[^\"'{}\n]*)(?P=quote)[ \t]*\|[ \t]*\w+_url)[ \t]*-?\}\}"
)
_TAG = re.compile(_TAG_FORM)
_VALUE = re.compile(_VALUE_FORM)
_TAG_OR_VALUE = re.compile(f"{_TAG_FORM}|{_VALUE_FORM}")
_TARGET = re.compile(rf"(?:(?:{_TAG_FORM}|\{{\{{[^{{}}\n]*\}}\}})|[^\s(){{<>]|\{{)+")
_OPENING = re.compile(  # a tag of HTML whose values may have tags of a template, with quotes in their quotes
    rf"<[A-Za-z][\w-]*(?:\s+[\w:@.-]+(?:\s*=\s*(?:\"(?:{_TAG_FORM}|\{{\{{[^{{}}\n]*\}}\}}|[^\"{{]|\{{)*+\""
    r"|'[^']*'|[^\s\"'=<>`]+))?)*+\s*/?>"
)
_NAME = re.compile(r"[{<%\s/-]*([\w-]*)")
_SHOWN_ITSELF = re.compile(r"(\{\{[<%])/\*([^{\n]*?)\*/([>%]\}\})")
_TAB = re.compile(r"\{\{[<%]\s*tab\s+(?:(?:tab)?[nN]ame=)?\"([^\"\n]+)\"")
_TERM = re.compile(r"\b\w*term\w*=[\"']([\w -]+)[\"']")
_IN_LINE = re.compile(r"\b(?:text|\w*term\w*)=")  # a tag in a sentence, though a line begins with it
_LANGUAGE = re.compile(r"[{<%\s-]*highlight\s+\"?([\w+#-]+)")
_ENDS = {
    name: re.compile(rf"\{{(?:%-?|\{{[<%])\s*(?:end|/\s*){name}\b[^%>\n]*[%>]\}}{{1,2}}")
    for name in ("highlight", "comment")
}
# The tags around text that Liquid does not change. A tag on its own line goes with that line.
_RAW = re.compile(r"^[ \t]*\{%-?[ \t]*(?:end)?raw[ \t]*-?%\}[ \t]*\n|\{%-?[ \t]*(?:end)?raw[ \t]*-?%\}", re.MULTILINE)
_ATTRIBUTES = re.compile(r"\{:[ \t]*([^{}\n]*)\}[ \t]*$")  # of kramdown, for the block above
_FAILED = "templates: texts in which no more end of a name comes"


def templates(parser: MarkdownIt) -> None:
    """Read tags of templates, attributes of kramdown, and front matter in TOML."""
    parser.block.ruler.before("table", "toml", _toml)
    parser.block.ruler.before("fence", "template_tag", _block_tag, ENDS)
    parser.block.ruler.before("fence", "attributes", _attributes, ENDS)
    parser.inline.ruler.before("backticks", "template_tag", _inline_tag)
    parser.inline.ruler.before("html_inline", "template_html", _inline_html)
    parser.core.ruler.push("template_html", _fill_html)
    with_targets(parser, _target)


# ---------------------------------------------------------------------------------------------- words of a tag


def _words_of(tag: str) -> str:
    """Return the title of a tag, or the only term that it has, which the page shows by its name."""
    tab = _TAB.match(tag)
    terms = _TERM.findall(tag)
    return (tab[1] if tab else "") or shown_words(tag) or (terms[0] if len(terms) == 1 else "")


def _filled(found: re.Match[str]) -> str:
    """Return what stands in HTML for a tag or a value."""
    if itself := _SHOWN_ITSELF.fullmatch(found[0]):
        return escapeHtml("".join(itself.groups()))
    return found["path"] or escapeHtml(_words_of(found[0]))


def _target(text: str, start: int, end: int) -> tuple[str, int] | None:
    """Return a target of a link in which a template has yet to fill in something, and where it ends."""
    found = _TARGET.match(text, start, end)
    if found is None or "{" not in found[0]:
        return None
    known = _VALUE.sub(lambda value: value["path"] or "", found[0])
    target = _TAG.sub("", known)
    return ("" if "{{" in target and " " in target else target), found.end()


# ---------------------------------------------------------------------------------------------- blocks


def _toml(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """Read front matter between lines of `+++`."""
    if start or silent or not re.match(r"\+\+\+[ \t]*\n", state.src) or (last := state.src.find("\n+++", 3)) < 0:
        return False
    token = state.push("front_matter", "", 0)
    token.content, token.hidden = state.src[3:last], True
    state.line = line_at(state, last + 1, 0) + 1
    return True


def _block_tag(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """Read the tags that begin a line; what follows them is a block of its own."""
    place, limit = place_of(state, start), last_place(state, start, end)
    if state.src[place : place + 1] != "{" or state.is_code_block(start):
        return False
    tag = _TAG.match(state.src, place, limit)
    if tag is None or _SHOWN_ITSELF.fullmatch(tag[0]):
        return False
    line = line_at(state, tag.end(), start)
    if _IN_LINE.search(tag[0]) and state.skipSpaces(tag.end()) < state.eMarks[line]:
        return False
    if silent:
        return True
    while tag is not None:
        ending = _ending_of(state, tag, limit)
        push_paragraph(state, "" if ending else _words_of(tag[0]), start)
        place = ending.end() if ending else tag.end()
        if ending and (language := _LANGUAGE.match(tag[0])):
            _push_code(state, language[1], tag.end(), ending.start())
        tag = _TAG.match(state.src, state.skipSpaces(place), limit)
    read_rest(state, place, line_at(state, place, start), end)
    return True


def _ending_of(state: StateBlock | StateInline, tag: re.Match[str], limit: int) -> re.Match[str] | None:
    """Return the tag that ends a comment or a listing; texts that have no more of them are looked through once."""
    opened = _NAME.match(tag[0])
    name = opened[1] if opened and "/" not in opened[0] else ""
    failed = state.env.setdefault(_FAILED, {})
    if name not in _ENDS or failed.get(name) is state.src:
        return None
    found = _ENDS[name].search(state.src, tag.end(), limit)
    if found is None:
        failed[name] = state.src
    return found


def _push_code(state: StateBlock, language: str, start: int, end: int) -> None:
    """Add the code between two places, without the indentation of the line that it begins in."""
    first, last = line_at(state, start, 0), line_at(state, end, 0)
    indent = state.sCount[first]
    if first == last:
        content = state.src[start:end].strip()
    else:
        middle = state.getLines(first + 1, last, indent, True)
        content = state.src[start : state.eMarks[first]].strip() + "\n" + middle + state.src[state.bMarks[last] : end]
    token = state.push("fence", "code", 0)
    token.info, token.markup, token.content = language, "```", content.strip("\n").rstrip() + "\n"
    token.map = [first, last + 1]


def _attributes(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """Read a line of attributes below a block: the id of a heading, or the place of a table of contents."""
    place = place_of(state, start)
    if state.src[place : place + 2] != "{:" or state.is_code_block(start):
        return False
    found = _ATTRIBUTES.match(state.src, place, state.eMarks[start])
    if found is None:
        return False
    if not silent:
        kinds = [token.type for token in state.tokens[-3:]]
        own = re.search(r"#([\w.:-]+)", found[1])
        if own and kinds[:1] == ["heading_open"]:
            state.tokens[-2].content += f" {{#{own[1]}}}"
        elif re.match(r"toc\b", found[1]) and kinds[-1:] in (["bullet_list_close"], ["ordered_list_close"]):
            level = state.tokens[-1].level
            places = range(len(state.tokens) - 2, -1, -1)
            del state.tokens[next(n for n in places if state.tokens[n].level == level) :]
        state.line = start + 1
    return True


# ---------------------------------------------------------------------------------------------- within a line


def _inline_tag(state: StateInline, silent: bool) -> bool:
    """Read a tag in a line as its words, one that is shown itself as text, and a value as the path that it begins."""
    if state.src[state.pos] != "{":
        return False
    found = _TAG_OR_VALUE.match(state.src, state.pos, state.posMax)
    if found is None:
        return False
    itself = _SHOWN_ITSELF.fullmatch(found[0])
    ending = None if itself else _ending_of(state, found, state.posMax)
    if not silent and itself:
        state.append_pending("".join(itself.groups()))
    elif not silent and not ending:
        push_words(state, found["path"] or _words_of(found[0]))
    state.pos = ending.end() if ending else found.end()
    return True


def _inline_html(state: StateInline, silent: bool) -> bool:
    """Read a tag of HTML with tags of a template in its values."""
    if state.src[state.pos] != "<":
        return False
    found = _OPENING.match(state.src, state.pos, state.posMax)
    if found is None or "{" not in found[0]:
        return False
    if not silent:
        state.push("html_inline", "", 0).content = found[0]
    state.pos = found.end()
    return True


def _fill_html(state: StateCore) -> None:
    """Fill in HTML, and in code the tags that it shows."""
    for token in inline_tokens(state.tokens):
        if "{" not in token.content or token.type == "inline":
            continue
        if token.type in ("html_block", "html_inline"):
            token.content = _TAG_OR_VALUE.sub(_filled, token.content)
        elif token.type in ("fence", "code_block", "code_inline"):
            token.content = _SHOWN_ITSELF.sub(r"\1\2\3", _without_raw(token.content))


def _without_raw(code: str) -> str:
    """Return code without the tags `raw` and `endraw` around its templates; code that has only one of them is kept."""
    tags = _RAW.findall(code)
    if not tags or sum("endraw" in tag for tag in tags) * 2 != len(tags):
        return code
    inner = _RAW.sub("", code)
    return inner if "{{" in inner or "{%" in inner else code
