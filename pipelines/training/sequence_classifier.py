"""Trains a classification head together with its transformer, using the trainer of transformers.

Heavy libraries are imported in functions.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pipelines.answering.routing.classifier import CannotLearn
from pipelines.answering.routing.sequence_classifier import SequenceClassifier, tokenize
from pipelines.embedding.low_rank import change_weights
from pipelines.embedding.tokens import INT8, TokenCounter
from pipelines.evaluation.questions.tagged import TaggedQuestion
from pipelines.text.counts import counted
from pipelines.training import fine_tuning
from pipelines.training.fine_tuning import TrainerPlan


def fit_sequence_classifier(
    base: TokenCounter, rows: Sequence[TaggedQuestion], plan: TrainerPlan, checkpoints: Path
) -> SequenceClassifier:
    """Return a classifier that starts from the weights of `base` and a new head, trained on `rows`.

    Resumes from the last checkpoint of the same rows and plan. Raises TrainerMissing and CannotLearn.
    """
    labels = sorted({row.tag for row in rows})
    if len(labels) < 2:
        raise CannotLearn(f"all {counted(len(rows), 'text')} have the label(s) {labels}: two labels are needed")
    folder = fine_tuning.checkpoint_folder(checkpoints, rows, plan)
    import torch
    from transformers import Trainer, TrainingArguments

    torch.manual_seed(plan.seed)  # for the new head
    device = fine_tuning.choose_device(plan.device)
    model, tokenizer = _load(base, labels, device)
    trainer = Trainer(
        model=model,
        args=TrainingArguments(**fine_tuning.trainer_arguments(folder, plan, device == "cpu")),
        train_dataset=_dataset(model, tokenizer, labels, rows),
        processing_class=tokenizer,  # pads the texts of a batch
    )
    fine_tuning.run_trainer(trainer, folder)
    return SequenceClassifier(model, tokenizer, labels)


def _load(base: TokenCounter, labels: Sequence[str], device: str) -> tuple[Any, Any]:
    """Return the weights of `base` with a head for `labels`, and its tokenizer."""
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    names = dict(enumerate(labels))
    model = AutoModelForSequenceClassification.from_pretrained(
        base.folder, local_files_only=True, num_labels=len(labels), id2label=names, ignore_mismatched_sizes=True
    )
    change_weights(base.model.removeprefix(INT8), model.base_model)
    return model.to(device), AutoTokenizer.from_pretrained(base.folder, local_files_only=True)


def _dataset(model: Any, tokenizer: Any, labels: Sequence[str], rows: Sequence[TaggedQuestion]) -> Any:
    from datasets import Dataset

    read = tokenize(tokenizer, model, [row.question for row in rows])
    return Dataset.from_dict({**read, "labels": [labels.index(row.tag) for row in rows]})
