"""Finds the section that a collection's file pins to a question and to those that mean the same.

Reads the pinned sections once for each revision of an index. Knows no step of the engine and no HTTP.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pipelines.answering.verified.sections import are_kept, read_sections
from pipelines.answering.verified.similarity import SIMILAR, Meaning
from pipelines.answering.verified.wordings import KnownWording, Vector, find_closest
from pipelines.answering.writing.agents import CollectionEmbed
from pipelines.records import Filters, Hit, Index
from pipelines.store import Store


@dataclass(frozen=True, slots=True)
class _Pins:
    """The pinned sections that one revision of an index holds."""

    index: int
    revision: int
    said: Sequence[Mapping[str, str]]
    pins: tuple[KnownWording[Hit], ...]
    vectors: dict[str, Vector] = field(default_factory=dict)


class PinnedFinder:
    """The pinned sections of all collections; `embed` and `similarity` as for VerifiedFinder."""

    def __init__(self, store: Store, embed: CollectionEmbed, similarity: float = SIMILAR) -> None:
        self._store, self._embed, self._similarity = store, embed, similarity
        self._known: dict[str, _Pins] = {}

    async def find(
        self, question: str, index: Index, filters: Filters = Filters(), version: str | None = None
    ) -> Hit | None:
        """Return the section pinned to a question in `index`, whole as its `context`, if there is one.

        `filters` keep it, and it is of no other `version` than the reader's page. Raises as store and embedder do.
        """
        said: Any = index.rules.get("pinned")
        if not said:
            return None
        known = self._known.get(index.collection)
        if known is None or (known.index, known.revision, known.said) != (index.id, index.revision, said):
            known = self._known[index.collection] = await asyncio.to_thread(self._read, index, said)
        kept = [pin for pin in known.pins if are_kept([pin.leads_to], filters, version)]
        found = await find_closest(
            question, kept, known.vectors, lambda texts: self._embed(texts, index.collection), self._similarity
        )
        return found[0].leads_to if found else None

    def _read(self, index: Index, said: Sequence[Mapping[str, str]]) -> _Pins:
        urls = [one["url"] for one in said]
        sections = read_sections(self._store.chunks_of_pages(index.id, {url.partition("#")[0] for url in urls}), urls)
        pins = (KnownWording(one["question"], Meaning.of(one["question"]), sections[one["url"]])
                for one in said if one["url"] in sections)  # fmt: skip
        return _Pins(index.id, index.revision, said, tuple(pins))
