"""What was measured: evaluations with the rows of their questions, and what judges said of answers.

Knows no metric: scores are what the caller gives.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any

from psycopg.types.json import Jsonb

from pipelines.store.connection import Database, storable


@dataclass(frozen=True, slots=True)
class EvaluatedQuestion:
    """One row of the table `evaluated_question`: what came back for an example of a data set, whose id is `id`.

    `sources` are the reference; `hits` are objects with `sources` (its own first), `anchors` (url#anchor), `title` and
    `score`, best first; `timings` are seconds by step. `answer` is None where only hits were asked for; `scores` are
    the answer's, None where one could not be had. `error` is why nothing came back, None where something did.
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


@dataclass(frozen=True, slots=True)
class JudgementRow:
    """What a judge (`model`) said about one `dimension` of an answer; `hash` names all that it was shown.

    A failed one has an `error` and no score.
    """

    hash: str
    dimension: str
    model: str
    score: float | None
    reasoning: str = ""
    error: str | None = None
    created: datetime | None = None


class Evaluations(Database):
    """Evaluations and judgements."""

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
        """The id of the newest evaluation of this fingerprint, to go on with; of a new one if `fresh` or none."""
        named: dict[str, Any] = {
            "fingerprint": fingerprint,
            "collection": collection,
            "index": index,
            "revision": revision,
            "dataset": Jsonb(storable(dataset)),
            "configuration": Jsonb(storable(configuration)),
        }
        row = None if fresh else self._one("resume_evaluation", named)
        return int((row or self._one("begin_evaluation", named) or {})["id"])

    def record_evaluated_questions(self, evaluation: int, rows: Sequence[EvaluatedQuestion]) -> None:
        """Write `rows` in one transaction; a row replaces an earlier one of the same example."""
        latest = {row.id: row for row in rows}
        if latest:
            written = [
                storable({**asdict(row), "evaluation": evaluation, "asked_at": row.asked_at.isoformat()})
                for row in latest.values()
            ]
            self._run("record_evaluated_questions", {"rows": Jsonb(written)})

    def evaluated_questions(self, evaluation: int) -> dict[str, EvaluatedQuestion]:
        """The rows of an evaluation by the ids of their examples, in the order they were asked."""
        rows = self._all("evaluated_questions", {"evaluation": evaluation})
        return {row["id"]: EvaluatedQuestion(**row) for row in rows}

    def finish_evaluation(self, evaluation: int, scores: Mapping[str, Any]) -> None:
        """Write what the evaluation came to; it has ended."""
        self._run("finish_evaluation", {"id": evaluation, "scores": Jsonb(storable(scores))})

    def evaluation(self, id: int) -> dict[str, Any] | None:
        """The row of an evaluation: fingerprint, collection, index, revision, dataset, configuration, scores, times.

        `scores` and `ended` are None as long as it has not ended.
        """
        row = self._one("evaluation", {"id": id})
        return dict(row) if row else None

    def evaluations(self, collection: str | None = None) -> list[dict[str, Any]]:
        """The rows of all evaluations (of one collection), newest first."""
        return [dict(row) for row in self._all("evaluations", {"collection": collection})]

    def get_judgements(self, hashes: Sequence[str]) -> dict[str, JudgementRow]:
        """The stored judgements among `hashes`, by hash; failed ones too."""
        rows = self._all("get_judgements", {"hashes": list(hashes)}) if hashes else []
        return {row["hash"]: JudgementRow(**row) for row in rows}

    def save_judgements(self, rows: Sequence[JudgementRow]) -> None:
        """Write `rows` in one transaction; one that succeeded stays as it is, a failed one is replaced."""
        latest = {row.hash: row for row in rows}
        if latest:
            written = [storable({**asdict(row), "created": None}) for row in latest.values()]
            self._run("save_judgements", {"rows": Jsonb(written)})
