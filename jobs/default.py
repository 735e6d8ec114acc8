"""Sets the collection that answers questions without a collection name.

`raydex ask`, the service and `raydex evaluate` use it at once. Without a name it prints the default.
"""

import argparse

from jobs.cli import DONE, BadInput, add_json, add_name, command, finish, main
from jobs.environment import open_store


def arguments() -> argparse.ArgumentParser:
    parser = command("default", __doc__)
    add_name(parser, "collection that becomes the default (none: print the default)")
    parser.add_argument(
        "--none", action="store_true", help="remove the default: with several collections, requests must name one"
    )
    add_json(parser)
    return parser


def run(args: argparse.Namespace) -> int:
    if args.collection and args.none:
        raise BadInput(f"collection {args.collection!r} and --none exclude each other")
    with open_store() as store:
        if args.collection or args.none:
            store.set_default(args.collection)
        default = next((row["name"] for row in store.collections() if row["is_default"]), None)
    text = f"{default} is the default collection" if default else "no collection is the default"
    finish({"default": default}, args.json, text)
    return DONE


if __name__ == "__main__":
    main(arguments(), run)
