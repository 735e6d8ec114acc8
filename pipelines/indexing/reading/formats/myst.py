"""Turns the Markdown of MyST into plain Markdown: directives, roles, labels.

A directive with text becomes a box or its text, one with code becomes code, a role becomes its words.
"""

import re
from collections.abc import Iterator
from pathlib import PurePosixPath
from textwrap import dedent

from pipelines.text.phrases import read_names

_FENCE = re.compile(r"^(?P<indent>[ \t]*)(?P<sign>`{3,}|~{3,}|:{3,})[ \t]*(?P<info>.*?)[ \t]*$")
_DIRECTIVE = re.compile(r"\{(?P<name>[\w:.+-]+)\}[ \t]*(?P<argument>.*)")
_LABEL = re.compile(r"^\(([^()\n]+)\)=[ \t]*$")
_ROLE = re.compile(r"\{([\w:+-]+)\}(`+)(.+?)\2(?!`)", re.DOTALL)
_UNNAMED = re.compile(r"(?<![\w`!\]])\[\]\(([^()<>\s]+)\)")  # shows what it leads to
_TITLED = re.compile(r"(.+?)\s*<([^<>]+)>", re.DOTALL)
_OPTION = re.compile(r"^[ \t]*:[\w-]+:.*$")
_NAMES = read_names(__name__)


def from_myst(text: str) -> str:
    """Return `text` as plain Markdown."""
    lines = text.split("\n")
    return "\n".join(_converted(lines, 0, len(lines)))


def _converted(lines: list[str], number: int, end: int) -> Iterator[str]:
    while number < end:
        if fence := _FENCE.match(lines[number]):
            closing = _closing(lines, number, end, fence["sign"])
            yield from _converted_fence(fence, lines, number, closing)
            number = closing + 1
        else:
            yield _plain(lines[number])
            number += 1


def _closing(lines: list[str], opening: int, end: int, sign: str) -> int:
    """Return the line that closes the fence, or `end` if none does."""
    for number in range(opening + 1, end):
        line = lines[number].strip()
        if line.startswith(sign) and not line.strip(sign[0]):
            return number
    return end


def _converted_fence(fence: re.Match[str], lines: list[str], opening: int, closing: int) -> Iterator[str]:
    directive = _DIRECTIVE.fullmatch(fence["info"])
    if directive is None:
        yield from lines[opening : closing + 1]
        return
    name, first = directive["name"], _after_options(lines, opening + 1, closing)
    if name in _NAMES["code"]:
        yield from (f"{fence['indent']}````````", *lines[first:closing], f"{fence['indent']}````````")
    elif name == "eval-rst":
        from pipelines.indexing.reading.formats.restructured_text import render  # slow to load

        html = render(dedent("\n".join(lines[opening + 1 : closing])))
        # A comment keeps an empty line from ending the HTML.
        yield from ("", "<div>", *(line if line.strip() else "<!-- -->" for line in html.split("\n")), "</div>", "")
    elif name not in _NAMES["silent"]:
        title = directive["argument"] or name.rpartition(":")[2].replace("-", " ").capitalize()
        yield from ("", f"**{title}**", "", *_converted(lines, first, closing), "")


def _after_options(lines: list[str], start: int, end: int) -> int:
    """Return the first line after a directive's options: `:name: value` lines, or YAML between "---" lines."""
    if start < end and lines[start].strip() == "---":
        return next((n + 1 for n in range(start + 1, end) if lines[n].strip() == "---"), start)
    while start < end and _OPTION.match(lines[start]):
        start += 1
    return start


def _plain(line: str) -> str:
    if line.startswith("%"):
        return ""
    label = _LABEL.match(line)
    if label:
        return f'<a id="{re.sub(r"[^a-z0-9]+", "-", label[1].lower()).strip("-")}"></a>\n'
    line = _UNNAMED.sub(_named, line) if "[](" in line else line
    return _ROLE.sub(_words, line) if "{" in line else line


def _named(link: re.Match[str]) -> str:
    """Return a link without words with the last name of its target; a label, which may be on any page, is no link."""
    name = PurePosixPath(link[1].rpartition("#")[2]).stem
    return name if name == link[1] else f"[{name}]({link[1]})"


def _words(role: re.Match[str]) -> str:
    """Return what a reader sees of a role: its title, or its target without the sign for a short name."""
    titled = _TITLED.fullmatch(role[3])
    shown = titled[1] if titled else role[3]
    if role[1].rpartition(":")[2] in _NAMES["prose"]:
        return shown
    return f"`{shown.rpartition('.')[2] if shown.startswith('~') else shown.lstrip('!')}`"
