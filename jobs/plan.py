"""Shows the plan for the next night of a collection, without changing anything.

Fetches only start pages, sitemaps and llms.txt.
"""

import argparse

from jobs.cli import DONE, add_json, add_source, command, finish, main, read_source, say, stored_collection
from jobs.environment import home, indexing_options, open_store
from pipelines.indexing.settings import ReindexOptions
from pipelines.nights.plan import describe_night_plan, plan_night


def arguments() -> argparse.ArgumentParser:
    parser = command("plan", __doc__)
    add_source(parser)
    add_json(parser)
    return parser


def run(args: argparse.Namespace) -> int:
    collection, folder = read_source(args.collection)
    options = ReindexOptions(**indexing_options())
    with open_store() as store:
        collection = collection or stored_collection(store, args.collection)
        plan = plan_night(store, collection, options, home=home(), folder=folder, progress=say)
    finish(plan, args.json, describe_night_plan(plan))
    return DONE


if __name__ == "__main__":
    main(arguments(), run)
