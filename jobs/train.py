"""Trains a model of a collection on questions, and judges whether it may be used.

KIND is adapter, embedder, reranker, router or tags. Held-out questions judge the result: card.json in its folder has
the verdict. Exit codes: 0 trained and accepted, 1 failed, 2 bad input, 4 trained but not accepted.
"""

import argparse
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from typing import Any

from jobs.cli import DONE, NOT_ACCEPTED, add_collection, add_fields, add_json, command, finish, main, read_fields, say
from jobs.environment import open_store, read_configuration
from pipelines.evaluation.dataset import read_answerable
from pipelines.evaluation.questions.labelled import read_corrections, read_labelled
from pipelines.training import adapter, cross_encoder, embedder, router, tags
from pipelines.training.card import ModelFolder, TrainingPlan, TrainingResult
from pipelines.training.mining import open_collection

Train = Callable[..., TrainingResult]


@dataclass(frozen=True, slots=True)
class TrainingOrder:
    """The files and choices of one training; each kind reads the fields whose flags it has."""

    dataset: Path
    output: Path
    accept: bool
    collection: str | None = None
    check: Path | None = None
    corrections: Path | None = None
    device: str = "auto"


def arguments() -> argparse.ArgumentParser:
    parser = command("train", __doc__)
    kinds = parser.add_subparsers(dest="kind", required=True, metavar="KIND")
    for name, (help, _, plans) in KINDS.items():
        kind = kinds.add_parser(name, help=help, description=f"Trains {help}.")
        add = kind.add_argument
        labels = 'JSONL of {"question", "target": 1 if the cheap model suffices}'
        add("--dataset", type=Path, required=True, help=labels if name == "router" else "questions with their sources")
        add("--output", type=Path, required=True, help="folder of the trained model")
        if name != "router":
            no_gain = "measure the gain in its hits (without it nothing is accepted)"
            add_collection(kind, no_gain if name == "tags" else "whose index is used (default: the only one)")
        if name == "adapter":
            add("--check", type=Path, help="further questions to judge by; their pages are not learned from")
        if name == "tags":
            add("--corrections", type=Path, help="CSV of question, tag, correction: labelled by people")
        add_fields(kind, *plans)
        if name in ("embedder", "reranker"):
            add("--device", default="auto", help="auto, cpu or cuda[:n]")
        if name in ("adapter", "embedder", "reranker"):
            add("--threads", type=int, default=0, help="of torch on a CPU (default: torch decides)")
        add("--accept", action="store_true", help="accept the model whatever the verdict is; the card records it")
        add_json(kind)
    return parser


def work(args: argparse.Namespace) -> int:
    flags = vars(args)
    _, train, plans = KINDS[args.kind]
    settings = [read_fields(plan, flags) for plan in plans]
    order = TrainingOrder(**{field.name: flags[field.name] for field in fields(TrainingOrder) if field.name in flags})
    if flags.get("threads"):
        import torch

        torch.set_num_threads(args.threads)
    result = train(order, ModelFolder(order.output), *settings)
    finish(result.as_dict(), args.json, str(result))
    return DONE if result.accepted else NOT_ACCEPTED


def train_adapter(order: TrainingOrder, folder: ModelFolder, plan: adapter.AdapterPlan) -> TrainingResult:
    examples, check = read_answerable(order.dataset), read_answerable(order.check) if order.check else []
    with open_store() as store:
        settings = read_configuration()
        data = adapter.gather_adapter_data(store, settings, order.collection, examples, check, progress=say)
    return adapter.train_adapter(data, folder, plan, accept=order.accept, progress=say)


def fine_tune(gather: Callable[..., Any], train: Train, order: TrainingOrder, folder: ModelFolder, *plans: Any) -> Any:
    examples, (plan, selection) = read_answerable(order.dataset), plans
    with open_store() as store, open_collection(store, read_configuration(), order.collection) as collection:
        data = gather(collection, examples, selection, say)
    return train(data, folder, plan, device=order.device, accept=order.accept, progress=say)


def train_router(order: TrainingOrder, folder: ModelFolder, plan: router.RouterPlan) -> TrainingResult:
    return router.train_router(read_labelled(order.dataset), folder, plan, accept=order.accept)


def train_tags(order: TrainingOrder, folder: ModelFolder, plan: tags.TagPlan) -> TrainingResult:
    examples, hits = read_answerable(order.dataset), None
    people = read_corrections(order.corrections) if order.corrections else []
    if order.collection:
        with open_store() as store, open_collection(store, read_configuration(), order.collection) as collection:
            hits = tags.gather_tag_hits(collection, examples, plan)
    return tags.train_tags(examples, folder, plan, corrections=people, hits=hits, accept=order.accept, progress=say)


train_embedder = partial(fine_tune, embedder.gather_embedder_data, embedder.train_embedder)
train_reranker = partial(fine_tune, cross_encoder.gather_reranker_data, cross_encoder.train_reranker)
OF_EMBEDDER = (embedder.EmbedderPlan, embedder.EmbedderSelection)
OF_RERANKER = (cross_encoder.CrossEncoderPlan, cross_encoder.RerankerSelection)
KINDS: dict[str, tuple[str, Train, tuple[type[TrainingPlan], ...]]] = {
    "adapter": ("a linear map of the questions' vectors", train_adapter, (adapter.AdapterPlan,)),
    "embedder": ("the embedding model of an index", train_embedder, OF_EMBEDDER),
    "reranker": ("a cross-encoder that reranks hits", train_reranker, OF_RERANKER),
    "router": ("a router: which questions a cheap model answers well enough", train_router, (router.RouterPlan,)),
    "tags": ("a classifier of questions by part of the site", train_tags, (tags.TagPlan,)),
}


if __name__ == "__main__":
    main(arguments(), work)
