"""Compares the visible content with Raydex's reading: words, order, code lines, cells, superscripts, targets.

Words are aligned as sequences. Equal letters with different spaces ("H 2 O") are `spaced` instead of missing. Words at
another position, at least three in a row, are `moved`. Optional words count neither as missing nor as extra.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from rapidfuzz.distance import LCSseq

RUN = 3  # words in a row in both texts at different positions: fewer match by chance
EXAMPLES = 12
_WORD = re.compile(r"\w+")
_RAISED = re.compile("[⁰¹²³⁴-⁹⁺⁻ⁿⁱ]+")
_UNSEEN = re.compile("[\u200b\u200c\u200d\u2060\ufeff\u00ad\ufe0e\ufe0f\u200a\u200e\u200f]")
_SPACE = re.compile(r"[\s|]+")


class Share(NamedTuple):
    """A count of correct items and a total."""

    right: int = 0
    of: int = 0

    def __add__(self, other: object) -> "Share":
        """Return the sum of both."""
        assert isinstance(other, Share)
        return Share(self.right + other.right, self.of + other.of)

    @property
    def share(self) -> float:
        """A value from 0 to 1, and 1 for an empty total."""
        return self.right / self.of if self.of else 1.0

    def __str__(self) -> str:
        return f"{self.share:.3f}" if self.of else ""


NOTHING = Share()


@dataclass(frozen=True)
class Shown:
    """A page's visible content: lines as (text, is optional), code lines, table rows, (base, superscript), targets."""

    lines: Sequence[tuple[str, bool]]
    code: Sequence[str] = ()
    tables: Sequence[Sequence[Sequence[str]]] = ()
    raised: Sequence[tuple[str, str]] = ()
    targets: Sequence[tuple[str, str]] = ()


@dataclass(frozen=True)
class Read:
    """Raydex's reading: headings and blocks in order as (text, is optional), lines of code and tables, and links."""

    parts: Sequence[tuple[str, bool]]
    code: Sequence[str] = ()
    rows: Sequence[str] = ()
    targets: Sequence[tuple[str, str]] = ()

    @property
    def text(self) -> str:
        """The whole text."""
        return "\n".join(text for text, _ in self.parts)


@dataclass
class Comparison:
    """The figures of a page, or their sum for a site. `missing` and `extra` are runs of words for inspection."""

    recall: Share = NOTHING
    precision: Share = NOTHING
    order: Share = NOTHING
    spaced: int = 0
    code: Share = NOTHING
    cells: Share = NOTHING
    raised: Share = NOTHING
    targets: Share = NOTHING
    missing: list[str] = field(default_factory=list)
    extra: list[str] = field(default_factory=list)
    wrong: dict[str, list[str]] = field(default_factory=dict)

    def __iadd__(self, other: "Comparison") -> "Comparison":
        """Add the figures of `other`."""
        for name in FIGURES:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.spaced += other.spaced
        return self

    @property
    def lost(self) -> int:
        """The number of missing and extra words."""
        return self.recall.of - self.recall.right + self.precision.of - self.precision.right

    def as_json(self) -> dict[str, Any]:
        """Return plain values."""
        figures = {name: list(getattr(self, name)) for name in FIGURES}
        return {**figures, "spaced": self.spaced, "missing": self.missing, "extra": self.extra, "wrong": self.wrong}


FIGURES = ("recall", "precision", "order", "code", "cells", "raised", "targets")


def words(text: str) -> list[str]:
    """Return a text's words. A superscript is a separate word."""
    text = _RAISED.sub(lambda found: f"^{found[0]}", _UNSEEN.sub("", text))
    return _WORD.findall(unicodedata.normalize("NFKC", text).replace("_", " "))


def squeezed(text: str) -> str:
    """Return a text without white space, bars and invisible characters."""
    return _SPACE.sub("", _UNSEEN.sub("", unicodedata.normalize("NFKC", text)))


def compare(shown: Shown, read: Read) -> Comparison:
    """Return how far `read` agrees with `shown`."""
    found = _compare_words(_words(shown.lines), _words(read.parts))
    wrong: dict[str, list[str]] = {}
    found.code = _code(shown.code, read.code, wrong.setdefault("code", []))
    found.cells = _cells(shown.tables, read, wrong.setdefault("cells", []))
    found.raised = _raised(shown.raised, read.text, wrong.setdefault("raised", []))
    found.targets = _targets(shown.targets, read.targets, wrong.setdefault("targets", []))
    found.wrong = {name: examples[:EXAMPLES] for name, examples in wrong.items() if examples}
    return found


