"""Finds the verified answer to a question: written by a person, with unchanged sections.

The answers of a collection are read once, and again when they or the index change, so a question to a collection
without verified answers costs nothing. This module knows nothing about the engine's steps or HTTP.
"""

import asyncio
import time
from collections.abc import Iterable
from dataclasses import dataclass

from pipelines.answering.retrieval.live import choose_collection
from pipelines.answering.sanitizing.stream import sanitize
from pipelines.answering.verified.sections import changed_sections, find_sections
from pipelines.answering.verified.similarity import SIMILAR, Meaning
from pipelines.answering.verified.wordings import KnownWording, KnownWordings
from pipelines.answering.writing.agents import CollectionEmbed
from pipelines.page.stored import plain_text
from pipelines.records import Filters, Hit, Index
from pipelines.store import Store
from pipelines.store.collections.verified import VerifiedAnswer

# A new answer takes effect after at most this many seconds; a match is checked again right before it is given.
CHECK_S = 1.0


@dataclass(frozen=True, slots=True)
class VerifiedMatch:
    """The verified answer to a question: its sanitized text, in which `[n]` cites the n-th of `hits`, its sections.

    `question` is the wording that means the same, and `similarity` is the cosine of the two questions.
    """

    id: int
    question: str
    similarity: float
    text: str
    hits: tuple[Hit, ...]
    index: Index


_Snapshot = KnownWordings[VerifiedAnswer]


class VerifiedFinder:
    """Finds the verified answers of all collections; `embed` embeds questions with a collection's model.

    `collection` is the default for questions that name none ("": the default or only one). A question gets the answer
    to a wording if the cosine of their vectors is at least `similarity`. The store is checked for changes every
    `check_s` seconds.
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
        """Return the verified answer to a question, or None. Raises the errors of the store and the embedder.

        Its sections must pass `filters`, and none may have a `version` other than the reader's page.
        """
        name = collection or self._collection
        snapshot = await self._snapshot(name, self._check_s)
        match = await self._match(snapshot, question, filters, version)
        if match is None:
            return None
        now = await self._snapshot(name, 0.0)
        return match if now is snapshot else await self._match(now, question, filters, version)

    async def _snapshot(self, name: str, most_age_s: float) -> _Snapshot:
        """Return the snapshot of a collection, read or checked at most `most_age_s` seconds ago."""
        checked, snapshot = self._snapshots.get(name, (0.0, None))
        if snapshot is not None and time.monotonic() - checked < most_age_s:
            return snapshot
        snapshot = await asyncio.to_thread(self._read, name, snapshot)
        self._snapshots[name] = time.monotonic(), snapshot
        return snapshot

    def _read(self, name: str, before: _Snapshot | None) -> _Snapshot:
        """Return the newest snapshot, or the one `before` if nothing has changed."""
        index = self._store.live_index(name or choose_collection(self._store.collections()))
        mark = self._store.verified_mark(index.collection)
        if before and before.is_of(index, mark):
            return before
        answers = self._store.verified_answers(index.collection) if mark.answers else ()
        given = given_answers(self._store, index, answers)
        wordings = [
            KnownWording(text, Meaning.of(text), hits, answer) for answer, hits in given for text in answer.questions
        ]
        same_model = before is not None and before.index.settings == index.settings
        return KnownWordings(index, mark, tuple(wordings), dict(before.vectors) if before and same_model else {})

    async def _match(
        self, snapshot: _Snapshot, question: str, filters: Filters, version: str | None
    ) -> VerifiedMatch | None:
        found = await snapshot.find_closest(question, self._embed, self._similarity, filters, version)
        if found is None:
            return None
        wording, similarity = found
        answer, hits = wording.leads_to, wording.sections
        text = sanitize(answer.answer, len(hits), [hit.url for hit in hits], [plain_text(hit.passage) for hit in hits])
        return VerifiedMatch(answer.id, wording.text, similarity, text, hits, snapshot.index)


def given_answers(
    store: Store, index: Index, answers: Iterable[VerifiedAnswer]
) -> list[tuple[VerifiedAnswer, tuple[Hit, ...]]]:
    """Return the answers that may be given, each with its sections: not retired, and no section changed."""
    active = [answer for answer in answers if not answer.retired]
    sources = {section.source for answer in active for section in answer.sections}
    now = find_sections(store, index, sources) if sources else {}
    return [
        (answer, tuple(now[section.source] for section in answer.sections))
        for answer in active
        if not changed_sections(answer.sections, now)
    ]
