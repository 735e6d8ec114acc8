"""Parses the text of an answer while it streams: code, citations and the ends of sentences.

Deltas become pieces: text immediately, with its citing numbers `[n]` and lines of code as separate pieces, and a
Statement after each sentence, list item, row and code block. This module handles Markdown as text; it knows nothing
about hits, vectors or models.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum

LONGEST = 2000  # characters of a sentence; a longer one is cut, which bounds the cost of a text without any stop
# Characters that are read at a time, and the most to wait for to classify a line or a mark. Longer text is read in
# parts: otherwise a construct that never ends would be read again with each delta.
WINDOW = 1000
MOST = 2 * LONGEST  # characters of a statement without a space or a stop at which to cut it


class StatementKind(Enum):
    """The kind of a statement: its place in the Markdown."""

    SENTENCE = "sentence"  # also a list item without a full stop
    ROW = "row"  # a table row
    CODE = "code"  # a fenced block
    HEADING = "heading"  # also a table's head


@dataclass(frozen=True, slots=True)
class Statement:
    """A part of an answer with the `numbers` that cite for it; `gap` is the whitespace after it.

    `indent` is the prefix of each line of a code block inside a list or quotation.
    """

    text: str
    numbers: tuple[int, ...] = ()
    kind: StatementKind = StatementKind.SENTENCE
    gap: str = ""
    indent: str = ""
    code: str = field(default="", compare=False)


class Number(str):
    """A piece of text that cites: `[n]` outside code."""


class CodePiece(str):
    """A piece of a fenced code block, including its fences."""


Piece = str | Statement
"""An element of a parsed text: its parts in order, each Statement after the parts from which it was read."""


# ---------------------------------------------------------------------------------------------- Markdown

_LINE = re.compile(
    r"(?P<blank>[ \t]*\n)"
    r"|(?P<divider>(?=[ \t|:-]*?--)[ \t|:-]++(?:\n|\Z))"  # below a table's head or a heading, or a horizontal rule
    r"|(?P<heading>[ \t]{0,3}\#{1,6}[ \t])"
    r"|(?P<fence>(?P<indent>[ \t>]*(?:(?:[-*+]|\d{1,3}[.)])[ \t]+)?)(?P<mark>`{3,}+(?![^\n]*`)|~{3,})[^\n]*)"
    r"|(?P<row>[ \t]*\|)"
    r"|(?P<item>[ \t>]*(?:[-*+•]|\d{1,3}[.)])[ \t]+)"
    r"|(?P<quote>[ \t]*>)"
)
# The beginning of a line whose kind may change with the next character.
_LINE_BEGUN = re.compile(
    r"[ \t>]*(?:(?:[-*+•]|\d{1,3}[.)]?)[ \t]*)?(?:`{0,2}|~{0,2})\Z|[ \t]{0,3}\#{1,6}\Z|[ \t|:-]*\Z"
    r"|[ \t>]*(?:(?:[-*+]|\d{1,3}[.)])[ \t]+)?(?:`{3,}+|~{3,}+)[^\n]{0,80}\Z"
)
_TOKEN = re.compile(
    r"(?P<ticks>`+)|\[(?P<number>\d{1,4})\](?!\()|(?P<newline>\n)|(?P<space>[^\S\n]+)|(?P<stop>[。！？]+[”’」』）*]*)"
    r"|(?P<pipe>\|)|(?P<word>[^\s`\[|。！？]+|\[)"
)
_TOKEN_BEGUN = re.compile(r"(?:`+|\[\d{0,4}|\[\d{1,4}\]|[。！？]+[”’」』）*]*)\Z")
# Numbers on the rest of a line; if nothing follows them, they cite for the text above.
_NUMBERS_ALONE = re.compile(r"(?:[ \t]*\[\d{1,4}\])+[ \t.,;]*(?:(?P<end>\n|\Z)|\S)")

_CLOSERS = r"[\"')\]”’“»*_]*"
_COLONS = ("", ":", "：")  # these don't end a statement, but may introduce the next one
_STOP = re.compile(rf"([.!?…。！？:：]){_CLOSERS}\Z")
_ABBREVIATION = re.compile(r"(?:\b(?:e\.g|i\.e|vs|cf|fig|approx|resp|incl|z\.B|d\.h|bzw)|(?-i:\b[A-Z]))\.\Z", re.I)
_BOLD_LINE = re.compile(r"\s*(\*\*|__)[^*_]+\1\s*\Z")
_LOOSE_STOP = re.compile(r"(?<!\s)\s++(?=[.,;:!?](?:\s|\Z))")


class TextReader:
    """Parses a streamed text: returns its pieces, and each Statement as soon as it is known to be complete.

    A statement's gap is not part of the text pieces before it, so that numbers can be inserted between them. Only
    whitespace after a sentence, and text that may begin another construct, are held back. Code that is cut off gets its
    closing fence.
    """

    def __init__(self) -> None:
        self._rest, self._final = "", False
        self._out: list[Piece] = []
        self._line_begins = True
        self._ticks = ""  # the backticks that opened a code span
        self._fence, self._indent = "", ""  # the open code block's
        self._code_line: list[str] = []  # the parts of its current line; the fence's own line begins with "\0"
        self._code: list[str] = []  # its lines
        self._clear()

    def feed(self, text: str) -> list[Piece]:
        """Add `text` and return the pieces that are certain now, in order."""
        for begin in range(0, len(text), WINDOW) or (0,):
            self._rest += text[begin : begin + WINDOW]
            at = 0
            while at < len(self._rest) and (taken := self._read(at)):
                at += taken
            self._rest = self._rest[at:]
        out, self._out = self._out, []
        return out

    def close(self) -> list[Piece]:
        """Return the rest, after the end of the text."""
        self._final = True
        out = self.feed("")
        if self._fence:
            self._close_fence(cut_off=not self._closes("".join(self._code_line)))
        self._finish()
        return [*out, *self._out]

    # -- the open statement

    def _clear(self) -> None:
        self._text, self._kind, self._numbers = "", StatementKind.SENTENCE, list[int]()
        self._gap, self._code = "", []

    def _say(self, text: str, shown: str | None = None) -> None:
        """Emit `shown` after the gap and add `text` to the statement, which ends if it is full."""
        room = MOST - len(self._text) - len(self._gap)
        if shown is None and len(text) > room:
            self._add(text[: max(room, 0)])
            self._finish()
            text = text[max(room, 0) :]
        self._add(text, shown)

    def _add(self, text: str, shown: str | None = None) -> None:
        self._text += self._gap + text
        self._pass_on(self._gap)
        self._pass_on(text if shown is None else shown)
        self._gap = ""

    def _pass_on(self, text: str) -> None:
        if text:
            self._out.append(text)

    def _finish(self, kind: StatementKind | None = None) -> None:
        text = _LOOSE_STOP.sub("", " ".join("".join([*self._code, self._text]).split()))
        if text or self._numbers:
            numbers = tuple(dict.fromkeys(self._numbers))
            code = "".join(self._code)
            self._out.append(Statement(text, numbers, kind or self._own_kind(), self._gap, self._indent, code))
        else:
            self._pass_on(self._gap)
        self._indent = ""
        self._clear()

    def _own_kind(self) -> StatementKind:
        is_heading = self._kind is StatementKind.SENTENCE and "\n" in self._gap and _BOLD_LINE.match(self._text)
        return StatementKind.HEADING if is_heading else self._kind

    @property
    def _stop(self) -> str:
        """The punctuation mark at the end of the statement, or ""."""
        tail = self._text[-40:].rstrip()
        found = _STOP.search(tail)
        return found[1] if found and not _ABBREVIATION.search(tail) else ""

    @property
    def _is_ended(self) -> bool:
        return self._is_long or self._stop not in _COLONS

    @property
    def _is_long(self) -> bool:
        return self._kind is not StatementKind.CODE and len(self._text) > LONGEST

    def _ends_before(self, following: str) -> bool:
        """Return whether the statement is complete before `following`, which comes after the gap."""
        if self._kind is StatementKind.CODE or "\n" not in self._gap:
            return self._kind is StatementKind.CODE or self._is_long or (self._is_ended and not following.islower())
        whole = self._kind is not StatementKind.SENTENCE or self._gap.count("\n") > 1 or self._is_ended
        return whole or bool(self._stop or _BOLD_LINE.match(self._text))

    # -- reading

    def _read(self, at: int) -> int:
        """Read one token from `at`; return its length, or 0 if more text is needed."""
        if self._fence:
            return self._read_code(at)
        if self._line_begins:
            return self._read_line_begin(at)
        token = _TOKEN.match(self._rest, at, at + WINDOW)
        assert token
        if self._waits(at) and _TOKEN_BEGUN.match(self._rest, at):
            return 0
        if token["newline"]:
            self._add_gap("\n")
            self._line_begins, self._ticks = True, ""
        elif self._ticks or token["ticks"]:
            self._read_span(token[0])
        elif token["number"]:
            return self._read_number(token)
        elif token["space"] or (token["pipe"] and self._kind is StatementKind.ROW):
            self._read_space(token[0])
        else:
            self._begin_if_ended(token[0])
            self._say(token[0])
        return len(token[0])

    def _waits(self, at: int) -> bool:
        """Return whether more text may come that decides how to read the text at `at`."""
        return not self._final and len(self._rest) - at < WINDOW

    def _read_span(self, text: str) -> None:
        if not self._ticks:
            self._begin_if_ended(text)
            self._ticks = text
        elif text == self._ticks:
            self._ticks = ""
        self._say(text)

    def _read_space(self, text: str) -> None:
        if self._kind is StatementKind.ROW or self._gap or (self._text and self._is_ended):
            self._add_gap(text)
        else:
            self._say(text)

    def _add_gap(self, text: str) -> None:
        """Add whitespace to the gap; an overlong gap is emitted."""
        if len(self._gap) > LONGEST:
            self._finish()
        self._gap += text

    def _begin_if_ended(self, text: str) -> None:
        closed = self._text.endswith(("。", "！", "？")) and text[0] not in "。！？”’」』）*"
        if (self._gap or closed) and self._ends_before(text[0]):
            self._finish()

    def _read_number(self, token: re.Match[str]) -> int:
        at, below = token.start(), "\n" in self._gap
        alone = _NUMBERS_ALONE.match(self._rest, at, at + WINDOW) if below else None
        if below and self._waits(at) and (alone is None or alone.end() == len(self._rest)):
            return 0
        if alone and alone["end"] is None and self._ends_before("["):
            self._finish()
        self._numbers.append(int(token["number"]))
        text = self._text
        self._add("", Number(token[0]))
        self._text = text
        return len(token[0])

    def _read_line_begin(self, at: int) -> int:
        """Read the start of a line, which determines its kind."""
        if self._waits(at) and _LINE_BEGUN.match(self._rest, at):
            return 0
        self._line_begins = False
        line = _LINE.match(self._rest, at, at + WINDOW)
        if line is None:
            return self._read(at)
        if line["blank"]:
            self._add_gap(line[0])
            self._line_begins = True
            return len(line[0])
        self._finish(StatementKind.HEADING if line["divider"] and self._gap.count("\n") == 1 else None)
        self._pass_on(CodePiece(line[0]) if line["fence"] else line[0])
        self._line_begins = bool(line["divider"])
        self._kind = (
            StatementKind.HEADING if line["heading"] else StatementKind.ROW if line["row"] else StatementKind.SENTENCE
        )
        if line["fence"]:
            self._fence, self._kind, self._code_line = line["mark"], StatementKind.CODE, ["\0"]
            self._indent = re.sub(r"[^\s>]", " ", line["indent"])
        return len(line[0])

    # -- code blocks

    def _read_code(self, at: int) -> int:
        end = self._rest.find("\n", at)
        piece = self._rest[at:] if end < 0 else self._rest[at : end + 1]
        self._code_line.append(piece.rstrip("\n"))
        if end >= 0 and self._closes("".join(self._code_line)):
            self._pass_on(CodePiece(piece[:-1]))
            self._close_fence()
            self._gap, self._line_begins = "\n", True
            return len(piece)
        self._pass_on(CodePiece(piece))
        if end >= 0:
            self._end_code_line()
        return len(piece)

    def _end_code_line(self) -> None:
        if self._code_line[:1] != ["\0"]:  # the line that names the language isn't code
            self._code += [*self._code_line, "\n"]
        self._code_line = []

    def _closes(self, line: str) -> bool:
        mark = line.strip(" \t>")
        return mark.startswith(self._fence) and not mark.strip(self._fence[0])

    def _close_fence(self, cut_off: bool = False) -> None:
        if cut_off:
            line = any(self._code_line)
            self._end_code_line()
            self._pass_on(CodePiece(("\n" if line else "") + self._indent + self._fence))
        self._fence, self._code_line = "", []


def read_text(text: str) -> list[Piece]:
    """Return the pieces of a complete text."""
    reader = TextReader()
    return [*reader.feed(text), *reader.close()]


def numbers_in(text: str) -> list[int]:
    """Return the numbers that a complete text cites, each once, in order."""
    return list(dict.fromkeys(int(piece[1:-1]) for piece in read_text(text) if isinstance(piece, Number)))


def shown(pieces: Iterable[Piece]) -> str:
    """Return the text of the pieces."""
    return "".join(piece.gap if isinstance(piece, Statement) else piece for piece in pieces)
