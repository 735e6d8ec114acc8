"""`python -m jobs.prune`: drop retired indexes of a collection, and this machine's BM25 files of them."""

import argparse
import shutil

from jobs.cli import BadInput, finish, main, say
from jobs.environment import home, open_store
from pipelines.indexing.lock import hold_collection
from pipelines.lexical import lexical_folder


def arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m jobs.prune", description=__doc__)
    parser.add_argument("--collection", required=True)
    parser.add_argument("--keep", type=int, default=0, help="keep so many of the newest retired indexes (default 0)")
    parser.add_argument("--wait", action="store_true", help="wait for another run of the collection to end")
    parser.add_argument("--json", action="store_true", help="print one JSON object, last line")
    return parser


def work(args: argparse.Namespace) -> int:
    if args.keep < 0:
        raise BadInput(f"--keep is {args.keep}: it must be 0 or more")
    with open_store() as store, hold_collection(store, args.collection, args.wait, say):
        pruned = store.prune(args.collection, args.keep)
        for index in pruned:  # of this machine; another one's stay unused
            shutil.rmtree(lexical_folder(home(), store.url, index), ignore_errors=True)
    names = ", ".join(map(str, pruned)) or "nothing"
    finish(
        {"collection": args.collection, "pruned": pruned}, args.json, f"collection {args.collection}: pruned {names}"
    )
    return 0


if __name__ == "__main__":
    main(arguments(), work)
