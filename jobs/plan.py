"""Says what the next night of a collection would do, and changes nothing.

Fetches start pages, sitemaps and llms.txt alone.
"""

import argparse

from jobs.cli import DONE, add_file, add_json, command, finish, main, say
from jobs.environment import home, indexing_options, open_store
from pipelines.indexing.collection import load_collection
from pipelines.indexing.settings import ReindexOptions
from pipelines.nights.plan import describe_night_plan, plan_night


def arguments() -> argparse.ArgumentParser:
    parser = command("plan", __doc__)
    add_file(parser)
    add_json(parser)
    return parser


def run(args: argparse.Namespace) -> int:
    collection = load_collection(args.file)
    options = ReindexOptions(**indexing_options())
    with open_store() as store:
        plan = plan_night(store, collection, options, home=home(), folder=args.file.parent, progress=say)
    finish(plan, args.json, describe_night_plan(plan))
    return DONE


if __name__ == "__main__":
    main(arguments(), run)
