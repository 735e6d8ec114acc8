"""Citations, links and raw HTML in a stream of Markdown: what does not belong there goes.

Knows Markdown (CommonMark 0.31, GFM's autolinks) and URLs (the WHATWG standard's tolerance of them) as text; no hits,
no secrets. What it cannot tell apart yet is held, so that the chunks of the stream decide nothing.
"""

import re
from dataclasses import dataclass, field

REMOVED = "(link removed)"
LOOPBACK = frozenset({"localhost", "127.0.0.1", "[::1]", "0.0.0.0"})
# Longest construct that is waited for, in characters; what is longer is made inert instead.
LONGEST = 2000
LONGEST_TEXT = 500
# Brackets in a link's text: an image that is a link, and one more.
DEEPEST = 3

_DEFAULT_PORTS = {"http": "80", "https": "443", "ws": "80", "wss": "443"}
_ABSOLUTE = re.compile(r"(https?|wss?)://(\[[0-9a-f:.]+\]|[a-z0-9.-]+)(?::([0-9]{1,5}))?(?=[/?#]|$)", re.IGNORECASE)
_NO_HOST = re.compile(r"[a-z]+://$", re.IGNORECASE)  # http://<host>:80 in a manual
# Whatever makes a browser leave the page: a scheme, slashes of either kind, entities that may hide them.
_LEADS_AWAY = re.compile(r"[:\\&<\s]|//")
_LEADS_AWAY_IN_CODE = re.compile(r"[\\&]|//|(?:https?|ftps?|wss?|javascript|vbscript):", re.IGNORECASE)

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
# What may be the beginning of a trigger, at the end of what has come.
_BEGUN = re.compile(
    rf"(?:[ \t]{{1,8}}!?|!|\]|(?<=ttp|tps|ftp|..;):|(?<![:\w/\\])/|(?<![A-Za-z0-9])(?:{_BEGINNINGS}))\Z", re.IGNORECASE
)
_NUMBERS = re.compile(r"\[\s*([0-9]{1,4}(?:\s*[-–—,;]\s*[0-9]{1,4})*)\s*\]")
_NUMBERS_BEGUN = re.compile(r"\[[\s0-9,;\-–—]{0,60}\Z")
_RANGE = re.compile(r"([0-9]+)\s*[-–—]\s*([0-9]+)|([0-9]+)")
_TARGET = re.compile(r"\(((?:[^()]|\([^()]*\))*)\)")
_TAG_BEGIN = re.compile(r"</?[a-z]", re.IGNORECASE)
_TAG = re.compile(r"</?[a-z][\w-]*(?=[\s/>])(?:[^<>\"']|\"[^\"]*\"|'[^']*')*>", re.IGNORECASE)
_AUTOLINK = re.compile(r"<([a-z][a-z0-9+.-]{1,31}:[^<>\s]*)>", re.IGNORECASE)
_DEFINITION = re.compile(r"\]:[ \t]*\n?[ \t]*(\S*)")
_SPACE_OR_TAG = re.compile(r"[\s<]")
_VALUE = re.compile(r"=\s*(\"[^\"]*\"|'[^']*'|[^\s>]+)")
_HIDDEN = re.compile(r"&(?:#|\w+;)|\\|^//")
_ACTIVE = re.compile(
    r"</?(?:script|style|iframe|frame|object|embed|base|meta|link|form|svg|math)\b|[\s\"'/]on\w+\s*=", re.IGNORECASE
)
_BEFORE_FENCE = " \t>*+-0123456789.)"
_URL_END = re.compile(r"[\s<>\"'`]")
_PATH_BEGUN = re.compile(r"[^/]*//[^/?#]*[/?#]")
_SCHEMELESS = re.compile(r"/[/\\]+(?:\[|[^/\\\s]*[.@:]\w)")
_DATA = re.compile(r"data:(?:[\w.+-]+/[\w.+-]+)?[;,]", re.IGNORECASE)
_GLUES_LEFT = re.compile(r"[\w:/\\.&#;@%+-]\Z")
_GLUES_RIGHT = re.compile(r"[\w:/\\&#;@%+-]|\.\S")


