"""Retrains the models that a night names, and keeps a new one only if it does not make answers worse.

Knows the kinds of models and the night's gate; does not know the rest of the night.
"""

import contextlib
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from pipelines.answering.settings import AnswerSettings, change
from pipelines.evaluation.dataset import read_answerable
from pipelines.files.atomic_files import replace_folder, settle_folder
from pipelines.files.model_cards import BadCard, read_card
from pipelines.nights.gate import IndexGate
from pipelines.nights.journal import BEGAN, StepResult
from pipelines.nights.regression import RegressionSet
from pipelines.records.night_choices import TrainChoices
from pipelines.text.counts import counted
from pipelines.text.mistakes import describe_mistakes
from pipelines.training import KINDS, TrainingOrder, check_free, train
from pipelines.training.run import TrainingPlan


class BadTraining(ValueError):
    """A night names a training with settings that its kind does not have."""


@dataclass(frozen=True)
class Retraining:
    """The trainings of a night; paths are relative to `folder`. `ask` returns the questions of the regression set.

    A rejected model is tried again only after as many days, or if the collection file, identified by `mark`, has
    changed. Raises BadTraining, BadDataset and NotFree.
    """

    gate: IndexGate
    collection: str
    choices: Sequence[TrainChoices]
    folder: Path
    mark: str
    ask: Callable[[], RegressionSet]

    def __post_init__(self) -> None:
        for chosen in self.choices:
            plan_of(chosen)
            read_answerable(self.folder / chosen.dataset)
            check_free(self.folder / chosen.output)

    def steps(self) -> dict[str, Callable[[], StepResult]]:
        """Return the steps by name."""
        return {_name(chosen): partial(self._step, chosen) for chosen in self.choices}

    def _step(self, chosen: TrainChoices) -> StepResult:
        output, card = self.folder / chosen.output, dict[str, Any]()
        settle_folder(output)
        with contextlib.suppress(BadCard):
            card = read_card(output, KINDS[chosen.kind].card)
            trained = datetime.fromisoformat(card["date"])
            if datetime.now(UTC) - trained < timedelta(days=chosen.days):
                return {"said": f"{output} is of {trained:%Y-%m-%d}, not {counted(chosen.days, 'day')} old"}
        steps = {BEGAN: {"mark": self.mark}, _name(chosen): {"kept": False}}
        if tried := self.gate.store.last_run_with(self.collection, steps, chosen.days):
            return {"said": f"that of {tried:%Y-%m-%d} was not kept, and is not {counted(chosen.days, 'day')} old"}
        before = _using(self.gate.settings, output) if card.get("accepted") else self.gate.settings
        made = output.with_name(f"{output.name}.new")
        try:
            result = self._train(chosen, before, made)
            if result["kept"]:
                replace_folder(output, made)
        finally:
            shutil.rmtree(made, ignore_errors=True)
        return result | {"said": f"{result['said']}; {output} {'is new' if result['kept'] else 'stays as it was'}"}

    def _train(self, chosen: TrainChoices, before: AnswerSettings, made: Path) -> StepResult:
        """Train into `made`, and decide whether to keep it: by its own verdict, then by the regression set."""
        gate, kind = self.gate, KINDS[chosen.kind]
        order = TrainingOrder(
            self.folder / chosen.dataset,
            self.collection,
            open_store=lambda: contextlib.nullcontext(gate.store),
            settings=gate.settings,
            progress=gate.progress,
        )
        data = kind.load(order, plan_of(chosen))
        if not train(kind, data, made, accept=chosen.accept, progress=gate.progress).accepted:
            return {"said": "not accepted by its own questions", "kept": False}
        if not (examples := self.ask().examples):
            return {"said": "there is no question to judge by", "kept": False}
        live = gate.store.live_index(self.collection)
        judged = replace(gate, settings=before)(examples, live, live, _using(gate.settings, made))
        said = f"{counted(len(examples), 'question')}: {len(judged['worse']):,} got worse"
        return {"said": said, "kept": judged["passed"], "gate": judged}


def _name(chosen: TrainChoices) -> str:
    return f"train {chosen.output}"


def plan_of(chosen: TrainChoices) -> TrainingPlan:
    """Return the settings of a training. Raises BadTraining."""
    model = KINDS[chosen.kind].plan
    try:
        return model.model_validate(chosen.plan)
    except ValidationError as error:
        raise BadTraining(f"night.train: {chosen.kind}: plan: {describe_mistakes(error, model)}") from error


def _using(settings: AnswerSettings, reranker: Path) -> AnswerSettings:
    return change(settings, {"reranker.kind": "cross-encoder", "reranker.model": str(reranker)})
