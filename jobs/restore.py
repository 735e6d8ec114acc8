"""Loads an index with its pages from a file written by `raydex dump`."""

import time
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from jobs.cli import DONE, BadInput, finish, main, say
from jobs.environment import open_store
from jobs.flags import Json, Wait, command
from pipelines.indexing.lock import hold_collection, record_run
from pipelines.store import BuildResources, NotADump, Store, promote_index, read_manifest, restore
from pipelines.text.counts import counted

DEFAULTS = BuildResources()


def run(
    file: Annotated[Path, Parameter(help="file that `raydex dump` wrote")],
    /,
    *,
    collection: Annotated[str | None, Parameter(help="name to restore under (default: the name in the file)")] = None,
    no_publish: Annotated[bool, Parameter(help="leave a candidate, for `raydex publish` to make live")] = False,
    replace: Annotated[bool, Parameter(help="restore over a collection that is live")] = False,
    maintenance_work_mem: Annotated[
        str, Parameter(help="memory for building the HNSW index")
    ] = DEFAULTS.maintenance_work_mem,
    parallel_workers: Annotated[
        int | None, Parameter(help="extra processes for building it (default: as many as the server allows)")
    ] = None,
    wait: Wait = False,
    as_json: Json = False,
) -> int:
    source = dumped_collection(file)
    name = collection or source
    resources = BuildResources(maintenance_work_mem, parallel_workers)
    began = time.perf_counter()
    with open_store() as store, hold_collection(store, name, wait, say) as lock, ExitStack() as stack:
        if not replace:
            check_not_live(store, name)
        record = stack.enter_context(record_run(lock, "restore", None))
        index, found = restore(lock, record.run, file, resources)
        revision = None if no_publish else promote_index(lock, record.run, index)
        seconds = round(time.perf_counter() - began, 3)
        record.counts = {"collection": name, "index": index, "revision": revision, "seconds": seconds, **found}
    state = "a candidate" if revision is None else f"live, revision {revision}"
    counts = record.counts
    text = (
        f"collection {name}: index {index} is {state}; {counted(counts['pages'], 'page')}, "
        f"{counted(counts['chunks'], 'chunk')} ({seconds:.1f} s)"
    )
    finish(record.counts, as_json, text)
    return DONE


def check_not_live(store: Store, collection: str) -> None:
    """Raise BadInput if the collection is in use for answering questions."""
    live = next((row for row in store.collections() if row["name"] == collection and row["index"] is not None), None)
    if live:
        pages, chunks = (live["stats"].get(key, 0) for key in ("pages", "chunks"))
        raise BadInput(
            f"collection {collection!r} is live ({counted(pages, 'page')}, {counted(chunks, 'chunk')}), nothing is "
            "changed: `--replace` puts the dump and its pages in its place, `--collection NAME` restores under "
            "another name"
        )


def dumped_collection(path: Path) -> str:
    """Return the name of the collection in a dump. Raises BadInput."""
    try:
        return read_manifest(path).collection
    except OSError as error:
        raise BadInput(f"{path} can't be read: {error.strerror}") from error
    except NotADump as error:
        raise BadInput(str(error)) from error


app = command("restore", __doc__, run)


if __name__ == "__main__":
    main(app)