def origin(url: str) -> str:
    """Scheme, host and port of a URL, lower case, without a scheme's own port; "" where it has none to rely on."""
    match = _ABSOLUTE.match(url)
    if not match:
        return ""
    scheme, host, port = match[1].lower(), match[2].lower(), match[3]
    return f"{scheme}://{host}" + (f":{port}" if port and port != _DEFAULT_PORTS[scheme] else "")


def _host(url: str) -> str:
    match = _ABSOLUTE.match(url)
    return match[2].lower() if match else ""


class _Wait(Exception):
    """More must come before it is clear what this is."""


@dataclass(slots=True)
class MarkdownFilter:
    """A streaming filter; `hits` is the highest citation number, `origins` are where links may lead.

    `inside` says that all is code (for the content of a code span).
    """

    hits: int
    origins: frozenset[str]
    inside: bool = False
    _text: str = field(init=False, default="")
    _left: str = field(init=False, default="")  # what left last: enough to look behind
    _fence: str = field(init=False, default="")
    _line_begins: bool = field(init=False, default=True)
    _cut: bool = field(init=False, default=False)
    _final: bool = field(init=False, default=False)

    def feed(self, text: str) -> str:
        """What may leave now that `text` has come."""
        self._text += text
        out = []
        try:
            while self._text:
                out.append(self._leave(*self._next()))
        except _Wait:
            pass
        return "".join(out)

    def close(self) -> str:
        """The rest, as nothing comes any more."""
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
        """How many characters are decided, and what leaves for them. Raises _Wait."""
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
        """Something was taken out: what stood on both sides of it must not become one."""
        if self._text == "." and not self._final:
            raise _Wait
        self._cut = False
        return 0, " " if _GLUES_LEFT.search(self._left) and _GLUES_RIGHT.match(self._text) else ""

    def _construct(self, kind: str, begin: str) -> tuple[int, str]:
        always = {"target": self._loose_target, "tag": self._tag, "glued": self._bare, "slashes": self._slashes}
        prose = {"ticks": self._span, "bracket": self._bracket, "definition": self._definition, "escape": self._escape}
        self._line_begins = kind == "line"
        if kind == "url":
            return self._url(begin.lower())
        handler = always.get(kind) or (None if self._code else prose.get(kind))
        return handler(begin) if handler else (len(begin), begin)

    def _known(self, end: int, longest: int = LONGEST) -> None:
        """Wait if a construct that goes on at `end` of what has come may still be completed."""
        if end >= len(self._text) and not self._final and len(self._text) < longest:
            raise _Wait

    # -- code

    def _line(self) -> tuple[int, str]:
        """A line begins: is it a fence?"""
        line = self._text[:LONGEST]
        at = len(line) - len(line.lstrip(_BEFORE_FENCE))
        self._known(at)
        mark = line[at : at + 1]
        run = len(line) - at - len(line[at:].lstrip(mark)) if mark in ("`", "~") else 0
        if run:
            self._known(at + run)
        taken = 0
        if run >= 3:
            taken = self._closing(at, mark * run) if self._fence else self._opening(at, mark * run)
        self._line_begins = False
        return taken, self._text[:taken]

    def _rest_of_line(self, at: int) -> str:
        line = self._text[:LONGEST]
        if "\n" not in line:
            self._known(len(self._text))
        return line[at:].split("\n", 1)[0]

    def _opening(self, at: int, fence: str) -> int:
        info = self._rest_of_line(at + len(fence))
        if "`" in info and fence[0] == "`":
            return 0
        self._fence = fence
        return at + len(fence)

    def _closing(self, at: int, fence: str) -> int:
        if fence.startswith(self._fence) and not self._rest_of_line(at + len(fence)).strip():
            self._fence = ""
        return at + len(fence)

    def _span(self, ticks: str) -> tuple[int, str]:
        """Code in backticks, closed in the same line; else backticks are plain."""
        n = len(ticks)
        self._known(n)
        line = self._text[n : n + LONGEST_TEXT].split("\n", 1)[0]
        closing = re.search(rf"(?<!`)`{{{n}}}(?!`)", line)
        if (closing is None or closing.end() == len(line)) and n + len(line) == len(self._text):
            self._known(len(self._text), n + LONGEST_TEXT)
        if closing is None:
            return n, ticks
        return n + closing.end(), ticks + self._inner(line[: closing.start()], code=True) + ticks

    def _inner(self, text: str, *, code: bool = False) -> str:
        inner = MarkdownFilter(self.hits, self.origins, inside=code)
        inner._line_begins = False
        return inner.feed(text) + inner.close()

    def _escape(self, _: str) -> tuple[int, str]:
        """A backslash keeps a backtick from beginning code."""
        self._known(1)
        taken = 2 if self._text[1:2] in ("`", "\\") else 1
        return taken, self._text[:taken]

    # -- citations and links

    def _bracket(self, begin: str) -> tuple[int, str]:
        space = begin.rstrip("![")
        at = len(begin) - 1
        numbers = _NUMBERS.match(self._text, at)
        if numbers is None and _NUMBERS_BEGUN.match(self._text, at):
            self._known(len(self._text))
        if numbers and "!" not in begin:
            return self._citation(space, numbers)
        return self._link(begin, space, at)

    def _citation(self, space: str, numbers: re.Match[str]) -> tuple[int, str]:
        self._known(numbers.end())
        valid = [n for n in _expanded(numbers[1], self.hits) if 1 <= n <= self.hits]
        target = self._target(numbers.end()) if self._text[numbers.end() : numbers.end() + 1] == "(" else None
        taken = numbers.end() + (len(target) + 2 if target is not None else 0)
        self._cut = not valid or target is not None
        return taken, space + "".join(f"[{n}]" for n in dict.fromkeys(valid)) if valid else ""

    def _link(self, begin: str, space: str, at: int) -> tuple[int, str]:
        end = self._text_end(at)
        if end is None or self._text[end + 1 : end + 2] != "(":
            return len(begin), begin
        target = self._target(end + 1)
        if target is None:
            return len(begin), begin
        label = self._inner(self._text[at + 1 : end])
        taken = end + 1 + len(target) + 2
        image = "!" in begin
        if self._kept(target, image=image):
            return taken, f"{begin}{label}]({target})"
        self._cut = True
        glue = " " if not space and label and _GLUES_LEFT.search(self._left) else ""
        return taken, space + glue + label

    def _text_end(self, at: int) -> int | None:
        """Where the bracket that opens at `at` closes and what follows is known; None where it does not."""
        depth = 0
        for n in range(at, min(len(self._text), at + LONGEST_TEXT)):
            char = self._text[n]
            depth += (char == "[") - (char == "]")
            if depth > DEEPEST:
                return None
            if depth == 0:
                self._known(n + 1)
                return n
        self._known(len(self._text), at + LONGEST_TEXT)
        return None

    def _target(self, at: int) -> str | None:
        """What stands in the parentheses that open at `at`, None where they do not close."""
        match = _TARGET.match(self._text[: at + LONGEST], at)
        if match is None:
            self._known(len(self._text), at + LONGEST)
            return None
        return match[1]

    def _kept(self, target: str, *, image: bool = False) -> bool:
        """Whether a link may lead to `target`, which may have a title behind it."""
        url = (target.split() or [""])[0]
        if _LEADS_AWAY.search(url):
            return origin(url) in self.origins and "\\" not in url
        return not image

    def _loose_target(self, _: str) -> tuple[int, str]:
        """`](` that belongs to no link that was understood: a space makes it none to anyone."""
        if not self._code:
            return 2, "] ("
        target = self._target(1)
        leads_away = target is None or _LEADS_AWAY_IN_CODE.search(target)
        return 2, "] (" if leads_away else "]("

    def _definition(self, _: str) -> tuple[int, str]:
        match = _DEFINITION.match(self._text[:LONGEST])
        assert match
        self._known(match.end())
        if _LEADS_AWAY.search(match[1].strip("<>")) and not self._kept(match[1].strip("<>")):
            return match.end(), f"]: {REMOVED}"
        return 2, "]:"

    def _tag(self, _: str) -> tuple[int, str]:
        """`<`: a link in angle brackets, raw HTML, or a sign."""
        self._known(2 if self._text.startswith("</") else 1)
        if not _TAG_BEGIN.match(self._text):
            return 1, "<"
        window = self._text[:LONGEST_TEXT]
        link = _AUTOLINK.match(window)
        tag = _TAG.match(window)
        if not (link or tag):
            self._known(len(self._text), LONGEST_TEXT)
            return 1, "<" if self._code else "< "  # no tag to anyone
        if link and not self._code:
            return link.end(), link[0] if self._kept(link[1]) else REMOVED
        return self._html(tag[0]) if tag else (1, "<")

    def _html(self, tag: str) -> tuple[int, str]:
        values = [value.strip("\"'") for value in _VALUE.findall(tag)]
        if self._code:
            return (len(tag), REMOVED) if any(map(_HIDDEN.search, values)) else (1, "<")
        if not _ACTIVE.search(tag) and all(map(self._harmless, values)):
            return len(tag), tag
        self._cut = True
        return len(tag), ""

    def _harmless(self, value: str) -> bool:
        """Whether an attribute leads nowhere else, as its one URL or among its words."""
        return self._kept(value) if " " not in value.strip() else not _LEADS_AWAY_IN_CODE.search(value)

    # -- bare URLs

    def _token(self) -> str:
        """All up to the next space or tag: nothing less is sure to be the end of a URL."""
        window = self._text[:LONGEST]
        end = _SPACE_OR_TAG.search(window)
        if end is None:
            self._known(len(self._text))
        return window[: end.start()] if end else window

    def _bare(self, _: str = "", *, kept: bool = False) -> tuple[int, str]:
        """A URL on its own; `kept` says that it may stand if it leads where it may."""
        token = self._token()
        url = _URL_END.split(token, maxsplit=1)[0]
        url = url.rstrip(".,;:!?)]}*_~|") or url
        if kept and "\\" not in token and self._stands(url, token[len(url) :]):
            return len(url), url
        self._cut = True
        return max(len(url), 1), REMOVED

    def _stands(self, url: str, rest: str) -> bool:
        """Whether a bare URL may stand, whatever a reader's software takes to belong to it."""
        whole = "@" not in rest or bool(_PATH_BEGUN.match(url))
        loopback = self._code and _host(url) in LOOPBACK
        return whole and (loopback or origin(url) in self.origins or bool(_NO_HOST.match(url)))

    def _url(self, scheme: str) -> tuple[int, str]:
        """A scheme that leads somewhere unless a space follows; `data` is a common word."""
        self._known(len(scheme))
        token = self._token() if scheme == "data:" else ""
        after = self._text[len(scheme) : len(scheme) + 1]
        if not after or after.isspace() or (token and not _DATA.match(token)):
            return len(scheme), self._text[: len(scheme)]
        return self._www() if scheme == "www." else self._bare(kept=scheme.startswith(("http", "ws")))

    def _www(self) -> tuple[int, str]:
        host = _URL_END.split(self._token(), maxsplit=1)[0].rstrip(".,;:!?)]}*_~|")
        kept = "@" not in self._token() and {origin(f"{s}://{host}") for s in ("http", "https")} & self.origins
        return (4, self._text[:4]) if kept else self._bare()

    def _slashes(self, begin: str) -> tuple[int, str]:
        """`//host` of no scheme; in code it is more often a comment."""
        if not _SCHEMELESS.match(self._token()) or (self._code and self._left[-1:] not in tuple("\"'(=")):
            return len(begin), begin
        return self._bare()


def _expanded(numbers: str, most: int) -> list[int]:
    """`1, 3-5` as 1, 3, 4, 5; of ranges no more than `most`."""
    found: list[int] = []
    for first, last, single in _RANGE.findall(numbers):
        found += [int(single)] if single else range(int(first), min(int(last), most) + 1)
    return found
