"""Defines rules for templates in Markdown: Liquid tags, Hugo shortcodes, mdBook helpers.

A tag is replaced by its words: as a paragraph at the beginning of a line, otherwise in place. Text in code that looks
like a tag is not one.
"""

import re
from functools import cache

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
    r"\{%(?>(?:[^%\n]|%(?!\})|\n(?!\s*\n)){0,1000})%\}"
    r"|\{\{[<%](?:[^{\n]|\n(?!\s*\n)){0,1000}?[>%]\}\}|\{\{#[^{}\n]*\}\}"
)
# A value that begins an address, such as the site's base URL, which only the generator knows.
_VALUE_FORM = (
    r"\{\{-?[ \t]*(?:site\.(?:base)?url|"
    r"(?P<quote>[\"'])(?P<path>[^\"'{}\n]*)(?P=quote)[ \t]*\|[ \t]*\w+_url)[ \t]*-?\}\}"
)
_TAG = re.compile(_TAG_FORM)
_VALUE = re.compile(_VALUE_FORM)
_TAG_OR_VALUE = re.compile(f"{_TAG_FORM}|{_VALUE_FORM}")
_TARGET = re.compile(rf"(?:(?:{_TAG_FORM}|\{{\{{[^{{}}\n]*\}}\}})|[^\s(){{<>]|\{{)+")
_OPENING = re.compile(  # an HTML tag whose attribute values may contain template tags with nested quotes
    rf"<[A-Za-z][\w-]*(?>(?:\s+[\w:@.-]+(?:\s*=\s*(?:\"(?>(?:{_TAG_FORM}|\{{\{{[^{{}}\n]*\}}\}}|[^\"{{]|\{{)*)\""
    r"|'[^']*'|[^\s\"'=<>`]+))?)*)\s*/?>"
)
_NAME = re.compile(r"[{<%\s/-]*([\w-]*)")
_SHOWN_ITSELF = re.compile(r"(\{\{[<%])/\*([^{\n]*?)\*/([>%]\}\})")
_TAB = re.compile(r"\{\{[<%]\s*tab\s+(?:(?:tab)?[nN]ame=)?\"([^\"\n]+)\"")
_TERM = re.compile(r"\b\w*term\w*=[\"']([\w -]+)[\"']")
_VALUE_OF_PLACE = re.compile(r"(?<==)\"[^\"\n]*\"|\"([^\"\n]*)\"")  # a value without a name
# Of a tag `tabs` of Hexo's themes.
_TAB_COMMENT = re.compile(r"<!--\s*+tab\s++((?>(?:[^<>@\n-]|-(?!->))*))(?>(?:@(?:[^<>\n-]|-(?!->))*)?)\s*+-->")
_IN_LINE = re.compile(r"\b(?:text|\w*term\w*)=")  # a tag that is part of a sentence, even at the beginning of a line
_LANGUAGE = re.compile(r"[{<%\s-]*highlight\s+\"?([\w+#-]+)|.*?\blang(?:uage)?[:=][\"']?([\w+#-]+)")
_CODE = ("highlight", "codeblock", "code")  # names of tags around a listing
_ENDS = {
    name: re.compile(rf"\{{(?:%-?|\{{[<%])\s*(?:end|/\s*){name}\b[^%>\n]*[%>]\}}{{1,2}}")
    for name in (*_CODE, "comment")
}
# The tags around text that Liquid leaves unchanged. A tag on its own line is removed with the line.
_RAW = re.compile(r"^[ \t]*\{%-?[ \t]*(?:end)?raw[ \t]*-?%\}[ \t]*\n|\{%-?[ \t]*(?:end)?raw[ \t]*-?%\}", re.MULTILINE)
_ATTRIBUTES = re.compile(r"\{:[ \t]*+([^{}\n]*+)\}[ \t]*+$")  # kramdown attributes for the block above
_CONTINUES, _LONGEST_WORD = re.compile(r"[\w,][ \t]*\n\Z"), 100  # the end of a line within a sentence
_FAILED = "templates: texts in which no more end of a name comes"  # key in `env`


