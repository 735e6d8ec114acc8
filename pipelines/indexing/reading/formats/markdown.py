"""Reads Markdown by way of HTML, with the heading ids and extensions of its dialect.

Plain Markdown is read as GitHub renders it. Python-Markdown, Vue, MDX and MyST have different ids, and boxes.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import count, pairwise, takewhile
from typing import Any, NamedTuple
from urllib.parse import unquote

from markdown_it import MarkdownIt
from markdown_it.common.utils import escapeHtml
from markdown_it.renderer import RendererHTML
from markdown_it.rules_block import StateBlock
from markdown_it.rules_block.html_block import html_block
from markdown_it.rules_core import StateCore
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token
from mdit_py_plugins.container import container_plugin
from mdit_py_plugins.deflist import deflist_plugin
from mdit_py_plugins.dollarmath import dollarmath_plugin
from mdit_py_plugins.footnote import footnote_plugin
from mdit_py_plugins.front_matter import front_matter_plugin

from pipelines.indexing.reading import formats
from pipelines.indexing.reading.formats import asciidoc
from pipelines.indexing.reading.formats.components import shown_words, without_components
from pipelines.indexing.reading.formats.docsify import docsify
from pipelines.indexing.reading.formats.documenter import documenter, documenter_slug
from pipelines.indexing.reading.formats.emojis import emojis, icons, left_out, named, shown
from pipelines.indexing.reading.formats.html import document_of_html
from pipelines.indexing.reading.formats.marked_lines import shown_code
from pipelines.indexing.reading.formats.mdx import is_mdx, mdx, without_mdx_fences
from pipelines.indexing.reading.formats.myst import myst, with_substitutions
from pipelines.indexing.reading.formats.pandoc import pandoc, pandoc_slug
from pipelines.indexing.reading.formats.python_markdown import boxes, python_markdown
from pipelines.indexing.reading.formats.rules import ENDS, place_of
from pipelines.indexing.reading.formats.slugs import (
    blackfriday_slug,
    docsify_slug,
    docutils_slug,
    jupyter_slug,
    nbsphinx_slug,
    python_markdown_slug,
    slug,
    vue_slug,
)
from pipelines.indexing.reading.formats.template_values import values, with_captures
from pipelines.indexing.reading.formats.templates import templates
from pipelines.indexing.reading.formats.whole_html import whole_html
from pipelines.indexing.reading.html.elements import MATH
from pipelines.indexing.reading.text import text_of_page
from pipelines.page.parser import fill_few_cells
from pipelines.page.tree import Document
from pipelines.records import Page
from pipelines.text.cleaning import clean_page

# `{#id .class key="value"}` at the end of a heading.
_ATTRIBUTES = re.compile(
    r"(?<!\s)\s*+\{:?((?>(?:[.#][\w:.-]++|[\w-]++=(?:\"[^\"{}]*+\"|'[^'{}]*+'|[^\s{}]++)|[-\s])+))\}\s*+$"
)
_OWN_ID = re.compile(r"(?:^|\s)(?:#|id=[\"']?)([\w:.-]+)")
_WIKI_LINK = re.compile(
    r"(!?)\[\[(?!(?i:toc)\])(?=(?>(?:(?![^\W\d])[^\[\]])*)[^\W\d])([^\[\]|#]*+)#?\^?([^\[\]|]*+)(?:\|([^\[\]]*+))?"
    r"\]\](?![(\[])"
)
# DocFX markup: includes, markers, and components between colons.
_DOCFX = re.compile(
    r"\[!(?:INCLUDE|code-[\w-]++|div|Video|notebook)(?>(?:[^\[\]\n]++|\[[^\[\]\n]*+\])*)\]|:::[\w-]+([^\n]{0,1000}?):::",
    re.IGNORECASE,
)
# A DocFX reference to a member by its id: <xref:System.String.Format%2A?displayProperty=nameWithType>.
_XREF = re.compile(r"<xref:([^\s<>?]{1,500})(?:\?([^\s<>]{0,500}))?>")
_ASIDE = re.compile(r"%%(?:(?!%%)[^\n]){0,1000}%%|==(?=\S)([^=\n]{1,500})(?<=\S)==|(?<=\s)\^[\w-]+(?=\s*\Z)")
_ALERT = re.compile(r"\[!(\w+)\][+-]? ?(.*)(?:\n|\Z)")
_GAP = re.compile(r"\A\s+(?=---[ \t]*\n\s*[\w-]+[ \t]*:|\+\+\+[ \t]*\n\s*[\w-]+[ \t]*=)")  # before front matter
_FIELD = re.compile(r"^(title|lang|language)(?::|[ \t]*=)[ \t]*(\S.*)$", re.MULTILINE)
_BOX_TITLE = re.compile(
    r"([\w-]++)\s*(?:\{[^{}]*\}\s*)?(?:\[(?P<bracket>.*)\]\s*(?:\{[^{}]*\})?|\|\s*(?P<bar>.*)|(?P<plain>[^{|\[].*))?"
)
# Pandoc's attributes of a box: `{.callout-note title="Words"}`.
_BOX_CLASSES = re.compile(r"\{[ \t]*+(?:#[\w:-]++[ \t]*+)?(?:\.([\w-]++))?[^{}\n]*+\}")
_COLONS_AFTER = re.compile(r"\A(\{[^{}\n]*\}|[\w-]+(?=\s))\s*:{3,}\Z")  # Pandoc allows them
_NAMED_BOXES = frozenset(("note", "tip", "important", "warning", "caution", "danger", "info"))
# A label that the page may not define with `[label]: target`. Numbers in brackets are an index instead.
_LABEL = re.compile(r"\[(?:(?>(?:(?![^\W\d])[^\[\]\n])*)[^\W\d][^\[\]\n]*+)?\]")
_ENDS_HTML = re.compile(r"[ \t]*(?:`{3,}|~{3,}|\{:)")  # a fence, or kramdown attributes
_VERBATIM = re.compile(r"\s*<(?:!|\?|(?:pre|script|style|textarea)\b)", re.IGNORECASE)
_HOLDS_MARKDOWN = re.compile(r"<\w[^<>]*\smarkdown(?:=[\"']?(?:1|block|span)[\"']?)?[^<>]*>\s*$")
_ATTRIBUTE_LIST = re.compile(
    r"^\[\[?(?i:toc)\]?\]$|\{:?\s*+(?:[.#][\w-]++|[\w-]++=(?:\"[^\"{}]*+\"|[\w.-]++))(?:\s++[^{}\n]*+)?\}"
)


# ---------------------------------------------------------------------------------------------- dialects


class Dialect(NamedTuple):
    """A Markdown dialect: the ids of headings, the character that marks boxes, and extra rules.

    `prepare` converts the source to Markdown. `repeated` formats an id that occurs again: `count` is the number of
    earlier occurrences, `next` is one more, and `number` is docutils' running number, which also counts footnote
    references. The title of a page, an h1 before all other headings, has an id only with `title_has_id`,
    and other h1 only with `top_has_id`.
    """

    slug: Callable[[str], str] = slug
    repeated: str = "{name}-{count}"
    box: str = ":"
    rules: tuple[Callable[[MarkdownIt], None], ...] = ()
    prepare: Callable[[str], str] = str
    title_has_id: bool = True
    top_has_id: bool = True

    @property
    def numbered(self) -> bool:
        """Whether a heading whose title gives no id gets a number as its id."""
        return "{number}" in self.repeated


DIALECTS: dict[formats.DocumentFormat, Dialect] = {
    formats.MARKDOWN: Dialect(rules=(templates, emojis(named))),
    formats.KRAMDOWN: Dialect(rules=(templates, emojis(named), whole_html)),
    formats.BLACKFRIDAY: Dialect(blackfriday_slug, rules=(templates, emojis(named))),
    formats.MDX: Dialect(rules=(mdx,)),
    formats.DOCUSAURUS: Dialect(rules=(mdx, emojis(shown)), prepare=without_mdx_fences, top_has_id=False),
    formats.PYTHON_MARKDOWN: Dialect(
        python_markdown_slug, "{name}_{count}", "/", (python_markdown, emojis(left_out), icons, whole_html)
    ),
    formats.MKDOCS_MACROS: Dialect(
        python_markdown_slug,
        "{name}_{count}",
        "/",
        (python_markdown, emojis(left_out), icons, whole_html, values, templates),
        with_captures,
    ),
    formats.TEMPLATED_MARKDOWN: Dialect(rules=(values, templates, emojis(named)), prepare=with_captures),
    formats.DOCUMENTER: Dialect(documenter_slug, "{name}-{next}", rules=(documenter,)),
    formats.QUARTO: Dialect(pandoc_slug, rules=(pandoc, templates, emojis(named))),
    formats.VUE_MARKDOWN: Dialect(vue_slug, rules=(values, emojis(left_out))),
    formats.DOCSIFY: Dialect(docsify_slug, rules=(docsify, emojis(named))),
    formats.ASCIIDOC: Dialect(asciidoc.slug, "{name}_{next}", prepare=asciidoc.from_asciidoc, title_has_id=False),
    formats.NOTEBOOK: Dialect(jupyter_slug, "{name}"),
    formats.NBSPHINX: Dialect(nbsphinx_slug, "{name}"),
    **dict.fromkeys(
        (formats.MYST, formats.MYST_NOTEBOOK),
        Dialect(docutils_slug, "id{number}", rules=(myst,), prepare=with_substitutions),
    ),
}


def dialect_of(page: Page) -> Dialect:
    """Return the dialect of a page or notebook. Markdown with JSX components is MDX, even in a `.md` file."""
    entry = formats.format_of_page(page) or formats.MARKDOWN
    if entry is formats.MARKDOWN and is_mdx(text_of_page(page)):
        entry = formats.MDX
    return DIALECTS.get(entry, DIALECTS[formats.MARKDOWN])


def read_markdown(page: Page) -> Document:
    """Read a Markdown page by way of the HTML that its dialect gives. Raises UnreadablePage."""
    rendered, fields = render([_GAP.sub("", text_of_page(page))], dialect_of(page))
    language, title = fields.get("lang") or fields.get("language") or "", clean_page(fields.get("title", ""))
    if title and rendered.endswith(
        "<main></main>"
    ):  # an index page, which the generator fills with a list of the folder
        return Document(page.url, title, language, ())
    return document_of_html(page.url, rendered, title, language)


def render(parts: Sequence[str | Token], dialect: Dialect) -> tuple[str, dict[str, str]]:
    """Return the HTML of Markdown strings and ready tokens, and the front matter's title, lang and language."""
    parser = _parser(dialect)
    environment: dict[str, Any] = {}
    tokens: list[Token] = []
    for part in parts:
        tokens += [part] if isinstance(part, Token) else parser.parse(dialect.prepare(part), environment)
    front = tokens[0].content if tokens and tokens[0].type == "front_matter" else ""
    _give_ids(tokens, dialect)
    fields = {name: value.strip().strip("\"'") for name, value in _FIELD.findall(front)}
    return f"<body><main>{parser.renderer.render(tokens, parser.options, environment)}</main>", fields


