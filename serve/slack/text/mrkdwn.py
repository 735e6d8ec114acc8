"""Converts Markdown to mrkdwn, Slack's own markup, in fragments to pack into messages.

All text from pages and models is escaped, so it can neither mention anyone nor start a link.
"""

import itertools
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace

from markdown_it import MarkdownIt
from markdown_it.tree import SyntaxTreeNode
from rich.cells import cell_len

from pipelines.answering.writing.stages.text import Number, Piece, read_text, shown
from pipelines.page.parser import keep_short_rows, skip_labels_without_target
from serve.chat.packing import FENCE, Fragment

_PARSER = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
_PARSER = skip_labels_without_target(keep_short_rows(_PARSER))
WORDS = ("text", "softbreak")
MARKS = {"strong": "*", "em": "_", "s": "~"}
# Escaped, both fit into a section. Longer URLs are left out, longer labels are cut.
MOST_URL, MOST_LABEL = 2_000, 150
ZERO_WIDTH_SPACE, WORD_JOINER = "\u200b", "\u2060"
GRAVE = "ˋ"  # U+02CB, replaces a backtick inside code, because Slack has no longer fences
INDENT = "    "
MOST_WIDTH = 80  # of a column; longer cells exceed their column, because no screen shows such a table in columns anyway

_BARE_URL = re.compile(r"(https?://[^\s<>\"'`|]+[^\s<>\"'`|.,;:!?)\]}])")
_BROADCAST = re.compile(r"@(?=(?:here|channel|everyone|group)\b)", re.IGNORECASE)
# A zero-width space is needed only inside a word.
_NEEDLESS = re.compile(rf"(?<!\w){ZERO_WIDTH_SPACE}(?=[*_~])|(?<=[*_~]){ZERO_WIDTH_SPACE}(?!\w)")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\u202a-\u202e\u2066-\u2069]")


def to_fragments(markdown: str, links: Mapping[int, str]) -> list[Fragment]:
    """Return the blocks of `markdown`; a citation number becomes a link if `links` has its URL."""
    root = SyntaxTreeNode(_PARSER.parse(_CONTROL.sub("", markdown)))
    return list(_Renderer(links).blocks(root.children))