def templates(parser: MarkdownIt) -> None:
    """Parse template tags, kramdown attributes, and TOML front matter."""
    parser.block.ruler.before("table", "toml", _toml)
    parser.block.ruler.before("fence", "template_tag", _block_tag, ENDS)
    parser.block.ruler.before("fence", "attributes", _attributes, ENDS)
    parser.inline.ruler.before("backticks", "template_tag", _inline_tag)
    parser.inline.ruler.before("html_inline", "template_html", _inline_html)
    parser.core.ruler.push("template_html", _fill_html)
    with_targets(parser, _target)


# ---------------------------------------------------------------------------------------------- words of a tag


def _words_of(tag: str) -> str:
    """Return the title of a tag, or its only term, or its values that are words for readers."""
    tab = _TAB.match(tag)
    terms = _TERM.findall(tag)
    named = (tab[1] if tab else "") or shown_words(tag) or (terms[0] if len(terms) == 1 else "")
    return named or " ".join(filter(_are_words, _VALUE_OF_PLACE.findall(tag)))


def _are_words(value: str) -> bool:
    """Return whether a value is no address, name or option: several words, of which the first has a capital letter."""
    words = value.split()
    return len(words) > 1 and value[0].isupper() and all(word.strip(".,:;!?()'’-").isalnum() for word in words[:2])


def _filled(found: re.Match[str]) -> str:
    """Return the replacement of a tag or value in HTML."""
    if itself := _SHOWN_ITSELF.fullmatch(found[0]):
        return escapeHtml("".join(itself.groups()))
    return found["path"] or escapeHtml(_words_of(found[0]))


def fill_tags(html: str) -> str:
    """Return HTML with the words of its template tags."""
    return _TAB_COMMENT.sub(lambda tab: f"<p>{tab[1].rstrip()}:</p>", _TAG_OR_VALUE.sub(_filled, html))


def _target(text: str, start: int, end: int) -> tuple[str, int] | None:
    """Return a link target that contains template markup, with the markup resolved, and the end position."""
    found = _TARGET.match(text, start, end)
    if found is None or "{" not in found[0]:
        return None
    known = _VALUE.sub(lambda value: value["path"] or "", found[0])
    target = _TAG.sub("", known)
    return ("" if "{{" in target and " " in target else target), found.end()


# ---------------------------------------------------------------------------------------------- blocks


