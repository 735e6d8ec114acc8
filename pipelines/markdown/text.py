"""A plain text that knows which parts of it are code, links, items and cells.

Written as Markdown, it shows them. It is a `str` for all who count, cut or compare it: what does not know of marks
loses them, and never a sign of the text.
"""

from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

LIST = 0  # in Mark.within: a level of lists; notes have numbers from 1 on

MarkKind = Literal["paragraph", "begin", "item", "cell", "code", "link"]


class Mark(NamedTuple):
    """A part of a text: `code`, a `link` to `target`, the marker of an `item`, what divides two `cells` of a row.

    A `paragraph` has the indentation of its first line in it, and `within` what it stands in, outermost first: LIST for
    a level of lists, the number of a note. `begin` is the first sign of one that stands right below another.
    """

    start: int
    end: int
    kind: MarkKind
    target: str = ""
    within: tuple[int, ...] = ()

    def moved(self, by: int) -> "Mark":
        """Return this mark `by` signs further on."""
        return Mark(self.start + by, self.end + by, self.kind, self.target, self.within)

    def clipped(self, start: int, end: int) -> "Mark":
        """Return its part of a text from `start` to `end`."""
        first, last = max(self.start, start) - start, min(self.end, end) - start
        return Mark(first, last, self.kind, self.target, self.within)


class Text(str):
    """A text with its marks, ordered by where they start."""

    __slots__ = ("marks",)
    marks: tuple[Mark, ...]

    def __new__(cls, text: str, marks: Iterable[Mark] = ()) -> "Text":
        """Return `text` with `marks`."""
        made = super().__new__(cls, text)
        made.marks = tuple(marks)
        return made

    def __reduce__(self) -> tuple[type["Text"], tuple[str, tuple[Mark, ...]]]:
        return Text, (str(self), self.marks)


def marks_of(text: str) -> tuple[Mark, ...]:
    """Return the marks of `text`, none if it remembers none."""
    return text.marks if isinstance(text, Text) else ()


def divide(text: str, parts: Iterable[str]) -> list[str]:
    """Return `parts`, which stand in `text` in this order, with their marks."""
    if not (marks := marks_of(text)):
        return list(parts)
    found: list[str] = []
    open_marks: list[Mark] = []
    at = place = 0
    for part in parts:
        at = text.index(part, at)
        end = at + len(part)
        while place < len(marks) and marks[place].start < end:
            open_marks.append(marks[place])
            place += 1
        open_marks = [mark for mark in open_marks if mark.end > at]
        here = [mark.clipped(at, end) for mark in open_marks if mark.start < end]
        found.append(Text(part, here) if here else part)
        at = end
    return found


def join_texts(parts: Sequence[str], gap: str = "") -> str:
    """Return `parts` with `gap` between them, and all their marks."""
    text = gap.join(parts)
    marks: list[Mark] = []
    at = 0
    for part in parts:
        if isinstance(part, Text):
            marks += [mark.moved(at) for mark in part.marks] if at else part.marks
        at += len(part) + len(gap)
    return Text(text, marks) if marks else text


def below(text: str) -> str:
    """Return `text` as a paragraph of its own, although no empty line divides it from the one before."""
    return Text(text, [Mark(0, 1, "begin"), *marks_of(text)])


def in_list(text: str, marker: str, within: tuple[int, ...]) -> str:
    """Return a paragraph that stands `within` lists and notes: indented, and behind its `marker` if it has one."""
    if not within:
        return text
    indent = "  " * (within.count(LIST) - bool(marker))
    start = len(indent) + len(marker)
    is_item = marker == "- " or (marker[:-2].isdecimal() and len(marker) <= 11)  # Markdown has no other markers
    item = [Mark(len(indent), start, "item")] if is_item else []
    inner = [mark.moved(start) for mark in marks_of(text)]
    return Text(f"{indent}{marker}{text}", [Mark(0, start + len(text), "paragraph", "", within), *item, *inner])
