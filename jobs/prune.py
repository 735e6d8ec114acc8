"""Deletes a collection's retired indexes, and the data kept for undoing updates.

Also deletes the indexes' BM25 files on this machine. With --keep, the data for undoing updates stays.
"""

import argparse

from jobs.cli import DONE, add_json, add_name, add_wait, check_range, command, finish, main, say
from jobs.environment import home, open_store
from pipelines.indexing.lock import hold_known
from pipelines.lexical import remove_lexical_folders


def arguments() -> argparse.ArgumentParser:
    parser = command("prune", __doc__)
    add_name(parser)
    keep = "keep the N newest retired indexes (default 0)"
    parser.add_argument("--keep", type=int, default=0, metavar="N", help=keep)
    add_wait(parser)
    add_json(parser)
    return parser


def run(args: argparse.Namespace) -> int:
    check_range("--keep", args.keep, 0)
    with open_store() as store, hold_known(store, args.collection, args.wait, say):
        pruned = store.prune(args.collection, args.keep)
        remove_lexical_folders(home(), store.url, pruned)
    text = f"collection {args.collection}: pruned {', '.join(map(str, pruned)) or 'nothing'}"
    finish({"collection": args.collection, "pruned": pruned}, args.json, text)
    return DONE


if __name__ == "__main__":
    main(arguments(), run)
