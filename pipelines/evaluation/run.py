"""Evaluates a collection's live index, or its candidate, on a data set.

Asks the questions that have no complete row yet, stores the rows and summarizes them. Takes plain values and returns
one object; usable from a notebook: `evaluate(store, settings, examples, plan)`.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from pipelines.answering.forms import settle_forms
from pipelines.answering.settings import AgentSettings, AnswerSettings, all_agents
from pipelines.evaluation.dataset import Example, describe_dataset
from pipelines.evaluation.evaluator import ATTEMPTS, EvaluationPlan, has_reply, is_complete, is_settled
from pipelines.evaluation.fingerprint import evaluation_fingerprint, public_settings
from pipelines.evaluation.results import summarise
from pipelines.evaluation.worker import EvaluationJob, ask_here, check_models, make_judge
from pipelines.llm.servers.http import is_loopback
from pipelines.records import Index
from pipelines.store import EvaluatedQuestion, Store
from pipelines.text.counts import counted
from pipelines.text.progress import Progress, silent

# Up to this many questions, one process finishes before Ray has started its actors. With language model answers one
# process asks any number, because it mostly waits.
FEW = 200
# Concurrent questions if language models on other machines answer, because a process mostly waits for them. Otherwise
# each question gets this machine to itself, so that its timing is meaningful and none times out in a queue.
ANSWERS_AT_ONCE = 8


class NothingAnswered(RuntimeError):
    """Every question failed."""


@dataclass(frozen=True, slots=True)
class EvaluationOptions:
    """How an evaluation runs; no option changes a score.

    `fresh` asks everything again. `workers` are Ray actors at `ray_address` (0: one per free CPU, but none for few
    questions or with `no_ray`). `at_once` is the number of concurrent questions of one process (0: 8 if language models
    on other machines answer, else 1).
    """

    fresh: bool = False
    workers: int = 0
    at_once: int = 0
    ray_address: str = "local"
    no_ray: bool = False


def evaluate(
    store: Store,
    settings: AnswerSettings,
    examples: Sequence[Example],
    plan: EvaluationPlan,
    *,
    dataset: str = "questions",
    index: Index | None = None,
    options: EvaluationOptions = EvaluationOptions(),
    progress: Progress = silent,
) -> dict[str, Any]:
    """Return every score with its interval, the counts, the timings and a description of the measured configuration.

    `index` may be a candidate (None: the live index). The rows stay in
    `store.evaluated_questions(result["evaluation"])`. Raises NothingAnswered, ModelAway, UnknownJudge, BadDimension,
    NoLiveIndex and StoreUnavailable.
    """
    began = time.perf_counter()
    settings = settle_forms(settings, store, plan.collection)
    index = index or store.live_index(plan.collection)
    job = _begin(store, settings, examples, plan, index, dataset, options)
    kept = _ask(job, examples, store, options, progress)
    rows = _answered_rows(store, job.evaluation)
    result = {
        "collection": index.collection,
        "dataset": dataset,
        **summarise(examples, rows, plan),
        **_count_not_indexed(store, index, examples, progress),
        "judge": plan.judge or None,
        "num_kept": kept,
        "seconds": round(time.perf_counter() - began, 3),
        "index": index.id,
        "revision": index.revision,
        "evaluation": job.evaluation,
        "fingerprint": job.fingerprint,
        "seed": plan.seed,
        "configuration": public_settings(settings),
    }
    store.finish_evaluation(job.evaluation, result)
    return result


def questions_at_once(plan: EvaluationPlan, agents: Sequence[AgentSettings]) -> int:
    """Return how many questions to ask concurrently."""
    elsewhere = any(not is_loopback(agent.base_url) for agent in agents)
    return ANSWERS_AT_ONCE if plan.answers and elsewhere else 1


def describe_work(plan: EvaluationPlan, agents: Sequence[AgentSettings], count: int) -> str:
    """Return a line with the number of questions to ask, and the language model calls that they take."""
    if not (plan.answers and agents):
        return f"asking {counted(count, 'question')}"
    answers = 1 + plan.component
    each = ["an answer", *["one from its reference"] * plan.component, *["judgements"] * bool(plan.judge)]
    calls = answers * (1 + len(plan.dimensions) * bool(plan.judge))
    return (
        f"asking {counted(count, 'question')} ({', '.join(each)}): about {counted(calls * count, 'call')} of "
        "language models"
    )


def _begin(
    store: Store,
    settings: AnswerSettings,
    examples: Sequence[Example],
    plan: EvaluationPlan,
    index: Index,
    dataset: str,
    options: EvaluationOptions,
) -> EvaluationJob:
    """Return a new or resumed evaluation; it is new if a verified answer has changed."""
    judge = make_judge(settings, plan, store)
    given = plan.answers and settings.verified.enabled
    verified = str(store.verified_mark(plan.collection).changed or "") if given else ""
    fingerprint = evaluation_fingerprint(examples, plan, index, settings, judge.identity if judge else "", verified)
    described, public = describe_dataset(dataset, examples), public_settings(settings)
    number = store.begin_evaluation(
        fingerprint, index.collection, index.id, index.revision, described, public, options.fresh
    )
    at_once = options.at_once or questions_at_once(plan, all_agents(settings))
    return EvaluationJob(store.url, settings, plan, index, number, fingerprint, at_once)


def _ask(
    job: EvaluationJob, examples: Sequence[Example], store: Store, options: EvaluationOptions, progress: Progress
) -> int:
    """Ask the examples that have no complete row yet; return how many already have one."""
    known = store.evaluated_questions(job.evaluation)
    asked = [known[example.id] for example in examples if example.id in known]
    # If no model ever replied, one more attempt makes sense: its endpoint may have been repaired.
    replied = any(row.answer and has_reply(row.answer) for row in asked)
    done = is_settled if replied else is_complete
    new = [example for example in examples if example.id not in known]
    left = new + [example for example in examples if example.id in known and not done(known[example.id])]
    kept = len(examples) - len(left)
    if kept:
        short = sum(done(row) and not is_complete(row) for row in asked)
        lacking = f", {short:,} of them {counted(ATTEMPTS, 'time')} and never with all parts" if short else ""
        progress(
            f"{kept:,} of {counted(len(examples), 'question was', 'questions were')} asked before{lacking} "
            "(--fresh asks them again)"
        )
    if not left:
        return kept
    progress(describe_work(job.plan, all_agents(job.settings), len(left)))
    job = replace(job, gives_up=bool(new) or not replied)
    is_long = len(left) > FEW and not (job.plan.answers and all_agents(job.settings))
    if options.workers or (is_long and not options.no_ray):
        from pipelines.evaluation.distributed import ask_over_ray

        ask_over_ray(job, left, options.workers, options.ray_address, progress)
    else:
        ask_here(job, left, progress)
    return kept


def _answered_rows(store: Store, evaluation: int) -> dict[str, EvaluatedQuestion]:
    """Return the rows of an evaluation by example id. Raises NothingAnswered and ModelAway."""
    rows = store.evaluated_questions(evaluation)
    check_models(rows.values())
    errors = [row.error for row in rows.values() if row.error]
    if len(errors) == len(rows):
        raise NothingAnswered(f"every question failed, the first with: {errors[0]}")
    return rows


def _count_not_indexed(store: Store, index: Index, examples: Sequence[Example], progress: Progress) -> dict[str, int]:
    """Return how many examples can't be found because all their pages, or sections, are missing; report them."""
    chunks = store.chunks_of_pages(index.id, set().union(*(example.pages for example in examples)))
    there = {place for chunk in chunks for place in (chunk.url, *(f"{chunk.url}#{name}" for name in chunk.anchors))}
    elsewhere = [example for example in examples if example.answerable and there.isdisjoint(example.sources)]
    no_page = [example for example in elsewhere if there.isdisjoint(example.pages)]
    no_section = [example for example in elsewhere if not there.isdisjoint(example.pages)]
    for what, lacking in {"page": no_page, "section": no_section}.items():
        if lacking:
            of = f"{len(lacking):,} of {counted(len(examples), 'question')}"
            progress(f"{of} name no {what} of the index, first {lacking[0].sources[0]}")
    return {"num_not_indexed": len(no_page), "num_no_section": len(no_section)}
