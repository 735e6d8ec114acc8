"""Questions of a data set put to the engine, in this process or by Ray Data over an actor pool; rows to the database.

Called by jobs.evaluate. What is asked and noted is pipelines/evaluation's; where and how many at a time is here.
"""

import contextlib
import logging
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from jobs.cli import say
from jobs.environment import ray_address
from pipelines.answering.factory import make_engine, make_llm, make_retriever
from pipelines.answering.settings import Configuration, all_agents
from pipelines.answering.synthesis.extractive import heading
from pipelines.cluster import check_reach, connect_ray
from pipelines.evaluation.dataset import Example, page_of
from pipelines.evaluation.evaluator import Evaluation, Plan
from pipelines.evaluation.judging.dimensions import Dimension
from pipelines.evaluation.judging.judge import Judge, StoreCache
from pipelines.evaluation.questions.writing import section_passages
from pipelines.records import Index
from pipelines.store import EvaluatedQuestion, Store

# Questions that an actor is given at a time. Each row is written as it comes: a kill loses what is under way.
BATCH = 16
PROGRESS_S = 5.0
# An evaluation waits for BM25 and for a database that restarts: a hurried answer is not what is measured.
PATIENCE_S, RETRY_S = 60.0, 60.0


@dataclass(frozen=True)
class AskJob:
    """What every process that asks needs to know; small, because Ray copies it into each actor."""

    database_url: str
    configuration: Configuration
    plan: Plan
    index: Index
    evaluation: int
    at_once: int = 1
    judge: str = ""  # the agent whose model judges; "": none
    dimensions: tuple[str | Dimension, ...] = ()


def make_judge(configuration: Configuration, agent: str, dimensions: Sequence[str | Dimension], store: Store) -> Judge:
    """The judge that is the model of the configured agent. Raises KeyError for another, and BadDimension."""
    named = {each.name: each for each in all_agents(configuration)}
    return Judge(make_llm(named[agent]), dimensions, StoreCache(store))


@contextlib.contextmanager
def asking(job: AskJob) -> Iterator["Asking"]:
    """An engine on the index, with all that it needs loaded."""
    configuration = job.configuration.model_copy(update={"patience_s": PATIENCE_S})
    with (
        Store(job.database_url, retry_s=RETRY_S) as store,
        contextlib.closing(make_retriever(configuration, store)) as retriever,
    ):
        retriever.prepare(job.plan.collection)
        judge = make_judge(configuration, job.judge, job.dimensions, store) if job.judge else None
        engine = make_engine(configuration, retriever)

        def passages(sources: Sequence[str]) -> dict[str, str]:
            chunks = store.chunks_of_pages(job.index.id, set(map(page_of, sources)))
            return {
                source: f"{heading(hit)}\n\n{hit.text}" for source, hit in section_passages(chunks, sources).items()
            }

        yield Asking(
            store,
            job,
            Evaluation(engine, job.plan, index=job.index, judge=judge, passages=passages, at_once=job.at_once),
        )


@dataclass(frozen=True)
class Asking:
    """Asks and writes down."""

    store: Store
    job: AskJob
    evaluation: Evaluation

    def __call__(self, examples: Sequence[Example], told: Callable[[int, int], None] = lambda *_: None) -> int:
        """How many of the questions failed; `told` hears of each: 1, and 1 if it failed."""

        def keep(row: EvaluatedQuestion) -> None:
            self.store.record_evaluated_questions(self.job.evaluation, [row])
            told(1, int(row.error is not None))

        return sum(row.error is not None for row in self.evaluation.ask(examples, keep))


def ask_here(job: AskJob, examples: Sequence[Example]) -> None:
    """Ask in this process."""
    with asking(job) as ask:
        ask(examples, Progress(len(examples)).add)


class Asker:
    """An actor that holds an engine: batches of examples in, how many were asked and failed out."""

    def __init__(self, job: AskJob) -> None:
        self._held = contextlib.ExitStack()  # as long as the actor lives
        self._ask = self._held.enter_context(asking(job))

    def __call__(self, batch: Any) -> dict[str, list[int]]:
        examples = [Example(row["question"], tuple(row["sources"]), row["answer"]) for row in batch.to_pylist()]
        return {"asked": [len(examples)], "failed": [self._ask(examples)]}


def ask_over_ray(job: AskJob, examples: Sequence[Example], workers: int) -> None:
    """Ask in `workers` actors (0: one a free CPU, but no more than there are batches)."""
    with connect_ray(ray_address()) as cluster:
        check_reach(job.database_url, cluster.machines())
        import ray

        batches = -(-len(examples) // BATCH)
        free = int(sum(node.get("CPU", 0) for node in cluster.free_resources()))
        _hush(ray.data.DataContext.get_current())
        rows = [{"question": e.question, "sources": list(e.sources), "answer": e.answer} for e in examples]
        asked = ray.data.from_items(rows, override_num_blocks=batches).map_batches(
            Asker,
            batch_size=BATCH,
            batch_format="pyarrow",
            fn_constructor_args=(job,),
            compute=ray.data.ActorPoolStrategy(size=min(workers or max(1, free), batches)),
            num_cpus=1,
        )
        progress = Progress(len(examples))
        batches_asked: Any = asked.iter_batches(batch_size=None, batch_format="pyarrow")
        for batch in batches_asked:
            progress.add(sum(batch["asked"].to_pylist()), sum(batch["failed"].to_pylist()))


def _hush(context: Any) -> None:
    """Ray Data says nothing of its own: how far it is, is said here, and an error is raised."""
    context.enable_progress_bars = False
    context.print_on_execution_start = False
    logging.getLogger("ray.data").setLevel(logging.CRITICAL)
    warnings.filterwarnings("ignore", "The minimum number of concurrent actors")


class Progress:
    """Every few seconds a line of how far it is."""

    def __init__(self, total: int) -> None:
        self._total, self._done, self._failed = total, 0, 0
        self._began = self._said = time.perf_counter()

    def add(self, done: int, failed: int) -> None:
        """So many more are done, of which so many failed."""
        self._done, self._failed = self._done + done, self._failed + failed
        now = time.perf_counter()
        if now - self._said >= PROGRESS_S and self._done < self._total:
            self._said = now
            rate = self._done / (now - self._began)
            failures = f", {self._failed:,} failed" if self._failed else ""
            left = (self._total - self._done) / rate
            say(f"  {self._done:,} of {self._total:,} questions, {rate:.1f}/s, {left:.0f} s left{failures}")
