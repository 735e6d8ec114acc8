"""Trains a model on a collection's questions, and judges whether it may be used.

KIND is adapter, embedder, reranker, router or tags. Held-out questions judge the result; card.json in its folder has
the verdict. Exit codes: 0 trained and accepted, 1 failed, 2 bad input, 4 trained but not accepted.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Group, Parameter
from pydantic import BaseModel

from jobs import cli
from jobs.environment import open_store, read_configuration
from jobs.flags import OR_DEFAULT, Json, command, fill, flags_of
from pipelines.training import KINDS, TrainingOrder, check_free, train
from pipelines.training.run import ModelKind

QUESTIONS = "questions with their sources"
LABELS = 'JSONL or CSV of {"question", "target": 1 if the cheap model suffices}'
CHECK = "more questions to judge by; their pages are excluded from training"
CORRECTIONS = "CSV of question, tag, correction: questions labeled by people"

PLAN = Group("Plan", sort_key=2)
app = command("train", __doc__)


class Files(BaseModel):
    """The flags of every kind."""

    dataset: Annotated[Path, Parameter(help=QUESTIONS)]
    output: Annotated[Path, Parameter(help="folder of the trained model")]
    accept: Annotated[bool, Parameter(help="accept the model despite the verdict; its model card records this")] = False


class OfRouter(Files):
    """The flags of a router, which reads no index."""

    dataset: Annotated[Path, Parameter(help=LABELS)]


class OfCollection(Files):
    """The flags of a kind that reads the index of a collection."""

    collection: Annotated[str | None, Parameter(help=f"collection whose index is used {OR_DEFAULT}")] = None
    threads: Annotated[int, Parameter(help="threads of torch on a CPU (0: torch decides)")] = 0


class OfAdapter(OfCollection):
    """The flags of an adapter."""

    check: Annotated[Path | None, Parameter(help=CHECK)] = None


class OfTags(OfCollection):
    """The flags of tags."""

    corrections: Annotated[Path | None, Parameter(help=CORRECTIONS)] = None


READS: dict[str, type[Files]] = {"router": OfRouter, "adapter": OfAdapter, "tags": OfTags}


def trainer(name: str, kind: ModelKind[Any, Any, Any]) -> Callable[..., int]:
    """Return the function that trains a kind; its flags are the files that it reads and the fields of its plan."""
    Reads: Any = Parameter("*")(READS.get(name, OfCollection))
    Plan: Any = flags_of(kind.plan, PLAN)

    def work(*, files: Reads, plan: Plan | None = None, as_json: Json = False) -> int:
        return run(kind, fill(kind.plan, plan), files, as_json)

    return work


def run(kind: ModelKind[Any, Any, Any], plan: BaseModel, files: Files, as_json: bool) -> int:
    """Train a model of a kind, and return the exit code of its verdict."""
    check_free(files.output)
    reads = files.model_dump(exclude={"output", "accept", "threads"})
    order = TrainingOrder(**reads, open_store=open_store, settings=read_configuration(), progress=cli.say)
    if threads := getattr(files, "threads", 0):
        import torch

        torch.set_num_threads(threads)
    result = train(kind, kind.load(order, plan), files.output, accept=files.accept, progress=cli.say)
    cli.finish(result.as_dict(), as_json, result.described())
    return cli.DONE if result.accepted else cli.NOT_ACCEPTED


for name, kind in KINDS.items():
    app.command(trainer(name, kind), name=name, help=f"train {kind.help}")


if __name__ == "__main__":
    cli.main(app)
