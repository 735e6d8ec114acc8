"""Distinguishes headers, contents, headings, paragraphs and code of a PDF by their positions.

Pure functions of lines. Independent of the PDF library and of sections.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import groupby, pairwise
from operator import itemgetter

from pipelines.indexing.reading.formats.pdf_lines import Line, PageLines
from pipelines.page.tree import Code, Node, Paragraph, text_spans

_EDGE = 3  # lines at the top and the bottom of a page that may be running headers and footers
_SLOT = 4.0  # points; lines on different pages within this distance have the same position
_LEADERS = re.compile(r"(?:\s?[.·…_]){4,}\s*(?:\d+|[ivxlc]+)?$|(?:\s\.){3,}")
_ENDS_IN_PAGE = re.compile(r".*\S\s+(?:\d{1,4}|[ivxlc]{1,7})$")
_INDEX_ENTRY = re.compile(r".*,\s*+\d{1,4}(?:\s*+[-–]\s*+\d{1,4})?$|^[A-Z]$")
_NUMBERS = re.compile(r"\d+|\b[ivxlcdm]+\b")
_BULLET = re.compile(r"^(?:[•◦▪‣∙●○■□–—*-]|\(?(?:\d{1,2}|[a-z])[.)])\s")
_CODE_SIGNS = re.compile(r"[{};=<>$#|&\\]|\w\(|->|::|--\w|^\s*(?:def|class|import|from|return|if|for|while|print)\b")
_HYPHEN = re.compile(r"(?<!\S)(\S*\w)[-\u00ad]$")


def without_running_lines(pages: Sequence[PageLines]) -> list[PageLines]:
    """Return the pages without lines repeated at the same position: headers, footers, page numbers.

    A position at the edge of pages is dropped if most lines there, ignoring numbers, occur more than once.
    """
    slots: dict[tuple[bool, int], Counter[str]] = defaultdict(Counter)
    for page in pages:
        for top, line in _edges(page):
            slots[_slot(top, line, page)][_NUMBERS.sub("#", line.text.lower())] += 1
    running = {
        slot
        for slot, words in slots.items()
        if words.total() >= 3 and sum(count for count in words.values() if count > 1) >= 0.5 * words.total()
    }
    return [_without(page, running) for page in pages]


def _edges(page: PageLines) -> Iterator[tuple[bool, Line]]:
    """Yield the lines at the edges of a page, each with whether it is at the top."""
    ordered = sorted(page.lines, key=lambda line: -line.base)
    yield from ((True, line) for line in ordered[:_EDGE] if line.base > 0.8 * page.height)
    yield from ((False, line) for line in ordered[-_EDGE:] if line.base < 0.2 * page.height)


def _slot(top: bool, line: Line, page: PageLines) -> tuple[bool, int]:
    return top, round((page.height - line.base if top else line.base) / _SLOT)


def _without(page: PageLines, running: set[tuple[bool, int]]) -> PageLines:
    doomed = {id(line) for top, line in _edges(page) if _slot(top, line, page) in running}
    return PageLines(tuple(line for line in page.lines if id(line) not in doomed), page.height)


def without_contents(page: PageLines) -> PageLines:
    """Return the page without entries of a table of contents or an index, which match every name but explain none."""
    lines = page.lines
    dotted = {id(line) for line in lines if _LEADERS.search(line.text)}
    ending = {id(line) for line in lines if _ENDS_IN_PAGE.fullmatch(line.text)}
    doomed = dotted & ending
    if len(dotted) >= 3:  # a table of contents, whose chapter lines often have no dots
        doomed = dotted | ending
    elif len(lines) >= 10 and sum(bool(_INDEX_ENTRY.fullmatch(line.text)) for line in lines) > 0.6 * len(lines):
        return PageLines((), page.height)
    return PageLines(tuple(line for line in lines if id(line) not in doomed), page.height)


def body_height(pages: Sequence[PageLines]) -> float:
    """Return the height of most of the text."""
    heights: Counter[float] = Counter()
    for page in pages:
        for line in page.lines:
            if not line.monospaced:
                heights[line.height] += len(line.text)
    return heights.most_common(1)[0][0] if heights else 0.0


def alike(height: float, other: float) -> bool:
    """Return whether two heights belong to one font size: they vary slightly from character to character."""
    return abs(height - other) < 0.05 * other


def is_heading(line: Line, body: float) -> bool:
    """Return whether a line of a document without an outline looks like a heading: larger, or short and bold."""
    if line.monospaced or not 2 < len(line.text) < 100 or not re.search(r"[^\W\d_]{2}", line.text):
        return False
    larger = line.height >= 1.15 * body
    return larger or (line.bold and len(line.text) < 60 and not line.text.endswith((".", ",", ";", ":")))


def blocks_of(lines: Sequence[Line]) -> list[Node]:
    """Return lines as blocks: paragraphs, and code with its line breaks and indentation."""
    blocks: list[Node] = []
    for code, group in _groups(lines):
        blocks += (
            [Code(_listing(group))] if code else [Paragraph(text_spans(_joined(part))) for part in _paragraphs(group)]
        )
    return blocks


def _groups(lines: Sequence[Line]) -> Iterator[tuple[bool, list[Line]]]:
    """Yield alternating runs of code lines and other lines."""
    left = min((line.left for line in lines), default=0.0)
    longest = max((len(line.text) for line in lines), default=0)
    kinds = [line.monospaced or _looks_like_code(line, left, longest) for line in lines]
    kinds = [kind and not _ends_paragraph(lines, kinds, place) for place, kind in enumerate(kinds)]
    for kind, group in groupby(zip(kinds, lines, strict=True), key=itemgetter(0)):
        yield kind, [line for _, line in group]


def _looks_like_code(line: Line, left: float, longest: int) -> bool:
    """Return whether a proportional line is short, indented, and contains characters typical of code."""
    if line.left <= left + 12 or len(line.text) > 0.75 * longest or _BULLET.match(line.text):
        return False
    return len(_CODE_SIGNS.findall(line.text.replace("()", ""))) >= 2


def _ends_paragraph(lines: Sequence[Line], kinds: Sequence[bool], place: int) -> bool:
    """Return whether a single monospaced line is the end of the paragraph before it."""
    if place == 0 or kinds[place - 1] or (place + 1 < len(lines) and kinds[place + 1]):
        return False
    before, line = lines[place - 1], lines[place]
    near = 0 < before.base - line.base < 1.5 * before.height
    return near and abs(before.left - line.left) < 3 and not before.text.endswith((":", "."))


def _listing(lines: Sequence[Line]) -> str:
    """Return code with the horizontal position of each line as indentation; a wide gap is an empty line."""
    left = min(line.left for line in lines)
    widths = [(line.right - line.left) / len(line.text) for line in lines if len(line.text) > 3]
    width = sorted(widths)[len(widths) // 2] if widths else 6.0
    gaps = sorted(above.base - below.base for above, below in pairwise(lines))
    usual = gaps[len(gaps) // 2] if gaps else 0.0
    shown: list[str] = []
    for place, line in enumerate(lines):
        if place and usual > 0 and lines[place - 1].base - line.base > 1.7 * usual:
            shown.append("")
        shown.append(" " * min(200, round((line.left - left) / max(width, 1.0))) + line.text.rstrip())
    return "\n".join(shown)


def _paragraphs(lines: Sequence[Line]) -> Iterator[list[Line]]:
    """Yield the paragraphs. One begins after a wide gap, a new size or a short last line, at a bullet or an indent."""
    start = 0
    for place in range(1, len(lines) + 1):
        if place == len(lines) or _begins(lines[place - 1], lines[place], lines):
            yield list(lines[start:place])
            start = place


def _begins(before: Line, line: Line, lines: Sequence[Line]) -> bool:
    gap = before.base - line.base
    if abs(gap) < 0.5 * line.height:  # side by side
        return False
    if gap < 0 or gap > 1.6 * max(before.height, line.height) or _BULLET.match(line.text):
        return True
    if abs(before.height - line.height) > 0.15 * line.height:
        return True
    ended = before.text.endswith((".", ":", "?", "!", ";"))
    short = len(before.text) < 0.75 * max(len(other.text) for other in lines)
    return ended and (short or line.left > before.left + 6)


def _joined(lines: Sequence[Line]) -> str:
    text = ""
    for line in lines:
        words = " ".join(line.text.split())
        broken = _HYPHEN.search(text)
        if broken and "-" not in broken[1] and _are_one_word(broken[1][-1] + words[:1]):
            text = text[:-1]
        elif text and not broken:
            text += " "
        text += words
    return text


def _are_one_word(signs: str) -> bool:
    """Return whether the characters around a hyphen are letters of the same case."""
    return signs.isalpha() and signs in (signs.lower(), signs.upper())
