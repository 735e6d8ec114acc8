"""Generates hostile texts for one regular expression from its own parts.

A pattern is slow if a repetition can begin at many places, or can match the same text in many ways, before it fails. So
each repetition of a pattern gets many copies of its own content after a matching prefix. The pattern also gets many
copies of its own beginnings, each of which restarts a search.
"""

import re
from collections.abc import Iterator, Mapping
from re import _constants as sre  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

from kit.hostile import Shape, repeated

MOST = 40  # shapes per pattern
SHORT = 2_000  # characters
REPEATS = (sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT)
ONE_CHARACTER = [[kind] for kind in (sre.LITERAL, sre.NOT_LITERAL, sre.IN, sre.ANY)]
FAILS = ("", "\x00", "\n")  # continuations: the end, a character that few patterns match, a line break


def shapes_of(pattern: Any) -> Mapping[str, Shape]:
    """Return hostile texts for a compiled pattern, or none if `re` can't parse it."""
    try:
        tree = list(parser.parse(pattern.pattern, pattern.flags & ~re.DEBUG & 0x1FF))
    except (re.error, OverflowError, AttributeError):
        return {}
    whole = _text(tree)
    parts = (whole, f"{whole} ", whole[:-1], whole[: len(whole) // 2])
    texts = dict.fromkeys([*_repeated(tree, ""), *((part, "") for part in parts)])
    found: dict[str, Shape] = {}
    for unit, begin in texts:
        if unit and len(found) < MOST:
            for end in FAILS:
                found[f"{begin!r} + {unit!r} * n + {end!r}"] = repeated(unit, begin, end)
    return found


def is_short(pattern: Any) -> bool:
    """Return whether a pattern matches at most SHORT characters, so that no text makes it slow."""
    try:
        return bool(parser.parse(pattern.pattern, pattern.flags & 0x1FF).getwidth()[1] < SHORT)
    except re.error:  # the syntax of `regex`
        return False


def repeats_groups_possessively(pattern: Any) -> bool:
    """Return whether a pattern contains a possessive repetition of more than one character."""
    try:
        return _is_possessive(parser.parse(pattern.pattern, pattern.flags & 0x1FF))
    except re.error:  # the syntax of `regex`
        return False


def _is_possessive(tree: Any) -> bool:
    for kind, value in tree:
        if kind is sre.POSSESSIVE_REPEAT and [inner for inner, _ in value[2]] not in ONE_CHARACTER:
            return True
        inside = [value[2]] if kind in REPEATS else _inner(kind, value)
        if any(map(_is_possessive, inside)):
            return True
    return False


def _repeated(tree: Any, before: str) -> Iterator[tuple[str, str]]:
    """Yield each repetition's content with the text before it, and the same for pairs of repetitions in a row."""
    for number, (kind, value) in enumerate(tree):
        if kind in REPEATS:
            if value[1] > 1:
                yield _text(value[2]), before
                if (rest := _text(tree[number + 1 :])) and not rest.isspace():
                    yield _text(value[2]) + rest[:1], before
            yield from _repeated(value[2], before)
        else:
            for inner in _inner(kind, value):
                yield from _repeated(inner, before)
        before += _text([(kind, value)])


def _inner(kind: Any, value: Any) -> list[Any]:
    if kind is sre.BRANCH:
        return list(value[1])
    if kind is sre.SUBPATTERN:
        return [value[-1]]
    if kind in (sre.ASSERT, sre.ASSERT_NOT):
        return [value[1]]
    if kind is sre.ATOMIC_GROUP:
        return [value]
    return []


def _text(tree: Any) -> str:
    """Return a short text that a tree matches, ignoring look-ahead."""
    return "".join(_one(kind, value) for kind, value in tree)


def _one(kind: Any, value: Any) -> str:
    inner = _inner(kind, value)
    if kind in REPEATS:
        found = _text(value[2]) * max(value[0], min(1, value[1]))
    elif kind in SIGNS:
        found = SIGNS[kind](value)
    elif kind in (sre.ASSERT, sre.ASSERT_NOT) or not inner:
        found = ""
    else:
        found = _text(inner[0])
    return found


def _of_class(items: Any) -> str:
    """Return a character of a class, preferably a letter."""
    tree = parser.SubPattern(parser.State(), [(sre.IN, items)])
    matcher = re._compiler.compile(tree)  # type: ignore[attr-defined]
    return next((sign for sign in LIKELY if matcher.fullmatch(sign)), "a")


LIKELY = "a1 .-_/'\"=\n\t(){}[]<>:;,A中é"
SIGNS = {
    sre.LITERAL: chr,
    sre.NOT_LITERAL: lambda sign: "b" if sign == ord("a") else "a",
    sre.ANY: lambda _: "a",
    sre.IN: _of_class,
}
