"""A small cross-encoder learns to tell the passage that answers a question from those that only look like it.

Begins from an embedding model's weights, which are there, with a new head. Knows questions and hits; neither where
they are stored nor whether the result will be used. Heavy libraries are imported in functions.
"""

import json
import random
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from pipelines.answering.reranking.base import document
from pipelines.characters import clean_for_tokenizer
from pipelines.embedding.tokens import load_tokenizer
from pipelines.evaluation.dataset import Example, page_of
from pipelines.records import Hit, digest
from pipelines.training.embedder import check_trainer
from pipelines.training.mining import Corpus, NothingToLearn, Triple, hard_negatives

# Wrong answers are drawn from so many of the best wrong hits: the very best alone hold most of the unlabelled right
# ones (Qu et al., RocketQA, 2021, find up to 70 % of top-ranked "negatives" to be right). Not tuned.
DRAWN_FROM = 20


@dataclass(frozen=True, slots=True)
class Plan:
    """How a cross-encoder is trained.

    `loss` "binary" takes each pair by itself (binary cross-entropy, the right ones weighted up to the wrong ones),
    "listwise" a question's passages together (ListNet; Cao et al., 2007). `max_tokens` are of question and passage
    together. After `minutes` (0: never) training ends with what it has learned. `precision` "fp16" and "bf16" are for
    GPUs.

    The learning rate is the usual one for cross-encoders of this size (2e-5 to 5e-5); the new head needs its upper end.
    """

    loss: Literal["binary", "listwise"] = "binary"
    epochs: float = 1.0
    batch_size: int = 16
    learning_rate: float = 5e-5
    warmup: float = 0.1
    max_tokens: int = 192
    minutes: float = 0.0
    precision: Literal["fp32", "fp16", "bf16"] = "fp32"
    seed: int = 0
    checkpoint_steps: int = 20


# ------------------------------------------------------------------------------------------- what is learned from


def mine(
    examples: Sequence[Example],
    corpus: Corpus,
    retrieve: Callable[[str], Sequence[Hit]],
    *,
    forbidden: Collection[str] = (),
    negatives: int = 4,
    seed: int = 0,
    disliked: Callable[[str], Sequence[Hit]] = lambda question: (),
) -> list[Triple]:
    """A triple for each example, its texts as a reranker reads them: a chunk of the reference section, and wrong hits.

    The wrong ones are those that `disliked` knows of the question, and others drawn by `seed` from the best of other
    pages, none on a page of `forbidden`. An example for which fewer than `negatives` are found, or whose section the
    index lacks, is left out.
    """
    rng = random.Random(seed)
    mined = []
    for example in examples:
        right = _right(example, corpus)
        known = hard_negatives(example, disliked(example.question), corpus, forbidden, negatives)
        wrong = hard_negatives(example, retrieve(example.question), corpus, forbidden, DRAWN_FROM)
        wrong = [hit for hit in wrong if hit.chunk_id not in {one.chunk_id for one in known}]
        if right and len(known) + len(wrong) >= negatives:
            drawn = [*known, *rng.sample(wrong, negatives - len(known))]
            mined.append(Triple(example.question, document(rng.choice(right)), tuple(map(document, drawn))))
    return mined


def _right(example: Example, corpus: Corpus) -> list[Hit]:
    """The chunks of the reference section itself; where it has none, those of the sections below it."""
    answering = [corpus.chunks[place] for place in corpus.answering(example)]
    return [hit for hit in answering if hit.source in example.sources] or answering


# ------------------------------------------------------------------------------------------- training


def load_model(model: str, device: str = "cpu", max_tokens: int = 0) -> Any:
    """The encoder of a packaged name, folder or hub name, with a head that gives one score.

    The head is new unless `model` is a cross-encoder already. Raises ModelNotFound, ModelUnsupported, NothingToLearn.
    """
    from sentence_transformers import CrossEncoder

    counter = load_tokenizer(model)
    if counter.folder is None:
        raise NothingToLearn(f"{model} has no weights here: begin with a packaged model, a folder or a hub model")
    loaded = CrossEncoder(str(counter.folder), num_labels=1, device=device, local_files_only=True)
    if max_tokens:
        loaded.max_seq_length = min(max_tokens, loaded.max_seq_length or max_tokens)
    return loaded


