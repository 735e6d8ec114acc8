"""Evaluates a collection's live index on a data set.

Asks the questions that have no complete row yet, stores the rows and sums them up. Plain values in, one object out;
usable from a notebook: `evaluate(store, settings, examples, plan)`.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from pipelines.answering.retrieval.live import choose_collection
from pipelines.answering.settings import AnswerSettings, all_agents
from pipelines.evaluation.dataset import Example, describe_dataset, page_of
from pipelines.evaluation.evaluator import EvaluationPlan, is_complete
from pipelines.evaluation.fingerprint import evaluation_fingerprint, public_settings
from pipelines.evaluation.results import summarise
from pipelines.evaluation.worker import EvaluationJob, Pace, make_judge, open_worker
from pipelines.records import Index
from pipelines.store import EvaluatedQuestion, NoSuchCollection, Store, is_copy

# Up to so many questions one process is done before Ray has started its actors.
FEW = 200
# Questions at a time where language models answer: a process mostly waits for them. Elsewhere a question has the
# processor to itself, so that its seconds mean something.
ANSWERS_AT_ONCE = 8


class NothingAnswered(RuntimeError):
    """Every question failed."""


@dataclass(frozen=True, slots=True)
class EvaluationOptions:
    """How an evaluation runs; none of it changes a score.

    `fresh` asks everything again. `workers` are Ray actors at `ray_address` (0: one for each free CPU, and none at all
    for few questions). `at_once` is the number of questions of one process at a time (0: 1, or 8 where language
    models answer).
    """

    fresh: bool = False
    workers: int = 0
    at_once: int = 0
    ray_address: str = "local"


def evaluate(
    store: Store,
    settings: AnswerSettings,
    examples: Sequence[Example],
    plan: EvaluationPlan,
    *,
    dataset: str = "questions",
    options: EvaluationOptions = EvaluationOptions(),
    progress: Callable[[str], None] = lambda _: None,
) -> dict[str, Any]:
    """Return every score with its interval, the counts, the timings and the description of what was measured.

    `dataset` is the name that the result gives the examples. `progress` gets lines for a person. The rows stay in the
    database: `store.evaluated_questions(result["evaluation"])`. Raises NothingAnswered, UnknownJudge, BadDimension,
    NoLiveIndex and StoreUnavailable.
    """
    began = time.perf_counter()
    index, judge = store.live_index(plan.collection), make_judge(settings, plan, store)
    fingerprint = evaluation_fingerprint(examples, plan, index, settings, judge.identity if judge else "")
    configuration = public_settings(settings)
    number = store.begin_evaluation(
        fingerprint, index.collection, index.id, index.revision, describe_dataset(dataset, examples), configuration,
        options.fresh,
    )  # fmt: skip
    at_once = options.at_once or (ANSWERS_AT_ONCE if plan.answers and all_agents(settings) else 1)
    job = EvaluationJob(store.url, settings, plan, index, number, at_once)
    kept = _ask(job, examples, store, options, progress)
    rows = _answered_rows(store, number)
    absent = examples_not_indexed(store, index, examples)
    if absent:
        first = absent[0].sources[0]
        progress(f"{len(absent):,} of {len(examples):,} questions name no page of the index, first {first}")
    result = {
        "collection": index.collection,
        "dataset": dataset,
        **summarise(examples, rows, plan),
        "num_not_indexed": len(absent),
        "judge": plan.judge or None,
        "num_kept": kept,
        "seconds": round(time.perf_counter() - began, 3),
        "index": index.id,
        "revision": index.revision,
        "evaluation": number,
        "fingerprint": fingerprint,
        "seed": plan.seed,
        "configuration": configuration,
    }
    store.finish_evaluation(number, result)
    return result


def _ask(
    job: EvaluationJob,
    examples: Sequence[Example],
    store: Store,
    options: EvaluationOptions,
    progress: Callable[[str], None],
) -> int:
    """Ask the examples that have no complete row yet; return how many have one."""
    known = store.evaluated_questions(job.evaluation)
    left = [example for example in examples if example.id not in known or not is_complete(known[example.id])]
    kept = len(examples) - len(left)
    if kept:
        progress(f"{kept:,} of {len(examples):,} questions were asked before (--fresh asks them again)")
    if not left:
        return kept
    if options.workers or len(left) > FEW:
        from pipelines.evaluation.distributed import ask_over_ray

        ask_over_ray(job, left, options.workers, options.ray_address, progress)
    else:
        with open_worker(job) as worker:
            worker(left, Pace(len(left), progress).add)
    return kept


def _answered_rows(store: Store, evaluation: int) -> dict[str, EvaluatedQuestion]:
    """Return the rows of an evaluation by example id. Raises NothingAnswered."""
    rows = store.evaluated_questions(evaluation)
    errors = [row.error for row in rows.values() if row.error]
    if len(errors) == len(rows):
        raise NothingAnswered(f"every question failed, the first with: {errors[0]}")
    return rows


def examples_not_indexed(store: Store, index: Index, examples: Sequence[Example]) -> list[Example]:
    """Return the examples whose reference pages are all missing from the index: no retrieval can find them."""
    pages = {page_of(source) for example in examples for source in example.sources}
    indexed = {chunk.url for chunk in store.chunks_of_pages(index.id, pages)}
    return [e for e in examples if e.answerable and not indexed & set(map(page_of, e.sources))]


def measured_collection(store: Store, name: str = "") -> str:
    """Return `name` if there is such a collection; for "" the one that is meant where none is named.

    Raises NoSuchCollection, CollectionNotNamed.
    """
    collections = store.collections()
    if not name:
        return choose_collection(collections)
    names = [row["name"] for row in collections]
    if name not in names:
        raise NoSuchCollection(name, (one for one in names if not is_copy(one)))
    return name
