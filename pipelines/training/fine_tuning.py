"""The parts of fine-tuning that the embedding model and the cross-encoder share.

Knows the trainer of sentence-transformers, whose libraries are imported in functions; knows no kind of model.
"""

import importlib.util
import json
import shutil
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Generic, Literal, TypeVar

from pydantic import Field

from pipelines.embedding.load import load_tokenizer
from pipelines.embedding.tokens import TokenCounter
from pipelines.evaluation.dataset import Example, dataset_fingerprint, sample
from pipelines.records import digest
from pipelines.training.mining import Corpus, NothingToLearn, Triple, pages_of, select_answered, split
from pipelines.training.ranking import GateVerdict
from pipelines.training.run import TrainingPlan


class TrainerMissing(RuntimeError):
    """The libraries of the trainer are not installed."""


class TrainerPlan(TrainingPlan):
    """The settings of the trainer."""

    epochs: float = Field(1.0, gt=0, description="passes over the questions")
    batch_size: int
    learning_rate: float
    warmup: float = Field(0.1, ge=0)
    precision: Literal["fp32", "fp16", "bf16"] = Field("fp32", description="fp16 and bf16 are for GPUs")
    checkpoint_steps: int = Field(20, ge=1)
    device: str = Field("auto", description="auto, cpu or cuda[:n]")


class FineTuningPlan(TrainerPlan):
    """Settings of a fine-tuning: the model to start from, the training data, and the method."""

    model: str = Field("", description="model to start from (default: the index's embedding model)")
    questions: int = Field(0, ge=0, description="questions to learn from; 0: all")
    held_out: int = Field(0, ge=0, description="held-out questions to judge by; 0: all")
    negatives: int = Field(1, ge=1, description="wrong answers mined for each question")
    max_tokens: int


Plan = TypeVar("Plan", bound=FineTuningPlan)
Judging = TypeVar("Judging")


@dataclass(frozen=True, slots=True)
class FineTuningData(Generic[Plan, Judging]):
    """The base model, the training data and the judging data; `words` are added to the vocabulary."""

    plan: Plan
    base: TokenCounter
    collection: str
    train: Sequence[Example]
    held_out: Sequence[Example]
    triples: Sequence[Triple]
    judging: Judging
    words: tuple[str, ...] = ()

    def card_entries(self, verdict: GateVerdict, of_base: Sequence[str], **learned: int) -> dict[str, Any]:
        """Return entries of the model's card: `of_base` names fields of the base, `learned` are training figures."""
        examples = [*self.train, *self.held_out]
        fingerprint, pages = dataset_fingerprint(examples), len(pages_of(examples))
        return {
            "base": {name: getattr(self.base, name) for name in of_base},
            "data": {"fingerprint": fingerprint, "questions": len(examples), "pages": pages},
            "settings": self.plan.model_dump() | learned | {"collection": self.collection},
            "metrics": asdict(verdict),
        }


def check_trainer() -> None:
    """Raise TrainerMissing unless the trainer's libraries are installed."""
    missing = [name for name in ("accelerate", "datasets") if importlib.util.find_spec(name) is None]
    if missing:
        raise TrainerMissing(f"training this model needs {' and '.join(missing)}: `pip install raydex[train]`")


def divide(examples: Sequence[Example], corpus: Corpus, plan: FineTuningPlan) -> tuple[list[Example], list[Example]]:
    """Return the examples for training and for judging, with no page on both sides.

    Raises NothingToLearn and BadFolds.
    """
    examples = select_answered(examples, corpus)
    seed = plan.seed
    train, judge = ([examples[place] for place in places] for places in split(examples, corpus, seed))
    return (sample(train, plan.questions or len(train), seed), sample(judge, plan.held_out or len(judge), seed))


def choose_device(device: str) -> str:
    """Return the torch device: "auto" uses a GPU if there is one."""
    import torch

    from pipelines.embedding.torch import available_device

    return available_device(device, torch.cuda.is_available())


def run_trainer(trainer: Any, folder: Path) -> int:
    """Train from the last complete checkpoint in `folder`, if there is one; return the total number of steps."""
    from transformers.trainer_utils import get_last_checkpoint

    for checkpoint in folder.glob("checkpoint-*"):
        state = checkpoint / "trainer_state.json"  # written last
        if not state.is_file() or not state.stat().st_size:
            shutil.rmtree(checkpoint)
    state = trainer.train(resume_from_checkpoint=get_last_checkpoint(str(folder)))
    return int(state.global_step)


def check_triples(triples: Sequence[Triple]) -> None:
    """Raise NothingToLearn if there are none."""
    if not triples:
        raise NothingToLearn(
            "no question has both an answering chunk and enough retrieved chunks that do not answer it"
        )


def checkpoint_folder(checkpoints: Path, rows: Sequence[Any], plan: TrainerPlan) -> Path:
    """Return the checkpoint folder for these rows (dataclasses) and this plan; checkpoints of others are not resumed.

    Raises TrainerMissing.
    """
    check_trainer()
    name = digest(plan.model_dump_json(), *(json.dumps(asdict(row)) for row in rows))[:16]
    (checkpoints / name).mkdir(parents=True, exist_ok=True)
    return checkpoints / name


def trainer_arguments(folder: Path, plan: TrainerPlan, cpu: bool) -> dict[str, Any]:
    """Return the training arguments that do not depend on the kind of model."""
    return {
        "output_dir": str(folder),
        "num_train_epochs": plan.epochs,
        "per_device_train_batch_size": plan.batch_size,
        "learning_rate": plan.learning_rate,
        "warmup_steps": plan.warmup,
        "fp16": plan.precision == "fp16",
        "bf16": plan.precision == "bf16",
        "use_cpu": cpu,
        "seed": plan.seed,
        "data_seed": plan.seed,
        "save_steps": plan.checkpoint_steps,
        "save_total_limit": 2,
        "logging_steps": 10,
        "report_to": "none",
    }


def base_model(model: str) -> TokenCounter:
    """Return a packaged model, folder or hub model with local weights. Raises ModelNotFound and NothingToLearn."""
    base = load_tokenizer(model)
    if base.folder is None:
        raise NothingToLearn(f"{model} has no weights here: begin with a packaged model, a folder or a hub model")
    return base


def deadline(minutes: float) -> list[Any]:
    """Return callbacks that end a training when its time is up (0: never), after finishing the current step."""
    from transformers import TrainerCallback

    ends = time.monotonic() + minutes * 60

    class Deadline(TrainerCallback):
        def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> Any:
            if time.monotonic() >= ends:
                control.should_training_stop = True
            return control

    return [Deadline()] if minutes else []
