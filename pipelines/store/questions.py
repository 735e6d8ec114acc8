"""Stores questions with their answers, conversations and feedback.

This module knows no HTTP, and nothing about how an answer is made.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from pipelines.records import Answer
from pipelines.store.database.connection import Database, statement
from pipelines.store.database.jsonb import to_jsonb
from pipelines.text.cleaning import clean_for_storage

RATINGS = (-1, 0, 1)
# Reasons for rating an answer down.
REASONS = ("wrong", "incomplete", "outdated", "not_asked")
DAY_S = 86_400
# The fields of a question that are stored unchanged, a column each.
WRITTEN = (
    "id", "question", "collection", "conversation", "asked_at", "mode", "key_name", "error", "channel", "page",
    "language",
)  # fmt: skip
# The placeholders that pipelines.insights.masking writes.
MASK = re.compile(r"\[(?:e-mail|address|phone|user|login|secret|key|private key)\]")


class BadRating(ValueError):
    """A rating is not one of -1, 0 and 1, or its reason is not in REASONS."""


class NoSuchQuestion(LookupError):
    """No recorded question has that id or wording."""

    def __init__(self, name: str) -> None:
        hint = "`raydex insights` lists the questions"
        super().__init__(f"no recorded question has the id or wording {name!r}: {hint}")


@dataclass(frozen=True, slots=True)
class RecordedQuestion:
    """A recorded question with its `answer`, or with the `error` that prevented one.

    `answer` contains the first words of its hits. `page` is the page that the reader had open. `language` is BCP 47, ""
    if not certain. `shared_at` is when others were first allowed to read it. `rating` is filled in by some reads. The
    last two fields are not written.
    """

    id: str
    question: str
    answer: Answer | None = None
    collection: str = ""
    conversation: str = ""
    asked_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    mode: str = ""
    key_name: str = ""
    error: str | None = None
    channel: str = "api"
    page: str = ""
    language: str = ""
    shared_at: datetime | None = None
    rating: int | None = None

    @property
    def standalone(self) -> str:
        """The question rewritten to include its conversation; "" if that was not needed."""
        first = self.answer.queries[0] if self.answer and self.answer.queries else self.question
        return "" if first == self.question else first

    @property
    def alone(self) -> str:
        """The question in a form that makes sense without its conversation."""
        return self.standalone or self.question


@dataclass(frozen=True, slots=True)
class Turn:
    """A past question of a conversation, its answer and the ids of the chunks that the answer cited."""

    question: str
    answer: str
    cited: tuple[str, ...]


class Questions(Database):
    """Questions and feedback."""

    def record_questions(self, questions: Sequence[RecordedQuestion]) -> None:
        """Write `questions` in one transaction; an existing id stays unchanged."""
        if questions:
            self._run("record_questions", {"rows": to_jsonb(list(map(_to_row, questions)))})

    def question(self, id: str) -> RecordedQuestion | None:
        """Return a question, None if it does not exist (yet)."""
        row = self._one("question", {"id": id})
        return _from_row(row) if row else None

    def named_question(self, name: str, collection: str | None = None) -> RecordedQuestion:
        """Return the question with this id or wording. Raises NoSuchQuestion.

        Case and blanks make no difference. Text that insights mask ("[e-mail]") or cut off ("…" at the end) matches
        anything. If the question was asked several times, one that did not fail is preferred, then one to `collection`,
        then the worst-rated, then the newest.
        """
        words = _as_pattern(clean_for_storage(name))
        row = self._one("named_question", {"name": name, "words": words, "collection": collection})
        if row is None:
            raise NoSuchQuestion(name)
        return _from_row(row)

    def conversation(
        self, id: str, most: int = 5, key_name: str = "", among: Sequence[str] | None = None
    ) -> list[Turn]:
        """Return the last `most` answered turns of a conversation, newest last; `among` are the ids to choose from.

        Only turns asked with the key `key_name` are returned ("": without a key), so guessing an id shows nobody else's
        turns.
        """
        ids = None if among is None else list(among)
        values = {"conversation": id, "key_name": key_name, "among": ids, "most": most}
        rows = self._all("conversation", values)
        return [Turn(row["question"], row["answer"], tuple(row["cited"] or ())) for row in reversed(rows)]

    def readable_answer(self, id: str, key_name: str | None, all: bool = False) -> RecordedQuestion | None:
        """Return an answered question, with the `rating` that `key_name` gave it, if any.

        The question must have been asked with the key `key_name` (None: the asker can't be recognized) or be shared,
        unless `all` is true. Otherwise, and for a question that failed, return None.
        """
        row = self._one("readable_answer", {"id": id, "key_name": key_name, "all": all})
        return _from_row(row) if row else None

    def share_answer(self, id: str, key_name: str | None, shared: bool = True, all: bool = False) -> bool:
        """Share an answer with everyone who may ask, or stop sharing; return whether `key_name` asked it (or `all`).

        An answer that is already shared keeps its date.
        """
        values = {"id": id, "key_name": key_name, "shared": shared, "all": all}
        return self._run("share_answer", values) > 0

    def record_feedback(
        self, question_id: str, rating: int, comment: str = "", key_name: str = "", reasons: Sequence[str] = ()
    ) -> int:
        """Write a key holder's feedback on an answer, replacing their earlier one; return its id.

        The question's row may arrive later. Raises BadRating.
        """
        if rating not in RATINGS:
            raise BadRating(f"the rating is {rating!r}: it must be -1, 0 or 1")
        if unknown := [reason for reason in reasons if reason not in REASONS]:
            raise BadRating(f"the reason is {unknown[0]!r}: it must be one of {', '.join(REASONS)}")
        values = {"question_id": question_id, "rating": rating, "comment": comment, "key_name": key_name}
        row = self._one("record_feedback", {**values, "reasons": list(dict.fromkeys(reasons))})
        return int((row or {})["id"])

    def feedback(self, question_id: str) -> list[dict[str, Any]]:
        """Return all feedback on an answer (rating, comment, reasons, created, key_name), oldest first."""
        return [dict(row) for row in self._all("feedback_of", {"question_id": question_id})]

    def rated_questions(self, collection: str) -> list[RecordedQuestion]:
        """Return a collection's answered questions that were rated, oldest first, with the sum of their ratings."""
        return [_from_row(row) for row in self._all("rated_questions", {"collection": collection})]

    def recent_questions(
        self, collection: str | None = None, before: datetime | None = None, unknown: bool = False, most: int = 100
    ) -> list[dict[str, Any]]:
        """Return the last `most` questions, newest first, with the sum of their ratings, their reasons and comments.

        If given, only questions to `collection` or asked `before` are returned; with `unknown`, only questions that the
        sources did not answer.
        """
        values = {"collection": collection, "before": before, "unknown": unknown, "most": most}
        return [dict(row) for row in self._all("recent_questions", values, answer=statement("answer_fields"))]

    def forget_questions(self, days: float, collection: str | None = None) -> int:
        """Delete questions asked more than `days` ago, of `collection` if given; return how many.

        Their feedback is deleted too: a comment is as personal as the question and means nothing without it. Feedback
        whose question never arrived is deleted by its own age.
        """
        values = {"seconds": days * DAY_S, "names": collection and [collection]}
        row = self._one("forget_questions", values, asked=statement("asked_of_collections"))
        return int((row or {})["forgotten"])


def _to_row(question: RecordedQuestion) -> dict[str, Any]:
    """Return the columns of a question: its fields, and the values of its answer that queries search by."""
    answer = question.answer
    columns = {name: getattr(question, name) for name in (*WRITTEN, "standalone")}
    if answer is None:
        return {**columns, "answer": None, "known": False, "cited": []}
    sought = {"known": answer.known, "cited": list(answer.cited), "index": answer.index}
    return {**columns, **sought, "answer": answer.to_dict()}


def _from_row(row: Mapping[str, Any]) -> RecordedQuestion:
    """Return a question as it was recorded."""
    answer = row["answer"]
    if answer is not None:
        answer = Answer.from_dict({**answer, "id": row["id"], "question": row["question"]})
    columns = {name: row[name] for name in (*WRITTEN, "shared_at", "rating") if row.get(name) is not None}
    return RecordedQuestion(**columns, answer=answer)


def _as_pattern(words: str) -> str:
    """Return the LIKE pattern for a question as insights show it; masks, and "…" at the end, match anything."""
    words = re.sub(r"([\\%_])", r"\\\1", " ".join(words.split()))
    return re.sub(r"…$", "%", MASK.sub("%", words))
