"""Shows the plan for the next night of a collection, without changing anything.

Fetches only start pages, sitemaps and llms.txt.
"""

from jobs.cli import DONE, finish, main, read_source, say, stored_collection
from jobs.environment import home, indexing_options, open_store
from jobs.flags import Json, Source, command
from pipelines.indexing.settings import ReindexOptions
from pipelines.nights.plan import describe_night_plan, plan_night


def run(source: Source, *, as_json: Json = False) -> int:
    collection, folder = read_source(source)
    options = ReindexOptions(**indexing_options())
    with open_store() as store:
        collection = collection or stored_collection(store, source)
        plan = plan_night(store, collection, options, home=home(), folder=folder, progress=say)
    finish(plan, as_json, describe_night_plan(plan))
    return DONE


app = command("plan", __doc__, run)


if __name__ == "__main__":
    main(app)
