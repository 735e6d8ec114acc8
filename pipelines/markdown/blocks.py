"""Reads stored Markdown as blocks: prose, code, lists, tables and notes, each with its own source.

A plain text, as indexes of earlier versions hold it, is prose of several lines. Knows no question and no answer.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from itertools import pairwise

from markdown_it import MarkdownIt
from markdown_it.token import Token

from pipelines.markdown.plain import plain_text
from pipelines.markdown.writing import ticks_around

# Without what a chunk never has: in a plain text "# x" is a comment, and "---" below a line no heading. To read the
# passages of nine hits takes 0.7 ms, of fifty 4 ms.
_PARSER = (
    MarkdownIt("commonmark").enable("table").disable(["inline", "heading", "lheading", "hr", "html_block", "reference"])
)
_INDENT = 4  # columns of what is within an item, behind any marker
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


def _blocks(lines: Sequence[str]) -> Iterator[MarkdownBlock]:
    tokens = _PARSER.parse("\n".join(lines))
    begins = [n for n, token in enumerate(tokens) if token.map and not token.level]
    for n, following in pairwise([*begins, len(tokens)]):
        yield from _block(lines, tokens[n:following])


def _block(lines: Sequence[str], tokens: Sequence[Token]) -> Iterator[MarkdownBlock]:
    """Yield the block of `tokens`, the first of which opens it."""
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
    elif _opens_another(tokens):
        _, last = tokens[1].map or (begin, end)
        yield from _blocks([line[_INDENT:] for line in lines[begin:last]])
        yield from _blocks(lines[last:end])
    else:
        yield MarkdownBlock(kind, text, items=tuple(_items(lines, tokens)), has_code=has_code)


def _opens_another(tokens: Sequence[Token]) -> bool:
    """Return whether a list begins with an item that holds nothing before a list of its own."""
    item, inner = tokens[1:3]
    return _KINDS.get(inner.type) is BlockKind.LIST and (inner.map or [0])[0] == (item.map or [0])[0]


def _items(lines: Sequence[str], tokens: Sequence[Token]) -> Iterator[str]:
    for token in tokens:
        if token.level == 1 and token.type == "list_item_open" and token.map:
            yield _join(lines[slice(*token.map)])


def _join(lines: Sequence[str]) -> str:
    return "\n".join(lines).rstrip()


def fence(code: str, language: str = "") -> str:
    """Return code as a fenced block, with a longer fence than any run of backticks in it."""
    mark = ticks_around(code, 3)
    return f"{mark}{language}\n{code.rstrip()}\n{mark}"
