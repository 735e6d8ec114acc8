"""Parses stored Markdown into blocks: prose, code, lists, tables and notes, each with its own source.

Text that is not this Markdown becomes prose of several lines. Independent of questions and answers.
"""

import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cached_property

from markdown_it.token import Token

from pipelines.page.markdown import fence
from pipelines.page.parser import block_parser
from pipelines.page.stored import plain_text

# Constructs that a chunk never contains are disabled: in plain text, "# x" is a comment, and "---" below a line does
# not make it a heading. Parsing the passages of nine hits takes 0.7 ms, of fifty hits 4 ms.
_PARSER = block_parser().disable(["heading", "lheading", "hr", "html_block", "reference"])
_MARKER = re.compile(r"\s*(?:[-*+]|\d{1,9}[.)])\s*")
DEEPEST = 8  # nested lists that each start an item of the list around them; deeper ones ("- - - …") stay one list
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
    """A block with its Markdown as `text`. `language` is the language of code, "" if unknown.

    `items` are the items of a list, each with its nested content. `rows` are the lines of a table: the header, the
    delimiter row and the rows. `has_code` is true if the block contains code, also inside a list or note.
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
    """Return the blocks of a Markdown string in order. A list that starts a list item becomes a separate block."""
    lines = markdown.replace("\r\n", "\n").replace("\r", "\n").split("\n")  # split lines the way the parser counts them
    return tuple(_blocks(_Lines(lines), _PARSER.parse("\n".join(lines))))


@dataclass(frozen=True, slots=True)
class _Lines:
    """The lines of a document, or of one of its items without the item's marker and indentation.

    `above` is the number of document lines before the item: tokens count lines from the start of the document.
    """

    lines: Sequence[str]
    above: int = 0
    depth: int = 0  # number of list items around these lines

    def of(self, token: Token) -> Sequence[str]:
        """Return the lines of a token."""
        begin, end = token.map or (0, 0)
        return self.lines[begin - self.above : end - self.above]


def _blocks(lines: _Lines, tokens: Sequence[Token]) -> Iterator[MarkdownBlock]:
    """Yield the blocks of `tokens`: siblings on the level of the first token."""
    begins = [n for n, token in enumerate(tokens) if token.map and token.level == tokens[0].level]
    for n, following in itertools.pairwise([*begins, len(tokens)]):
        yield from _block(lines, tokens[n:following])


def _block(lines: _Lines, tokens: Sequence[Token]) -> Iterator[MarkdownBlock]:
    """Yield the block made of `tokens`, whose first token opens it."""
    first = tokens[0]
    kind, text = _KINDS.get(first.type, BlockKind.PROSE), _join(lines.of(first))
    has_code = any(_KINDS.get(token.type) is BlockKind.CODE for token in tokens)
    if kind in (BlockKind.PROSE, BlockKind.NOTE):
        yield MarkdownBlock(kind, text, has_code=has_code)
    elif kind is BlockKind.CODE:
        language = first.info.strip()
        yield MarkdownBlock(kind, fence(first.content.rstrip(), language), language, has_code=True)
    elif kind is BlockKind.TABLE:
        yield MarkdownBlock(kind, text, rows=tuple(text.split("\n")))
    else:
        yield from _lists(lines, tokens)


def _lists(lines: _Lines, tokens: Sequence[Token]) -> Iterator[MarkdownBlock]:
    """Yield the lists that start the leading items, then one list of the remaining items."""
    level = tokens[0].level + 1
    items = [n for n, token in enumerate(tokens) if token.level == level and token.type == "list_item_open"]
    ends = [n for n, token in enumerate(tokens) if token.level == level and token.type == "list_item_close"]
    opening = list(itertools.takewhile(lambda item: _opens_another(tokens[item : item + 2]), items))
    if lines.depth >= DEEPEST:
        opening = []
    for item, end in zip(opening, ends, strict=False):
        above = (tokens[item].map or (0, 0))[0]
        inner = _Lines(_within(lines.of(tokens[item])), above, lines.depth + 1)
        yield from _blocks(inner, tokens[item + 1 : end])
    if left := items[len(opening) :]:
        has_code = any(_KINDS.get(token.type) is BlockKind.CODE for token in tokens[left[0] :])
        texts = tuple(_join(lines.of(tokens[item])) for item in left)
        before = sum(len(lines.of(tokens[item])) for item in opening)
        yield MarkdownBlock(BlockKind.LIST, _join(lines.of(tokens[0])[before:]), items=texts, has_code=has_code)


def _within(lines: Sequence[str]) -> list[str]:
    """Return the lines of an item without its marker and the matching indentation."""
    marker = _MARKER.match(lines[0])
    width = marker.end() if marker else 0
    return [lines[0][width:], *(line[min(width, len(line) - len(line.lstrip())) :] for line in lines[1:])]


def _opens_another(tokens: Sequence[Token]) -> bool:
    """Return whether a list item, given its first two tokens, starts directly with another list."""
    item, inner = tokens
    return _KINDS.get(inner.type) is BlockKind.LIST and (inner.map or [0])[0] == (item.map or [0])[0]


def _join(lines: Sequence[str]) -> str:
    return "\n".join(lines).rstrip()
