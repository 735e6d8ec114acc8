"""`python -m jobs.dump`: a collection's live index with its pages, embeddings included, as one file."""

import argparse
import time
from pathlib import Path

from jobs.cli import BadInput, finish, main
from jobs.environment import open_store
from pipelines.store import dump


def arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m jobs.dump", description=__doc__)
    parser.add_argument("--collection", required=True)
    parser.add_argument("--force", action="store_true", help="replace a file that exists")
    parser.add_argument("--json", action="store_true", help="print one JSON object, last line")
    parser.add_argument("file", type=Path)
    return parser


def work(args: argparse.Namespace) -> int:
    if args.file.exists() and not args.force:
        raise BadInput(f"{args.file} exists: choose another name or use --force")
    if not args.file.absolute().parent.is_dir():
        raise BadInput(f"{args.file.absolute().parent} is not a folder")
    began = time.perf_counter()
    with open_store() as store:
        manifest = dump(store, store.live_index(args.collection), args.file)
    size, seconds = args.file.stat().st_size, round(time.perf_counter() - began, 3)
    summary = {
        "collection": args.collection,
        "file": str(args.file),
        "bytes": size,
        "seconds": seconds,
        **manifest["counts"],
    }
    text = (
        f"collection {args.collection}: {summary['pages']:,} pages and {summary['chunks']:,} chunks "
        f"in {args.file} ({size / 1e6:,.1f} MB, {seconds:.1f} s)"
    )
    finish(summary, args.json, text)
    return 0


if __name__ == "__main__":
    main(arguments(), work)