def fine_tune(model: Any, triples: Sequence[Triple], plan: Plan, checkpoints: Path) -> int:
    """Train `model` in place; returns the number of steps done.

    What was interrupted goes on from the last checkpoint of the same triples and plan. Raises TrainerMissing and
    NothingToLearn.
    """
    check_trainer()
    from sentence_transformers.cross_encoder import CrossEncoderTrainer
    from transformers.trainer_utils import get_last_checkpoint

    if not triples:
        raise NothingToLearn(
            "no question has both an answering chunk and enough retrieved chunks that do not answer it"
        )
    folder = checkpoints / _name(triples, plan)
    folder.mkdir(parents=True, exist_ok=True)
    trainer = CrossEncoderTrainer(
        model=model,
        args=_arguments(folder, plan, model.device.type == "cpu"),
        train_dataset=_dataset(triples, plan),
        loss=_loss(model, triples, plan),
        callbacks=_callbacks(plan),
    )
    done = trainer.train(resume_from_checkpoint=get_last_checkpoint(str(folder)))  # type: ignore[no-untyped-call]
    return int(done.global_step)


def _name(triples: Sequence[Triple], plan: Plan) -> str:
    """Where the checkpoints of these triples and this plan lie."""
    return digest(json.dumps(asdict(plan)), *(json.dumps(asdict(triple)) for triple in triples))[:16]


def _dataset(triples: Sequence[Triple], plan: Plan) -> Any:
    """One row a pair, or for the listwise loss one a question."""
    from datasets import Dataset

    lists = [
        (clean_for_tokenizer(t.question), [clean_for_tokenizer(text) for text in (t.positive, *t.negatives)])
        for t in triples
    ]
    if plan.loss == "listwise":
        labels = [[1.0] + [0.0] * (len(texts) - 1) for _, texts in lists]
        questions, documents = (list(column) for column in zip(*lists, strict=True))
        return Dataset.from_dict({"question": questions, "documents": documents, "labels": labels})
    rows = [(question, text, float(not place)) for question, texts in lists for place, text in enumerate(texts)]
    questions, documents, scores = (list(column) for column in zip(*rows, strict=True))
    return Dataset.from_dict({"question": questions, "document": documents, "label": scores})


def _loss(model: Any, triples: Sequence[Triple], plan: Plan) -> Any:
    import torch
    from sentence_transformers.cross_encoder.losses import BinaryCrossEntropyLoss, ListNetLoss

    if plan.loss == "listwise":
        return ListNetLoss(model)
    return BinaryCrossEntropyLoss(model, pos_weight=torch.tensor(float(len(triples[0].negatives))))


def _arguments(folder: Path, plan: Plan, cpu: bool) -> Any:
    from sentence_transformers.cross_encoder import CrossEncoderTrainingArguments

    return CrossEncoderTrainingArguments(
        output_dir=str(folder),
        num_train_epochs=plan.epochs,
        per_device_train_batch_size=plan.batch_size,
        learning_rate=plan.learning_rate,
        warmup_steps=plan.warmup,
        fp16=plan.precision == "fp16",
        bf16=plan.precision == "bf16",
        use_cpu=cpu,
        seed=plan.seed,
        data_seed=plan.seed,
        save_steps=plan.checkpoint_steps,
        save_total_limit=2,
        logging_steps=10,
        report_to="none",
    )


def _callbacks(plan: Plan) -> list[Any]:
    from transformers import TrainerCallback

    class Deadline(TrainerCallback):
        """Ends training when the time is up; a step that has begun is finished."""

        def __init__(self, seconds: float) -> None:
            self.ends = time.monotonic() + seconds

        def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> Any:
            if time.monotonic() >= self.ends:
                control.should_training_stop = True
            return control

    return [Deadline(plan.minutes * 60)] if plan.minutes else []


# ------------------------------------------------------------------------------------------- judging


def place(example: Example, hits: Sequence[Hit]) -> int:
    """The place of the first hit on a reference page, from 1; 0 if there is none."""
    pages = {page_of(source) for source in example.sources}
    return next((rank for rank, hit in enumerate(hits, 1) if hit.url in pages), 0)