def _toml(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """Parse front matter between `+++` lines."""
    if start or silent or not re.match(r"\+\+\+[ \t]*\n", state.src) or (last := state.src.find("\n+++", 3)) < 0:
        return False
    token = state.push("front_matter", "", 0)
    token.content, token.hidden = state.src[3:last], True
    state.line = line_at(state, last + 1, 0) + 1
    return True


def _block_tag(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """Parse the tags that begin a line. The text after them is a new block."""
    place, limit = place_of(state, start), last_place(state, start, end)
    if state.src[place : place + 1] != "{" or state.is_code_block(start):
        return False
    tag = _TAG.match(state.src, place, limit)
    if tag is None or _SHOWN_ITSELF.fullmatch(tag[0]):
        return False
    line = line_at(state, tag.end(), start)
    if _is_in_sentence(state.src, tag, state.eMarks[line]):
        return False
    if _IN_LINE.search(tag[0]) and state.skipSpaces(tag.end()) < state.eMarks[line]:
        return False
    if silent:
        return True
    while tag is not None:
        ending = _ending_of(state, tag, limit)
        push_paragraph(state, "" if ending else _words_of(tag[0]), start)
        place = ending.end() if ending else tag.end()
        if ending and _name_of(tag) in _CODE:
            language = _LANGUAGE.match(tag[0])
            _push_code(state, (language[1] or language[2]) if language else "", tag.end(), ending.start())
        tag = _TAG.match(state.src, state.skipSpaces(place), limit)
    read_rest(state, place, line_at(state, place, start), end)
    return True


def _is_in_sentence(text: str, tag: re.Match[str], end: int) -> bool:
    """Return whether a tag surrounds words of a sentence, as in `a {{< hover label="x" >}}word{{< /hover >}} here`.

    Its line ends at `end`. The page shows these words, and the tag's attributes only on request.
    """
    name = _name_of(tag)
    if not name or name in _ENDS:
        return False
    closing = _closing(name).search(text, tag.end(), end)
    if closing is None or not text[tag.end() : closing.start()].strip():
        return False
    line = text.rfind("\n", 0, tag.start()) + 1
    beside = text[line : tag.start()] + text[closing.end() : end]
    return bool(beside.strip() or _CONTINUES.search(text, max(0, line - _LONGEST_WORD), line))


@cache
def _closing(name: str) -> re.Pattern[str]:
    return re.compile(rf"\{{\{{[<%]\s*/\s*{re.escape(name)}\s*[>%]\}}\}}")


def _ending_of(state: StateBlock | StateInline, tag: re.Match[str], limit: int) -> re.Match[str] | None:
    """Return the tag that ends a comment or a listing. A text without further end tags is searched only once.

    A tag around a fenced listing only decorates it.
    """
    name = _name_of(tag)
    failed = state.env.setdefault(_FAILED, {})
    if name not in _ENDS or failed.get(name) is state.src:
        return None
    found = _ENDS[name].search(state.src, tag.end(), limit)
    if found is None:
        failed[name] = state.src
    elif "```" in state.src[tag.end() : found.start()]:
        return None
    return found


def _name_of(tag: re.Match[str]) -> str:
    """Return the name of an opening tag, "" for another tag."""
    opened = _NAME.match(tag[0])
    return opened[1] if opened and "/" not in opened[0] else ""


def _push_code(state: StateBlock, language: str, start: int, end: int) -> None:
    """Add the code between two positions, without the indentation of its first line."""
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
    """Parse a line of attributes below a block: the id of a heading, or the place of a table of contents."""
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
    """Parse an inline tag as its words, an escaped tag as text, and a value as the path that it begins."""
    if state.src[state.pos] != "{":
        return False
    found = _TAG_OR_VALUE.match(state.src, state.pos, state.posMax)
    if found is None:
        return False
    itself = _SHOWN_ITSELF.fullmatch(found[0])
    ending = None if itself else _ending_of(state, found, state.posMax)
    if not silent and itself:
        state.append_pending("".join(itself.groups()))
    elif not silent and not ending and not _is_in_sentence(state.src, found, _end_of_line(state)):
        push_words(state, found["path"] or _words_of(found[0]))
    state.pos = ending.end() if ending else found.end()
    return True


def _end_of_line(state: StateInline) -> int:
    end = state.src.find("\n", state.pos, state.posMax)
    return end if end >= 0 else state.posMax


def _inline_html(state: StateInline, silent: bool) -> bool:
    """Parse an HTML tag whose attribute values contain template tags."""
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
    """Resolve template tags in HTML, and unescape tags that code shows."""
    for token in inline_tokens(state.tokens):
        if token.type == "inline" or ("{" not in token.content and "<!--" not in token.content):
            continue
        if token.type in ("html_block", "html_inline"):
            token.content = fill_tags(token.content)
        elif token.type in ("fence", "code_block", "code_inline"):
            token.content = _SHOWN_ITSELF.sub(r"\1\2\3", _without_raw(token.content))


def _without_raw(code: str) -> str:
    """Return code without the `raw` and `endraw` tags around its templates. Code with only one of them is unchanged."""
    tags = _RAW.findall(code)
    if not tags or sum("endraw" in tag for tag in tags) * 2 != len(tags):
        return code
    inner = _RAW.sub("", code)
    return inner if "{{" in inner or "{%" in inner else code
