"""Finds the code in a source, where links, roles, template tags and includes are only shown.

It looks for fences, for the literal blocks of reStructuredText and for code within a line, and parses nothing else.
Fenced MyST directives contain text.
"""

import re
from bisect import bisect
from collections.abc import Callable, Iterator, Sequence

from pipelines.indexing.reading.formats import ASCIIDOC, MARKDOWN, QUARTO, RESTRUCTURED_TEXT, DocumentFormat
from pipelines.indexing.reading.formats.sphinx_markup import directive_kind

_FENCE = re.compile(
    r"^[ \t>]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)*(`{3,}+|~{3,}+|-{4,}+|\.{4,}+)[ \t]*([^\n]*)", re.MULTILINE
)
_SIGNS = {ASCIIDOC: "`-."}  # the signs of fences; elsewhere, dashes and dots underline titles
_TEXT = re.compile(r"\{(?!\.|[\w-]*code|parsed-literal|doctest|prompt)[\w:.+-]+\}")  # a directive that contains text
_MARGIN = re.compile(r"[ \t]*(?:(?:[-*+]|(?:\d{1,3}|[a-zA-Z#])[.)])[ \t]+)*")  # of a block, with the marks of its lists
_DIRECTIVE = re.compile(r"\.\.[ \t]+([\w:.+-]+)::")
_BORDER, _RULE = re.compile(r"\+(?:[-=:]+\+)+"), re.compile(r"=+(?: +=+)+")
_DRAWN = (QUARTO, RESTRUCTURED_TEXT)  # formats with tables whose columns are drawn
_SPAN = re.compile(r"(?<!`)(`++)[^\n]{0,1000}?\1")


class _TextParts:
    """Parts of a text, by their starts and ends in order."""

    def __init__(self, parts: Sequence[tuple[int, int]]) -> None:
        self._starts, self._ends = [start for start, _ in parts], [end for _, end in parts]

    def __contains__(self, place: int) -> bool:
        number = bisect(self._starts, place)
        return number > 0 and place < self._ends[number - 1]


class CodePlaces(_TextParts):
    """The places of the code in a text: fenced blocks, and with `spans`, code within a line."""

    def __init__(self, text: str, entry: DocumentFormat = MARKDOWN, *, spans: bool = True) -> None:
        blocks = list(_literal(text) if entry is RESTRUCTURED_TEXT else _fenced(text, _SIGNS.get(entry, "`~")))
        super().__init__(blocks)
        if spans:
            found = [span.span() for span in _SPAN.finditer(text) if span.start() not in self]
            super().__init__(sorted([*blocks, *found]))


def matches_outside_code(pattern: re.Pattern[str], text: str, entry: DocumentFormat = MARKDOWN) -> list[re.Match[str]]:
    """Return the matches of `pattern` that begin outside code."""
    matches = list(pattern.finditer(text))
    code = CodePlaces(text if matches else "", entry)
    return [match for match in matches if match.start() not in code]


def replace_outside_code(
    pattern: re.Pattern[str], by: Callable[[re.Match[str]], str], text: str, entry: DocumentFormat = MARKDOWN
) -> str:
    """Return `text` with the matches of `pattern` that begin outside code replaced.

    Within the columns of a drawn table, only a replacement of the same length is made: a longer one would break them.
    """
    done, at = list[str](), 0
    matches = matches_outside_code(pattern, text, entry)
    columns = _TextParts(list(_columns(text)) if matches and entry in _DRAWN else ())
    for match in matches:
        shown = by(match)
        if len(shown) == len(match[0]) or match.start() not in columns:
            done += text[at : match.start()], shown
            at = match.end()
    return "".join([*done, text[at:]])


def _fenced(text: str, signs: str) -> Iterator[tuple[int, int]]:
    """Yield the start and end of each block of fenced code, with its fences."""
    opened = list[tuple[str, int]]()  # the open fences: of directives (-1), and of a block of code with its start
    for fence in _FENCE.finditer(text):
        sign, info = fence.groups()
        outer, start = opened[-1] if opened else ("", -1)
        if sign[0] not in signs or (sign[0] == "-" and not opened and _underlines(text, fence)):
            continue
        if outer and sign.startswith(outer) and not info.strip():
            opened.pop()
            if start >= 0:
                yield start, fence.end()
        elif start < 0 and "`" not in info:
            opened.append((sign, -1 if _TEXT.match(info) else fence.start()))
    if opened and opened[-1][1] >= 0:
        yield opened[-1][1], len(text)


def _underlines(text: str, fence: re.Match[str]) -> bool:
    """Return whether a line of dashes makes the line above it a title, as AsciiDoc allows."""
    end = max(fence.start() - 1, 0)
    above = text[text.rfind("\n", 0, end) + 1 : end].rstrip()
    return above[:1].isalnum() and abs(len(above) - len(fence[0].rstrip())) < 2


def _literal(text: str) -> Iterator[tuple[int, int]]:
    """Yield the start and end of each literal block: the deeper lines below `words::` or a directive of code."""
    start, depth, place = -1, 0, 0  # of the open block, and of the line
    for line in text.splitlines(keepends=True):
        if start >= 0 and line.strip() and len(line) - len(line.lstrip()) <= depth:
            yield start, place
            start = -1
        place += len(line)
        margin = _MARGIN.match(line)
        if start < 0 and margin and _opens_literal(line[margin.end() :]):
            start, depth = place, margin.end()
    if start >= 0:
        yield start, place


def _columns(text: str) -> Iterator[tuple[int, int]]:
    """Yield the parts of lines whose columns a table draws: with `+---+` and `|`, or below `===  ===`.

    The last column of the latter may have any width.
    """
    place, inner, ends = 0, 0, False  # of the line; where its last column begins; whether the table may end
    grid = False
    for line in text.splitlines(keepends=True):
        bare = line.strip()
        grid = bool(_BORDER.fullmatch(bare)) or (grid and bare[:1] == "|")
        rule = _RULE.fullmatch(bare) is not None
        inner = line.rindex(" =") + 1 if rule else 0 if ends and not bare else inner
        ends = rule
        if grid or inner:
            yield place, place + (len(line) if grid else inner)
        place += len(line)


def _opens_literal(line: str) -> bool:
    if directive := _DIRECTIVE.match(line):
        return directive_kind(directive[1], "") == "code"
    return line.rstrip().endswith("::") and not line.startswith("..")
