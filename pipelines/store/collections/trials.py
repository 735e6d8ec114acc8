"""Stores trials of language models: how well one works for a collection, and the recommendation."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any

from pipelines.records import Form
from pipelines.store.database.connection import Database, statement
from pipelines.store.database.jsonb import to_jsonb


@dataclass(frozen=True, slots=True)
class ModelTrial:
    """The trial of `model`, served by `endpoint`, on a collection; only the last one counts."""

    collection: str
    endpoint: str
    model: str
    form: Form
    scores: Mapping[str, Any]
    tried: datetime = field(default_factory=lambda: datetime.now(UTC))


class ModelTrials(Database):
    """Trials of language models."""

    def model_trials(self) -> list[ModelTrial]:
        """Return the last trial of each model on each collection."""
        return [ModelTrial(**row) for row in self._all("model_trials")]

    def model_trial(self, collection: str, endpoint: str, model: str) -> ModelTrial | None:
        """Return the last trial of a model on a collection, or on a copy's original; None if there is none."""
        values = {"collection": collection, "endpoint": endpoint, "model": model}
        row = self._one("model_trial", values, original=statement("original"))
        return ModelTrial(**row) if row else None

    def record_model_trial(self, trial: ModelTrial) -> None:
        """Store a trial, replacing the one before it."""
        self._run("record_model_trial", asdict(trial) | {"scores": to_jsonb(trial.scores)})
