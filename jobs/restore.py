"""`python -m jobs.restore`: load an index with its pages from a file that jobs.dump wrote."""

import argparse
import json
import time
import zipfile
from pathlib import Path

from jobs.cli import BadInput, finish, main, say
from jobs.environment import open_store
from pipelines.indexing.lock import hold_collection, record_run
from pipelines.store import BuildResources, restore


def arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m jobs.restore", description=__doc__)
    parser.add_argument("--collection", help="name it is restored under (default: the one it was dumped from)")
    parser.add_argument("--no-publish", action="store_true", help="leave a candidate for jobs.publish")
    parser.add_argument("--maintenance-work-mem", default="1GB", help="memory of the HNSW build")
    parser.add_argument("--parallel-workers", type=int, default=2, help="processes of the HNSW build beside the first")
    parser.add_argument("--wait", action="store_true", help="wait for another run of the collection to end")
    parser.add_argument("--json", action="store_true", help="print one JSON object, last line")
    parser.add_argument("file", type=Path)
    return parser


def work(args: argparse.Namespace) -> int:
    source = dumped_collection(args.file)
    name = args.collection or source
    resources = BuildResources(args.maintenance_work_mem, args.parallel_workers)
    began = time.perf_counter()
    with (
        open_store() as store,
        hold_collection(store, name, args.wait, say) as lock,
        record_run(lock, "restore", None) as record,
    ):
        index, manifest = restore(lock, record.run, args.file, resources)
        revision = None if args.no_publish else lock.promote(record.run, index)
        seconds = round(time.perf_counter() - began, 3)
        record.counts = {
            "collection": name,
            "index": index,
            "revision": revision,
            "seconds": seconds,
            **manifest["counts"],
        }
    state = "a candidate" if revision is None else f"live, revision {revision}"
    counts = record.counts
    text = (
        f"collection {name}: index {index} is {state}; {counts['pages']:,} pages, {counts['chunks']:,} chunks "
        f"({seconds:.1f} s)"
    )
    finish(record.counts, args.json, text)
    return 0


def dumped_collection(path: Path) -> str:
    """The collection that a dump was made from. Raises BadInput."""
    try:
        with zipfile.ZipFile(path) as archive:
            return str(json.loads(archive.read("manifest.json"))["collection"])
    except OSError as error:
        raise BadInput(f"{path} can't be read: {error.strerror}") from error
    except (zipfile.BadZipFile, KeyError, ValueError) as error:
        raise BadInput(f"{path} is not a dump that jobs.dump wrote: {error}") from error


if __name__ == "__main__":
    main(arguments(), work)
