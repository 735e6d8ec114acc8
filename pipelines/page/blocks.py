"""Reads stored Markdown as blocks: prose, code, lists, tables and notes, each with its own source.

A plain text, as indexes of earlier versions hold it, is prose of several lines. Knows no question and no answer.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from itertools import pairwise

from markdown_it.token import Token

from pipelines.page.markdown import ticks_around
from pipelines.page.parser import block_parser
from pipelines.page.stored import plain_text

# Without what a chunk never has: in a plain text "# x" is a comment, and "---" below a line no heading. To read the
# passages of nine hits takes 0.7 ms, of fifty 4 ms.
_PARSER = block_parser().disable(["heading", "lheading", "hr", "html_block", "reference"])
_MARKER = re.compile(r"\s*(?:[-*+]|\d{1,9}[.)])\s*")
DEEPEST = 8  # lists that each begin within an item of the one before; more, such as "- - - …", stay one list
LINE_BREAK = "\\\n"


class BlockKind(Enum):
    """The kind of a block."""

    PROSE = "prose"
    CODE = "code"
    LIST = "list"
    TABLE = "table"
    NOTE = "note"


_KINDS = {
    "fence": BlockKind.CODE,
    "code_block": BlockKind.CODE,
    "bullet_list_open": BlockKind.LIST,
    "ordered_list_open": BlockKind.LIST,
    "table_open": BlockKind.TABLE,
    "blockquote_open": BlockKind.NOTE,
}


@dataclass(frozen=True)
class MarkdownBlock:
    """A block with its Markdown as `text`. `language` is that of code, "" if it is not known.

    `items` are those of a list, each with what is below it; `rows` are the lines of a table: its head, the line below
    that, its rows. `has_code` tells of code in it, in a list or a note too.
    """

    kind: BlockKind
    text: str
    language: str = ""
    items: tuple[str, ...] = ()
    rows: tuple[str, ...] = ()
    has_code: bool = False

    @cached_property
    def plain(self) -> str:
        """The block as plain text."""
        return plain_text(self.text)


def read_blocks(markdown: str) -> tuple[MarkdownBlock, ...]:
    """Return the blocks of a text in order; those of a list that begins within an item are lists of their own."""
    lines = markdown.replace("\r\n", "\n").replace("\r", "\n").split("\n")  # as the parser counts them
    return tuple(_blocks(lines))


def _blocks(lines: Sequence[str], depth: int = 0) -> Iterator[MarkdownBlock]:
    tokens = _PARSER.parse("\n".join(lines))
    begins = [n for n, token in enumerate(tokens) if token.map and not token.level]
    for n, following in pairwise([*begins, len(tokens)]):
        yield from _block(lines, tokens[n:following], depth)


def _block(lines: Sequence[str], tokens: Sequence[Token], depth: int) -> Iterator[MarkdownBlock]:
    """Yield the block of `tokens`, the first of which opens it; it lies in `depth` items of lists."""
    first = tokens[0]
    begin, end = first.map or (0, 0)
    kind, text = _KINDS.get(first.type, BlockKind.PROSE), _join(lines[begin:end])
    has_code = any(_KINDS.get(token.type) is BlockKind.CODE for token in tokens)
    if kind in (BlockKind.PROSE, BlockKind.NOTE):
        yield MarkdownBlock(kind, text, has_code=has_code)
    elif kind is BlockKind.CODE:
        language = first.info.strip()
        yield MarkdownBlock(kind, fence(first.content, language), language, has_code=True)
    elif kind is BlockKind.TABLE:
        yield MarkdownBlock(kind, text, rows=tuple(text.split("\n")))
    else:
        yield from _lists(lines, tokens, depth)


def _lists(lines: Sequence[str], tokens: Sequence[Token], depth: int) -> Iterator[MarkdownBlock]:
    """Yield the lists that begin within the first items, and the list of the items that are left."""
    items = [n for n, token in enumerate(tokens) if token.level == 1 and token.type == "list_item_open"]
    begin, end = tokens[0].map or (0, 0)
    while items and depth < DEEPEST and _opens_another(tokens[items[0] : items[0] + 2]):
        first, begin = tokens[items.pop(0)].map or (begin, end)
        yield from _blocks(_within(lines[first:begin]), depth + 1)
    if items:
        has_code = any(_KINDS.get(token.type) is BlockKind.CODE for token in tokens[items[0] :])
        texts = (_join(lines[slice(*tokens[item].map or (0, 0))]) for item in items)
        yield MarkdownBlock(BlockKind.LIST, _join(lines[begin:end]), items=tuple(texts), has_code=has_code)


def _within(lines: Sequence[str]) -> list[str]:
    """Return the lines of an item without its marker and the indent below that."""
    marker = _MARKER.match(lines[0])
    width = marker.end() if marker else 0
    return [lines[0][width:], *(line[min(width, len(line) - len(line.lstrip())) :] for line in lines[1:])]


def _opens_another(tokens: Sequence[Token]) -> bool:
    """Return whether an item, of which these are the first tokens, holds nothing before a list of its own."""
    item, inner = tokens
    return _KINDS.get(inner.type) is BlockKind.LIST and (inner.map or [0])[0] == (item.map or [0])[0]


def _join(lines: Sequence[str]) -> str:
    return "\n".join(lines).rstrip()


def fence(code: str, language: str = "") -> str:
    """Return code as a fenced block, with a longer fence than any run of backticks in it."""
    mark = ticks_around(code, 3)
    return f"{mark}{language}\n{code.rstrip()}\n{mark}"