# ---------------------------------------------------------------------------------------------- words


class _Words(NamedTuple):
    texts: list[str]
    optional: list[bool]


def _words(lines: Iterable[tuple[str, bool]]) -> _Words:
    pairs = [(word, optional) for line, optional in lines for word in words(line)]
    return _Words([word for word, _ in pairs], [optional for _, optional in pairs])


def _compare_words(shown: _Words, read: _Words) -> Comparison:
    theirs, ours = shown.texts, read.texts
    lost, added, spaced = _without_same_letters(theirs, ours, _gaps(theirs, ours))
    moved = _moved(theirs, ours, lost, added)
    missing = [place for start, end in lost for place in range(start, end) if not shown.optional[place]]
    gone = [place for place in missing if place not in moved[0]]
    unmatched = {place for start, end in added for place in range(start, end)} - moved[1]
    many = sorted(place for place in unmatched if not read.optional[place])
    needed, matched = shown.optional.count(False), len(ours) - len(unmatched) + len(many)
    return Comparison(
        recall=Share(needed - len(gone), needed),
        precision=Share(matched - len(many), matched),
        order=Share(needed - len(missing), needed - len(gone)),
        spaced=spaced,
        missing=_runs(theirs, gone),
        extra=_runs(ours, many),
    )


def _gaps(theirs: list[str], ours: list[str]) -> list[tuple[int, int, int, int]]:
    """Return the unmatched parts of an alignment: start and end in `theirs`, start and end in `ours`.

    If a word could match at two places, it matches at the later one: the words of a heading, which are optional, come
    before the same words in the text.
    """
    places = [-1] * len(ours)  # of the matched words in `theirs`
    for kind, start, end, begin, stop in LCSseq.opcodes(theirs, ours):
        if kind == "equal":
            places[begin:stop] = range(start, end)
    before = len(ours)
    for place in range(len(ours) - 1, -1, -1):
        before = min(before, place - 1)
        while before >= 0 and places[before] < 0:
            before -= 1
        if places[place] < 0 <= before and ours[before] == ours[place]:
            places[place], places[before] = places[before], -1
    gaps: list[tuple[int, int, int, int]] = []
    start = begin = 0
    for stop, end in [*((here, there) for here, there in enumerate(places) if there >= 0), (len(ours), len(theirs))]:
        if start < end or begin < stop:
            gaps.append((start, end, begin, stop))
        start, begin = end + 1, stop + 1
    return gaps


def _without_same_letters(
    theirs: list[str], ours: list[str], gaps: Iterable[tuple[int, int, int, int]]
) -> tuple[list[tuple[int, int]], list[tuple[int, int]], int]:
    """Remove parts with equal letters from both sides of each gap. Return the rest, and the number of removed words.

    Such a part, which is one word on one side and several on the other, may be anywhere in a gap.
    """
    lost: list[tuple[int, int]] = []
    added: list[tuple[int, int]] = []
    spaced = 0
    for start, end, begin, stop in gaps:
        at, place = start, begin
        while match := _same_letters(theirs, at, end, ours, place, stop):
            first, last, one, two = match
            spaced += last - first
            lost.append((at, first))
            added.append((place, one))
            at, place = last, two
        lost.append((at, end))
        added.append((place, stop))
    return [pair for pair in lost if pair[0] < pair[1]], [pair for pair in added if pair[0] < pair[1]], spaced


_REACH = 60  # words in which a part with equal letters is searched


def _same_letters(
    theirs: list[str], start: int, end: int, ours: list[str], begin: int, stop: int
) -> tuple[int, int, int, int] | None:
    """Return the first part of both sides with equal letters that has more than one word on one side."""
    for first in range(start, min(end, start + _REACH)):
        for one in range(begin, min(stop, begin + _REACH)):
            a, b = theirs[first], ours[one]
            if not (a.startswith(b) or b.startswith(a)):
                continue
            i, j = first + 1, one + 1
            while len(a) != len(b):
                if len(a) < len(b):
                    if i >= end or not b.startswith(a := a + theirs[i]):
                        break
                    i += 1
                else:
                    if j >= stop or not a.startswith(b := b + ours[j]):
                        break
                    j += 1
            if a == b and len(a) > 1:
                return first, i, one, j
    return None


