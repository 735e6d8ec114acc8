"""Writes verified answers and reviews them: which ones are given, and which need a person's review.

This module uses the store; it knows nothing about the command line.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from pipelines.answering.sanitizing.stream import sanitize
from pipelines.answering.verified.sections import changed_sections, find_sections, pin
from pipelines.answering.verified.similarity import wording_key
from pipelines.answering.writing.stages.text import numbers_in
from pipelines.page.stored import plain_text
from pipelines.records import Hit
from pipelines.store import NoLiveIndex, PinnedSection, Store, VerifiedAnswer
from pipelines.text.counts import counted

AnswerState = Literal["given", "review", "retired"]
GIVEN: AnswerState = "given"
REVIEW: AnswerState = "review"
RETIRED: AnswerState = "retired"

MOST_NAMED = 8  # sections of a page that an error lists


class NoSuchSection(LookupError):
    """The live index has no such section; the message lists the sections of its page."""

    def __init__(self, source: str, collection: str, sections: Sequence[str]) -> None:
        named = ", ".join(sections[:MOST_NAMED])
        more = len(sections) - MOST_NAMED
        others = f"the page has: {named}{f' and {more} more' if more > 0 else ''}" if named else "nor such a page"
        super().__init__(f"the index of {collection!r} has no section {source}; {others}")


class UnusableAnswer(ValueError):
    """A verified answer can't be given as written."""


@dataclass(frozen=True, slots=True)
class SectionChange:
    """A section of an answer that has changed; `now` is its text, or None if the section is gone."""

    source: str
    before: str
    now: str | None


@dataclass(frozen=True, slots=True)
class ReviewedAnswer:
    """A verified answer with its state; in the state `review`, `changes` are the reason why it isn't given."""

    answer: VerifiedAnswer
    state: AnswerState
    changes: tuple[SectionChange, ...] = ()


def review_answers(store: Store, collection: str) -> list[ReviewedAnswer]:
    """Return the verified answers of a collection with their states; without a live index, none is given."""
    answers = store.verified_answers(collection)
    sources = {section.source for answer in answers for section in answer.sections}
    try:
        now = find_sections(store, store.live_index(collection), sources) if sources else {}
    except NoLiveIndex:
        now = {}
    return [_review(answer, now) for answer in answers]


def _review(answer: VerifiedAnswer, now: dict[str, Hit]) -> ReviewedAnswer:
    if answer.retired:
        return ReviewedAnswer(answer, RETIRED)
    changed = set(changed_sections(answer.sections, now))
    changes = tuple(
        SectionChange(one.source, one.text, plain_text(now[one.source].passage) if one.source in now else None)
        for one in answer.sections
        if one.source in changed
    )
    return ReviewedAnswer(answer, REVIEW if changes else GIVEN, changes)


def write_answer(
    store: Store, collection: str, questions: Sequence[str], text: str, sources: Sequence[str], id: int = 0
) -> VerifiedAnswer:
    """Return an answer based on `sources` as they are in the live index now; it isn't stored yet.

    `id` is the id of the stored answer that it replaces. Raises UnusableAnswer, NoSuchSection and NoLiveIndex.
    """
    wordings = tuple({wording_key(question): question.strip() for question in questions if question.strip()}.values())
    if not wordings:
        raise UnusableAnswer("no question is named: give one with `--question`")
    _check_text(text, sources)
    _check_new(store, collection, wordings, sources, id)
    return VerifiedAnswer(collection, wordings, text.strip(), tuple(pin_sections(store, collection, sources)), id)


def pin_sections(store: Store, collection: str, sources: Sequence[str]) -> list[PinnedSection]:
    """Return records of the sections as they are in the live index. Raises NoSuchSection and NoLiveIndex."""
    index = store.live_index(collection)
    wanted = list(dict.fromkeys(source.strip().removesuffix("#") for source in sources))
    found = find_sections(store, index, wanted)
    for source in wanted:
        if source not in found:
            chunks = store.chunks_of_pages(index.id, {source.partition("#")[0]})
            raise NoSuchSection(source, collection, list(dict.fromkeys(chunk.source for chunk in chunks)))
    return [pin(source, found[source]) for source in wanted]


def given_text(answer: VerifiedAnswer) -> str:
    """Return the text that readers get: a person's answer is sanitized like a model's."""
    passages = [section.text for section in answer.sections]
    return _sanitized(answer.answer, [section.source for section in answer.sections], passages)


def _check_text(text: str, sources: Sequence[str]) -> None:
    if not sources:
        raise UnusableAnswer("no section is named that the answer rests on: give it with `--source URL#ANCHOR`")
    if not _sanitized(text, sources).strip():
        raise UnusableAnswer("the answer is empty, or none of it may be shown to a reader")
    if beyond := [n for n in numbers_in(text) if n > len(sources)]:
        raise UnusableAnswer(
            f"the answer cites [{beyond[0]}] and {counted(len(sources), 'section is', 'sections are')} named: [1] "
            "is the first"
        )


def _check_new(store: Store, collection: str, wordings: Sequence[str], sources: Sequence[str], id: int) -> None:
    """Raise UnusableAnswer if a wording already has an answer, unless for another version."""
    keys = {wording_key(wording) for wording in wordings}
    for other in store.verified_answers(collection):
        same = [wording for wording in other.questions if wording_key(wording) in keys]
        if not same or other.id == id or other.retired:
            continue
        if not _differ_in_version(store, collection, sources, [section.source for section in other.sections]):
            raise UnusableAnswer(
                f"{same[0]!r} has the verified answer {other.id}: `raydex answers accept {other.id} --file FILE` "
                f"replaces its text, `raydex answers retire {other.id}` takes it back"
            )


def _differ_in_version(store: Store, collection: str, sources: Sequence[str], others: Sequence[str]) -> bool:
    now = find_sections(store, store.live_index(collection), [*sources, *others])
    these, those = ({now[source].version for source in named if source in now} for named in (sources, others))
    return bool(these and those) and these.isdisjoint(those)


def _sanitized(text: str, sources: Sequence[str], passages: Sequence[str] = ()) -> str:
    return sanitize(text, len(sources), [source.partition("#")[0] for source in sources], passages)
