"""Converts AsciiDoc to Markdown: blocks, lists, tables and inline markup.

Attributes have the values that the page sets; conditions test these too. A reference without words shows the title of
its place in the page. Other files are not read.
"""

import operator
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from html import unescape
from itertools import dropwhile
from textwrap import dedent

from pipelines.indexing.reading.formats.values import rows_of_values
from pipelines.indexing.reading.front_matter import FRONT_MATTER, front_matter
from pipelines.text.phrases import read_names, read_table

_TABLE, _NAMES = read_table(__name__), read_names(__name__)
_LINE = re.compile("|".join(_TABLE["lines"]))
_CONDITION, _CELL, _CODE, _CALLOUT = (re.compile(_TABLE[name]) for name in ("condition", "cell", "code", "callout"))
_FENCE = "`" * 8
_COMMENT = re.compile(r"//(?!/)")
_FORMS = [(re.compile(form, re.MULTILINE), by) for form, by in _TABLE["forms"]]
_REFERENCE, _ENTRY = (re.compile(_TABLE[name]) for name in ("reference", "entry"))
_NAME = re.compile(r"(?<!\\)\{(?:(counter2?|set):)?([\w-]+)(?::([^{}\n]*))?\}")
_HEADING_ID = re.compile(r"\[\[([\w:.-]+)(?:,[^\[\]]*)?\]\]$")
_UNDERLINE = re.compile(r"([=~^+-])\1{2,}[ ]*")
_LEVELS = "=-~^+"  # the signs that underline a title, from the page's title down
_COMPARE: Mapping[str, Callable[[str | float, str | float], bool]] = {
    "==": operator.eq, "!=": operator.ne, "<=": operator.le, ">=": operator.ge, "<": operator.lt, ">": operator.gt,
}  # fmt: skip
LONGEST_VALUE, DEEPEST, MOST_COLUMNS = 1_000, 20, 100  # limits for attributes, nested blocks, tables
_ENDS = frozenset(("fence", "style", "id", "more", "mark", "term"))  # end a paragraph without an empty line


def from_asciidoc(text: str) -> str:
    """Return `text` as Markdown, with its front matter."""
    head = FRONT_MATTER.match(text) if front_matter(text) else None
    front = head[0] if head else ""
    attributes: dict[str, str] = dict(_TABLE["attributes"])
    lines = text[len(front) :].translate({2: None, 3: None}).expandtabs(4).splitlines()
    titles = _titles(lines) if _REFERENCE.search(text) else {}
    return front + "\n".join(_Blocks(_wanted(lines, attributes), attributes, titles).markdown())


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
        elif kind == "ifeval":
            hidden.append(not _holds(re.sub(_NAME, lambda name: attributes.get(name[2].lower(), ""), inner)))
        elif not inner:
            hidden.append(hides)
        elif not hides and not any(hidden):
            yield inner


def _holds(comparison: str) -> bool:
    """Return whether a comparison of numbers or of texts is true (`2 > 1`); one that can't be read is."""
    left, sign, right = [*re.split("(==|!=|<=|>=|<|>)", comparison, maxsplit=1), "", ""][:3]
    sides = [side.strip(" \"'") for side in (left, right)]
    numbers = [float(side) for side in sides if re.fullmatch(r"\d{1,20}(?:\.\d{1,20})?", side)]
    return not sign or _COMPARE[sign](*(numbers if len(numbers) == len(sides) else sides))


def _titles(lines: Iterable[str]) -> dict[str, str]:
    """Return by their ids the titles of sections and blocks, and the labels of places that have one."""
    titles: dict[str, str] = {}
    ids, title = list[str](), ""
    for line in lines:
        said = _said(line)
        if own := _id_of(said):
            ids.append(own)
        if label := said.get("label") or _named("reftext", said.get("style", "")):
            titles[own] = label
        heading, own = _heading_and_id(said.get("heading", ""))
        title = said.get("title") or heading or title
        if heading:
            ids.append(own or slug(re.sub(r"(?<!\w)[*_`#]+|[*_`#]+(?!\w)", "", heading)))
        if not said.keys() & {"id", "style", "title"}:
            for own in ids if title else ():
                titles.setdefault(own, title.strip())
            ids, title = [], ""
        titles |= {entry[1]: f"[{entry[2] or entry[1]}]" for entry in _ENTRY.finditer(line)}
    return titles


