"""Sets the collection that answers questions without a collection name.

`raydex ask`, the service and `raydex evaluate` use it at once. Without a name it prints the default.
"""

from typing import Annotated

from cyclopts import Parameter

from jobs.cli import DONE, BadInput, finish, main
from jobs.environment import open_store
from jobs.flags import Json, command


def run(
    collection: Annotated[
        str | None, Parameter(help="the collection that becomes the default (default: print it)")
    ] = None,
    *,
    none: Annotated[
        bool, Parameter(help="remove the default: with several collections, requests must name one")
    ] = False,
    as_json: Json = False,
) -> int:
    if collection and none:
        raise BadInput(f"collection {collection!r} and --none can't be combined")
    with open_store() as store:
        if collection or none:
            store.set_default(collection)
        default = next((row["name"] for row in store.collections() if row["is_default"]), None)
    text = f"{default} is the default collection" if default else "no collection is the default"
    finish({"default": default}, as_json, text)
    return DONE


app = command("default", __doc__, run)


if __name__ == "__main__":
    main(app)
