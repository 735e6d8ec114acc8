"""Finds which of the questions that are known means the same as one that is asked.

Knows wordings, their vectors and sections; nothing of what else belongs to them.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Generic, TypeVar

import numpy as np

from pipelines.answering.grounding.support import embed_in_time
from pipelines.answering.verified.sections import are_kept
from pipelines.answering.verified.similarity import Meaning, may_mean_same, wording_key
from pipelines.answering.writing.agents import CollectionEmbed
from pipelines.records import Filters, Hit, Index

Vector = np.ndarray[tuple[int, ...], np.dtype[np.float32]]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class KnownWording(Generic[T]):
    """A question that is known, the sections that answer it, and what else it leads to."""

    text: str
    meaning: Meaning
    sections: tuple[Hit, ...]
    leads_to: T


@dataclass(frozen=True, slots=True)
class KnownWordings(Generic[T]):
    """The questions that are known of one revision of an index, with vectors; `mark` changes where they do."""

    index: Index
    mark: object
    wordings: tuple[KnownWording[T], ...] = ()
    vectors: dict[str, Vector] = field(default_factory=dict)

    def is_of(self, index: Index, mark: object) -> bool:
        """Return whether they are those of a revision and a mark."""
        return (self.index.id, self.index.revision, self.mark) == (index.id, index.revision, mark)

    async def find_closest(
        self, question: str, embed: CollectionEmbed, similarity: float, filters: Filters, version: str | None
    ) -> tuple[KnownWording[T], float] | None:
        """Return the wording that means the same as `question`, with the cosine of the two; None if none does.

        `filters` keep its sections, and none is of another `version`. It is the last one with the same words, else the
        one of the highest cosine, from `similarity` on. Raises as `embed_in_time`.
        """
        wordings = [one for one in self.wordings if are_kept(one.sections, filters, version)]
        key = wording_key(question)
        same = next((one for one in reversed(wordings) if wording_key(one.text) == key), None)
        if same:
            return same, 1.0
        near = await asyncio.to_thread(_find_near, question, wordings) if wordings else []
        if not near:
            return None
        new = [one.text for one in near if one.text not in self.vectors]
        vector, *others = await embed_in_time(partial(embed, collection=self.index.collection), [question, *new])
        self.vectors.update(zip(new, others, strict=True))
        cosines = np.array([self.vectors[one.text] @ vector for one in near], np.float32)
        best = int(np.argmax(cosines))
        return (near[best], float(cosines[best])) if cosines[best] >= similarity else None


def _find_near(question: str, wordings: Sequence[KnownWording[T]]) -> list[KnownWording[T]]:
    meaning = Meaning.of(question)
    return [one for one in wordings if may_mean_same(meaning, one.meaning)]
