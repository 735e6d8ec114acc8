"""Trains a model on a collection's questions, and judges whether it may be used.

KIND is adapter, embedder, reranker, router or tags. Held-out questions judge the result; card.json in its folder has
the verdict. Exit codes: 0 trained and accepted, 1 failed, 2 bad input, 4 trained but not accepted.
"""

import argparse
from pathlib import Path

from jobs import cli
from jobs.environment import open_store, read_configuration
from pipelines.training import KINDS, TrainingOrder, check_free, train


def arguments() -> argparse.ArgumentParser:
    parser = cli.command("train", __doc__)
    kinds = parser.add_subparsers(dest="kind", required=True, metavar="KIND")
    for name, kind in KINDS.items():
        add_kind(kinds.add_parser(name, help=kind.help, description=f"Trains {kind.help}."), name)
    return parser


def add_kind(parser: argparse.ArgumentParser, name: str) -> None:
    """Add the flags of a kind: its files, and the fields of its plan."""
    add = parser.add_argument
    labels = 'JSONL or CSV of {"question", "target": 1 if the cheap model suffices}'
    add("--dataset", type=Path, required=True, help=labels if name == "router" else "questions with their sources")
    add("--output", type=Path, required=True, help="folder of the trained model")
    if name != "router":
        cli.add_collection(parser, "collection whose index is used (default: the only one)")
    if name == "adapter":
        add("--check", type=Path, help="more questions to judge by; their pages are excluded from training")
    if name == "tags":
        add("--corrections", type=Path, help="CSV of question, tag, correction: questions labeled by people")
    cli.add_fields(parser, KINDS[name].plan)
    if name != "router":
        add("--threads", type=int, default=0, help="threads of torch on a CPU (default: torch decides)")
    add("--accept", action="store_true", help="accept the model despite the verdict; its model card records this")
    cli.add_json(parser)


def run(args: argparse.Namespace) -> int:
    flags, kind = vars(args), KINDS[args.kind]
    plan = cli.read_fields(kind.plan, flags)
    check_free(args.output)
    files = {name: flags[name] for name in ("collection", "check", "corrections") if name in flags}
    order = TrainingOrder(args.dataset, **files, open_store=open_store, settings=read_configuration(), progress=cli.say)
    if flags.get("threads"):
        import torch

        torch.set_num_threads(args.threads)
    result = train(kind, kind.load(order, plan), args.output, accept=args.accept, progress=cli.say)
    cli.finish(result.as_dict(), args.json, str(result))
    return cli.DONE if result.accepted else cli.NOT_ACCEPTED


if __name__ == "__main__":
    cli.main(arguments(), run)
