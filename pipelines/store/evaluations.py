"""Stores evaluations with their questions, and judgments of answers.

This module knows no metric: the caller computes the scores.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any

from pipelines.records import Usage
from pipelines.store.database.connection import Database
from pipelines.store.database.jsonb import to_jsonb


@dataclass(frozen=True, slots=True)
class EvaluatedQuestion:
    """One row of the table `evaluated_question`: the result of one example of a data set, whose id is `id`.

    `sources` are the reference. `hits` are objects with `sources` (the hit's own first), `anchors` (url#anchor),
    `title` and `score`, best first. `timings` are seconds by step. `answer` is None if only hits were requested.
    `scores` are the answer's, None for a score that could not be computed. `error` says why the question failed, None
    if it did not. `attempts` counts how often the question was asked; the store does the counting.
    """

    id: str
    question: str
    sources: Sequence[str]
    hits: Sequence[Mapping[str, Any]] = ()
    degraded: Sequence[str] = ()
    timings: Mapping[str, float] = field(default_factory=dict)
    answer: Mapping[str, Any] | None = None
    scores: Mapping[str, float | None] = field(default_factory=dict)
    error: str | None = None
    asked_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    attempts: int = 1


@dataclass(frozen=True, slots=True)
class Judgement:
    """The judgment of one answer in one dimension: a score of 1 to 5 with its reasoning, or an error.

    `hash` identifies everything that the `model` was shown. `usage` is the cost of this call, nothing if the judgment
    was `cached` in the table `judgement`.
    """

    dimension: str
    score: float | None
    reasoning: str = ""
    error: str | None = None
    usage: Usage = Usage()
    model: str = ""
    hash: str = ""
    cached: bool = False

    @property
    def judgeable(self) -> bool:
        """Whether the dimension had its reference answer or context; without it, no model was called."""
        return bool(self.hash)


class Evaluations(Database):
    """Evaluations and judgments."""

    def begin_evaluation(
        self,
        fingerprint: str,
        collection: str,
        index: int,
        revision: int,
        dataset: Mapping[str, Any],
        configuration: Mapping[str, Any],
        fresh: bool = False,
    ) -> int:
        """Return the id of the newest evaluation with this fingerprint, to continue it.

        If there is none, or with `fresh`, start a new one.
        """
        values: dict[str, Any] = {"dataset": to_jsonb(dataset), "configuration": to_jsonb(configuration)}
        values |= {"fingerprint": fingerprint, "collection": collection, "index": index, "revision": revision}
        row = None if fresh else self._one("resume_evaluation", values)
        return int((row or self._one("begin_evaluation", values) or {})["id"])

    def record_evaluated_questions(self, evaluation: int, rows: Sequence[EvaluatedQuestion]) -> None:
        """Write `rows` in one transaction; a row replaces an earlier one of the same example."""
        latest = {row.id: row for row in rows}
        if latest:
            written = [{**asdict(row), "evaluation": evaluation} for row in latest.values()]
            self._run("record_evaluated_questions", {"rows": to_jsonb(written)})

    def evaluated_questions(self, evaluation: int) -> dict[str, EvaluatedQuestion]:
        """Return the rows of an evaluation by example id, in the order they were asked."""
        rows = self._all("evaluated_questions", {"evaluation": evaluation})
        return {row["id"]: EvaluatedQuestion(**row) for row in rows}

    def finish_evaluation(self, evaluation: int, scores: Mapping[str, Any]) -> None:
        """Write the scores of an evaluation and mark it as ended."""
        self._run("finish_evaluation", {"id": evaluation, "scores": to_jsonb(scores)})

    def get_judgements(self, hashes: Sequence[str]) -> dict[str, Judgement]:
        """Return the stored judgments among `hashes` by hash, including failed ones."""
        rows = self._all("get_judgements", {"hashes": list(hashes)}) if hashes else []
        return {row["hash"]: Judgement(**row, cached=True) for row in rows}

    def save_judgements(self, judgements: Sequence[Judgement]) -> None:
        """Write `judgements` in one transaction; a failed one is replaced, a successful one stays unchanged."""
        latest = {one.hash: one for one in judgements}
        if latest:
            self._run("save_judgements", {"rows": to_jsonb(list(map(asdict, latest.values())))})
