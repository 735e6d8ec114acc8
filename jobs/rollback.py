"""`python -m jobs.rollback`: make the index that was live before live again."""

import argparse

from jobs.cli import finish, main, say
from jobs.environment import open_store
from pipelines.indexing.lock import hold_collection, record_run
from pipelines.indexing.publish import rollback


def arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m jobs.rollback", description=__doc__)
    parser.add_argument("--collection", required=True)
    parser.add_argument("--wait", action="store_true", help="wait for another run of the collection to end")
    parser.add_argument("--json", action="store_true", help="print one JSON object, last line")
    return parser


def work(args: argparse.Namespace) -> int:
    with open_store() as store, hold_collection(store, args.collection, args.wait, say) as lock:
        store.live_index(args.collection)
        with record_run(lock, "rollback", None) as record:
            left, index, revision = rollback(store, lock, record.run)
            record.counts = {"collection": args.collection, "from": left.id, "index": index.id, "revision": revision}
    text = f"collection {args.collection}: index {index.id} is live again (revision {revision}), {left.id} is retired"
    finish(record.counts, args.json, text)
    return 0


if __name__ == "__main__":
    main(arguments(), work)