# ---------------------------------------------------------------------------------------------- the parser


@cache
def _parser(dialect: Dialect) -> MarkdownIt:
    parser = fill_few_cells(MarkdownIt("commonmark").enable(["table", "strikethrough"]))
    parser.use(front_matter_plugin).use(deflist_plugin).use(footnote_plugin).use(boxes)
    parser.use(container_plugin, "box", dialect.box, validate=_is_box, render=_render_box)
    parser.use(dollarmath_plugin, allow_digits=False, allow_space=False, double_inline=True)
    parser.block.ruler.at("html_block", _html_block, {"alt": ["paragraph", "reference", "blockquote"]})
    parser.block.ruler.before("fence", "comment", _comment, ENDS)
    parser.inline.ruler.after("link", "label_elsewhere", _label_elsewhere)
    parser.inline.ruler.before("link", "wiki_link", _wiki_link)
    parser.inline.ruler.before("wiki_link", "docfx", _docfx)
    parser.inline.ruler.before("autolink", "xref", _xref)
    parser.core.ruler.before("inline", "alerts", _title_alerts)
    parser.core.ruler.before("inline", "boxes", _title_boxes)
    parser.core.ruler.push("docfx_tabs", _label_docfx_tabs)
    for name in ("math_inline", "math_inline_double", "math_block"):
        parser.add_render_rule(name, _render_math)
    for name in ("html_inline", "html_block"):
        parser.add_render_rule(name, _render_html)
    parser.add_render_rule("footnote_anchor", lambda *_: "")
    parser.add_render_rule("text", _render_text)
    parser.add_render_rule("fence", _render_fence)
    for rules in dialect.rules:
        parser.use(rules)
    return parser


