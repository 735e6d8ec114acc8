"""Removes invalid citations, foreign links and raw HTML from a stream of Markdown.

This module handles Markdown (CommonMark 0.31, GFM's autolinks) as text; it knows nothing about hits or secrets.
Ambiguous text is held back, so the result doesn't depend on how the stream is chunked.
"""

import re
from collections.abc import Collection

import regex

from pipelines.answering.sanitizing.scanner import BEFORE_FENCE, GLUES_LEFT, LONGEST, MOST_TICKS, MarkdownScanner
from pipelines.answering.sanitizing.urls import AllowedURLs, hides_away, is_name, leads_away, leads_away_in_code, url_of
from pipelines.text.phrases import read_table

REMOVED = "(link removed)"
LONGEST_TEXT = 500  # the longest link text and the longest code span, in characters
DEEPEST = 3  # nested brackets in a link's text: an image inside a link, and one more

_WORDS = "|".join(read_table(__name__)["cites"])
# How models cite: [1], [1, 2], [^1], [#1], [Source 1], 【1】, 【1†source】, ［1］; "[#1](" begins a link to an issue.
CITES = (
    rf"[\[【［]\s{{0,9}}(?:\^|(?P<issue>\#)|(?i:{_WORDS})s?[\s.:#_]{{1,3}})?"
    r"(?P<numbers>[0-9]{1,4}(?:\s*[-–—,;]\s*[0-9]{1,4})*)\s*(?:†[^\]】\n]{0,60})?[\]】］](?(issue)(?!\())"
)
_NUMBERS = regex.compile(CITES)
_RANGE = re.compile(r"([0-9]+)\s*[-–—]\s*([0-9]+)|([0-9]+)")
_TARGET = re.compile(r"\(((?:[^()]|\([^()]*\))*)\)")
_TICKS = re.compile("`+")
_TAG_BEGIN = re.compile(r"</?[a-z]", re.IGNORECASE)
_TAG = re.compile(r"</?[a-z][\w-]*(?=[\s/>])(?:[^<>\"']|\"[^\"]*\"|'[^']*')*>", re.IGNORECASE)
_AUTOLINK = re.compile(r"<([a-z][a-z0-9+.-]{1,31}:[^<>\s]*)>", re.IGNORECASE)
_DEFINITION = re.compile(r"\]:[ \t]*\n?[ \t]*(\S*)")
_VALUE = re.compile(r"=\s*(\"[^\"]*\"|'[^']*'|[^\s>]+)")
_LABEL = re.compile(r"(?<!\\)\[(?:[^\[\]\\]|\\.)*\Z")
_NO_SCHEME = re.compile(r"[\w.+-]+::[^/\\&%]*")  # std::string: no renderer makes a link of it that leads anywhere
_ACTIVE = re.compile(
    r"</?(?:script|style|iframe|frame|object|embed|base|meta|link|form|svg|math)\b|[\s\"'/]on\w+\s*=", re.IGNORECASE
)
_SCHEMELESS = re.compile(r"/[/\\]+(?:\[|[^/\\\s]*[.@:]\w)")


