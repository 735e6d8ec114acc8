"""Loads an index with its pages from a file written by `raydex dump`."""

import argparse
import time
from contextlib import ExitStack
from pathlib import Path

from jobs.cli import DONE, BadInput, add_collection, add_json, add_wait, command, finish, main, say
from jobs.environment import open_store
from pipelines.indexing.lock import hold_collection, record_run
from pipelines.store import BuildResources, NotADump, Store, promote_index, read_manifest, restore

DEFAULTS = BuildResources()


def arguments() -> argparse.ArgumentParser:
    parser = command("restore", __doc__)
    add_collection(parser, "name to restore under (default: the name in the file)")
    parser.add_argument(
        "--no-publish", action="store_true", help="leave a candidate, for `raydex publish` to make live"
    )
    parser.add_argument("--replace", action="store_true", help="restore over a collection that is live")
    parser.add_argument("--maintenance-work-mem", metavar="SIZE", default=DEFAULTS.maintenance_work_mem,
                        help="memory for building the HNSW index (default %(default)s)")  # fmt: skip
    parser.add_argument("--parallel-workers", metavar="N", type=int,
                        help="extra processes for building it (default: as many as the server allows)")  # fmt: skip
    add_wait(parser)
    add_json(parser)
    parser.add_argument("file", type=Path, help="file that `raydex dump` wrote")
    return parser


def run(args: argparse.Namespace) -> int:
    source = dumped_collection(args.file)
    name = args.collection or source
    resources = BuildResources(args.maintenance_work_mem, args.parallel_workers)
    began = time.perf_counter()
    with open_store() as store, hold_collection(store, name, args.wait, say) as lock, ExitStack() as stack:
        if not args.replace:
            check_not_live(store, name)
        record = stack.enter_context(record_run(lock, "restore", None))
        index, found = restore(lock, record.run, args.file, resources)
        revision = None if args.no_publish else promote_index(lock, record.run, index)
        seconds = round(time.perf_counter() - began, 3)
        record.counts = {"collection": name, "index": index, "revision": revision, "seconds": seconds, **found}
    state = "a candidate" if revision is None else f"live, revision {revision}"
    counts = record.counts
    text = (
        f"collection {name}: index {index} is {state}; {counts['pages']:,} pages, {counts['chunks']:,} chunks "
        f"({seconds:.1f} s)"
    )
    finish(record.counts, args.json, text)
    return DONE


def check_not_live(store: Store, collection: str) -> None:
    """Raise BadInput if the collection is in use for answering questions."""
    live = next((row for row in store.collections() if row["name"] == collection and row["index"] is not None), None)
    if live:
        pages, chunks = (live["stats"].get(key, 0) for key in ("pages", "chunks"))
        raise BadInput(
            f"collection {collection!r} is live ({pages:,} pages, {chunks:,} chunks), nothing is changed: `--replace` "
            "puts the dump and its pages in its place, `--collection NAME` restores under another name"
        )


def dumped_collection(path: Path) -> str:
    """Return the name of the collection in a dump. Raises BadInput."""
    try:
        return read_manifest(path).collection
    except OSError as error:
        raise BadInput(f"{path} can't be read: {error.strerror}") from error
    except NotADump as error:
        raise BadInput(str(error)) from error


if __name__ == "__main__":
    main(arguments(), run)
