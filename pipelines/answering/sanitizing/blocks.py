"""Tells which lines of a stream of Markdown are fenced code and which are raw HTML.

This module handles Markdown's blocks, as markdown-it parses them, but no inline syntax. Each line is parsed with only
the earlier lines that determine its block, so the cost per line is small however long the text is.
"""

from functools import lru_cache
from typing import Literal, NamedTuple

from markdown_it.token import Token

from pipelines.page.parser import block_parser

Block = Literal["fence", "html", "text"]

# After a longer line or block, or once parsing costs more than MOST_WORK, nothing counts as code anymore.
LONGEST_LINE, LONGEST_BLOCK = 2_000, 20_000  # characters; for a list or quote, the kept part without its code
FEW_LINES = 8  # a block of at most this many lines is kept whole; of a longer one only the decisive lines
# The most work for parsing one answer, in characters, lines and table cells: about one second on one core.
MOST_WORK, LINE_WORK, CELL_WORK = 2_000_000, 40, 8

_PARSER = block_parser()
_FENCES = ("```", "~~~")
_NO_OUTERMOST = (" ", "\t", *"-*+>0123456789", "")  # a line that begins like this may belong to the previous block
_BLANK = " \t>"  # characters of an empty line, also in a quote


class _Open(NamedTuple):
    """A block that contains a line: its type, level and first line."""

    type: str
    level: int
    first: int


class BlockReader:
    """Reads the emitted text and keeps the part that determines how the outermost block may continue."""

    def __init__(self) -> None:
        self._text = ""
        self._line = 0  # where the last line begins in _text
        self._marked = False  # _text may contain the start of a tag or a fence
        self._inner = False  # the last line is code inside a fence
        self._work = 0  # done so far

    def add(self, text: str) -> None:
        """Add emitted text."""
        if len(self._text) <= LONGEST_BLOCK:
            self._text += text
            self._marked = self._marked or _is_marked(self._text[-len(text) - 2 :])

    @property
    def line(self) -> str:
        """The last line, as far as it has been emitted."""
        return self._text[self._line :]

    def begin_line(self, head: str) -> Block:
        """Return the block of a new line that begins with `head`: its markers, or all of it if it may be a fence."""
        if self._inner and not any(fence in self.line for fence in _FENCES):
            self._keep(self._text[: self._line])  # so that long code isn't parsed again for each line
        is_long = len(self._text) - self._line > LONGEST_LINE
        self._line, self._inner = len(self._text), False
        if len(self._text) > LONGEST_BLOCK or self._work > MOST_WORK:
            return "html"
        if not self._marked and not _is_marked(head):
            if self._text.endswith("\n\n") and head[:1] not in _NO_OUTERMOST:
                self._keep("")
                self._line = 0
            return "text"  # most lists have neither code nor tags, so their lines need not be parsed again
        if is_long:
            self._work = MOST_WORK + 1
            return "html"
        return self._read(self._text.replace("\r\n", "\n").replace("\r", "\n") + head)

    def _keep(self, text: str) -> None:
        self._text, self._marked = text, _is_marked(text)

    def _read(self, text: str) -> Block:
        """Return the block of the last line of `text`; keep the part that determines the blocks of later lines."""
        lines = text.split("\n")
        now = len(lines) - 1
        self._work += len(text) + len(lines) * (LINE_WORK + CELL_WORK * max(line.count("|") for line in lines))
        found: Block = "text"
        opened = _open_blocks(text, now)
        for block in opened:
            if block.level == 0 and block.first == now:
                self._keep("")
                self._line = 0
            if block.type == "fence" and "|" not in lines[block.first]:  # otherwise some renderers see a table
                found, self._inner = "fence", block.first < now
            elif block.type in ("fence", "html_block"):
                found = "html"
        if len(lines) > FEW_LINES and self._text:
            self._shorten(lines, opened)
        return found

    def _shorten(self, lines: list[str], opened: tuple[_Open, ...]) -> None:
        """Keep only the decisive lines, provided that they parse to the same blocks for the last line."""
        now = len(lines) - 1
        before = _open_blocks("\n".join(lines), now - 1)
        kept = {now - 2, now - 1}
        for block in (*opened, *before):
            kept.add(block.first)
            kept |= {block.first + 1} if block.type == "table_open" else set()
            if block.first and not lines[block.first - 1].strip(_BLANK):
                kept.add(block.first - 1)
        short = [lines[n] for n in sorted(kept) if 0 <= n < now]
        text = "\n".join([*short, lines[now]])
        same = _kinds(_open_blocks(text, len(short))) == _kinds(opened)
        if same and _kinds(_open_blocks(text, len(short) - 1)) == _kinds(before):
            self._keep("".join(f"{line}\n" for line in short))
            self._line = len(self._text)


def _is_marked(text: str) -> bool:
    return "<" in text or "```" in text or "~~~" in text


def _kinds(opened: tuple[_Open, ...]) -> list[tuple[str, int]]:
    return [(block.type, block.level) for block in opened]


def _open_blocks(text: str, line: int) -> tuple[_Open, ...]:
    """Return the blocks that contain a line, outermost first."""
    return tuple(
        _Open(token.type, token.level, token.map[0])
        for token in _parse(text)
        if token.map and token.map[0] <= line < token.map[1]
    )


@lru_cache(16)
def _parse(text: str) -> tuple[Token, ...]:
    return tuple(_PARSER.parse(text))
