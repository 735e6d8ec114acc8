"""Converts AsciiDoc to Markdown: blocks, lists, tables and inline markup.

Attributes have the values that the page sets; `ifdef` tests these too. Other files are not read.
"""

import operator
import re
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import dropwhile
from textwrap import dedent

from pipelines.indexing.reading.formats.values import rows_of_values
from pipelines.text.phrases import read_names, read_table

_TABLE, _NAMES = read_table(__name__), read_names(__name__)
_LINE = re.compile("|".join(_TABLE["lines"]))
_CONDITION, _CELL, _CODE, _CALLOUT = (re.compile(_TABLE[name]) for name in ("condition", "cell", "code", "callout"))
_FENCE = "`" * 8
_COMMENT = re.compile(r"//(?!/)")
LONGEST_VALUE, DEEPEST, MOST_COLUMNS = 1_000, 20, 100  # limits for attributes, nested blocks, tables
_ENDS = frozenset(("fence", "style", "id", "more", "mark", "term"))  # end a paragraph without an empty line


def from_asciidoc(text: str) -> str:
    """Return `text` as Markdown."""
    attributes: dict[str, str] = dict(_TABLE["attributes"])
    lines = text.translate({2: None, 3: None}).expandtabs(4).splitlines()
    return "\n".join(_Blocks(_wanted(lines, attributes), attributes).markdown())


def slug(title: str) -> str:
    """Return the id that Asciidoctor gives a section."""
    return "_" + re.sub(r"[ ._-]+", "_", re.sub(r"[^\w .-]", "", title.lower())).strip("_")


def _wanted(lines: Iterable[str], attributes: dict[str, str]) -> Iterator[str]:
    """Yield the lines that are not hidden by conditions. `attributes` are evaluated when each line is read."""
    hidden: list[bool] = []
    for line in lines:
        if (condition := _CONDITION.match(line)) is None:
            if not any(hidden):
                yield line
            continue
        kind, names, inner = condition.groups()
        every = all if "+" in names else any
        hides = every(name.lower() in attributes for name in re.split("[,+]", names)) != (kind == "ifdef")
        if kind == "endif":
            del hidden[-1:]
        elif not inner or kind == "ifeval":
            hidden.append(hides)
        elif not hides and not any(hidden):
            yield inner


