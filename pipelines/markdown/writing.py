"""Writes parts of a page as Markdown: prose, listings and tables, within their lists and notes.

What it writes is described in the package's docstring; `plain.plain_text` gives the parts' own texts back.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, pairwise
from typing import Literal, NamedTuple

from pipelines.markdown.text import LIST, Mark, divide, marks_of

Kind = Literal["prose", "code", "table"]

GAP = "\n\n"  # between parts, and between paragraphs
CELL = " | "  # between the cells of a row that has no marks for them

# What would mean something in a line; underscores within words and stars between spaces do not. Each choice begins
# with a plain sign, and looks behind from there: so the search skips words fast.
_SIGN = re.compile(
    r"\\(?=[!-/:-@\[-`{-~]|$)|`|\||\*(?!\s)|\*(?<!\s\*)|_(?<!\w_)_*+|_(?<!__)_*+(?![^\W_])|<(?=[A-Za-z/!?]|$)"
    r"|&(?=#?\w+;)|~(?=~)|~(?<=~~)|\](?=[(:])"
)
_SIGN_IN_LINK = re.compile(_SIGN.pattern + r"|\[|\]")
# And what would mean something where a line begins; its last sign is the one to escape.
_BEGINS = re.compile(r"[-+](?=\s|$)|>|#(?=#{0,5}(?:\s|$))|[-=](?=[-=]*\s*$)|\d{1,9}[.)](?=\s|$)")
_NOT_IN_URL = str.maketrans({sign: f"%{ord(sign):02X}" for sign in " ()<>|\\`"})


class Part(NamedTuple):
    """Prose (paragraphs and lines of lists), a listing in `language`, or the rows of a table below its `header`.

    `gap` is what stands before it: an empty line, or a line break. A listing and a table stand `within` lists and
    notes; of prose the marks say so for each paragraph.
    """

    kind: Kind
    text: str
    gap: str = GAP
    header: str = ""
    language: str = ""
    within: tuple[int, ...] = ()


def write(parts: Iterable[Part]) -> str:
    """Return `parts` as Markdown. Prose has no empty lines but one between paragraphs."""
    page = _Page()
    for part in parts:
        if part.kind == "prose":
            for gap, line in _lines(part.text):
                page.add_line(line, gap or part.gap)
        else:
            page.add_box(_fenced(part) if part.kind == "code" else _table(part), part)
    return "".join(page.written)


class _Page:
    """Puts lines below each other; it knows what the last one was, and what it stood in."""

    def __init__(self) -> None:
        self.written: list[str] = []
        self._kind: Kind = "prose"
        self._within: tuple[int, ...] = ()

    def add_line(self, line: str, gap: str) -> None:
        """Add a line of prose."""
        first = {mark.kind: mark for mark in reversed(marks_of(line))}
        within = first["paragraph"].within if "paragraph" in first else ()
        item = first.get("item") if LIST in within else None
        if item is not None:
            within = within[: len(within) - within[::-1].index(LIST)]
        inner = within[:-1] if item else within
        levels = inner.count(LIST)
        indented = levels > 0 and len(line) - len(line.lstrip(" ")) == 2 * levels
        goes_on = bool(self.written) and (self._kind, self._within, gap) == ("prose", within, "\n")
        goes_on = goes_on and not item and not indented and "begin" not in first
        if goes_on:
            prefix = _prefix(inner, len(inner))
        else:
            prefix = _prefix(inner, _shared(self._within, inner), "*") if indented else _prefix(inner, 0)
        below = self._kind == "code" if item is None else not self._swallows(line[item.start : item.end], inner)
        self._divide("\\\n" if goes_on else gap, within, below=below)
        self._add("prose", within, prefix + _line(line, 2 * levels if indented else 0, item))

    def add_box(self, lines: Sequence[str], part: Part) -> None:
        """Add the lines of a listing or a table."""
        first = _prefix(part.within, _shared(self._within, part.within))
        rest = _prefix(part.within, len(part.within))
        self._divide(part.gap, part.within, below=False)
        self._add(
            part.kind,
            part.within,
            "\n".join([first + lines[0], *(rest + line if line else rest.rstrip() for line in lines[1:])]),
        )

    def _add(self, kind: Kind, within: tuple[int, ...], text: str) -> None:
        self.written.append(text)
        self._kind, self._within = kind, within

    def _divide(self, gap: str, within: tuple[int, ...], *, below: bool) -> None:
        """Write what stands before a block; `below` says that it may begin on the line after the last one."""
        if not self.written:
            return
        shared = _shared(self._within, within)
        empty = "\n" + _prefix(within[:shared], shared).rstrip()
        notes = shared < min(len(within), len(self._within)) and LIST not in (within[shared], self._within[shared])
        if gap == GAP:
            gap = empty + "\n"
        elif gap == "\n" and (not below or notes):
            gap = 2 * empty + "\n"
        self.written.append(gap)

    def _swallows(self, marker: str, inner: tuple[int, ...]) -> bool:
        """Return whether the paragraph before would go on with this marker: a number but 1 begins no list in it."""
        return self._kind == "prose" and inner == self._within and marker[0].isdigit() and marker != "1. "


def _shared(one: Sequence[int], other: Sequence[int]) -> int:
    """Return how many containers both stand in."""
    return next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def _prefix(within: Sequence[int], known: int, opener: str = "-") -> str:
    """Return what a line begins with: the lists but the first `known` containers are opened by an empty marker."""
    signs = ("> " if one != LIST else f"{' ' if at < known else opener}   " for at, one in enumerate(within))
    return "".join(signs)


def _lines(text: str) -> Iterator[tuple[str, str]]:
    """Yield the lines of a prose text with what stands before each, "" for the first."""
    if "\n" not in text:
        yield "", text
        return
    lines = text.split("\n")
    gaps = ["", *(GAP if not before else "\n" for before, line in pairwise(lines) if line)]
    yield from zip(gaps, divide(text, filter(None, lines)), strict=False)


def _line(line: str, indent: int, item: Mark | None) -> str:
    """Return a line of prose behind its prefix."""
    start = item.end if item else indent
    marks = [mark for mark in marks_of(line) if mark.kind in ("code", "link")]
    text = _inline(line, start, len(line), marks)
    if text[:1].isspace():
        text = f"&#{ord(text[0])};{text[1:]}"
    elif begins := _BEGINS.match(text):
        text = f"{text[: begins.end() - 1]}\\{text[begins.end() - 1 :]}"
    return line[indent:start] + text


# ---------------------------------------------------------------------------------------------- within a line


def _inline(line: str, start: int, end: int, marks: Sequence[Mark], *, cell: bool = False) -> str:
    """Return `line[start:end]` with its code, its links and its escapes."""
    if not marks:
        return _escape(line[start:end])
    written = ""
    for target, group in groupby(_spans(line, start, end, marks), key=lambda span: span[2]):
        shown = "".join(_code(text, cell=cell) if code else _escape(text, link=target != "") for text, code, _ in group)
        if target:
            written = f"{written[:-1]}\\!" if written.endswith("!") else written
            shown = f"[{shown}]({target.translate(_NOT_IN_URL)})"
        written += shown
    return written


def _spans(line: str, start: int, end: int, marks: Sequence[Mark]) -> Iterator[tuple[str, bool, str]]:
    """Yield the longest parts of one kind: the text, whether it is code, and the target of its link."""
    around = [(max(mark.start, start), min(mark.end, end), mark) for mark in _merged(marks)]
    around = [_trimmed(line, *one) for one in around]
    around = [one for one in around if one[0] < one[1]]
    places = sorted({start, end, *(at for first, last, _ in around for at in (first, last))})
    kinds: list[tuple[str, bool, str]] = []
    for at, next_at in pairwise(places):
        over = {mark.kind: mark for first, last, mark in reversed(around) if first <= at and next_at <= last}
        code, target = "code" in over, over["link"].target if "link" in over else ""
        text = line[at:next_at]
        if kinds and kinds[-1][1:] == (code, target):
            text = kinds.pop()[0] + text
        kinds.append((text, code, target))
    return iter(kinds)


def _merged(marks: Sequence[Mark]) -> list[Mark]:
    """Return `marks` with those joined that were one before their text was cut."""
    merged: list[Mark] = []
    places: dict[tuple[int, str, str], int] = {}  # of the marks that end there
    for mark in marks:
        place = places.pop((mark.start, mark.kind, mark.target), len(merged))
        merged[place:] = [merged[place]._replace(end=mark.end), *merged[place + 1 :]] if place < len(merged) else [mark]
        places[mark.end, mark.kind, mark.target] = place
    return merged


def _trimmed(line: str, start: int, end: int, mark: Mark) -> tuple[int, int, Mark]:
    while start < end and line[start].isspace():
        start += 1
    while start < end and line[end - 1].isspace():
        end -= 1
    return start, end, mark


def _escape(text: str, *, link: bool = False) -> str:
    pattern = _SIGN_IN_LINK if link else _SIGN
    return pattern.sub(lambda found: "".join(f"\\{sign}" for sign in found[0]), text)


def _code(text: str, *, cell: bool) -> str:
    if cell and "\\|" in text:  # no reader of tables agrees with another on it
        return _escape(text)
    ticks = ticks_around(text, 1)
    pad = " " if "`" in (text[0], text[-1]) or (text[0] == text[-1] == " " and text.strip()) else ""
    return f"{ticks}{pad}{text.replace('|', chr(92) + '|') if cell else text}{pad}{ticks}"


def ticks_around(text: str, least: int) -> str:
    """Return at least so many backticks, and more than `text` has in a row."""
    return "`" * max(least, 1 + max(map(len, re.findall("`+", text)), default=0))


# ---------------------------------------------------------------------------------------------- boxes


def _fenced(part: Part) -> list[str]:
    ticks = ticks_around(part.text, 3)
    language = "".join(sign for sign in part.language if sign.isalnum() or sign in "_+#.-")
    return [ticks + language, *part.text.split("\n"), ticks]


def _table(part: Part) -> list[str]:
    rows = [_cells(row) for row in divide(part.text, part.text.split("\n"))] if part.text else []
    head = _cells(part.header) if part.header else [""]
    count = max(map(len, [head, *rows]))
    return [_row(head) + "|" * (count - len(head)), "|" + " --- |" * count, *map(_row, rows)]


def _row(cells: Sequence[str]) -> str:
    return f"| {CELL.join(cells)} |"


def _cells(row: str) -> list[str]:
    """Return the cells of a row as Markdown."""
    marks = [mark for mark in marks_of(row) if mark.kind in ("code", "link")]
    bounds = [(mark.start, mark.end) for mark in marks_of(row) if mark.kind == "cell"] or _bounds(row)
    starts, ends = [0, *(end for _, end in bounds)], [*(start for start, _ in bounds), len(row)]
    return [
        _inline(row, start, end, [mark for mark in marks if start <= mark.start < end], cell=True)
        for start, end in zip(starts, ends, strict=True)
    ]


def _bounds(row: str) -> list[tuple[int, int]]:
    """Return where the dividers stand in a row that has lost its marks."""
    return [found.span() for found in re.finditer(re.escape(CELL), row)]
