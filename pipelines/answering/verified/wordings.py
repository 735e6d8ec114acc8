"""Finds which of the questions that are known means the same as one that is asked.

Knows wordings and their vectors; nothing of what belongs to them.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np

from pipelines.answering.grounding.support import Embed, embed_in_time
from pipelines.answering.verified.similarity import Meaning, may_mean_same, wording_key

Vector = np.ndarray[tuple[int, ...], np.dtype[np.float32]]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class KnownWording(Generic[T]):
    """A question that is known, and what it leads to: an answer, a section."""

    text: str
    meaning: Meaning
    leads_to: T


async def find_closest(
    question: str,
    wordings: Sequence[KnownWording[T]],
    vectors: dict[str, Vector],
    embed: Embed,
    similarity: float,
) -> tuple[KnownWording[T], float] | None:
    """Return the wording that means the same as `question`, with the cosine of the two; None if none does.

    It is the last one with the same words, else the one of the highest cosine, from `similarity` on. `vectors` are
    those of wordings, and get those that are new. Raises as `embed_in_time`.
    """
    key = wording_key(question)
    same = next((one for one in reversed(wordings) if wording_key(one.text) == key), None)
    if same:
        return same, 1.0
    near = await asyncio.to_thread(_find_near, question, wordings) if wordings else []
    if not near:
        return None
    new = [one.text for one in near if one.text not in vectors]
    vector, *others = await embed_in_time(embed, [question, *new])
    vectors.update(zip(new, others, strict=True))
    cosines = np.array([vectors[one.text] @ vector for one in near], np.float32)
    best = int(np.argmax(cosines))
    return (near[best], float(cosines[best])) if cosines[best] >= similarity else None


def _find_near(question: str, wordings: Sequence[KnownWording[T]]) -> list[KnownWording[T]]:
    meaning = Meaning.of(question)
    return [one for one in wordings if may_mean_same(meaning, one.meaning)]
