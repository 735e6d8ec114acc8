"""Distributes the questions of an evaluation over Ray actors, each with its own engine.

The only file of the evaluation that knows Ray. It imports Ray on use.
"""

import contextlib
from collections.abc import Sequence
from typing import Any

from pipelines.cluster import JOB_NICENESS, check_reach, connect_ray, leave_to_others, quiet_context
from pipelines.evaluation.dataset import Example
from pipelines.evaluation.worker import EvaluationJob, EvaluationProgress, ask_here, open_worker
from pipelines.indexing.building.pools import Node, has_room, held_by_others
from pipelines.indexing.building.threads import give_way_whole
from pipelines.occupancy import who_holds_cpus
from pipelines.text.progress import Progress, silent

# Questions per batch of an actor.
BATCH = 16


class EvaluationActor:
    """Owns an engine: takes batches of examples, and returns how many were asked and how many failed."""

    def __init__(self, job: EvaluationJob) -> None:
        give_way_whole(JOB_NICENESS)
        self._resources = contextlib.ExitStack()  # open as long as the actor lives
        self._worker = self._resources.enter_context(open_worker(job))

    def __call__(self, batch: Any) -> dict[str, list[int]]:
        examples = [Example(row["question"], tuple(row["sources"]), row["answer"]) for row in batch.to_pylist()]
        return {"asked": [len(examples)], "failed": [self._worker(examples)]}


def plan_actors(nodes: Sequence[Node]) -> tuple[int, float]:
    """Return how many actors fit on the free resources of `nodes`, and the CPUs of each: one, or the free fraction."""
    cpus = min(1.0, max(node.get("CPU", 0.0) for node in nodes))
    return sum(int(node.get("CPU", 0.0) / cpus + 1e-6) for node in nodes), cpus


def ask_over_ray(
    job: EvaluationJob,
    examples: Sequence[Example],
    workers: int = 0,
    address: str = "local",
    progress: Progress = silent,
) -> None:
    """Ask in `workers` actors of the Ray at `address` (0: one per free CPU, at most one per batch).

    If others occupy its CPUs, an actor takes the fraction that is left of one; if none is left, this process asks.
    """
    with connect_ray(address) as cluster:
        check_reach(job.database_url, cluster.machines())
        import ray

        batches = -(-len(examples) // BATCH)
        nodes = [*cluster.free_resources().values()]
        if not has_room(nodes):
            progress(f"no node has room, so this process asks. {who_holds_cpus()}")
            ask_here(job, examples, progress)
            return
        actors, cpus = plan_actors(nodes)
        held = held_by_others(ray.cluster_resources(), nodes)
        leave_to_others(quiet_context(), held)
        rows = [{"question": e.question, "sources": list(e.sources), "answer": e.answer} for e in examples]
        counts = ray.data.from_items(rows, override_num_blocks=batches).map_batches(
            EvaluationActor,
            batch_size=BATCH,
            batch_format="pyarrow",
            fn_constructor_args=(job,),
            compute=ray.data.ActorPoolStrategy(size=min(workers or actors, batches)),
            num_cpus=cpus,
        )
        pace = EvaluationProgress(len(examples), progress)
        count_batches: Any = counts.iter_batches(batch_size=None, batch_format="pyarrow")
        for batch in count_batches:
            pace.add(sum(batch["asked"].to_pylist()), sum(batch["failed"].to_pylist()))
