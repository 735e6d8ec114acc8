"""Updates a collection, and publishes it only if answers do not get worse.

The key `night` of the collection file lists the questions, and how far a measure may drop. A killed night is resumed.
Exit codes: 0 published or unchanged, 1 failed, 2 bad input, 4 refused (a candidate is kept if one was built), 75
another run holds the collection.
"""

from dataclasses import asdict

from jobs import environment
from jobs.cli import DONE, NOT_ACCEPTED, Messages, finish, main, read_source, stored_collection
from jobs.flags import Json, NoRay, Source, Wait, command
from pipelines.evaluation.run import EvaluationOptions
from pipelines.indexing.settings import ReindexOptions
from pipelines.nights.night import run_night
from pipelines.nights.notices.teller import TellSecrets
from pipelines.nights.telling import describe_night


def run(source: Source, *, no_ray: NoRay = False, wait: Wait = False, as_json: Json = False) -> int:
    (collection, folder), settings = read_source(source), environment.read_configuration()
    options = ReindexOptions(wait=wait, no_ray=no_ray, **environment.indexing_options())
    evaluation = EvaluationOptions(ray_address=environment.ray_address(), no_ray=no_ray)
    with environment.open_store() as store, Messages() as messages:
        result = run_night(
            store,
            collection or stored_collection(store, source),
            settings,
            options,
            folder=folder,
            evaluation=evaluation,
            secrets=TellSecrets(**environment.tell_secrets()),
            progress=messages,
        )
    finish(asdict(result), as_json, describe_night(result))
    return NOT_ACCEPTED if result.verdict == "refused" else DONE


app = command("nightly", __doc__, run)


if __name__ == "__main__":
    main(app)
