"""Trains a model: `train(kind, data, output)` fits, judges, and publishes the model with its card.

Knows no kind of model: each is a `ModelKind` in its own file. This file has the parts around their steps: a folder that
appears complete or not at all, the card, the verdict, and its override.
"""

import contextlib
import shutil
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
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
from pipelines.text.sheets import Part, Sheet
from pipelines.training.mining import IndexedCollection


class TrainingPlan(BaseModel):
    """Settings of a training; an invalid value raises ValidationError.

    A field with a description is a flag of `raydex train`.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    seed: int = Field(0, ge=0, description="random seed")


class RerankingPlan(TrainingPlan):
    """Settings of a gate that compares the first `k` of `depth` hits before and after reranking."""

    depth: int = Field(30, ge=1, le=200, description="number of hits to rerank when judging")
    k: int = Field(9, ge=1, description="number of hits that the gate compares")

    @model_validator(mode="after")
    def _check_depth(self) -> Self:
        if self.k > self.depth:
            raise ValueError(f"k is {self.k} and depth {self.depth}: k must not be above depth")
        return self


Plan = TypeVar("Plan", bound=TrainingPlan)
Data = TypeVar("Data")
Model = TypeVar("Model")


class NotFree(ValueError):
    """The output folder contains something other than a trained model."""


@dataclass(frozen=True, slots=True)
class TrainingOrder:
    """The inputs of a training: the files of questions, and the collection whose index it uses.

    A kind reads its part.
    """

    dataset: Path
    collection: str | None = None
    check: Path | None = None
    corrections: Path | None = None
    open_store: Callable[[], AbstractContextManager[Store]] | None = None
    settings: AnswerSettings = field(default_factory=AnswerSettings)
    progress: Progress = silent

    @contextlib.contextmanager
    def open_collection(self) -> Iterator[IndexedCollection]:
        """Open the collection and yield it."""
        if self.open_store is None:
            raise ValueError("this kind of model reads an index: name the store")
        with self.open_store() as store, contextlib.closing(make_retriever(self.settings, store)) as retriever:
            yield IndexedCollection(store, retriever, self.settings, self.collection)


def check_free(output: Path) -> None:
    """Raise NotFree unless `output` is new, empty, or a trained model, which will be replaced."""
    if output.exists() and not (output / CARD_FILE).is_file() and (not output.is_dir() or any(output.iterdir())):
        raise NotFree(f"{output} holds something else: name a new folder, or the folder of a trained model")


class Workplace:
    """The hidden folder next to `output` where a model is made until it is complete; `say` reports progress.

    Raises NotFree.
    """

    def __init__(self, output: Path, say: Progress = silent) -> None:
        check_free(output)
        self.output, self.say = output, say
        self.folder = output.with_name(f".{output.name}.training")

    @property
    def model(self) -> Path:
        """The folder where the model is saved before it is moved to its place."""
        return self.folder / "model"

    def checkpoints(self, base: str) -> Path:
        """Return the folder for checkpoints that started from the weights with the identity `base`."""
        return self.folder / "checkpoints" / digest(base)[:16]

    def clear(self) -> None:
        """Remove the model of a run that died before writing its card; checkpoints stay."""
        shutil.rmtree(self.model, ignore_errors=True)

    def publish(self) -> None:
        """Move the model to its place and delete the checkpoints."""
        replace_folder(self.output, self.model)
        shutil.rmtree(self.folder, ignore_errors=True)


@dataclass(frozen=True, slots=True)
class TrainingScores:
    """Whether a model improved on unseen data, the entries of its card, and the scores for a person.

    `figures` are only for the summary.
    """

    gained: bool
    entries: Mapping[str, Any]
    scores: Sequence[Part]
    figures: Mapping[str, Any]


class ModelKind(ABC, Generic[Plan, Data, Model]):
    """A kind of model: its training data, its training, and how it is judged.

    `name` is used in the command, `card` in the card.
    """

    name: str
    card: str
    help: str
    plan: type[Plan]

    @abstractmethod
    def load(self, order: TrainingOrder, plan: Plan) -> Data:
        """Read the examples for training and judging. Raises BadDataset, NothingToLearn and BadFolds."""

    @abstractmethod
    def fit(self, data: Data, workplace: Workplace) -> Model:
        """Return the model trained on the examples."""

    @abstractmethod
    def judge(self, data: Data, model: Model, workplace: Workplace) -> TrainingScores:
        """Judge on examples that were not trained on."""

    def save(self, model: Model, folder: Path, card: Mapping[str, Any]) -> None:
        """Write the missing parts of the model into `folder` and, last, its card."""
        write_card(folder, card)


@dataclass(frozen=True, slots=True)
class TrainingResult:
    """A trained model in its folder: its card, the scores for a person, and more `figures` for the summary."""

    folder: Path
    card: Mapping[str, Any]
    scores: Sequence[Part]
    figures: Mapping[str, Any]

    @property
    def accepted(self) -> bool:
        """Whether the model may be used."""
        return bool(self.card["accepted"])

    def as_dict(self) -> dict[str, Any]:
        """Return the summary as one JSON object."""
        return {"folder": str(self.folder), **self.figures, **self.card}

    def described(self) -> Sheet:
        """Return the verdict and the scores for a person."""
        return Sheet(f"{self.folder}: {'' if self.accepted else 'not '}accepted", self.scores)


def train(
    kind: ModelKind[Any, Data, Any], data: Data, output: Path, *, accept: bool = False, progress: Progress = silent
) -> TrainingResult:
    """Fit, judge on unseen data, and put the model into the folder `output`.

    `accept` accepts it regardless of the verdict. Raises NotFree, and the errors of the kind.
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

    With `accept`, a person accepts it regardless of the verdict.
    """
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "accepted": gained or accept,
        "forced": accept and not gained,
    }
