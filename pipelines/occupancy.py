"""Reports who holds the CPUs of a connected Ray, and how to free them.

The data comes from Ray's state API: the actors of each Serve application, and the actors and tasks of each job.
`describe` takes plain rows and knows no Ray.
"""

import logging
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from pipelines.text.counts import counted

log = logging.getLogger(__name__)

SERVE_REPLICA = "SERVE_REPLICA::"  # prefix of the name of a replica's actor: SERVE_REPLICA::application#deployment#id
COMMAND = "command"  # in a job's metadata: the command as typed, written by `raydex submit`
PATIENCE_S, MOST_ROWS = 10, 10_000
UNKNOWN = "`ray status` on the head shows what is in use"


def who_holds_cpus() -> str:
    """Return a sentence about each holder of CPUs, largest first; if Ray can't tell, a sentence that says where to
    look.
    """
    import ray
    from ray.util import state

    options: dict[str, Any] = {"limit": MOST_ROWS, "timeout": PATIENCE_S, "raise_on_missing_output": False}
    try:
        actors = [_row(one) for one in state.list_actors(filters=[("state", "=", "ALIVE")], detail=True, **options)]
        tasks = [_row(one) for one in state.list_tasks(filters=[("state", "=", "RUNNING")], detail=True, **options)]
        jobs = [_row(one) for one in state.list_jobs(detail=True, **options)]
    except Exception as error:  # without a dashboard there is no state API; many kinds of errors
        log.debug("Ray's state API: %s", error)
        return UNKNOWN
    return describe(actors, tasks, jobs, own=ray.get_runtime_context().get_job_id()) or UNKNOWN


def describe(
    actors: Iterable[Mapping[str, Any]],
    tasks: Iterable[Mapping[str, Any]],
    jobs: Iterable[Mapping[str, Any]],
    own: str = "",
) -> str:
    """Return a sentence about each holder of CPUs except the job `own`, largest first.

    Rows are from Ray's state API.
    """
    services: dict[str, Counter[tuple[str, float]]] = defaultdict(Counter)
    held: dict[str, float] = defaultdict(float)
    for row in [*actors, *(task for task in tasks if task.get("type") != "ACTOR_TASK")]:
        cpus = float((row.get("required_resources") or {}).get("CPU", 0.0))
        name = row.get("name") or ""
        if name.startswith(SERVE_REPLICA):
            application, deployment, *_ = name.removeprefix(SERVE_REPLICA).split("#")
            services[application][deployment, cpus] += bool(cpus)
        elif row.get("job_id") != own:
            held[str(row.get("job_id"))] += cpus
    commands = {job.get("job_id"): job for job in jobs}
    said = [_service(name, replicas) for name, replicas in services.items()]
    said += [_job(commands.get(name, {"job_id": name}), cpus) for name, cpus in held.items()]
    return ". ".join(text for cpus, text in sorted(said, key=lambda one: -one[0]) if cpus)


def _service(name: str, replicas: Mapping[tuple[str, float], int]) -> tuple[float, str]:
    """Return the CPUs that a Serve application holds, and a sentence about it."""
    total = sum(cpus * count for (_, cpus), count in replicas.items())
    parts = ", ".join(f"{one} {count} × {cpus:g}" for (one, cpus), count in replicas.items() if count)
    return total, (
        f"The service {name} holds {_cpus(total)} ({parts}): lower `num_cpus` or the number of replicas under "
        "`deployments` of its file, such as deploy/serve.yaml, and deploy that again"
    )


def _job(job: Mapping[str, Any], cpus: float) -> tuple[float, str]:
    """Return the CPUs that a job holds, and a sentence about it."""
    number, submitted = job.get("job_id"), job.get("submission_id")
    command = (job.get("metadata") or {}).get(COMMAND) or job.get("entrypoint")
    what = f"The job {submitted or number}" + (f" (`{command}`)" if command else "")
    ends = f": it ends by itself, or by `raydex submit --stop {submitted}`" if submitted else ": wait for its end"
    return cpus, f"{what} holds {_cpus(cpus)}{ends}"


def _cpus(number: float) -> str:
    return counted(round(number, 4), "CPU")


def _row(found: Any) -> Mapping[str, Any]:
    """Return a row of Ray's state API as a mapping; some kinds of rows are objects, others dictionaries."""
    return found if isinstance(found, Mapping) else dict(vars(found))
