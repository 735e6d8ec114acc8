"""Finds the section that a collection's file pins to a question and to others that mean the same.

The pinned sections are read once per revision of an index. This module knows nothing about the engine's steps or HTTP.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from pipelines.answering.verified.sections import find_sections
from pipelines.answering.verified.similarity import SIMILAR, Meaning
from pipelines.answering.verified.wordings import KnownWording, KnownWordings
from pipelines.answering.writing.agents import CollectionEmbed
from pipelines.records import Filters, Hit, Index
from pipelines.store import Store


class PinnedFinder:
    """Finds the pinned sections of all collections; `embed` and `similarity` work as in VerifiedFinder."""

    def __init__(self, store: Store, embed: CollectionEmbed, similarity: float = SIMILAR) -> None:
        self._store, self._embed, self._similarity = store, embed, similarity
        self._known: dict[str, KnownWordings[None]] = {}

    async def find(
        self, question: str, index: Index, filters: Filters = Filters(), version: str | None = None
    ) -> Hit | None:
        """Return the section pinned to a question in `index`, with its whole text as `context`, or None.

        It must pass `filters` and may not have a `version` other than the reader's page. Raises the errors of the store
        and the embedder.
        """
        said: Any = index.rules.get("pinned")
        if not said:
            return None
        known = self._known.get(index.collection)
        if known is None or not known.is_of(index, said):
            known = self._known[index.collection] = await asyncio.to_thread(self._read, index, said)
        found = await known.find_closest(question, self._embed, self._similarity, filters, version)
        return found[0].sections[0] if found else None

    def _read(self, index: Index, said: Sequence[Mapping[str, str]]) -> KnownWordings[None]:
        sections = find_sections(self._store, index, [one["url"] for one in said])
        asked = ((one["question"], sections[one["url"]]) for one in said if one["url"] in sections)
        pins = (KnownWording(question, Meaning.of(question), (section,), None) for question, section in asked)
        return KnownWordings(index, said, tuple(pins))
