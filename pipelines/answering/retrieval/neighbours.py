"""Joins a hit with its neighbours in the section into one text (small-to-big retrieval).

Knows texts only; the store finds the neighbours.
"""

import re
from collections.abc import Sequence
from dataclasses import replace

from pipelines.records import Hit

OMITTED = "…"  # the line of a chunk between what it repeats from the chunk before and where it goes on
TABLE_MARK = " | "  # between the cells of a table

_WORD = re.compile(r"\S+")


def with_neighbours(hit: Hit, section: Sequence[Hit], overlap: int) -> Hit:
    """Return `hit` with `section`, which is the hit and its neighbours in reading order, as its context.

    A hit without neighbours is unchanged. A chunk repeats at most `overlap` words of the one before.
    """
    if len(section) < 2:
        return hit
    text = section[0].text
    for following in section[1:]:
        text = join_chunks(text, following.text, overlap)
    return replace(hit, context=text)


def join_chunks(text: str, following: str, overlap: int) -> str:
    """Join both, without what the second repeats: lines before its "…", the header of a table, words of the overlap."""
    going_on = _without_repeated_lines(text, following)
    if going_on != following:
        return f"{text.rstrip()}\n{going_on}"
    ending = _WORD.findall(text)[-overlap:] if overlap > 0 else []
    words = list(_WORD.finditer(following))[: len(ending)]
    beginning = [word[0] for word in words]
    for length in range(len(beginning), 0, -1):
        if ending[-length:] == beginning[:length]:
            return text.rstrip() + following[words[length - 1].end() :]
    return f"{text}\n\n{following}"


def _without_repeated_lines(text: str, following: str) -> str:
    """Return `following` without the first lines that `text` has too, up to the mark of what is left out between."""
    repeated, mark, rest = following.partition(f"\n{OMITTED}\n")
    if not mark:
        repeated, _, rest = following.partition("\n")
        mark = TABLE_MARK if TABLE_MARK in repeated else ""
    known = all(line.strip() in text for line in repeated.splitlines())
    return rest if mark and rest and known else following
