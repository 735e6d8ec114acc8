"""Writes parts of a page as Markdown: lines, listings and tables, within their lists and notes.

The package's docstring describes the Markdown. `stored.plain_text` recovers the plain text of the parts.
"""

import re
from collections.abc import Iterable, Sequence
from itertools import groupby

from pipelines.page.flow import GAP, LIST, FlatKind, Part
from pipelines.page.plain import (
    CELL,
    STRUCK,
    cells_of,
    cut_spans,
    lines_of,
    merged,
    raw,
    stripped,
    without_scripts,
)
from pipelines.page.tree import Span, Spans, text_spans

# Characters that are markup inside a line. Underscores within words and stars between spaces are not. Each
# alternative begins with a literal character and looks behind from there, which lets the search skip words fast.
_SIGN = re.compile(
    r"\\(?=[!-/:-@\[-`{-~]|$)|`|\||\*(?!\s)|\*(?<!\s\*)|_(?<!\w_)_*+|_(?<!__)_*+(?![^\W_])|<(?=[A-Za-z/!?]|$)"
    r"|&(?=#?\w+;)|~(?=~)|~(?<=~~)|\](?=[(:])"
)
_SIGN_IN_LINK = re.compile(_SIGN.pattern + r"|\[|\]")
# Sequences that are markup at the beginning of a line. The last character is the one to escape.
_BEGINS = re.compile(r"[-+](?=\s|$)|>|#(?=#{0,5}(?:\s|$))|[-=](?=[-=]*\s*$)|\d{1,9}[.)](?=\s|$)")
_NOT_IN_URL = str.maketrans({sign: f"%{ord(sign):02X}" for sign in " ()<>|\\`"})


def write(parts: Iterable[Part]) -> str:
    """Return `parts` as Markdown."""
    page = _Page()
    for part in parts:
        if part.kind == "prose":
            page.add_line(part)
        else:
            text = fence(raw(part.spans), part.language) if part.kind == "code" else _table(part)
            page.add_box(text.split("\n"), part)
    return "".join(page.written)


def markdown_of(text: str) -> str:
    """Return a line of plain text as Markdown."""
    return write([Part("prose", text_spans(text))])


class _Page:
    """Appends lines one below the other; keeps the kind of the last one and the containers around it."""

    def __init__(self) -> None:
        self.written: list[str] = []
        self._kind: FlatKind = "prose"
        self._within: tuple[int, ...] = ()

    def add_line(self, part: Part) -> None:
        """Add a line of prose."""
        within, lead = part.within, part.lead
        is_item = part.item and LIST in within
        if is_item:
            within = within[: len(within) - within[::-1].index(LIST)]
        inner = within[:-1] if is_item else within
        levels = inner.count(LIST)
        text = part.text
        indented = levels > 0 and len(text) - len(text.lstrip(" ")) == 2 * levels
        start = 2 * levels if indented else 0  # of the text after the prefix
        continues = bool(self.written) and (self._kind, self._within, part.gap) == ("prose", within, "\n")
        continues = continues and not is_item and not indented and not part.below
        if continues:
            prefix = _prefix(inner, len(inner))
        else:
            prefix = _prefix(inner, _shared(self._within, inner), "*") if indented else _prefix(inner, 0)
        below = self._kind == "code" if not is_item else not self._swallows(lead.lstrip(), inner)
        self._divide("\\\n" if continues else part.gap, within, below=below)
        spans = part.spans if is_item or not lead else (Span(lead), *part.spans)
        if start and not is_item:
            spans = cut_spans(spans, (start, len(raw(spans)) - start))[1]
        self._add("prose", within, prefix + (lead[start:] if is_item else "") + _line(spans))

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

    def _add(self, kind: FlatKind, within: tuple[int, ...], text: str) -> None:
        self.written.append(text)
        self._kind, self._within = kind, within

    def _divide(self, gap: str, within: tuple[int, ...], *, below: bool) -> None:
        """Write the separator before a block. `below` means that the block may start on the next line."""
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
        """Return whether the paragraph above would absorb a line with this marker.

        In CommonMark, a number other than 1 does not start a list within a paragraph.
        """
        return self._kind == "prose" and inner == self._within and marker[0].isdigit() and marker != "1. "


