"""Spreads the questions of an evaluation over Ray actors, each with an engine of its own.

The only file of the evaluation that knows Ray, which it imports on use.
"""

import contextlib
from collections.abc import Sequence
from typing import Any

from pipelines.cluster import check_reach, connect_ray, quiet_context
from pipelines.evaluation.dataset import Example
from pipelines.evaluation.worker import EvaluationJob, EvaluationProgress, open_worker
from pipelines.text.progress import Progress, silent

# Questions that an actor is given at a time.
BATCH = 16


class EvaluationActor:
    """Holds an engine: takes batches of examples, returns how many were asked and how many failed."""

    def __init__(self, job: EvaluationJob) -> None:
        self._resources = contextlib.ExitStack()  # open as long as the actor lives
        self._worker = self._resources.enter_context(open_worker(job))

    def __call__(self, batch: Any) -> dict[str, list[int]]:
        examples = [Example(row["question"], tuple(row["sources"]), row["answer"]) for row in batch.to_pylist()]
        return {"asked": [len(examples)], "failed": [self._worker(examples)]}


def ask_over_ray(
    job: EvaluationJob,
    examples: Sequence[Example],
    workers: int = 0,
    address: str = "local",
    progress: Progress = silent,
) -> None:
    """Ask in `workers` actors of the Ray at `address` (0: one for each free CPU, at most one for each batch)."""
    with connect_ray(address) as cluster:
        check_reach(job.database_url, cluster.machines())
        import ray

        batches = -(-len(examples) // BATCH)
        free = int(sum(node.get("CPU", 0) for node in cluster.free_resources().values()))
        quiet_context()
        rows = [{"question": e.question, "sources": list(e.sources), "answer": e.answer} for e in examples]
        counts = ray.data.from_items(rows, override_num_blocks=batches).map_batches(
            EvaluationActor,
            batch_size=BATCH,
            batch_format="pyarrow",
            fn_constructor_args=(job,),
            compute=ray.data.ActorPoolStrategy(size=min(workers or max(1, free), batches)),
            num_cpus=1,
        )
        pace = EvaluationProgress(len(examples), progress)
        count_batches: Any = counts.iter_batches(batch_size=None, batch_format="pyarrow")
        for batch in count_batches:
            pace.add(sum(batch["asked"].to_pylist()), sum(batch["failed"].to_pylist()))