def _is_box(words: str, *_: Any) -> bool:
    words = _COLONS_AFTER.sub(r"\1", words.strip())
    return bool(_BOX_TITLE.fullmatch(words) or _BOX_CLASSES.fullmatch(words)) and not words.endswith(":::")


def _render_box(_renderer: Any, tokens: Sequence[Token], place: int, *_: Any) -> str:
    if tokens[place].nesting < 0:
        return "</div>\n"
    blank = "" if _box_title(tokens[place].info) else "<p></p>"  # a table that is all of a box would be its layout
    return f'<div class="admonition">{blank}\n'


def _title_boxes(state: StateCore) -> None:
    """Make the title of each box a paragraph."""
    done = list[Token]()
    for token in state.tokens:
        done.append(token)
        if title := _box_title(token.info) if token.type == "container_box_open" else "":
            inline = Token("inline", "", 0, content=title, children=[], map=token.map)
            done += Token("paragraph_open", "p", 1), inline, Token("paragraph_close", "p", -1)
    state.tokens = done


def _box_title(info: str) -> str:
    """Return the title of a box, or else its kind, which readers see for `note` but not for `code-group`."""
    info = _COLONS_AFTER.sub(r"\1", info.strip())
    if classes := _BOX_CLASSES.fullmatch(info):
        name = (classes[1] or "").removeprefix("callout-")
        return shown_words(info) or (name.capitalize() if name in _NAMED_BOXES else "")
    match = _BOX_TITLE.fullmatch(info)
    if match is None:
        return ""
    name = match[1].removeprefix("callout-")
    title = match["bracket"] or match["bar"] or match["plain"] or ("" if "-" in name else name.capitalize())
    return (shown_words(title) if '="' in title else _ATTRIBUTES.sub("", title)).strip()


