"""Splits a stream of Markdown into plain text and constructs, and holds back ambiguous text.

This module knows where a construct may begin and which text is code; the subclass decides how to emit a construct.
"""

import re
from abc import ABC, abstractmethod

from pipelines.answering.sanitizing.blocks import BlockReader
from pipelines.answering.sanitizing.urls import SCHEMES

# The longest construct to wait for, in characters; a longer one is made inert instead.
LONGEST = 2000
MOST_TICKS = 99  # backticks that may begin code

_BEGINS = (*(f"{scheme}:" for scheme in SCHEMES), "www.")
_TRIGGER = re.compile(
    r"(?P<line>[\r\n])|(?P<bracket>[ \t]{0,8}(?:!?\[|[【［]))|(?P<target>\]\()|(?P<definition>\]:)"
    rf"|(?P<tag><)|(?P<ticks>`{{1,{MOST_TICKS}}})"
    rf"|(?P<escape>\\)|(?<![A-Za-z0-9])(?P<url>{'|'.join(map(re.escape, _BEGINS))})"
    r"|(?P<glued>(?<=ttp|tps|ftp|..;):[/\\])"
    r"|(?P<slashes>(?<![:\w/\\])/[/\\])",
    re.IGNORECASE,
)
_BEGINNINGS = "|".join(
    sorted({re.escape(begin[:n]) for begin in _BEGINS for n in range(1, len(begin))}, key=len, reverse=True)
)
# An incomplete trigger at the end of the text so far.
_BEGUN = re.compile(
    rf"(?:[ \t]{{1,8}}!?|!|\]|(?<=ttp|tps|ftp|..;):|(?<![:\w/\\])/|(?<![A-Za-z0-9])(?:{_BEGINNINGS}))\Z", re.IGNORECASE
)
BEFORE_FENCE = " \t>*+-0123456789.)"
GLUES_LEFT = re.compile(r"[\w:/\\.&#;@%+`-]\Z")
_GLUES_RIGHT = re.compile(r"[\w/\\&#;@%+`-]|[.:]\S")


class _Wait(Exception):
    """More text is needed to interpret this."""


class MarkdownScanner(ABC):
    """Passes the constructs of a stream to `_construct`; with `inside`, all text is code (from a code span)."""

    def __init__(self, inside: bool = False) -> None:
        self.inside = inside
        self._text = ""  # pending
        self._left = ""  # the last emitted characters, for look-behind
        self._blocks = BlockReader()
        self._fenced = False  # the line is fenced code
        self._raw = False  # the line is, or may be, raw HTML
        self._ticks: set[int] = set()  # lengths of backtick runs in this paragraph that may open or close code
        self._line_begins = True
        self._cut = False
        self._final = False

    def feed(self, text: str) -> str:
        """Add `text` and return the text that can be emitted now."""
        out: list[str] = []
        for begin in range(0, len(text), LONGEST) or (0,):  # keeps the pending text short, however long a delta is
            self._text += text[begin : begin + LONGEST]
            self._decide(out)
        return "".join(out)

    def _decide(self, out: list[str]) -> None:
        """Append the text that can be emitted to `out`."""
        try:
            while self._text:
                out.append(self._leave(*self._next()))
        except _Wait:
            pass

    def close(self) -> str:
        """Return the rest, after the end of the text."""
        self._final = True
        return self.feed("")

    @property
    def _code(self) -> bool:
        return self.inside or self._fenced

    def _leave(self, taken: int, out: str) -> str:
        self._text = self._text[taken:]
        self._left = (self._left + out)[-16:]
        self._blocks.add(out)
        return out

    def _next(self) -> tuple[int, str]:
        """Return how many characters are decided, and the text to emit for them. Raises _Wait."""
        if self._cut:
            return self._separate()
        if self._line_begins and not self.inside:
            return self._line()
        behind = len(self._left)
        match = _TRIGGER.search(self._left + self._text, behind)
        if match is None:
            return self._plain()
        if match.start() > behind:
            plain = match.start() - behind
            return plain, self._text[:plain]
        return self._construct(str(match.lastgroup), match[0])

    def _plain(self) -> tuple[int, str]:
        behind = len(self._left)
        begun = None if self._final else _BEGUN.search(self._left + self._text, behind)
        plain = begun.start() - behind if begun else len(self._text)
        if not plain:
            raise _Wait
        return plain, self._text[:plain]

    def _separate(self) -> tuple[int, str]:
        """Separate the texts on both sides of a removal, so that they don't merge."""
        if self._text in (".", ":") and not self._final:
            raise _Wait
        self._cut = False
        return 0, " " if GLUES_LEFT.search(self._left) and _GLUES_RIGHT.match(self._text) else ""

    @abstractmethod
    def _construct(self, kind: str, begin: str) -> tuple[int, str]:
        """Return the length of a construct and its replacement.

        `kind` is a group of _TRIGGER; the construct starts with `begin`.
        """

    def _known(self, end: int, longest: int = LONGEST) -> None:
        """Raise _Wait if a construct that reaches `end` of the text so far may still continue."""
        if end >= len(self._text) and not self._final and len(self._text) < longest:
            raise _Wait

    @property
    def _tags_are_text(self) -> bool:
        """Whether every renderer shows this as code, so that its tags are text."""
        return self._code and not self._raw

    # -- lines

    def _line(self) -> tuple[int, str]:
        """Handle the beginning of a line, which may open or close a code block."""
        line = re.split(r"[\r\n]", self._text[:LONGEST], maxsplit=1)[0]
        ended = len(line) < len(self._text[:LONGEST])
        at = len(line) - len(line.lstrip(BEFORE_FENCE))
        mark = line[at : at + 1]
        run = len(line) - at - len(line[at:].lstrip(mark)) if mark in ("`", "~") else 0
        fence = run >= 3
        if not ended and (fence or at + run == len(line)):
            self._known(len(self._text))
        if not line.strip() and not (self._left[-1:] == "\r" and self._text[0] == "\n"):
            self._ticks.clear()  # a paragraph ends, and with it any open code span
        block = self._blocks.begin_line(line if fence else line[: at + 1])
        known = ended or self._final or not fence
        self._fenced, self._raw = known and block == "fence", not known or block == "html"
        self._line_begins = False
        return 0, ""
