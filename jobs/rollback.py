"""Makes a collection's previous index live again."""

import argparse

from jobs.cli import DONE, add_json, add_name, add_wait, command, finish, main, say
from jobs.environment import open_store
from pipelines.indexing.lock import hold_known, record_run
from pipelines.indexing.publish import rollback


def arguments() -> argparse.ArgumentParser:
    parser = command("rollback", __doc__)
    add_name(parser)
    add_wait(parser)
    add_json(parser)
    return parser


def work(args: argparse.Namespace) -> int:
    with open_store() as store, hold_known(store, args.collection, args.wait, say) as lock:
        store.live_index(args.collection)
        with record_run(lock, "rollback", None) as record:
            live, index, revision = rollback(store, lock, record.run)
            record.counts = {"collection": args.collection, "from": live.id, "index": index.id, "revision": revision}
    text = f"collection {args.collection}: index {index.id} is live again (revision {revision}), {live.id} is retired"
    finish(record.counts, args.json, text)
    return DONE


if __name__ == "__main__":
    main(arguments(), work)