def escape(text: str) -> str:
    """Return `text` so that Slack shows it literally, without mentions, links or broadcasts."""
    text = _CONTROL.sub("", text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return _BROADCAST.sub("@" + WORD_JOINER, text)


def link(url: str, label: str) -> str:
    """Return a link that none of its parts can end early; only the label if the URL is too long or not a web URL."""
    label = " ".join(label.split())
    shown = escape(label if len(label) <= MOST_LABEL else label[: MOST_LABEL - 1] + "…")
    quoted = "".join(map(_quote, url[: MOST_URL + 1])).replace("&", "&amp;")
    if not re.match(r"https?://", url, re.IGNORECASE) or len(quoted) > MOST_URL:
        return shown
    return f"<{quoted}|{shown}>" if shown else f"<{quoted}>"


def _quote(character: str) -> str:
    unsafe = character in "<>|\"'`" or character.isspace() or not character.isprintable()
    return "".join(f"%{byte:02X}" for byte in character.encode()) if unsafe else character


class _Renderer:
    def __init__(self, links: Mapping[int, str]) -> None:
        self._links = links

    def blocks(self, nodes: list[SyntaxTreeNode], indent: str = "") -> Iterator[Fragment]:
        for node in nodes:
            match node.type:
                case "heading":
                    text = _NEEDLESS.sub("", _mark("*", self._inline(node, bold=True)))
                    yield Fragment(indent + text, heading=True)
                case "paragraph":
                    yield Fragment(indent + self._inline(node).replace("\n", "\n" + indent))
                case "fence" | "code_block":
                    yield Fragment(code_lines(node.content), code=True)
                case "table":
                    yield Fragment(code_lines(_table(node)), code=True)
                case "bullet_list" | "ordered_list":
                    yield from self._list(node, indent)
                case "blockquote":
                    yield from map(_quoted, self.blocks(node.children, indent))
                case "hr":
                    yield Fragment("———")
                case _:
                    yield from self.blocks(node.children, indent)

    def _list(self, node: SyntaxTreeNode, indent: str) -> Iterator[Fragment]:
        first = int(node.attrs.get("start", 1)) if node.type == "ordered_list" else None
        for n, item in enumerate(node.children):
            marker = ("◦ " if indent else "• ") if first is None else f"{first + n}. "
            fragments = list(self.blocks(item.children, indent + INDENT)) or [Fragment("")]
            if fragments[0].code:
                fragments.insert(0, Fragment(""))
            gap = "\n" if n or indent else "\n\n"
            yield replace(fragments[0], text=indent + marker + fragments[0].text.lstrip(), gap=gap)
            yield from (replace(fragment, gap="\n") for fragment in fragments[1:])

    def _inline(self, node: SyntaxTreeNode, bold: bool = False) -> str:
        return _NEEDLESS.sub("", self._spans(node.children, bold).strip())

    def _spans(self, nodes: list[SyntaxTreeNode], bold: bool) -> str:
        """Return inline nodes as mrkdwn. Adjacent text is joined first, so that it is searched only once."""
        runs = itertools.groupby(nodes, key=lambda node: node.type in WORDS)
        return "".join(
            self._text("".join(map(plain, run))) if words else "".join(self._span(node, bold) for node in run)
            for words, run in runs
        )

    def _span(self, node: SyntaxTreeNode, bold: bool = False) -> str:
        match node.type:
            case "hardbreak":
                return "\n"
            case "code_inline":
                return f"`{escape(node.content.replace('`', GRAVE))}`" if node.content.strip() else node.content
            case "link" | "image":
                url = str(node.attrs.get("href") or node.attrs.get("src") or "")
                return link(url, plain(node) or url)
        inner = self._spans(node.children, bold or node.type == "strong")
        needless = node.type not in MARKS or (bold and node.type == "strong")
        return inner if needless else _mark(MARKS[node.type], inner)

    def _text(self, text: str) -> str:
        """Return plain text with links for its citation numbers and URLs."""
        groups = itertools.groupby(read_text(text), key=lambda piece: isinstance(piece, Number))
        return "".join(
            "".join(map(self._number, one)) if cites else _link_addresses(shown(one)) for cites, one in groups
        )

    def _number(self, piece: Piece) -> str:
        return link(self._links.get(int(str(piece)[1:-1]), ""), str(piece))


def _link_addresses(text: str) -> str:
    parts = _BARE_URL.split(text)  # every other part is a URL
    return "".join(link(part, part) if n % 2 else escape(part) for n, part in enumerate(parts))


def code_lines(text: str) -> str:
    """Return the escaped lines of a code block, without fences."""
    return escape(text.rstrip("\n").replace(FENCE, ZERO_WIDTH_SPACE.join(FENCE))).replace("\t", INDENT)


def plain(node: SyntaxTreeNode) -> str:
    """Return the text of a node without any markup."""
    if node.type in ("softbreak", "hardbreak"):
        return " "
    return "".join(map(plain, node.children)) if node.children else (node.content if not node.is_root else "")


def _mark(mark: str, text: str) -> str:
    """Return `text` between markers; Slack recognizes them only at word boundaries, so zero-width spaces are added."""
    bare = text.strip()
    if not bare:
        return text
    lead, trail = text[: len(text) - len(text.lstrip())], text[len(text.rstrip()) :]
    return f"{lead}{ZERO_WIDTH_SPACE}{mark}{bare}{mark}{ZERO_WIDTH_SPACE}{trail}"


def _quoted(fragment: Fragment) -> Fragment:
    return fragment if fragment.code else replace(fragment, text="> " + fragment.text.replace("\n", "\n> "))


def _table(node: SyntaxTreeNode) -> str:
    """Return a table as lines with aligned columns, because mrkdwn has no tables."""
    rows = [[" ".join(plain(cell).split()) for cell in row.children] for row in node.children]
    widths = [0] * len(rows[0])
    for row in rows:  # some rows have few cells; each cell is measured once
        widths[: len(row)] = map(max, widths, map(cell_len, row))
    widths = [min(wide, MOST_WIDTH) for wide in widths]
    lines = [" | ".join(map(_fill, row, widths)).rstrip() for row in rows]
    return "\n".join([lines[0], "-+-".join("-" * wide for wide in widths), *lines[1:]])


def _fill(cell: str, width: int) -> str:
    return cell + " " * (width - cell_len(cell))
