"""Trains a model: `train(kind, data, output)` learns, judges, and publishes the model with its card.

Knows no kind of model: each is a `ModelKind` in a file of its own. What stands between its steps is here: the
folder that is whole or not there, the card, the verdict and who overrules it.
"""

import contextlib
import shutil
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Generic, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, model_validator

from pipelines.answering.factory import make_retriever
from pipelines.answering.settings import AnswerSettings
from pipelines.files.atomic_files import replace_folder
from pipelines.files.model_cards import CARD_FILE, VERSION, write_card
from pipelines.records import digest
from pipelines.store import Store
from pipelines.text.progress import Progress, silent
from pipelines.training.mining import IndexedCollection


class TrainingPlan(BaseModel):
    """The settings of a training; a value that can't be used is a ValidationError.

    A field with a description is a flag of `raydex train`.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    seed: int = Field(0, ge=0, description="of everything that is drawn by chance")


class RerankingPlan(TrainingPlan):
    """The settings of a gate that compares the first `k` of `depth` hits before and after reranking."""

    depth: int = Field(30, ge=1, le=200, description="hits that are reranked when judging")
    k: int = Field(9, ge=1, description="the gate compares so many hits")

    @model_validator(mode="after")
    def _check_depth(self) -> Self:
        if self.k > self.depth:
            raise ValueError(f"k is {self.k} and depth {self.depth}: k must not be above depth")
        return self


Plan = TypeVar("Plan", bound=TrainingPlan)
Data = TypeVar("Data")
Model = TypeVar("Model")


class NotFree(ValueError):
    """The output folder holds something other than a trained model."""


@dataclass(frozen=True, slots=True)
class TrainingOrder:
    """What a training reads: the files of questions, and the collection whose index it uses; a kind takes its part."""

    dataset: Path
    collection: str | None = None
    check: Path | None = None
    corrections: Path | None = None
    open_store: Callable[[], AbstractContextManager[Store]] | None = None
    settings: AnswerSettings = field(default_factory=AnswerSettings)
    progress: Progress = silent

    @contextlib.contextmanager
    def open_collection(self) -> Iterator[IndexedCollection]:
        """Yield the collection."""
        if self.open_store is None:
            raise ValueError("this kind of model reads an index: name the store")
        with self.open_store() as store, contextlib.closing(make_retriever(self.settings, store)) as retriever:
            yield IndexedCollection(store, retriever, self.settings, self.collection)


def check_free(output: Path) -> None:
    """Raise NotFree unless `output` is new, empty, or a trained model, which is replaced."""
    if output.exists() and not (output / CARD_FILE).is_file() and (not output.is_dir() or any(output.iterdir())):
        raise NotFree(f"{output} holds something else: name a new folder, or the folder of a trained model")


class Workplace:
    """The hidden folder beside `output` where a model is made until it is whole; `say` reports how far it is.

    Raises NotFree.
    """

    def __init__(self, output: Path, say: Progress = silent) -> None:
        check_free(output)
        self.output, self.say = output, say
        self.folder = output.with_name(f".{output.name}.training")

    @property
    def model(self) -> Path:
        """Where the model is saved before it is moved to its place."""
        return self.folder / "model"

    def checkpoints(self, base: str) -> Path:
        """Return the folder of checkpoints that began with the weights of the identity `base`."""
        return self.folder / "checkpoints" / digest(base)[:16]

    def clear(self) -> None:
        """Remove what a run left that died before its card was written; checkpoints stay."""
        shutil.rmtree(self.model, ignore_errors=True)

    def publish(self) -> None:
        """Move the model to its place; checkpoints go away."""
        replace_folder(self.output, self.model)
        shutil.rmtree(self.folder, ignore_errors=True)


@dataclass(frozen=True, slots=True)
class TrainingScores:
    """Whether a model gained on what it has not learned from, the entries of its card, and the scores for a person.

    `figures` are for the summary alone.
    """

    gained: bool
    entries: Mapping[str, Any]
    scores: str
    figures: Mapping[str, Any]


class ModelKind(ABC, Generic[Plan, Data, Model]):
    """A kind of model: the examples that it learns from, how it learns, and what it is judged by.

    `name` is that of the command, `card` that of the card.
    """

    name: str
    card: str
    help: str
    plan: type[Plan]

    @abstractmethod
    def load(self, order: TrainingOrder, plan: Plan) -> Data:
        """Read the examples to learn from and those to judge by. Raises BadDataset, NothingToLearn and BadFolds."""

    @abstractmethod
    def fit(self, data: Data, workplace: Workplace) -> Model:
        """Return the model that learned from the examples."""

    @abstractmethod
    def judge(self, data: Data, model: Model, workplace: Workplace) -> TrainingScores:
        """Judge on examples that were not learned from."""

    def save(self, model: Model, folder: Path, card: Mapping[str, Any]) -> None:
        """Write into `folder` what is not there of the model and, last, its card."""
        write_card(folder, card)


@dataclass(frozen=True, slots=True)
class TrainingResult:
    """A trained model in its folder: its card, the scores for a person, and further `figures` for the summary."""

    folder: Path
    card: Mapping[str, Any]
    scores: str
    figures: Mapping[str, Any]

    @property
    def accepted(self) -> bool:
        """Whether the model may be used."""
        return bool(self.card["accepted"])

    def as_dict(self) -> dict[str, Any]:
        """Return the summary as one JSON object."""
        return {"folder": str(self.folder), **self.figures, **self.card}

    def __str__(self) -> str:
        return f"{self.scores}\n{self.folder}: {'' if self.accepted else 'not '}accepted"


def train(
    kind: ModelKind[Any, Data, Any], data: Data, output: Path, *, accept: bool = False, progress: Progress = silent
) -> TrainingResult:
    """Learn, judge on what was not learned from, and put the model into the folder `output`.

    `accept` accepts it whatever the verdict is. Raises NotFree, and what the kind raises.
    """
    workplace, started = Workplace(output, progress), time.monotonic()
    workplace.clear()
    model = kind.fit(data, workplace)
    judged = kind.judge(data, model, workplace)
    card = {"kind": kind.card, "version": VERSION, **acceptance(judged.gained, accept), **judged.entries}
    workplace.model.mkdir(parents=True, exist_ok=True)
    kind.save(model, workplace.model, card)
    workplace.publish()
    figures = {"seconds": round(time.monotonic() - started, 1), **judged.figures}
    return TrainingResult(output, card, judged.scores, figures)


# ------------------------------------------------------------------------------------------- the card


def acceptance(gained: bool, accept: bool) -> dict[str, Any]:
    """Return the entries of a card that decide whether the model may be used, with today's date.

    `accept`: a person accepts it whatever the verdict is.
    """
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "accepted": gained or accept,
        "forced": accept and not gained,
    }