def _moved(
    theirs: list[str], ours: list[str], lost: list[tuple[int, int]], added: list[tuple[int, int]]
) -> tuple[set[int], set[int]]:
    """Return the positions in both texts of words that occur in both, in runs, at different positions."""
    runs: dict[tuple[str, ...], list[int]] = {}
    for begin, stop in added:
        for place in range(begin, stop - RUN + 1):
            runs.setdefault(tuple(ours[place : place + RUN]), []).append(place)
    there: set[int] = set()
    here: set[int] = set()
    for start, end in lost:
        for place in range(start, end - RUN + 1):
            places = runs.get(tuple(theirs[place : place + RUN]))
            if places:
                other = places.pop(0)
                there.update(range(place, place + RUN))
                here.update(range(other, other + RUN))
    return there, here


def _runs(text: list[str], places: list[int]) -> list[str]:
    """Return the longest runs of words at `places`, with one more word on either side, longest first."""
    runs: list[list[int]] = []
    for place in places:
        if runs and runs[-1][-1] == place - 1:
            runs[-1].append(place)
        else:
            runs.append([place])
    longest = sorted(runs, key=len, reverse=True)[:EXAMPLES]
    return [_example(text, run[0], run[-1] + 1) for run in longest]


def _example(text: list[str], start: int, end: int) -> str:
    inside = text[start:end] if end - start < 25 else [*text[start : start + 22], f"… ({end - start} words)"]
    return " ".join([*text[max(0, start - 2) : start], "[" + " ".join(inside) + "]", *text[end : end + 2]])


# ---------------------------------------------------------------------------------------------- the rest


def _code(shown: Iterable[str], read: Iterable[str], wrong: list[str]) -> Share:
    """Count the lines that are code lines in both, ignoring indentation."""
    have = Counter(filter(None, map(squeezed, read)))
    right = of = 0
    for line in shown:
        if not (bare := squeezed(line)):
            continue
        of += 1
        if have[bare]:
            have[bare] -= 1
            right += 1
        else:
            wrong.append(line.strip()[:120])
    return Share(right, of)


def _cells(tables: Iterable[Sequence[Sequence[str]]], read: Read, wrong: list[str]) -> Share:
    """Count the cells that are in one row with the other cells of their row."""
    whole, rows = squeezed(read.text), [squeezed(row) for row in read.rows]
    right = of = 0
    for row in (row for table in tables for row in table):
        cells = [bare for cell in row if (bare := squeezed(cell).replace("^", ""))]
        of += len(cells)
        if not cells:
            continue
        if "".join(cells) in whole.replace("^", ""):
            right += len(cells)
            continue
        near = max(rows, key=lambda one: sum(len(cell) for cell in cells if cell in one), default="")
        bad = [cell for cell in cells if cell not in near]
        right += len(cells) - len(bad)
        if bad:
            wrong.append(" | ".join(row)[:160] + "  LACKS  " + " | ".join(bad)[:80])
    return Share(right, of)


def _raised(shown: Sequence[tuple[str, str]], text: str, wrong: list[str]) -> Share:
    """Count the superscripts that are not joined to their base."""
    plain = _RAISED.sub(lambda found: "^" + unicodedata.normalize("NFKC", found[0]), _UNSEEN.sub("", text))
    right = 0
    for base, power in shown:
        last = (_WORD.findall(base) or [base])[-1]
        pattern = (
            re.escape(last) + r"[)\]`]*\s*(?:\^|\*\*)\s*[({]?\s*" + re.escape(unicodedata.normalize("NFKC", power))
        )
        if re.search(pattern, plain):
            right += 1
        else:
            wrong.append(f"{base}^{power}")
    return Share(right, len(shown))


def _targets(shown: Iterable[tuple[str, str]], read: Iterable[tuple[str, str]], wrong: list[str]) -> Share:
    """Count the links that lead from the same words to the same place."""
    have = {(squeezed(text), _place(target)) for text, target in read}
    places: dict[str, list[str]] = {}
    for text, target in have:
        places.setdefault(target, []).append(text)
    right = of = 0
    for text, target in shown:
        of += 1
        bare = squeezed(text).replace("^", "")
        if any(bare in other or other in bare for other in places.get(_place(target), [])):
            right += 1
        else:
            wrong.append(f"{text[:60]} -> {target}")
    return Share(right, of)


def _place(target: str) -> str:
    return target.replace("%7E", "~").removesuffix("/").replace("%28", "(").replace("%29", ")").replace("%20", " ")
