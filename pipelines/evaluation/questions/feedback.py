"""Turns readers' feedback on answers into questions for evaluation and wrong hits for training.

Knows recorded questions with their ratings, and rows of data sets; does not know where they are stored or who rated.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pipelines.evaluation.dataset import ACCEPTED, DRAFT, Example, ReviewState, as_row, page_of, review_of
from pipelines.records import Answer, Hit
from pipelines.store import RecordedQuestion

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Feedback:
    """Liked answers as `examples`, with the sources they cite; and the hits of `disliked` answers with their questions.

    A disliked answer was made from its hits, so they did not help.
    """

    examples: tuple[Example, ...]
    disliked: tuple[tuple[str, tuple[Hit, ...]], ...]

    def wrong(self, question: str) -> tuple[Hit, ...]:
        """Return the hits that did not help with `question`, from every disliked answer to it."""
        key = question_key(question)
        return tuple(hit for asked, hits in self.disliked if asked == key for hit in hits)


def from_ratings(rows: Iterable[RecordedQuestion]) -> Feedback:
    """Return the feedback in rated questions.

    `rating` is the sum of all ratings: above 0 is liked, below 0 disliked, 0 neither. An answer that does not know, or
    that has no supported citation, is not an example, even if it was liked. A source that is liked in one answer and
    disliked in another to the same question stays an example and is not a wrong hit.
    """
    rows = list(rows)
    examples = _examples([row for row in rows if (row.rating or 0) > 0])
    right = {(question_key(example.question), source) for example in examples for source in example.sources}
    disliked = [_wrong_hits(row, right) for row in rows if (row.rating or 0) < 0]
    return Feedback(tuple(examples), tuple((question, hits) for question, hits in disliked if hits))


def from_clicks(opened: Iterable[tuple[str, Sequence[str]]], known: Iterable[Example] = ()) -> list[Example]:
    """Return an example for each question or search, with the sources that its readers opened.

    An open only shows that a reader expected the answer there, so a person has to accept it. Questions in `known`,
    whose answers were rated well, are left out.
    """
    rated = {question_key(example.question) for example in known}
    sources: dict[str, dict[str, None]] = {}
    worded: dict[str, str] = {}
    for question, shown in opened:
        key = question_key(question)
        if key and key not in rated:
            worded[key] = " ".join(question.split())
            sources.setdefault(key, {}).update(dict.fromkeys(shown))
    return [Example(worded[key], tuple(each)) for key, each in sources.items()]


def question_key(question: str) -> str:
    """Return a question normalized in case and white space."""
    return " ".join(question.lower().split())


def _examples(liked: Sequence[RecordedQuestion]) -> list[Example]:
    """Return one example per question: the sources of all its liked answers, and the newest answer as reference."""
    sources: dict[str, dict[str, None]] = {}
    newest: dict[str, RecordedQuestion] = {}
    for row in liked:
        cited = dict.fromkeys(c.source for c in row.answer.citations if c.source and c.supported) if row.answer else {}
        if row.alone.strip() and row.answer and row.answer.known and cited:
            key = question_key(row.alone)
            sources.setdefault(key, {}).update(cited)
            newest[key] = row
    return [
        Example(row.alone.strip(), tuple(sources[key]), (row.answer and row.answer.text) or None)
        for key, row in newest.items()
    ]


def _wrong_hits(row: RecordedQuestion, right: set[tuple[str, str]]) -> tuple[str, tuple[Hit, ...]]:
    key, hits = question_key(row.alone), row.answer.hits if row.answer else ()
    return key, tuple(hit for hit in hits if hit.source and (key, hit.source) not in right)


# ------------------------------------------------------------------------------------------- rows of data sets


class NoSuchRow(LookupError):
    """A data set has no row with that number."""


def add_drafts(rows: Sequence[Row], examples: Iterable[Example]) -> tuple[list[Row], int]:
    """Return `rows` plus a draft for each example whose question is new, and the number of new ones.

    An existing question is not changed, because a person may have edited it.
    """
    known = {question_key(row["question"]) for row in rows}
    new = [{**as_row(example), "review": DRAFT} for example in examples if question_key(example.question) not in known]
    return [*rows, *new], len(new)


def put_answers(rows: Sequence[Row], examples: Iterable[Example]) -> list[Row]:
    """Return the rows of a data set with the answers of `examples`, which are its accepted rows in order."""
    answers = iter(examples)
    found = [next(answers).answer if review_of(row) == ACCEPTED else None for row in rows]
    return [{**row, "answer": answer} if answer else row for row, answer in zip(rows, found, strict=True)]


def review_rows(
    rows: Sequence[Row], numbers: Iterable[int], state: ReviewState, sources: Sequence[str] = ()
) -> list[Row]:
    """Return the rows, with the rows of these numbers (from 1) set to `state`, and to other sources if any are given.

    Raises NoSuchRow, and ValueError if an accepted row names no source.
    """
    reviewed = [dict(row) for row in rows]
    for number in numbers:
        if not 1 <= number <= len(rows):
            raise NoSuchRow(f"there is no row {number}: there are {len(rows)}")
        row = reviewed[number - 1]
        if sources:
            row = reviewed[number - 1] = _with_sources(row, sources)
        if state == ACCEPTED and not (row.get("source") or row.get("sources") or row.get("answerable") is False):
            raise ValueError(f"row {number} names no source: give it with `--source URL#ANCHOR`")
        row["review"] = state
    return reviewed


def corrected_row(asked: RecordedQuestion, sources: Sequence[str], *, pair: bool) -> Row:
    """Return the row of a question that was answered wrongly; `sources` answer it, none if nothing does.

    A training pair has as `negatives` the sources that the wrong answer cited, or else was made from.
    """
    question = asked.alone.strip()
    negatives = wrong_sources(asked, sources) if pair else ()
    return {**as_row(Example(question, tuple(sources), None, negatives)), "review": ACCEPTED, "asked": asked.id}


def wrong_sources(asked: RecordedQuestion, right: Sequence[str]) -> tuple[str, ...]:
    """Return the sources that an answer cited, or else the sources of its hits, without the right ones.

    If a right source is a whole page, sections of that page don't count as wrong.
    """
    answer = asked.answer or Answer(asked.question, "")
    cited = [citation.source for citation in answer.citations if citation.source]
    wrong = cited or [hit.source for hit in answer.hits if hit.source]
    never = {*right, *(source for source in wrong if page_of(source) in right)}
    return tuple(source for source in dict.fromkeys(wrong) if source not in never)


def put_row(rows: Sequence[Row], row: Row) -> list[Row]:
    """Return the rows with this one added; it replaces a row with the same question."""
    keys = [question_key(one["question"]) for one in (*rows, row)]
    place = keys.index(keys[-1])
    return [*rows[:place], row, *rows[place + 1 :]]


def _with_sources(row: Mapping[str, Any], sources: Sequence[str]) -> Row:
    """Return a row with these sources, and without its reference answer, which was based on the old ones."""
    kept = {name: value for name, value in row.items() if name not in ("source", "sources", "answerable", "answer")}
    return {**as_row(Example(row["question"], tuple(sources))), **kept}
