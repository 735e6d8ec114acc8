"""Joins a hit with its neighbours in the section into one text (small-to-big retrieval).

Knows texts only; the store finds the neighbours.
"""

import re
from collections.abc import Sequence
from dataclasses import replace

from pipelines.records import Hit

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
    """Join both, without the words (at most `overlap`) that end the first and begin the second twice."""
    ending = _WORD.findall(text)[-overlap:] if overlap > 0 else []
    words = list(_WORD.finditer(following))[: len(ending)]
    beginning = [word[0] for word in words]
    for length in range(len(beginning), 0, -1):
        if ending[-length:] == beginning[:length]:
            return text.rstrip() + following[words[length - 1].end() :]
    return f"{text}\n\n{following}"
