"""Writes a collection's live index to one file, with its pages and embeddings."""

import argparse
import time
from pathlib import Path

from jobs.cli import DONE, BadInput, add_json, add_name, command, finish, main
from jobs.environment import open_store
from pipelines.store import dump


def arguments() -> argparse.ArgumentParser:
    parser = command("dump", __doc__)
    add_name(parser)
    parser.add_argument("--force", action="store_true", help="replace the file if it exists")
    add_json(parser)
    parser.add_argument("file", type=Path, help="file to write")
    return parser


def run(args: argparse.Namespace) -> int:
    if args.file.exists() and not args.force:
        raise BadInput(f"{args.file} exists: choose another name or use --force")
    if not args.file.absolute().parent.is_dir():
        raise BadInput(f"{args.file.absolute().parent} is not a folder")
    began = time.perf_counter()
    with open_store() as store:
        store.find_collection(args.collection)
        manifest = dump(store, store.live_index(args.collection), args.file)
    size, seconds = args.file.stat().st_size, round(time.perf_counter() - began, 3)
    summary = {
        "collection": args.collection,
        "file": str(args.file),
        "bytes": size,
        "seconds": seconds,
        **manifest.counts,
    }
    text = (
        f"collection {args.collection}: {summary['pages']:,} pages and {summary['chunks']:,} chunks "
        f"in {args.file} ({size / 1e6:,.1f} MB, {seconds:.1f} s)"
    )
    finish(summary, args.json, text)
    return DONE


if __name__ == "__main__":
    main(arguments(), run)
