"""Recovers the plain text of Markdown that this package wrote, in time linear in its length."""

import re
from bisect import bisect_right
from collections import defaultdict

from pipelines.page.flow import GAP
from pipelines.page.plain import CELL
from pipelines.records import Hit

CELLS = CELL.text  # between the cells of a row in the embedded and hashed text
READ_CELLS = " · "  # between the cells of a row shown to a person outside a table
_PREFIX = re.compile(r"(?:    |[*-]   |> ?)*")
_TOKEN = re.compile(r"\\([!-/:-@\[-`{-~])|&#(\d{1,7});|(`+)|(\[)|\]\([^\s()]*\)")


def plain_text(markdown: str) -> str:
    """Return the text of a chunk as it is embedded, searched and hashed, without Markdown markup."""
    return _read(markdown, CELLS)


def plain_of(hit: Hit) -> str:
    """Return the plain text of a hit: the stored text, or else the text recovered from its Markdown."""
    return hit.plain or plain_text(hit.text)


def readable_text(markdown: str) -> str:
    """Return the text of a chunk for display outside its page, without the bars of tables."""
    return _read(markdown, READ_CELLS)


def _read(markdown: str, between: str) -> str:
    reader = _Reader(between)
    for line in markdown.split("\n"):
        reader.read(line)
    reader.end_table()
    return "".join(reader.texts)


class _Reader:
    """Reads line by line; tracks preceding empty lines and the open fence, table or paragraph."""

    def __init__(self, between: str) -> None:
        self.texts: list[str] = []
        self._between = between
        self._empty = 0
        self._fence, self._width = "", 0  # the open fence, and the length of its prefix
        self._rows = 0  # in the open table, including the header and delimiter rows
        self._broken = False  # the previous line ended with a hard line break

    def read(self, line: str) -> None:
        """Read the next line."""
        if self._fence:
            self._read_code(line)
            return
        found = _PREFIX.match(line)
        prefix = found[0] if found else ""
        rest = line[len(prefix) :]
        if not rest:
            self._empty += 1
            self.end_table()
        elif rest.startswith("```") and "`" not in (info := rest.lstrip("`")):
            self.end_table()
            self._fence, self._width = rest.removesuffix(info), len(prefix)
        elif rest.startswith("| ") and rest.endswith("|"):
            self._read_row(rest[2:].rstrip("|")[:-1])
        else:
            self.end_table()
            self._read_text(prefix, rest)

    def _add(self, text: str) -> None:
        gap = GAP if self._empty == 1 else "\n"
        self.texts.append(gap + text if self.texts else text)
        self._empty = 0

    def _read_code(self, line: str) -> None:
        if line[self._width :] == self._fence:
            self._fence = ""
        else:
            self._add(line[self._width :])

    def _read_row(self, cells: str) -> None:
        self._rows += 1
        is_rule = self._rows == 2 and not cells.replace("---", "").strip(" |")
        if not is_rule and (self._rows > 1 or cells.strip(" |")):
            self._add(_plain_line(cells, cell=True) if self._between == CELLS else self._join(cells.split(CELLS)))

    def _join(self, cells: list[str]) -> str:
        """Return the cells of a row joined for reading; empty cells are dropped."""
        return self._between.join(filter(None, (_plain_line(cell, cell=True).strip() for cell in cells)))

    def end_table(self) -> None:
        """End the open table, if any, and strip trailing spaces from its last row."""
        if self._rows:
            self.texts[-1:] = [text.rstrip(" ") for text in self.texts[-1:]]
            self._rows = 0

    def _read_text(self, prefix: str, text: str) -> None:
        levels = prefix.count("    ") + prefix.count("*   ")
        indent = "" if self._broken else "  " * levels
        self._broken = (len(text) - len(text.rstrip("\\"))) % 2 == 1
        self._add(indent + _plain_line(text[:-1] if self._broken else text))


def _plain_line(text: str, *, cell: bool = False) -> str:
    """Return a line without escapes, link targets and the backticks of code."""
    if not _TOKEN.search(text):
        return text
    ticks = _runs(text)
    written: list[str] = []
    opened: list[int] = []  # indices in `written` of brackets that may begin a link
    at = 0
    while found := _TOKEN.search(text, at):
        escaped, number, run, bracket = found.groups()
        written.append(text[at : found.start()])
        at = found.end()
        if escaped:
            written.append(escaped)
        elif number:
            written.append(chr(int(number)) if int(number) <= 0x10FFFF else found[0])
        elif run:
            end = _closing(ticks[len(run)], at)
            written.append(run if end < 0 else _code(text[at:end], cell=cell))
            at = at if end < 0 else end + len(run)
        elif bracket:
            opened.append(len(written))
            written.append(bracket)
        elif opened:
            written[opened.pop()] = ""
        else:
            written.append(found[0])
    return "".join((*written, text[at:]))


def _runs(text: str) -> defaultdict[int, list[int]]:
    """Return the positions of runs of backticks, grouped by length."""
    places: defaultdict[int, list[int]] = defaultdict(list)
    for run in re.finditer("`+", text):
        places[len(run[0])].append(run.start())
    return places


def _closing(places: list[int], after: int) -> int:
    """Return the first of `places` at or after `after`, or -1 if there is none."""
    found = bisect_right(places, after - 1)
    return places[found] if found < len(places) else -1


def _code(text: str, *, cell: bool) -> str:
    if len(text) > 2 and text[0] == text[-1] == " " and text.strip():
        text = text[1:-1]
    return text.replace("\\|", "|") if cell else text
