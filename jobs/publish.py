"""`python -m jobs.publish`: make a collection's candidate index live."""

import argparse

from jobs.cli import finish, main, say
from jobs.environment import open_store
from pipelines.indexing.lock import hold_collection, record_run
from pipelines.store import NoSuchIndex


def arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m jobs.publish", description=__doc__)
    parser.add_argument("--collection", required=True)
    parser.add_argument("--wait", action="store_true", help="wait for another run of the collection to end")
    parser.add_argument("--json", action="store_true", help="print one JSON object, last line")
    return parser


def work(args: argparse.Namespace) -> int:
    with open_store() as store, hold_collection(store, args.collection, args.wait, say) as lock:
        candidate = store.candidate_index(args.collection)
        if candidate is None:
            raise NoSuchIndex(
                f"collection {args.collection!r} has no candidate: make one with «python -m jobs.reindex --no-publish»"
            )
        with record_run(lock, "publish", None) as record:
            revision = lock.promote(record.run, candidate.id)
            record.counts = {"collection": args.collection, "index": candidate.id, "revision": revision}
    text = f"collection {args.collection}: index {candidate.id} is live, revision {revision}"
    finish(record.counts, args.json, text)
    return 0


if __name__ == "__main__":
    main(arguments(), work)
