"""Writes runs as plain text, and cuts runs where their text is cut.

What a style looks like in plain text is decided here: 2^32, ~~struck~~. Knows no blocks.
"""

from collections.abc import Iterable, Sequence
from itertools import groupby
from operator import attrgetter, itemgetter

from pipelines.page.tree import Row, Run, Runs

CELL = Run(" | ", style="cell")  # between the cells of a row
LINE = Run("\n")  # between the rows of a table
STRUCK = "~~"
_TEXT, _STYLE = itemgetter(0), attrgetter("style")


def plain(runs: Runs) -> str:
    """Return the text of runs as it is embedded, searched and hashed."""
    if len(runs) == 1 and not runs[0].style:
        return runs[0].text
    if not any(map(_STYLE, runs)):
        return "".join(map(_TEXT, runs))
    groups = ((style, "".join(map(_TEXT, group))) for style, group in groupby(runs, _STYLE))
    return "".join(styled(text, style) for style, text in groups)


def styled(text: str, style: str) -> str:
    """Return a text as its style shows in a line without type."""
    if style == "strike":
        return f"{STRUCK}{text}{STRUCK}"
    if style in ("sup", "sub"):
        sign = "^" if style == "sup" else "_"
        return sign + (text if text.lstrip("+-−").isalnum() else f"({text})")
    return text


def raw(runs: Runs) -> str:
    """Return the text of runs without any sign of their styles: what `cut_runs` counts."""
    return runs[0].text if len(runs) == 1 else "".join(map(_TEXT, runs))


def cut_runs(runs: Runs, sizes: Iterable[int]) -> list[Runs]:
    """Return runs cut into parts of these numbers of characters."""
    parts: list[Runs] = []
    rest = list(runs[::-1])
    for size in sizes:
        part: list[Run] = []
        left = size
        while left and rest:
            run = rest.pop()
            if len(run.text) > left:
                rest.append(run._replace(text=run.text[left:]))
                run = run._replace(text=run.text[:left])
            left -= len(run.text)
            part.append(run)
        parts.append(tuple(part))
    return parts


def merged(runs: Iterable[Run]) -> Runs:
    """Return runs with those joined that are of one kind."""
    found: list[Run] = []
    for run in runs:
        if found and run[1:] == found[-1][1:]:
            found[-1] = run._replace(text=found[-1].text + run.text)
        else:
            found.append(run)
    return tuple(found)


def stripped(runs: Runs) -> Runs:
    """Return runs without white space at either end."""
    text = raw(runs)
    inner = text.strip()
    if inner == text:
        return runs
    start = len(text) - len(text.lstrip())
    return cut_runs(runs, (start, len(inner)))[1]


def lines_of(runs: Runs) -> list[Runs]:
    """Return the lines that line feeds divide, without those."""
    text = raw(runs)
    if "\n" not in text:
        return [runs]
    sizes = [size for line in text.split("\n") for size in (len(line), 1)]
    return cut_runs(runs, sizes)[::2]


def on_one_line(runs: Runs) -> Runs:
    """Return runs with spaces for line feeds."""
    return tuple(run._replace(text=run.text.replace("\n", " ")) if "\n" in run.text else run for run in runs)


def joined(parts: Sequence[Runs], between: Run) -> Runs:
    """Return all runs with one run between two parts."""
    runs: list[Run] = []
    for part in parts:
        runs += (between, *part)
    return tuple(runs[1:])


def row_runs(row: Row) -> Runs:
    """Return the runs of a row, cells divided by CELL."""
    return joined(row, CELL)


def cells_of(runs: Runs) -> list[Runs]:
    """Return the cells of a row."""
    cells: list[list[Run]] = [[]]
    for run in runs:
        if run.style == "cell":
            cells.append([])
        else:
            cells[-1].append(run)
    return list(map(tuple, cells))
