"""Makes a collection's candidate index live."""

from jobs.cli import DONE, finish, main, say
from jobs.environment import open_store
from jobs.flags import Json, Name, Wait, command
from pipelines.indexing.lock import hold_known, record_run
from pipelines.store import NoSuchIndex, promote_index


def run(collection: Name, *, wait: Wait = False, as_json: Json = False) -> int:
    with open_store() as store, hold_known(store, collection, wait, say) as lock:
        candidate = store.candidate_index(collection)
        if candidate is None:
            raise NoSuchIndex(
                f"collection {collection!r} has no candidate: make one with `raydex index … --no-publish`"
            )
        with record_run(lock, "publish", None) as record:
            revision = promote_index(lock, record.run, candidate.id)
            record.counts = {"collection": collection, "index": candidate.id, "revision": revision}
    text = f"collection {collection}: index {candidate.id} is live, revision {revision}"
    finish(record.counts, as_json, text)
    return DONE


app = command("publish", __doc__, run)


if __name__ == "__main__":
    main(app)