class _Blocks:
    """Parses the blocks of a page or of a container block; tracks the written lines and the open lists."""

    def __init__(self, lines: Iterable[str], attributes: dict[str, str], depth: int = 0) -> None:
        self._lines, self._attributes, self._depth = iter(lines), attributes, depth
        self._back: deque[str] = deque()  # lines to read again
        self._done: list[str] = []
        self._lists: list[tuple[str, str]] = []  # the marker of each, and the indentation of its text
        self._lead = self._style = self._title = self._id = ""
        self._joined = self._titled = False

    def markdown(self) -> list[str]:
        """Return all lines as Markdown."""
        while (line := self._next()) is not None:
            if line.strip():
                self._read(line, _said(line))
            else:
                self._joined = False
        return self._done

    def _next(self) -> str | None:
        return self._back.popleft() if self._back else next(self._lines, None)

    def _read(self, line: str, said: dict[str, str]) -> None:
        if "attribute" in said:
            self._set(said)
        elif "style" in said or "id" in said:
            style = said.get("style", "")
            named = re.match(r"[^,.%]*#([\w:-]+)", style)
            self._id = said.get("id") or (named[1] if named else self._id)
            self._style = f"{self._style},{style}" if self._style and re.match(r"[#.%]|\w+=", style) else style
        elif "title" in said:
            self._title = self._shown(said["title"])
        elif "more" in said:
            self._joined = True
        elif "fence" in said:
            self._fenced(said["fence"], said.get("info", ""))
        elif "mark" in said or "term" in said:
            self._item(said)
        elif "level" in said:
            self._heading(said)
        elif "silent" not in said:
            self._paragraph(said.get("boxed", line), said.get("box") or self._style)

    def _set(self, said: dict[str, str]) -> None:
        name = said["attribute"].lower()
        self._attributes.pop(name, None)
        if not said.keys() & {"off", "unset"}:
            self._attributes[name] = self._filled(said.get("value", ""))[:LONGEST_VALUE]

    def _heading(self, said: dict[str, str]) -> None:
        level = len(said["level"])
        while (
            level == 1 and not self._titled and (line := self._next()) and line.strip()
        ):  # skip the author and revision lines
            if "attribute" in _said(line):
                self._set(_said(line))
        signs = "#" * (2 if level == 1 and self._titled else level)  # the title of an included file
        self._titled, self._lists, self._joined = True, [], False
        own, self._id = f" {{#{self._id}}}" if self._id else "", ""
        self._put([f"{signs} {self._shown(said['heading'])}{own}"])

    def _item(self, said: dict[str, str]) -> None:
        mark = said.get("colons") or re.sub(r"\w+", "1", said["mark"])
        known = [each for each, _ in self._lists]
        del self._lists[known.index(mark) if mark in known else len(known) if known and not self._style else 0 :]
        above = self._lists[-1][1] if self._lists else ""
        if "term" in said:
            self._joined, self._lead = True, ""
            self._put([self._shown(said["term"])])
        lead = ":   " if "term" in said else "- " if mark[0] in "*-" else "1. "
        self._lists.append((mark, above + " " * len(lead)))
        self._lead, self._joined, self._style = above + lead, True, ""
        if text := said.get("item") or said.get("meaning"):
            self._paragraph(re.sub(r"^\[\*\](?= )", "[x]", text), "")

    def _paragraph(self, first: str, style: str) -> None:
        lines, is_literal = [first], first.startswith(" ") and not self._joined
        is_code = is_literal or _kind(style) in _NAMES["code"]
        while (line := self._next()) is not None:
            if not line.strip() or (not is_code and _ENDS & _said(line).keys()):
                self._back.append(line)
                break
            lines += [line] if is_code or "silent" not in _said(line) else []
        if is_code:
            self._code(lines, style, "")
        else:
            self._put(self._shown("\n".join(map(str.strip, lines))).split("\n"), style)

    def _fenced(self, fence: str, info: str) -> None:
        style, lines = self._style, list[str]()
        while (line := self._next()) is not None and line.rstrip() != fence:
            lines.append(line)
        if (fence[0] in "-.`" and fence != "--") or _kind(style) in _NAMES["code"] - {"verse"}:
            self._code(lines, style, info)
        elif fence[0] in "|!,:":
            delimiter = _delimiter(fence, style)
            rows = rows_of_values(filter(str.strip, lines), delimiter) if delimiter else ()
            self._table([" ".join(f"|{_escaped(cell)}" for cell in row) for row in rows] or lines, style)
        elif fence[0] == "+":
            self._put([line or "<!-- -->" for line in lines])
        elif fence[0] != "/":
            inner = _Blocks(lines, self._attributes, self._depth + 1)
            shown = inner.markdown() if self._depth < DEEPEST else lines
            self._put(list(dropwhile(operator.not_, shown)), style)

    def _code(self, lines: list[str], style: str, info: str) -> None:
        words = [word.strip() for word in style.split(",")]
        language = info or (words[1] if len(words) > 1 and "=" not in words[1] else "")
        text = dedent(re.sub(r"(?m)^\\(?=\w+::)", "", _CALLOUT.sub("", "\n".join(lines))))
        text = self._filled(text) if re.search(r"subs=[^\]]{0,200}(?:attributes|normal)", style) else text
        self._put([f"{_FENCE}{language}", *text.split("\n"), _FENCE])

    def _table(self, lines: list[str], style: str) -> None:
        text = "\n".join(line for line in lines if not _COMMENT.match(line)).strip("\n")
        first, _, rest = text.partition("\n")
        marks = list(_CELL.finditer(text))
        if not marks:  # for example, comma-separated values
            self._code(lines, "", "")
            return
        columns = _columns(style) or [""] * min(len(_CELL.findall(first)), MOST_COLUMNS) or [""]
        ends = [*(mark.start() for mark in marks[1:]), len(text)]
        cells = [
            self._cell(text[mark.end() : end], mark["kind"] or columns[place % len(columns)])
            for place, (mark, end) in enumerate(zip(marks, ends, strict=True))
        ]
        rows = [cells[place : place + len(columns)] for place in range(0, len(cells), len(columns))]
        headed = bool(re.search("(?<!no)header", style)) or rest.startswith("\n")
        self._put(_as_html(rows, headed) if any(len(cell) > 1 for cell in cells) else _as_markdown(rows, headed))

    def _cell(self, text: str, kind: str) -> list[str]:
        """Return the lines of a cell as Markdown; a paragraph is one line."""
        if kind == "a" and self._depth < DEEPEST:
            blocks = _Blocks(dedent(text).strip().split("\n"), self._attributes, self._depth + 1).markdown()
            shown = list(dropwhile(operator.not_, blocks))
            if "" in shown or (shown[:1] and shown[0].startswith(_FENCE)):
                return shown
        return [" ".join(self._shown(text).split())]

    def _put(self, lines: list[str], style: str = "") -> None:
        """Append a block to the innermost open list item, or after the list."""
        if not self._joined:
            self._lists, self._lead = [], ""
        indent = self._lists[-1][1] if self._lists else ""
        named = [f'<a id="{self._id}"></a>', ""] if self._id else []
        box = _kind(style).capitalize() if _kind(style) in _NAMES["boxes"] else ""
        titles = [line for title in (box, self._title) if title for line in (f"**{title}**", "")]
        self._done.append("")
        for line in [*named, *titles, *lines]:
            self._done.append((self._lead or indent) + line if line else "")
            self._lead = ""
        self._style = self._title = self._id = ""

    def _filled(self, text: str) -> str:
        return re.sub(r"(?<!\\)\{([\w-]+)\}", lambda name: self._attributes.get(name[1].lower(), name[0]), text)

    def _shown(self, text: str) -> str:
        """Return a string with Markdown markup. Code and passthrough content are set aside during the conversion."""
        kept: list[str] = []

        def keep(code: re.Match[str]) -> str:
            sign = "``" if "`" in (code[3] or "") else "`"
            shown = code[3] or code[6]
            kept.append(f"{sign}{shown}{sign}" if shown else code[4] or code[5] or "")
            return f"\x02{len(kept) - 1}\x03"

        text = _CODE.sub(keep, self._filled(text))
        for form, by in _TABLE["forms"]:
            text = re.sub(form, by, text, flags=re.MULTILINE)
        return re.sub("\x02(\\d+)\x03", lambda place: kept[int(place[1])], text)


