"""Finds the verified answer to a question: one that a person wrote, whose sections are as they were.

Reads the answers of a collection once and again when they or the index have changed, so that a question to a collection
without any costs nothing. Knows no step of the engine and no HTTP.
"""

import asyncio
import time
from collections.abc import Iterable
from dataclasses import dataclass, field

from pipelines.answering.retrieval.live import choose_collection
from pipelines.answering.sanitizing.stream import sanitize
from pipelines.answering.verified.sections import are_kept, changed_sections, read_sections
from pipelines.answering.verified.similarity import SIMILAR, Meaning
from pipelines.answering.verified.wordings import KnownWording, Vector, find_closest
from pipelines.answering.writing.agents import CollectionEmbed
from pipelines.markdown.plain import plain_text
from pipelines.records import Filters, Hit, Index
from pipelines.store import Store
from pipelines.store.collections.verified import VerifiedAnswer, VerifiedMark

# An answer that was written meanwhile is given after this many seconds at most; what is given was checked just before.
CHECK_S = 1.0


@dataclass(frozen=True, slots=True)
class VerifiedMatch:
    """The verified answer to a question: its sanitized text, whose `[n]` is the n-th of `hits`, the sections.

    `question` is the wording that means the same, `similarity` the cosine of the two.
    """

    id: int
    question: str
    similarity: float
    text: str
    hits: tuple[Hit, ...]
    index: Index


_Wording = KnownWording[tuple[VerifiedAnswer, tuple[Hit, ...]]]


@dataclass(frozen=True, slots=True)
class _Snapshot:
    """The verified answers of a collection that can be given, as of one revision of its index and one mark."""

    index: Index
    mark: VerifiedMark
    wordings: tuple[_Wording, ...] = ()
    vectors: dict[str, Vector] = field(default_factory=dict)

    def is_of(self, index: Index, mark: VerifiedMark) -> bool:
        return (self.index.id, self.index.revision, self.mark) == (index.id, index.revision, mark)


class VerifiedFinder:
    """The verified answers of all collections. `embed` gives vectors of questions by the model of a collection.

    `collection` is used where a question names none ("": the default or only one). A question gets the answer to a
    wording from `similarity` on, the cosine of their vectors. The store is asked for news every `check_s` seconds.
    """

    def __init__(
        self,
        store: Store,
        embed: CollectionEmbed,
        collection: str = "",
        similarity: float = SIMILAR,
        check_s: float = CHECK_S,
    ) -> None:
        self._store, self._embed, self._collection = store, embed, collection
        self._similarity, self._check_s = similarity, check_s
        self._snapshots: dict[str, tuple[float, _Snapshot]] = {}

    async def find(
        self, question: str, collection: str | None = None, filters: Filters = Filters(), version: str | None = None
    ) -> VerifiedMatch | None:
        """Return the verified answer to a question, if there is one. Raises as the store and the embedder do.

        `filters` keep its sections, and none is of another `version` than that of the reader's page.
        """
        name = collection or self._collection
        snapshot = await self._snapshot(name, self._check_s)
        match = await self._match(snapshot, question, name, filters, version)
        if match is None:
            return None
        now = await self._snapshot(name, 0.0)
        return match if now is snapshot else await self._match(now, question, name, filters, version)

    async def _snapshot(self, name: str, most_age_s: float) -> _Snapshot:
        """Return the snapshot of a collection, read or checked at most that many seconds ago."""
        checked, snapshot = self._snapshots.get(name, (0.0, None))
        if snapshot is not None and time.monotonic() - checked < most_age_s:
            return snapshot
        snapshot = await asyncio.to_thread(self._read, name, snapshot)
        self._snapshots[name] = time.monotonic(), snapshot
        return snapshot

    def _read(self, name: str, before: _Snapshot | None) -> _Snapshot:
        """Return the newest snapshot, which is the one `before` if nothing has changed."""
        index = self._store.live_index(name or choose_collection(self._store.collections()))
        mark = self._store.verified_mark(index.collection)
        if before and before.is_of(index, mark):
            return before
        answers = self._store.verified_answers(index.collection) if mark.answers else ()
        given = given_answers(self._store, index, answers)
        wordings = [KnownWording(text, Meaning.of(text), one) for one in given for text in one[0].questions]
        same_model = before is not None and before.index.settings == index.settings
        return _Snapshot(index, mark, tuple(wordings), dict(before.vectors) if before and same_model else {})

    async def _match(
        self, snapshot: _Snapshot, question: str, name: str, filters: Filters, version: str | None
    ) -> VerifiedMatch | None:
        kept = [one for one in snapshot.wordings if are_kept(one.leads_to[1], filters, version)]
        found = await find_closest(
            question, kept, snapshot.vectors, lambda texts: self._embed(texts, name or None), self._similarity
        )
        return _match(snapshot, *found) if found else None


def given_answers(
    store: Store, index: Index, answers: Iterable[VerifiedAnswer]
) -> list[tuple[VerifiedAnswer, tuple[Hit, ...]]]:
    """Return the answers that may be given, each with its sections: none is retired, no section has changed."""
    active = [answer for answer in answers if not answer.retired]
    sources = {section.source for answer in active for section in answer.sections}
    pages = {source.partition("#")[0] for source in sources}
    now = read_sections(store.chunks_of_pages(index.id, pages), sources) if pages else {}
    return [
        (answer, tuple(now[section.source] for section in answer.sections))
        for answer in active
        if not changed_sections(answer.sections, now)
    ]


def _match(snapshot: _Snapshot, wording: _Wording, similarity: float) -> VerifiedMatch:
    answer, hits = wording.leads_to
    text = sanitize(answer.answer, len(hits), [hit.url for hit in hits], [plain_text(hit.passage) for hit in hits])
    return VerifiedMatch(answer.id, wording.text, similarity, text, hits, snapshot.index)
