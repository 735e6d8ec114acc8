"""Questions with their answers, conversations and feedback.

Knows no HTTP and nothing about how an answer is made.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any

from pipelines.store.connection import Database, to_jsonb
from pipelines.text.cleaning import clean_for_storage

RATINGS = (-1, 0, 1)
# Why an answer was rated down.
REASONS = ("wrong", "incomplete", "outdated", "not_asked")
DAY_S = 86_400
# What pipelines.insights.masking writes for what it masks.
MASK = re.compile(r"\[(?:e-mail|address|phone|user|login|secret|key|private key)\]")


class BadRating(ValueError):
    """A rating is not one of -1, 0 and 1, or its reason is none of REASONS."""


@dataclass(frozen=True, slots=True)
class QuestionRow:
    """One row of the table `question`.

    `citations` are objects with n, source, chunk_id, text_hash, title, headings, snippet, scores, supported, support,
    by; `hits` with source, chunk_id, text_hash, title, headings, snippet, score, score_kind, ranks, scores; `claims`
    has total, cited, supported. `error` is why the question failed, None if it was answered; `confidence` and `claims`
    are None for one that failed. `page` is what the reader had open, `language` is BCP 47, "" if not certain.
    """

    id: str
    question: str
    collection: str = ""
    conversation: str = ""
    asked_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    standalone: str = ""
    mode: str = ""
    agent: str = ""
    why: str = ""
    answer: str = ""
    known: bool = True
    citations: Sequence[Mapping[str, Any]] = ()
    hits: Sequence[Mapping[str, Any]] = ()
    queries: Sequence[str] = ()
    degraded: Sequence[str] = ()
    prompt_tokens: int = 0
    completion_tokens: int = 0
    calls: int = 0
    cost: float = 0.0
    timings: Mapping[str, float] = field(default_factory=dict)
    index: int | None = None
    revision: int | None = None
    key_name: str = ""
    error: str | None = None
    confidence: str | None = None
    claims: Mapping[str, int] | None = None
    notes: Sequence[str] = ()
    finish_reason: str = "stop"
    channel: str = "api"
    page: str = ""
    language: str = ""


@dataclass(frozen=True, slots=True)
class Turn:
    """A past question of a conversation, its answer and the ids of the chunks that the answer cited."""

    question: str
    answer: str
    cited: tuple[str, ...]


class Questions(Database):
    """Questions and feedback."""

    def record_questions(self, rows: Sequence[QuestionRow]) -> None:
        """Write `rows` in one transaction; a row whose id exists stays as it is."""
        if rows:
            self._run("record_questions", {"rows": to_jsonb([asdict(row) for row in rows])})

    def question(self, id: str) -> dict[str, Any] | None:
        """Return the row of a question: the fields of QuestionRow, shared_at. None if it does not exist (yet)."""
        row = self._one("question", {"id": clean_for_storage(id)})
        return dict(row) if row else None

    def named_question(self, name: str, collection: str | None = None) -> dict[str, Any] | None:
        """Return the row of the question with this id, or with these words; None without one.

        Case and blanks make no difference; what insights mask ("[e-mail]"), or cut off ("…" at the end), is any text.
        Of several askings it is one that did not fail, of `collection`, the one rated worst, then the newest.
        """
        name = clean_for_storage(name)
        row = self._one("named_question", {"name": name, "words": _as_pattern(name), "collection": collection})
        return dict(row) if row else None

    def conversation(
        self, id: str, most: int = 5, key_name: str = "", among: Sequence[str] | None = None
    ) -> list[Turn]:
        """Return the last `most` answered turns of a conversation, newest last; `among` are the ids to choose from.

        Only turns asked with the key `key_name` ("": without a key): guessing an id shows nobody else's turns.
        """
        ids = None if among is None else [clean_for_storage(id) for id in among]
        place = {"conversation": clean_for_storage(id), "key_name": key_name, "among": ids}
        rows = self._all("conversation", {**place, "most": most})
        return [Turn(row["question"], row["answer"], tuple(row["cited"])) for row in reversed(rows)]

    def readable_answer(self, id: str, key_name: str | None, all: bool = False) -> dict[str, Any] | None:
        """Return the row of an answer, as `question` does, with `rating`, the one that `key_name` gave it, if any.

        Only one that was asked with the key `key_name` (None: by nobody who can be known again) or is shared, or any
        one (`all`); None for any other, and for a question that failed.
        """
        row = self._one("readable_answer", {"id": clean_for_storage(id), "key_name": key_name, "all": all})
        return dict(row) if row else None

    def share_answer(self, id: str, key_name: str | None, shared: bool = True, all: bool = False) -> bool:
        """Let whoever may ask read an answer, or no longer; return whether it is one that `key_name` asked (or `all`).

        One that is shared already stays shared since then.
        """
        values = {"id": clean_for_storage(id), "key_name": key_name, "shared": shared, "all": all}
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
        row = self._one(
            "record_feedback",
            {
                "question_id": clean_for_storage(question_id),
                "rating": rating,
                "comment": clean_for_storage(comment),
                "key_name": key_name,
                "reasons": list(dict.fromkeys(reasons)),
            },
        )
        return int((row or {})["id"])

    def feedback(self, question_id: str) -> list[dict[str, Any]]:
        """Return all feedback on an answer (rating, comment, reasons, created, key_name), oldest first."""
        return [dict(row) for row in self._all("feedback_of", {"question_id": clean_for_storage(question_id)})]

    def rated_questions(self, collection: str) -> list[dict[str, Any]]:
        """Return the answered questions to a collection that were rated, oldest first.

        Each has question, standalone, answer, known, citations, hits, asked_at and `rating`, the sum of its ratings.
        """
        return [dict(row) for row in self._all("rated_questions", {"collection": clean_for_storage(collection)})]

    def asked_questions(self, collection: str) -> list[str]:
        """Return the distinct questions that were asked about a collection, as they read alone, oldest first."""
        rows = self._all("asked_questions", {"collection": clean_for_storage(collection)})
        return [row["question"] for row in rows]

    def recent_questions(
        self, collection: str | None = None, before: datetime | None = None, unknown: bool = False, most: int = 100
    ) -> list[dict[str, Any]]:
        """Return the last `most` questions, newest first, with the sum of their ratings, their reasons and comments.

        Only those to `collection`, asked `before`, and (`unknown`) without an answer from the sources, if given.
        """
        values = {"collection": collection, "before": before, "unknown": unknown, "most": most}
        return [dict(row) for row in self._all("recent_questions", values)]

    def forget_questions(self, days: float) -> int:
        """Delete questions asked more than `days` ago; return how many.

        Their feedback goes with them: a comment is as personal as the question and means nothing without it. Feedback
        whose question never arrived is deleted by its own age.
        """
        row = self._one("forget_questions", {"seconds": days * DAY_S})
        return int((row or {})["forgotten"])


def _as_pattern(words: str) -> str:
    """Return the pattern of LIKE for a question as insights show it: masks, and "…" at the end, are any text."""
    words = re.sub(r"([\\%_])", r"\\\1", " ".join(words.split()))
    return re.sub(r"…$", "%", MASK.sub("%", words))