def _said(line: str) -> dict[str, str]:
    """Return the parts of a line by the names of the groups of _LINE."""
    match = _LINE.match(line)
    return {name: value for name, value in match.groupdict().items() if value} if match else {}


def _delimiter(fence: str, style: str) -> str:
    """Return the character between the values of a table, "" if its cells begin with a bar."""
    values, own = re.search(_TABLE["values"], style), re.search(_TABLE["separator"], style)
    if fence[0] in "|!" and not values:
        return ""
    usual = _TABLE["delimiters"][values["format"]] if values else fence[0]
    return own["separator"] if own else usual


def _escaped(cell: str) -> str:
    return cell.replace("|", "\\|")


def _columns(style: str) -> list[str]:
    """Return the kind of each column that a table's style declares: a letter, or "" (`cols="1,2a"`, `cols=3*`)."""
    named = re.search(r"cols=(?:\"([^\"]+)|([^\",\]]+))", style)
    told = re.split("[,;]", (named[1] or named[2]).strip(",; ")) if named else []
    if len(told) == 1 and re.fullmatch(r"\d{1,3}", told[0]):
        return [""] * min(int(told[0]), MOST_COLUMNS)
    columns: list[str] = []
    for part in told:
        times = re.match(r"\s*(\d{1,3})\*", part)
        kind = part.rstrip()[-1:]
        columns += [kind if kind in "adehlms" else ""] * (int(times[1]) if times else 1)
    return columns[:MOST_COLUMNS]


def _as_markdown(rows: Sequence[Sequence[list[str]]], headed: bool) -> list[str]:
    """Return a table whose cells are paragraphs."""
    count = len(rows[0])
    cells = ([re.sub(r"\\?\|", r"\|", " ".join(cell)) for cell in row] for row in rows)
    written = [f"| {' | '.join(row)} |" for row in (cells if headed else [[""] * count, *cells])]
    return [*written[:1], "|" + "---|" * count, *written[1:]]


def _as_html(rows: Sequence[Sequence[list[str]]], headed: bool) -> list[str]:
    """Return a table whose cells contain lists, code or several paragraphs."""
    lines = ["<table>"]
    for number, row in enumerate(rows):
        tag = "th" if headed and not number else "td"
        lines += ["<tr>", *(line for cell in row for line in (f"<{tag}>", "", *cell, "", f"</{tag}>")), "</tr>"]
    return [*lines, "</table>"]


def _kind(style: str) -> str:
    """Return the kind of block that a style selects, in lower case."""
    return re.split("[,.#%]", style)[0].strip().lower() or ("source" if style.startswith(",") else "")
