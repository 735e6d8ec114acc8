"""Small-to-big: a hit's neighbours in its section, joined with it into one text in reading order.

Knows texts alone; which chunks are neighbours, the store says.
"""

import re
from collections.abc import Sequence
from dataclasses import replace

from pipelines.records import Hit

_WORD = re.compile(r"\S+")


def in_context(hit: Hit, section: Sequence[Hit], overlap: int) -> Hit:
    """`hit` with `section`, itself and its neighbours in reading order, as context; unchanged where it has none.

    `overlap` is how many words at most a chunk repeats of the one before.
    """
    if len(section) < 2:
        return hit
    text = section[0].text
    for following in section[1:]:
        text = joined(text, following.text, overlap)
    return replace(hit, context=text)


def joined(text: str, following: str, overlap: int) -> str:
    """Both, without the words (at most `overlap`) that end the one and begin the other twice."""
    ending = _WORD.findall(text)[-overlap:] if overlap > 0 else []
    words = list(_WORD.finditer(following))[: len(ending)]
    beginning = [word[0] for word in words]
    for length in range(len(beginning), 0, -1):
        if ending[-length:] == beginning[:length]:
            return text.rstrip() + following[words[length - 1].end() :]
    return f"{text}\n\n{following}"
