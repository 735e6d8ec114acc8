"""Stores answers written by a person, and the sections that each relies on.

This module knows no question and no index, and does not check whether a section is still the same.
"""

import json
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any

from pydantic import TypeAdapter

from pipelines.store.database.connection import Connection, Database, statement
from pipelines.store.database.jsonb import to_jsonb
from pipelines.text.cleaning import clean_parameters


class NoSuchAnswer(LookupError):
    """There is no verified answer with that number."""

    def __init__(self, id: int) -> None:
        super().__init__(f"there is no verified answer {id}: `raydex answers list` lists them all")


@dataclass(frozen=True, slots=True)
class PinnedSection:
    """A section as it was when a person relied on it; `text_hash` shows whether it has changed."""

    source: str
    text_hash: str
    text: str


@dataclass(frozen=True, slots=True)
class VerifiedAnswer:
    """An answer that a person wrote to `questions`, which are wordings of one question.

    `answer` is Markdown in which `[n]` is the n-th of `sections`. A retired answer is kept but not given to readers.
    """

    collection: str
    questions: tuple[str, ...]
    answer: str
    sections: tuple[PinnedSection, ...]
    id: int = 0
    retired: bool = False
    written: datetime = field(default_factory=lambda: datetime.now(UTC))
    changed: datetime = field(default_factory=lambda: datetime.now(UTC))


@dataclass(frozen=True, slots=True)
class VerifiedMark:
    """How many verified answers a collection has, and when one last changed: equal marks mean equal answers."""

    answers: int = 0
    changed: datetime | None = None


_ANSWERS = TypeAdapter(list[VerifiedAnswer])


class VerifiedAnswers(Database):
    """Verified answers."""

    def verified_answers(self, collection: str) -> list[VerifiedAnswer]:
        """Return the verified answers of a collection, including retired ones; a copy has its original's."""
        rows = self._all("verified_answers", {"collection": collection}, original=statement("original"))
        return _ANSWERS.validate_python(rows)

    def verified_mark(self, collection: str) -> VerifiedMark:
        """Return a mark that changes when a verified answer of a collection does."""
        row = self._one("verified_mark", {"collection": collection}, original=statement("original")) or {}
        return VerifiedMark(row["answers"], row["changed"])

    def verified_answer(self, id: int) -> VerifiedAnswer:
        """Return one verified answer. Raises NoSuchAnswer."""
        row = self._one("verified_answer", {"id": id})
        if row is None:
            raise NoSuchAnswer(id)
        return _ANSWERS.validate_python([row])[0]

    def add_verified_answer(self, answer: VerifiedAnswer) -> int:
        """Store a new verified answer; return its number."""
        return int((self._one("add_verified_answer", _values(answer)) or {})["id"])

    def accept_verified_answer(self, answer: VerifiedAnswer) -> None:
        """Replace the questions, text and sections of the answer with this id, and give it to readers from now on.

        Raises NoSuchAnswer.
        """
        if not self._run("accept_verified_answer", _values(answer)):
            raise NoSuchAnswer(answer.id)

    def retire_verified_answer(self, id: int) -> None:
        """Stop giving an answer to readers. Raises NoSuchAnswer."""
        if not self._run("retire_verified_answer", {"id": id}):
            raise NoSuchAnswer(id)


def dump_answers(connection: Connection, collection: str) -> str:
    """Return the verified answers of a collection as JSON."""
    rows = connection.execute(statement("dump_verified_answers"), {"collection": collection}).fetchall()
    return json.dumps([{**row, "written": row["written"].isoformat()} for row in rows])


def restore_answers(connection: Connection, collection: str, dumped: bytes) -> None:
    """Add the answers written by `dump_answers`, except answers to questions that already have one.

    Raises pydantic's ValidationError for anything else.
    """
    rows = [{**row, "collection": collection} for row in TypeAdapter(list[dict[str, Any]]).validate_json(dumped)]
    for answer in _ANSWERS.validate_python(rows):
        connection.execute(statement("restore_verified_answer"), clean_parameters(_values(answer)))


def _values(answer: VerifiedAnswer) -> dict[str, Any]:
    values = asdict(answer)
    return values | {"sections": to_jsonb(values["sections"])}