def _html_block(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """Parse an HTML block, which also ends before a fence or attributes, and after a tag that allows Markdown inside.

    kramdown, Python-Markdown and most authors expect this. In CommonMark, only an empty line ends the block.
    """
    place = place_of(state, start)
    if state.src[place : place + 1] != "<" or not html_block(state, start, end, silent):  # most lines are no HTML
        return False
    lines = [] if silent else state.getLines(start, state.line, 0, False).split("\n")
    if not lines or _VERBATIM.match(lines[0]):
        return True
    stops = (
        n
        for n, line in enumerate(lines)
        if (n and _ENDS_HTML.match(line)) or (n and _HOLDS_MARKDOWN.search(lines[n - 1]))
    )
    if (count := next(stops, len(lines))) < len(lines):
        state.line = start + count
        state.tokens[-1].content = "\n".join(lines[:count])
        state.tokens[-1].map = [start, state.line]
    return True


def _comment(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """Drop a comment of Obsidian: the lines between two lines `%%`."""
    if not _is_mark(state, start) or state.is_code_block(start):
        return False
    below = range(start + 1, min(end, state.lineMax))
    inner = takewhile(lambda line: state.isEmpty(line) or state.sCount[line] >= state.blkIndent, below)
    last = next((line for line in inner if _is_mark(state, line)), None)
    if last is not None and not silent:
        state.line = last + 1
    return last is not None


def _is_mark(state: StateBlock, line: int) -> bool:
    place = place_of(state, line)
    return state.src.startswith("%%", place) and not state.src[place + 2 : state.eMarks[line]].strip()


def _label_elsewhere(state: StateInline, silent: bool) -> bool:
    """Parse `[words][label]` as its words if the page does not define the label; other pages may (autorefs)."""
    start, last = state.pos, state.posMax
    bracket = state.src[start] == "[" and not re.match(r"[\w\])!]", state.src[max(start - 1, 0)])
    end = state.md.helpers.parseLinkLabel(state, start, True) if bracket else -1
    label = _LABEL.match(state.src, end + 1, last) if end > start + 1 else None
    if label is None:
        return False
    if not silent:
        state.pos, state.posMax = start + 1, end
        state.md.inline.tokenize(state)
    state.pos, state.posMax = label.end(), last
    return True


def _wiki_link(state: StateInline, silent: bool) -> bool:
    """Parse `[[Page|words]]` as its words, or else the page's and the part's name. `![[file]]` embeds a file."""
    found = _WIKI_LINK.match(state.src, state.pos)
    if found is None or state.src[state.pos - 1 : state.pos].isalnum():
        return False
    if not silent:
        shown, page, part, words = found.groups()
        state.push("text", "", 0).content = "" if shown else words or " > ".join(filter(None, (page.strip(), part)))
    state.pos = found.end()
    return True


def _docfx(state: StateInline, silent: bool) -> bool:
    """Parse `:::image … alt-text="words":::` as its words. DocFX includes are dropped: the files are not available."""
    found = _DOCFX.match(state.src, state.pos)
    if found is None:
        return False
    if not silent:
        state.push("text", "", 0).content = shown_words(found[1] or "")
    state.pos = found.end()
    return True


def _xref(state: StateInline, silent: bool) -> bool:
    """Parse `<xref:Type.Member>` as the member's name, with its type or in full, depending on the reference."""
    found = _XREF.match(state.src, state.pos) if state.src[state.pos] == "<" else None
    if found is None:
        return False
    if not silent:
        named, opened, types = re.sub(r"`+\d+", "", unquote(found[1])).partition("(")
        parts = named.removesuffix("*").removesuffix(".#ctor").split(".")
        wanted = (found[2] or "").lower()
        kept = 0 if "fullname" in wanted else 2 if "namewithtype" in wanted else 1
        state.push("text", "", 0).content = ".".join(parts[-kept:]) + opened + re.sub(r"\w+\.", "", types)
    state.pos = found.end()
    return True


def _title_alerts(state: StateCore) -> None:
    """Make the first line of each alert (GitHub, DocFX, Obsidian) a paragraph: its title, or else its kind."""
    tokens = state.tokens
    for place in range(len(tokens) - 1, 0, -1):
        opening, inline = tokens[place - 1 : place + 1]
        alert = _ALERT.match(inline.content) if opening.type == "paragraph_open" else None
        if alert:
            title = inline.copy(content=alert[2] or alert[1].capitalize(), children=[])
            inline.content = inline.content[alert.end() :]
            tokens[place:place] = [title, tokens[place + 1].copy(), opening.copy()]


def _label_docfx_tabs(state: StateCore) -> None:
    """Turn each heading that is a tab link into a label: `# [Linux](#tab/linux)`."""
    for opening, inline, closing in zip(state.tokens, state.tokens[1:], state.tokens[2:], strict=False):
        first = inline.children[0] if opening.type == "heading_open" and inline.children else None
        if first is not None and str(first.attrGet("href") or "").startswith("#tab/"):
            for token, kind in ((opening, "paragraph_open"), (closing, "paragraph_close")):
                token.type, token.tag = kind, "p"
            inline.children = [Token("text", "", 0, content=f"{_words(inline)}:")]


def _render_math(_renderer: Any, tokens: Sequence[Token], place: int, *_: Any) -> str:
    """Render a formula as written in the source."""
    token = tokens[place]
    sign = "$" if token.type == "math_inline" else "$$"
    formula = f"<{MATH}>{escapeHtml(f'{sign}{token.content}{sign}')}</{MATH}>"
    return f"<p>{formula}</p>\n" if token.type == "math_block" else formula


def _render_html(_renderer: Any, tokens: Sequence[Token], place: int, *_: Any) -> str:
    return without_components(tokens[place].content)


def _render_text(_renderer: Any, tokens: Sequence[Token], place: int, *_: Any) -> str:
    return escapeHtml(_ASIDE.sub(lambda aside: aside[1] or "", _ATTRIBUTE_LIST.sub("", tokens[place].content)))


def _render_fence(renderer: Any, tokens: Sequence[Token], place: int, *more: Any) -> str:
    """Render code below the title in its info string: ```yaml title="compose.yaml"```."""
    token, info = tokens[place], tokens[place].info
    named = re.search(r"(?:^[\w.:+-]*(?:\{[^}]*\})?|\s)\[([^\[\]]+)\]", info)  # a tab of VitePress
    title = named[1] if named else shown_words(info)
    token.content = shown_code(token.content, info)
    token.info = re.findall(r"^(?:\{[ \t.]*)?([^\s,:{}\[]*)", info)[0]  # ```rust,editable, ```js{1,3}, ```{.py #id}
    if token.info == "rust":  # drop rustdoc's hidden lines
        token.content = re.sub(r"^[ \t]*#(?:[ \t].*)?\n", "", token.content, flags=re.MULTILINE)
    above = f"<p>{escapeHtml(title)}:</p>\n" if title else ""
    return above + RendererHTML.fence(renderer, tokens, place, *more)


def _give_ids(tokens: Sequence[Token], dialect: Dialect) -> None:
    seen, numbers = dict[str, int](), count(1)
    title = None if dialect.title_has_id else next((token for token in tokens if token.type == "heading_open"), None)
    for opening, inline in pairwise(tokens):
        if opening.type == "heading_open":
            own = _own_id(inline)
            if own or opening is not title or opening.tag != "h1":
                name = own or _unique(dialect.slug(_words(inline)), seen, dialect, numbers)
                if dialect.top_has_id or opening.tag != "h1":
                    opening.attrSet("id", name)
        for child in inline.children or ():
            if child.type == "footnote_ref":
                next(numbers)


def _own_id(inline: Token) -> str | None:
    """Return the id of `## Title {#id}` and remove it from the title; None if there is none."""
    last = inline.children[-1] if inline.children else None
    match = _ATTRIBUTES.search(last.content) if last is not None and last.type == "text" else None
    if last is None or match is None:
        return None
    last.content = last.content[: match.start()]
    own = _OWN_ID.search(match[1])
    return own[1] if own else None


def _words(inline: Token) -> str:
    """Return the words of a heading, of which its id is made."""
    said = {"text": "content", "code_inline": "content", "emoji": "info"}
    return "".join(getattr(child, said[child.type]) for child in inline.children or () if child.type in said)


def _unique(name: str, seen: dict[str, int], dialect: Dialect, numbers: Iterator[int]) -> str:
    before = seen.get(name, 0)
    seen[name] = before + 1
    if not before and (name or not dialect.numbered):
        return name
    return dialect.repeated.format(name=name, count=before, next=before + 1, number=next(numbers))