class _Blocks:
    """Parses the blocks of a page or of a container block; tracks the written lines and the open lists."""

    def __init__(
        self, lines: Iterable[str], attributes: dict[str, str], titles: Mapping[str, str], depth: int = 0
    ) -> None:
        self._lines, self._attributes, self._titles, self._depth = iter(lines), attributes, titles, depth
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
            self._id = _id_of(said) or self._id
            self._style = f"{self._style},{style}" if self._style and re.match(r"[#.%]|\w+=", style) else style
        elif "title" in said:
            self._title = self._shown(said["title"].strip())
        elif "more" in said:
            self._joined = True
        elif "fence" in said:
            self._fenced(said["fence"], said.get("info", ""))
        elif "mark" in said or "term" in said:
            self._item(said)
        elif "level" in said:
            self._heading(said)
        elif "silent" not in said and not self._is_underlined(line):
            self._paragraph(said.get("boxed", line), said.get("box") or self._style)

    def _set(self, said: dict[str, str]) -> None:
        name = said["attribute"].lower()
        self._attributes.pop(name, None)
        value = said.get("value", "")
        while value.endswith((" \\", " +")) and (line := self._next()) is not None:
            value = value[:-1] + line.strip()
        if not said.keys() & {"off", "unset"}:
            self._attributes[name] = self._filled(value)[:LONGEST_VALUE]

    def _is_underlined(self, line: str) -> bool:
        """Return whether the next line makes this one a title, which is then written."""
        below = self._next() if not (self._depth or self._joined) else None
        if below is not None and _UNDERLINE.fullmatch(below) and abs(len(below.rstrip()) - len(line.rstrip())) < 2:
            self._heading({"level": "=" * (1 + _LEVELS.index(below[0])), "heading": line.strip()})
            return True
        if below is not None:
            self._back.appendleft(below)
        return False

    def _heading(self, said: dict[str, str]) -> None:
        level = len(said["level"])
        while (
            level == 1 and not self._titled and (line := self._next()) and line.strip()
        ):  # skip the author and revision lines
            if "attribute" in _said(line):
                self._set(_said(line))
        signs = "#" * (2 if level == 1 and self._titled else level)  # the title of an included file
        self._titled, self._lists, self._joined = True, [], False
        heading, own = _heading_and_id(said["heading"])
        own, self._id = own or self._id, ""
        self._put([f"{signs} {self._shown(heading)}{f' {{#{own}}}' if own else ''}"])

    def _item(self, said: dict[str, str]) -> None:
        mark = said.get("colons") or re.sub(r"\w+", "1", said["mark"])
        known = [each for each, _ in self._lists]
        del self._lists[known.index(mark) if mark in known else len(known) if known and not self._style else 0 :]
        above = self._lists[-1][1] if self._lists else ""
        if "term" in said:
            self._joined, self._lead = True, ""
            self._put([self._shown(said["term"])])
        lead = ":   " if "term" in said else "- " if mark[0] in "*-" else "1. "
        opened = self._lead if len(self._lead) == len(above) else ""  # of a term whose meaning is this list
        self._lists.append((mark, above + " " * len(lead)))
        self._lead, self._joined, self._style = (opened or above) + lead, True, ""
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
            self._prose(lines, style)

    def _prose(self, lines: Sequence[str], style: str) -> None:
        """Put lines of prose, which a verse keeps."""
        breaks = _kind(style) == "verse" or "%hardbreaks" in style
        text = self._shown("\n".join(map(str.strip, lines)).strip("\n"))
        self._put((text.replace("\n", "\\\n") if breaks else text).split("\n"), style)
        self._attribute(style)

    def _attribute(self, style: str) -> None:
        """Put the author and the source of a quotation below it (`[quote,Author,Source]`)."""
        words = [word.strip(' "') for word in style.split(",")[1:3] if "=" not in word]
        if _kind(style) in ("quote", "verse") and any(words):
            self._put([f"— {self._shown(', '.join(filter(None, words)))}"])

    def _fenced(self, fence: str, info: str) -> None:
        style, lines = self._style, list[str]()
        while (line := self._next()) is not None and line.rstrip() != fence:
            lines.append(line)
        if (fence[0] in "-.`" and fence != "--") or _kind(style) in _NAMES["code"]:
            self._code(lines, style, info)
        elif _kind(style) == "verse":
            self._prose(lines, style)
        elif fence[0] in "|!,:":
            delimiter = _delimiter(fence, style)
            rows = rows_of_values(filter(str.strip, lines), delimiter) if delimiter else ()
            self._table([" ".join(f"|{_escaped(cell)}" for cell in row) for row in rows] or lines, style)
        elif fence[0] == "+":
            self._put([line or "<!-- -->" for line in lines])
        elif fence[0] != "/":
            self._put(list(dropwhile(operator.not_, self._inner(lines) if self._depth < DEEPEST else lines)), style)
            self._attribute(style)

    def _inner(self, lines: Iterable[str]) -> list[str]:
        return _Blocks(lines, self._attributes, self._titles, self._depth + 1).markdown()

    def _code(self, lines: list[str], style: str, info: str) -> None:
        words = [word.strip() for word in style.split(",")]
        language = info or (words[1] if len(words) > 1 and "=" not in words[1] else "")
        text = dedent(re.sub(r"(?m)^\\(?=\w+::)", "", _CALLOUT.sub("", "\n".join(lines))))
        subs = _named("subs", style)
        text = self._filled(text) if re.search("attributes|normal", subs) else text
        for sign in _TABLE["quotes"] if re.search("quotes|normal", subs) else ():
            text = re.sub(sign, r"\1", text)
        self._put([f"{_FENCE}{language}", *text.split("\n"), _FENCE])

    def _table(self, lines: list[str], style: str) -> None:
        text = "\n".join(line for line in lines if not _COMMENT.match(line)).strip("\n")
        first, _, rest = text.partition("\n")
        marks = list(_CELL.finditer(text))
        if not marks:  # for example, comma-separated values
            self._code(lines, "", "")
            return
        count = sum(int(mark["times"] or 1) for mark in _CELL.finditer(first))
        columns = _columns(style) or [""] * min(count, MOST_COLUMNS) or [""]
        ends = [*(mark.start() for mark in marks[1:]), len(text)]
        cells: list[list[str]] = []
        for mark, end in zip(marks, ends, strict=True):
            cell = self._cell(text[mark.end() : end], mark["kind"] or columns[len(cells) % len(columns)])
            cells += [cell] * min(int(mark["times"] or 1), MOST_COLUMNS)
        rows = [cells[place : place + len(columns)] for place in range(0, len(cells), len(columns))]
        headed = bool(re.search("(?<!no)header", style)) or rest.startswith("\n")
        self._put(_as_html(rows, headed) if any(len(cell) > 1 for cell in cells) else _as_markdown(rows, headed))

    def _cell(self, text: str, kind: str) -> list[str]:
        """Return the lines of a cell as Markdown; a paragraph is one line."""
        if kind == "a" and self._depth < DEEPEST:
            shown = list(dropwhile(operator.not_, self._inner(dedent(text).strip().split("\n"))))
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
        return _NAME.sub(self._value, text)

    def _value(self, found: re.Match[str]) -> str:
        """Return the text of `{name}`, `{counter:name}` or `{set:name:value}`."""
        kind, name, value = found[1], found[2].lower(), (found[3] or "")[:LONGEST_VALUE]
        if not kind:
            return found[0] if found[3] is not None else self._attributes.get(name, found[0])
        before = self._attributes.get(name, "")
        counted = str(int(before) + 1) if before.isdecimal() else value or "1"
        self._attributes[name] = value if kind == "set" else counted
        return counted if kind == "counter" else ""

    def _shown(self, text: str) -> str:
        """Return a string with Markdown markup. Code and passthrough content are set aside during the conversion."""
        kept: list[str] = []

        def keep(code: re.Match[str]) -> str:
            sign, shown = "``" if "`" in (code["code"] or "") else "`", code["code"] or code["formula"]
            if code["code"] and not code["plus"]:
                shown = unescape(code["code"]).replace("\\{", "{")
            literal = re.sub(r"([\\`*_\[\]<&])", r"\\\1", code["literal"] or code["escaped"] or "")
            kept.append(f"{sign}{shown}{sign}" if shown else literal or code["raw"] or code["passed"] or "")
            return f"\x02{len(kept) - 1}\x03"

        text = _CODE.sub(keep, self._filled(text))
        text = _REFERENCE.sub(lambda place: self._titles.get(place[1] or place[2], place[0]), text)
        for form, by in _FORMS:
            text = form.sub(by, text)
        return re.sub("\x02(\\d+)\x03", lambda place: kept[int(place[1])], text)


def _said(line: str) -> dict[str, str]:
    """Return the parts of a line by the names of the groups of _LINE."""
    match = _LINE.match(line)
    return {name: value for name, value in match.groupdict().items() if value} if match else {}


def _id_of(said: Mapping[str, str]) -> str:
    """Return the id that a line above a block sets: `[[id]]`, `[#id]`, `[style#id]`; "" for another line."""
    named = re.match(r"[^,.%]*#([\w:-]+)", said.get("style", ""))
    return said.get("id") or (named[1] if named else "")


def _heading_and_id(heading: str) -> tuple[str, str]:
    """Return a heading without the id that it sets (`Words [[id]]`), and the id."""
    found = _HEADING_ID.search(heading)
    return (heading[: found.start()].rstrip(), found[1]) if found else (heading, "")


def _named(name: str, style: str) -> str:
    """Return the value of a named attribute in a style."""
    found = re.search(rf"(?<![\w-]){name}=(?:\"([^\"]*)\"|([^,\]]*))", style)
    return (found[1] or found[2] or "").strip() if found else ""


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
