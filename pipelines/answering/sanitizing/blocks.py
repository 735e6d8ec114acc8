"""Tells which lines of a stream of Markdown are fenced code and which are raw HTML.

Knows Markdown's blocks as markdown-it reads them; nothing of what stands in a line.
"""

from typing import Literal

from markdown_it import MarkdownIt

# Of a list or a quote, without the code in it; behind it nothing counts as code. To read 270 lines with code or tags,
# each with those before it, takes 0.7 s of a core, spread over the stream.
LONGEST_BLOCK, MOST_LINES = 20_000, 400
Block = Literal["fence", "html", "text"]

_PARSER = MarkdownIt("commonmark").enable("table").disable("inline")
_FENCES = ("```", "~~~")
_NO_OUTERMOST = (" ", "\t", *"-*+>0123456789", "")  # a line that begins so may belong to the block before


class BlockReader:
    """Reads the text that has left, of which it keeps the outermost block that may still go on."""

    def __init__(self) -> None:
        self._text = ""
        self._line = 0  # where the last line begins in _text
        self._inner = False  # the last line is code between two fences

    def add(self, text: str) -> None:
        """Take text that has left."""
        if len(self._text) <= LONGEST_BLOCK:
            self._text += text

    @property
    def line(self) -> str:
        """The last line, as far as it has left."""
        return self._text[self._line :]

    def begin_line(self, head: str) -> Block:
        """Return what a new line is in that begins with `head`: its marks, and all of it if it may be a fence."""
        if self._inner and not any(fence in self.line for fence in _FENCES):
            self._text = self._text[: self._line]  # so that long code is not read again for each of its lines
        self._line, self._inner = len(self._text), False
        if len(self._text) > LONGEST_BLOCK:
            return "html"
        if not any(mark in self._text or mark in head for mark in ("<", *_FENCES)):
            if self._text.endswith("\n\n") and head[:1] not in _NO_OUTERMOST:
                self._text, self._line = "", 0
            return "text"  # most lists have neither code nor tags, and need no reading of all their lines again
        if self._text.count("\n") > MOST_LINES:
            return "html"
        text = self._text.replace("\r\n", "\n").replace("\r", "\n") + head
        lines = text.split("\n")
        now = len(lines) - 1
        found: Block = "text"
        for token in _PARSER.parse(text):
            if not token.map or not token.map[0] <= now < token.map[1]:
                continue
            if token.level == 0 and token.map[0] == now:
                self._text, self._line = "", 0
            if token.type == "fence" and "|" not in lines[token.map[0]]:  # else a table, to some readers
                found, self._inner = "fence", token.map[0] < now
            elif token.type in ("fence", "html_block"):
                found = "html"
        return found
