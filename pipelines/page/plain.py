"""Writes spans as plain text, and cuts spans at given lengths.

This module decides how each style looks in plain text: 2^32, ~~struck~~. Independent of blocks.
"""

from collections.abc import Iterable, Sequence
from itertools import groupby
from operator import itemgetter

from pipelines.page.tree import Row, Span, Spans

CELL = Span(" | ", style="cell")  # between the cells of a row
_DIVIDES = CELL.text.strip()
NEW_LINE = Span("\n")  # between the rows of a table
STRUCK = "~~"
_TEXT, _KIND, _STYLE = itemgetter(0), itemgetter(1, 2, 3), itemgetter(3)


def plain(spans: Spans) -> str:
    """Return the text of spans as it is embedded, searched and hashed."""
    if len(spans) == 1 and not spans[0].style:
        return spans[0].text
    if not any(map(_STYLE, spans)):
        return "".join(map(_TEXT, spans))
    groups = ((style, "".join(map(_TEXT, group))) for style, group in groupby(spans, _STYLE))
    return "".join(styled(text, style) for style, text in groups)


def styled(text: str, style: str) -> str:
    """Return a string with the characters that show its style in plain text."""
    before, after = _signs(text, style)
    return f"{before}{text}{after}"


def without_scripts(spans: Spans) -> Spans:
    """Return spans with superscripts and subscripts written out (2^32, x_i); only struck-out text keeps its style."""
    if not any(map(_STYLE, spans)):
        return spans
    found: list[Span] = []
    for style, group in groupby(spans, _STYLE):
        run = list(group)
        if style != "strike":
            before, after = _signs("".join(map(_TEXT, run)), style)
            run[0] = run[0]._replace(text=before + run[0].text)
            run[-1] = run[-1]._replace(text=run[-1].text + after)
            run = [span._replace(style="") for span in run]
        found += run
    return tuple(found)


def _signs(text: str, style: str) -> tuple[str, str]:
    """Return the characters before and after a string that show its style."""
    if style == "strike":
        return STRUCK, STRUCK
    if style in ("sup", "sub"):
        sign = "^" if style == "sup" else "_"
        return (sign, "") if text.lstrip("+-−").isalnum() else (f"{sign}(", ")")
    return "", ""


def raw(spans: Spans) -> str:
    """Return the text of spans without the characters that show styles; `cut_spans` counts in this text."""
    return spans[0].text if len(spans) == 1 else "".join(map(_TEXT, spans))


def cut_spans(spans: Spans, sizes: Iterable[int]) -> list[Spans]:
    """Cut spans into parts with the given numbers of characters."""
    parts: list[Spans] = []
    rest = list(spans[::-1])
    for size in sizes:
        part: list[Span] = []
        left = size
        while left and rest:
            span = rest.pop()
            if len(span.text) > left:
                rest.append(span._replace(text=span.text[left:]))
                span = span._replace(text=span.text[:left])
            left -= len(span.text)
            part.append(span)
        parts.append(tuple(part))
    return parts


def merged(spans: Iterable[Span]) -> Spans:
    """Return spans with adjacent spans of the same kind joined."""
    groups = ((kind, "".join(map(_TEXT, group))) for kind, group in groupby(spans, _KIND))
    return tuple(Span(text, *kind) for kind, text in groups)


def stripped(spans: Spans) -> Spans:
    """Return spans without whitespace at either end."""
    text = raw(spans)
    inner = text.strip()
    if inner == text:
        return spans
    start = len(text) - len(text.lstrip())
    return cut_spans(spans, (start, len(inner)))[1]


def lines_of(spans: Spans) -> list[Spans]:
    """Return the lines of spans, split at line feeds, which are dropped."""
    text = raw(spans)
    if "\n" not in text:
        return [spans]
    sizes = [size for line in text.split("\n") for size in (len(line), 1)]
    return cut_spans(spans, sizes)[::2]


def on_one_line(spans: Spans) -> Spans:
    """Return spans with line feeds replaced by spaces."""
    return tuple(span._replace(text=span.text.replace("\n", " ")) if "\n" in span.text else span for span in spans)


def joined(parts: Sequence[Spans], between: Span) -> Spans:
    """Return the spans of all parts, with `between` between two parts."""
    spans: list[Span] = []
    for part in parts:
        spans += (between, *part)
    return tuple(spans[1:])


def row_spans(row: Row) -> Spans:
    """Return the spans of a row, with CELL between the cells."""
    return joined(row, CELL)


def cells_of(spans: Spans) -> list[Spans]:
    """Return the cells of a row. If a cut went through a separator, the half with the bar counts as the separator."""
    cells: list[list[Span]] = [[]]
    for span in spans:
        if span.style == CELL.style:
            cells.extend([] for _ in range(span.text.count(_DIVIDES)))
        else:
            cells[-1].append(span)
    return list(map(tuple, cells))
