"""Splits a stream of Markdown into plain text and constructs, and holds the undecided.

Knows where a construct may begin and what is code; its subclass decides what becomes of a construct.
"""

import re
from abc import ABC, abstractmethod

# Longest construct that is waited for, in characters; a longer one is made inert instead.
LONGEST = 2000

_SCHEMES = ("http:", "https:", "ftp:", "ftps:", "ws:", "wss:", "javascript:", "vbscript:", "data:", "www.")
_TRIGGER = re.compile(
    r"(?P<line>\n)|(?P<bracket>[ \t]{0,8}!?\[)|(?P<target>\]\()|(?P<definition>\]:)"
    r"|(?P<tag><)|(?P<ticks>`{1,99})"
    rf"|(?P<escape>\\)|(?<![A-Za-z0-9])(?P<url>{'|'.join(map(re.escape, _SCHEMES))})"
    r"|(?P<glued>(?<=ttp|tps|ftp|..;):[/\\])"
    r"|(?P<slashes>(?<![:\w/\\])/[/\\])",
    re.IGNORECASE,
)
_BEGINNINGS = "|".join(
    sorted({re.escape(scheme[:n]) for scheme in _SCHEMES for n in range(1, len(scheme))}, key=len, reverse=True)
)
# A possible beginning of a trigger, at the end of the text so far.
_BEGUN = re.compile(
    rf"(?:[ \t]{{1,8}}!?|!|\]|(?<=ttp|tps|ftp|..;):|(?<![:\w/\\])/|(?<![A-Za-z0-9])(?:{_BEGINNINGS}))\Z", re.IGNORECASE
)
_BEFORE_FENCE = " \t>*+-0123456789.)"
GLUES_LEFT = re.compile(r"[\w:/\\.&#;@%+-]\Z")
_GLUES_RIGHT = re.compile(r"[\w:/\\&#;@%+-]|\.\S")


_QUOTE = re.compile(r" {0,3}> ?")


class _Wait(Exception):
    """More text must come before it is clear what this is."""


class MarkdownScanner(ABC):
    """Feeds the constructs of a stream to `_construct`. With `inside` all is code (the content of a code span)."""

    def __init__(self, inside: bool = False) -> None:
        self.inside = inside
        self._text = ""  # not decided yet
        self._left = ""  # what left last: enough to look behind
        self._fence = ""
        self._container = ""  # the marks of quotes and lists before the fence
        self._line_begins = True
        self._cut = False
        self._final = False

    def feed(self, text: str) -> str:
        """Return the text that may leave now that `text` has come."""
        self._text += text
        out = []
        try:
            while self._text:
                out.append(self._leave(*self._next()))
        except _Wait:
            pass
        return "".join(out)

    def close(self) -> str:
        """Return the rest, as no more text comes."""
        self._final = True
        return self.feed("")

    @property
    def _code(self) -> bool:
        return self.inside or bool(self._fence)

    def _leave(self, taken: int, out: str) -> str:
        self._text = self._text[taken:]
        self._left = (self._left + out)[-16:]
        return out

    def _next(self) -> tuple[int, str]:
        """Return how many characters are decided, and the text that leaves for them. Raises _Wait."""
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
        """Separate the texts on both sides of a removal, which must not become one."""
        if self._text == "." and not self._final:
            raise _Wait
        self._cut = False
        return 0, " " if GLUES_LEFT.search(self._left) and _GLUES_RIGHT.match(self._text) else ""

    @abstractmethod
    def _construct(self, kind: str, begin: str) -> tuple[int, str]:
        """Return what becomes of a construct of `kind` (a group of _TRIGGER) that starts with `begin`."""

    def _known(self, end: int, longest: int = LONGEST) -> None:
        """Raise _Wait if a construct that reaches `end` of the text so far may still be completed."""
        if end >= len(self._text) and not self._final and len(self._text) < longest:
            raise _Wait

    # -- fenced code

    def _line(self) -> tuple[int, str]:
        """Handle the beginning of a line, which may be a fence."""
        line = self._text[:LONGEST]
        at = len(line) - len(line.lstrip(_BEFORE_FENCE))
        self._known(at)
        mark = line[at : at + 1]
        run = len(line) - at - len(line[at:].lstrip(mark)) if mark in ("`", "~") else 0
        if run:
            self._known(at + run)
        if self._fence and not _continues(line, self._container):
            self._fence = ""  # with the quote or list that it is in
        taken = 0
        if run >= 3:
            taken = self._close_fence(at, mark * run) if self._fence else self._open_fence(at, mark * run)
        self._line_begins = False
        return taken, self._text[:taken]

    def _rest_of_line(self, at: int) -> str:
        line = self._text[:LONGEST]
        if "\n" not in line:
            self._known(len(self._text))
        return line[at:].split("\n", 1)[0]

    def _open_fence(self, at: int, fence: str) -> int:
        info = self._rest_of_line(at + len(fence))
        if "`" in info and fence[0] == "`":
            return 0
        self._fence, self._container = fence, self._text[:at]
        return at + len(fence)

    def _close_fence(self, at: int, fence: str) -> int:
        if fence.startswith(self._fence) and not self._rest_of_line(at + len(fence)).strip():
            self._fence = ""
        return at + len(fence)


def _continues(line: str, container: str) -> bool:
    """Return whether `line` still belongs to the quotes and the list that `container` begins (CommonMark, 5.1, 5.2)."""
    for _ in range(container.count(">")):
        quoted = _QUOTE.match(line)
        if quoted is None:
            return False
        line = line[quoted.end() :]
    width = len(container.rpartition(">")[2].expandtabs(4)) if container.strip(" \t>") else 0
    text = line.partition("\n")[0].expandtabs(4)
    return len(text) - len(text.lstrip()) >= width or not text.strip()