def _shared(one: Sequence[int], other: Sequence[int]) -> int:
    """Return the number of outer containers that both have in common."""
    return next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def _prefix(within: Sequence[int], known: int, opener: str = "-") -> str:
    """Return the prefix of a line. Lists after the first `known` containers are opened with an empty marker."""
    signs = ("> " if one != LIST else f"{' ' if at < known else opener}   " for at, one in enumerate(within))
    return "".join(signs)


def _line(spans: Spans) -> str:
    """Return a line of prose as Markdown, without its prefix."""
    text = _inline(spans)
    if text[:1].isspace():
        return f"&#{ord(text[0])};{text[1:]}"
    if begins := _BEGINS.match(text):
        return f"{text[: begins.end() - 1]}\\{text[begins.end() - 1 :]}"
    return text


# ---------------------------------------------------------------------------------------------- within a line


def _inline(spans: Spans, *, cell: bool = False) -> str:
    """Return spans as Markdown with code, links, struck-out text and escapes."""
    if len(spans) == 1 and not (spans[0].code or spans[0].target or spans[0].style):
        return _escape(spans[0].text)
    text, written = raw(spans), ""
    if text[:1].isspace() or text[-1:].isspace():  # left over from a cut
        inner = stripped(spans)
        before, _, after = text.partition(raw(inner)) if inner else (text, "", "")
        spans = tuple(span for span in (Span(before), *inner, Span(after)) if span.text)
    for struck, group in groupby(without_scripts(spans), lambda span: span.style == "strike"):
        written += STRUCK if struck else ""
        for target, linked in groupby(group, lambda span: span.target):
            shown = "".join(_shown(span, cell=cell) for span in merged(linked))
            if target:
                written = f"{written[:-1]}\\!" if written.endswith("!") else written
                shown = f"[{shown}]({target.translate(_NOT_IN_URL)})"
            written += shown
        written += STRUCK if struck else ""
    return written


def _shown(span: Span, *, cell: bool) -> str:
    """Return a span as Markdown without its link and style."""
    return _code(span.text, cell=cell) if span.code else _escape(span.text, link=span.target != "")


def _escape(text: str, *, link: bool = False) -> str:
    pattern = _SIGN_IN_LINK if link else _SIGN
    return pattern.sub(lambda found: "".join(f"\\{sign}" for sign in found[0]), text)


def _code(text: str, *, cell: bool) -> str:
    if cell and "\\|" in text:  # Markdown parsers disagree on this case
        return _escape(text)
    ticks = ticks_around(text, 1)
    pad = " " if "`" in (text[0], text[-1]) or (text[0] == text[-1] == " " and text.strip()) else ""
    return f"{ticks}{pad}{text.replace('|', chr(92) + '|') if cell else text}{pad}{ticks}"


def ticks_around(text: str, least: int) -> str:
    """Return at least `least` backticks, and more than the longest run of backticks in `text`."""
    return "`" * max(least, 1 + max(map(len, re.findall("`+", text)), default=0))


# ---------------------------------------------------------------------------------------------- boxes


def fence(code: str, language: str = "") -> str:
    """Return code as a fenced block, with a longer fence than any run of backticks in it."""
    ticks = ticks_around(code, 3)
    info = "".join(sign for sign in language if sign.isalnum() or sign in "_+#.-")
    return f"{ticks}{info}\n{code}\n{ticks}"


def _table(part: Part) -> str:
    rows = [_cells(row) for row in lines_of(part.spans)] if part.spans else []
    head = _cells(part.head) if part.head else [""]
    count = max(map(len, [head, *rows]))
    return "\n".join([_row(head) + "|" * (count - len(head)), "|" + " --- |" * count, *map(_row, rows)])


def _row(cells: Sequence[str]) -> str:
    return f"| {CELL.text.join(cells)} |"


def _cells(row: Spans) -> list[str]:
    """Return the cells of a row as Markdown."""
    return [_inline(cell, cell=True) for cell in cells_of(row)]