class MarkdownFilter(MarkdownScanner):
    """A streaming filter; `hits` is the highest valid citation number, `urls` decides which URLs may stay."""

    def __init__(self, hits: int, urls: AllowedURLs, inside: bool = False) -> None:
        super().__init__(inside)
        self.hits, self.urls = hits, urls
        self._balanced: list[str] = []  # parts of this construct with paired, or already counted, backticks

    def _construct(self, kind: str, begin: str) -> tuple[int, str]:
        always = {
            "target": self._loose_target,
            "tag": self._tag,
            "glued": self._bare,
            "slashes": self._slashes,
            "url": self._url,
        }
        prose = {"ticks": self._span, "bracket": self._bracket, "definition": self._definition, "escape": self._escape}
        self._line_begins, self._balanced = kind == "line", []
        handler = always.get(kind) or (None if self._code else prose.get(kind))
        taken, out = handler(begin) if handler else (len(begin), begin)
        if kind not in ("ticks", "escape") and not self._code:
            counted = out
            for text in filter(None, self._balanced):
                counted = counted.replace(text, "", 1)
            self._ticks.update(map(len, _TICKS.findall(counted)))
        return taken, out

    # -- code

    def _span(self, ticks: str) -> tuple[int, str]:
        """Handle a code span that closes on the same line; other backticks are plain text."""
        n = len(ticks)
        self._known(n)
        line = re.split(r"[\r\n]", self._text[n : n + LONGEST_TEXT], maxsplit=1)[0]
        closing = re.search(rf"(?<!`)`{{{n}}}(?!`)", line)
        if (closing is None or closing.end() == len(line)) and n + len(line) == len(self._text):
            self._known(len(self._text), n + LONGEST_TEXT)
        if closing is None:
            self._ticks.add(n)
            return n, ticks
        code = line[: closing.start()]
        runs = {n, *map(len, _TICKS.findall(code))}
        raw = "|" in code or self._left[-1:] == "`" or self._may_be_html(runs)  # table cells end code spans
        self._ticks.update(runs if raw else ())
        taken = n + closing.end()
        raw = raw or ("//" in code and bool(re.match(r"\w", self._text[taken:])))  # a URL may continue after it
        return taken, ticks + self._inner(code, code=True, raw=raw) + ticks

    def _may_be_html(self, runs: Collection[int] = ()) -> bool:
        """Return whether a renderer may take code with these backtick `runs` for raw HTML or other text."""
        begins = self._blocks.line.lstrip(BEFORE_FENCE).startswith("<")
        return self._raw or begins or not self._ticks.isdisjoint(runs) or MOST_TICKS in runs

    def _inner(self, text: str, *, code: bool = False, raw: bool = False) -> str:
        inner = MarkdownFilter(self.hits, self.urls, inside=code)
        inner._line_begins, inner._raw, inner._ticks = False, raw, self._ticks
        filtered = inner.feed(text) + inner.close()
        self._balanced.append(filtered)
        return filtered

    def _escape(self, _: str) -> tuple[int, str]:
        """Handle a backslash: it stops a backtick from opening code, and a tag or target from being one."""
        self._known(1)
        escaped = self._text[1:2]
        is_sure = escaped in ("<", "[", "]") and not (self._ticks or self._may_be_html())
        taken = 2 if escaped in ("`", "\\") or is_sure else 1
        return taken, self._text[:taken]

    # -- citations and links

    def _bracket(self, begin: str) -> tuple[int, str]:
        space = begin.rstrip("![【［")
        at = len(begin) - 1
        numbers = _NUMBERS.match(self._text, at, partial=True)
        if numbers and numbers.partial:
            self._known(len(self._text))
        elif numbers and "!" not in begin:
            return self._citation(space, numbers)
        return self._link(begin, space, at) if begin.endswith("[") else (len(begin), begin)

    def _citation(self, space: str, numbers: regex.Match[str]) -> tuple[int, str]:
        self._known(numbers.end())
        valid = [n for n in _expand(numbers["numbers"], self.hits) if 1 <= n <= self.hits]
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
        label = self._inner(self._text[at + 1 : end], raw=self._may_be_html())
        taken = end + 1 + len(target) + 2
        image = "!" in begin
        if self.urls.allow_target(target, image=image):
            return taken, f"{begin}{label}]({target})"
        self._cut = True
        glue = " " if not space and label and GLUES_LEFT.search(self._left) else ""
        return taken, space + glue + label + ("" if image else self._show_target(target, label))

    def _show_target(self, target: str, label: str) -> str:
        """Return the target of a disallowed link as text to show after its label."""
        url = (target.split() or [""])[0].strip("<>")
        shown = self._as_text(url) if url not in label and self.urls.is_quoted(url, "") else ""
        return f" ({shown})" if shown else ""

    def _text_end(self, at: int) -> int | None:
        """Return the position where the bracket at `at` closes, or None; waits for one more character after it."""
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
        """Return the text in the parentheses that open at `at`, or None if they don't close."""
        match = _TARGET.match(self._text[: at + LONGEST], at)
        if match is None:
            self._known(len(self._text), at + LONGEST)
            return None
        return match[1]

    def _loose_target(self, _: str) -> tuple[int, str]:
        """Handle a `](` outside any recognized link: an added space keeps renderers from making a link of it."""
        if not self._code:
            return 2, "] ("
        target = self._target(1)
        if target is None:  # the code continues; a target in angle brackets may have spaces
            target = (self._text[2:LONGEST].split(maxsplit=1) or [""])[0].replace("<", "\\")
        is_held = self._tags_are_text and self.urls.holds(f"]({target}")
        return 2, "] (" if leads_away_in_code(target) and not is_held else "]("

    def _definition(self, _: str) -> tuple[int, str]:
        """Handle `]:`, which defines a link if the line starts with its label; a label may span lines."""
        if self._is_within_line():
            return 2, "]:"
        match = _DEFINITION.match(self._text[:LONGEST])
        assert match
        self._known(match.end())
        target = match[1].strip("<>")
        if leads_away(target) and not self.urls.allow_target(target):
            return match.end(), f"]: {REMOVED}"
        return 2, "]:"

    def _is_within_line(self) -> bool:
        """Return whether the bracket that closes here opened after other text on the same line."""
        line = self._blocks.line
        if not line.endswith(self._left.rpartition("\n")[2]):
            return False  # more was emitted than is kept
        opened = _LABEL.search(line, max(0, len(line) - LONGEST))
        return bool(opened and line[: opened.start()].strip(BEFORE_FENCE))

    def _tag(self, _: str) -> tuple[int, str]:
        """Handle `<`: an autolink, raw HTML, or a plain character."""
        self._known(2 if self._text.startswith("</") else 1)
        if not _TAG_BEGIN.match(self._text):
            return 1, "<" if self._tags_are_text or self._text[1:2] not in ("!", "?") else "< "
        window = self._text[:LONGEST_TEXT]
        link = _AUTOLINK.match(window)
        tag = _TAG.match(window)
        if not (link or tag):
            self._known(len(self._text), LONGEST_TEXT)
            return 1, "<" if self._tags_are_text else "< "  # no renderer sees a tag here
        if link and not self._tags_are_text:
            return link.end(), link[0] if self.urls.allow_target(link[1]) else self._show_autolink(link)
        return self._html(tag[0]) if tag else (1, "<")

    def _show_autolink(self, link: re.Match[str]) -> str:
        if _NO_SCHEME.fullmatch(link[1]):
            return self._as_text(link[0]) or f"< {link[0][1:]}"
        rest = self._token(with_tags=True)[link.end() :]
        return (self._as_text(link[1]) if self.urls.is_quoted(link[1], rest) else "") or REMOVED

    def _html(self, tag: str) -> tuple[int, str]:
        values = [value.strip("\"'") for value in _VALUE.findall(tag)]
        if self._tags_are_text:
            hides = any(hides_away(value) and not self.urls.is_quoted(value, "") for value in values)
            return (len(tag), REMOVED) if hides and not self.urls.holds(tag) else (1, "<")
        names = _VALUE.sub("", tag)  # a URL may also occur in place of an attribute name
        # Some renderers take only the `<img>` in `<b a='<img>'=>` for a tag.
        inert = "<" not in tag[1:] and not (_ACTIVE.search(tag) or leads_away_in_code(names))
        if inert and all(map(self.urls.allow_attribute, values)):
            return len(tag), tag
        self._cut = True
        return len(tag), ""

    # -- bare URLs

    def _token(self, *, with_tags: bool = False) -> str:
        """Return the text up to the next space or, without `with_tags`, the next tag; a URL may extend that far."""
        window = self._text[:LONGEST]
        token = "" if window[:1].isspace() else (window.split(maxsplit=1) or [""])[0]
        token = token if with_tags else token.partition("<")[0]
        if len(token) == len(window):
            self._known(len(self._text))
        return token

    def _bare(self, _: str = "", *, allowed: bool = False) -> tuple[int, str]:
        """Handle a bare URL; with `allowed`, it may stay if its origin is allowed."""
        token = self._token()
        url = url_of(token)
        if allowed and "\\" not in token and self.urls.allow_bare(url, token[len(url) :], code=self._code):
            return len(url), url
        if quoted := self._quoted():
            return quoted
        self._cut = True
        return max(len(url), 1), REMOVED

    def _quoted(self) -> tuple[int, str] | None:
        """Handle a foreign URL that occurs in a passage: show it as text, not as a link."""
        run = self._token(with_tags=True)
        for url in (url_of(run), url_of(run.partition("[")[0])):  # a citation may follow without a space
            rest = run[len(url) :]
            if len(run) < LONGEST and self.urls.is_quoted(url, rest) and (self._code or rest[:1] != "`"):
                shown = self._as_text(url)
                return (len(url), shown) if shown else None
        return None

    def _as_text(self, url: str) -> str:
        """Return a URL in a form that no renderer links, in prose as code; "" if that can't be guaranteed."""
        if self._code:
            return url if self._tags_are_text else ""
        defines = self._left.rstrip().endswith("]:")
        if defines or "|" in url or self._left[-1:] in ("`", "\\") or self._may_be_html({1}):
            return ""
        self._balanced.append(f"`{url}`")
        return f"`{url}`"

    def _url(self, begin: str) -> tuple[int, str]:
        """Handle a scheme: it begins a URL unless a space follows or it is part of a name."""
        scheme = begin.lower()
        self._known(len(scheme))
        after = self._text[len(scheme) : len(scheme) + 1]
        if not after or after.isspace():
            return len(begin), begin
        token = self._token()
        if self.urls.allow_www(token) if scheme == "www." else self._is_name(scheme, token):
            return len(begin), begin
        return self._bare(allowed=scheme.startswith(("http", "ws")))

    def _is_name(self, scheme: str, token: str) -> bool:
        tag = self._text[len(token) : len(token) + 1].strip()
        return is_name(scheme, token[len(scheme) :] + tag, self._left)

    def _slashes(self, begin: str) -> tuple[int, str]:
        """Handle `//host` without a scheme; in code it is usually a comment."""
        if not _SCHEMELESS.match(self._token()) or (self._code and self._left[-1:] not in tuple("\"'(=")):
            return len(begin), begin
        return self._bare()


def _expand(numbers: str, most: int) -> list[int]:
    """Return `1, 3-5` as 1, 3, 4, 5; ranges end at `most`."""
    expanded: list[int] = []
    for first, last, single in _RANGE.findall(numbers):
        expanded += [int(single)] if single else range(int(first), min(int(last), most) + 1)
    return expanded
