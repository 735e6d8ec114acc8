"""Makes a collection's candidate index live."""

import argparse

from jobs.cli import DONE, add_json, add_name, add_wait, command, finish, main, say
from jobs.environment import open_store
from pipelines.indexing.lock import hold_known, record_run
from pipelines.store import NoSuchIndex, promote_index


def arguments() -> argparse.ArgumentParser:
    parser = command("publish", __doc__)
    add_name(parser)
    add_wait(parser)
    add_json(parser)
    return parser


def run(args: argparse.Namespace) -> int:
    with open_store() as store, hold_known(store, args.collection, args.wait, say) as lock:
        candidate = store.candidate_index(args.collection)
        if candidate is None:
            raise NoSuchIndex(
                f"collection {args.collection!r} has no candidate: make one with `raydex index … --no-publish`"
            )
        with record_run(lock, "publish", None) as record:
            revision = promote_index(lock, record.run, candidate.id)
            record.counts = {"collection": args.collection, "index": candidate.id, "revision": revision}
    text = f"collection {args.collection}: index {candidate.id} is live, revision {revision}"
    finish(record.counts, args.json, text)
    return DONE


if __name__ == "__main__":
    main(arguments(), run)
