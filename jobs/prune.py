"""Deletes a collection's retired indexes, and the data kept for undoing updates.

Also deletes the indexes' BM25 files on this machine. With --keep, the data for undoing updates stays.
"""

from typing import Annotated

from cyclopts import Parameter

from jobs.cli import DONE, check_range, finish, main, say
from jobs.environment import home, open_store
from jobs.flags import Json, Name, Wait, command
from pipelines.indexing.lock import hold_known
from pipelines.lexical import remove_lexical_folders


def run(
    collection: Name,
    *,
    keep: Annotated[int, Parameter(help="keep the N newest retired indexes")] = 0,
    wait: Wait = False,
    as_json: Json = False,
) -> int:
    check_range("--keep", keep, 0)
    with open_store() as store, hold_known(store, collection, wait, say):
        pruned = store.prune(collection, keep)
        remove_lexical_folders(home(), store.url, pruned)
    text = f"collection {collection}: pruned {', '.join(map(str, pruned)) or 'nothing'}"
    finish({"collection": collection, "pruned": pruned}, as_json, text)
    return DONE


app = command("prune", __doc__, run)


if __name__ == "__main__":
    main(app)
