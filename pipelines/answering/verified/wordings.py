"""Finds the known question that means the same as a new one.

This module works with wordings, their vectors and their sections, but doesn't look at the data attached to them.
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
    """A known question, the sections that answer it, and the data that it leads to."""

    text: str
    meaning: Meaning
    sections: tuple[Hit, ...]
    leads_to: T


@dataclass(frozen=True, slots=True)
class KnownWordings(Generic[T]):
    """The known questions of one revision of an index, with vectors; `mark` changes when they change."""

    index: Index
    mark: object
    wordings: tuple[KnownWording[T], ...] = ()
    vectors: dict[str, Vector] = field(default_factory=dict)

    def is_of(self, index: Index, mark: object) -> bool:
        """Return whether they belong to this revision and mark."""
        return (self.index.id, self.index.revision, self.mark) == (index.id, index.revision, mark)

    async def find_closest(
        self, question: str, embed: CollectionEmbed, similarity: float, filters: Filters, version: str | None
    ) -> tuple[KnownWording[T], float] | None:
        """Return the wording that means the same as `question`, with the cosine of the two; None if there is none.

        Its sections must pass `filters`, and none may have a `version` other than the one given. The last wording with
        the same words wins; otherwise the one with the highest cosine, if at least `similarity`. Raises the errors of
        `embed_in_time`.
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
