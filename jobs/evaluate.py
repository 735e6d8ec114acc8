"""`python -m jobs.evaluate`: how well a collection's live index answers the questions of a data set.

Measures what /search returns, and with --answers what /query says, in the configuration of this environment. Goes on
where an interrupted evaluation of the same questions, index and configuration stopped. Exit codes: 0 done (questions
that failed are counted), 1 failed, 2 bad input.
"""

import argparse
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from jobs.cli import BadInput, command, finish, main, say
from jobs.environment import open_store, read_configuration
from jobs.evaluating import AskJob, ask_here, ask_over_ray, make_judge
from pipelines.answering.settings import Configuration, all_agents
from pipelines.answering.synthesis.prompts import Template
from pipelines.evaluation import results
from pipelines.evaluation.dataset import Example, page_of, read_dataset, sample
from pipelines.evaluation.dataset import fingerprint as dataset_fingerprint
from pipelines.evaluation.evaluator import Plan, described, fingerprint, whole
from pipelines.evaluation.judging.dimensions import Dimension, dimension_of
from pipelines.records import Index, digest
from pipelines.store import Store, is_copy

# The numbers of chunks that the study's table has and we are measured at.
KS = "1,3,5,9,13,18"
MOST = 100  # what one search returns at most
# Up to so many questions one process is done before Ray has started its actors.
FEW = 200
# Who asks language models mostly waits; else a question has the processor to itself: its seconds mean something.
ANSWERS_AT_ONCE = 8
NO_JUDGE = "none"


class NothingAnswered(RuntimeError):
    """Every question failed."""


def arguments() -> argparse.ArgumentParser:
    parser = command("evaluate", __doc__)
    parser.add_argument("--collection", help="default: the only one")
    parser.add_argument("--dataset", type=Path, required=True, help="questions as JSONL or a JSON array")
    parser.add_argument("--k", default=KS, help=f"numbers of hits to score, by commas (default {KS})")
    parser.add_argument("--limit", type=int, help="ask only so many of the questions, drawn by --seed")
    parser.add_argument("--seed", type=int, default=0, help="of --limit and of the intervals")
    answers = parser.add_argument_group("answers")
    answers.add_argument("--answers", action="store_true", help="answer each question too, and score the answers")
    answers.add_argument(
        "--judge", metavar="AGENT", help=f"the agent whose model judges them (default: the first, {NO_JUDGE!r}: none)"
    )
    answers.add_argument(
        "--dimensions",
        default="quality",
        help="what it judges, by commas; NAME=FILE by a prompt of yours (%(default)s)",
    )
    answers.add_argument(
        "--component",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="answer each question from its reference section too: the score that retrieval can't spoil",
    )
    running = parser.add_argument_group("running")
    running.add_argument("--fresh", action="store_true", help="ask everything anew, whatever is stored already")
    running.add_argument(
        "--workers", type=int, default=0, help="Ray actors (default: one a CPU, none for few questions)"
    )
    running.add_argument(
        "--at-once",
        type=int,
        default=0,
        help="questions of one process at a time (default 1; 8 where language models answer)",
    )
    running.add_argument("--out", type=Path, metavar="FOLDER", help="write results.json and questions.jsonl there")
    running.add_argument("--json", action="store_true", help="print the results as one JSON object, last line")
    return parser


def numbers(text: str) -> tuple[int, ...]:
    """The numbers of --k, ascending. Raises BadInput."""
    parts = [part.strip() for part in text.split(",")]
    wrong = [part for part in parts if not (part.isascii() and part.isdigit() and 1 <= int(part) <= MOST)]
    if wrong:
        raise BadInput(f"--k is {text!r}: {wrong[0]!r} is not a number from 1 to {MOST}")
    return tuple(sorted({int(part) for part in parts}))


def check(args: argparse.Namespace, configuration: Configuration) -> None:
    """Raise BadInput for flags that can't be used."""
    for flag in ("limit", "workers", "at_once"):
        value = getattr(args, flag)
        least = 1 if flag == "limit" else 0
        if value is not None and value < least:
            raise BadInput(f"--{flag.replace('_', '-')} is {value}: it must be {least} or more")
    if args.judge and not args.answers:
        raise BadInput("--judge needs --answers: there is nothing else to judge")
    try:
        if args.out:
            args.out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadInput(f"--out {args.out} can't be made a folder: {error.strerror}") from error


def judging(args: argparse.Namespace, configuration: Configuration) -> str:
    """The agent whose model judges, "" for none: the one named, else the first.

    Raises BadInput for an agent that is not configured.
    """
    agents = [agent.name for agent in all_agents(configuration)]
    if args.judge and args.judge not in (*agents, NO_JUDGE):
        raise BadInput(f"there is no agent {args.judge!r} to judge; configured are: {', '.join(agents) or 'none'}")
    if args.judge:
        return "" if args.judge == NO_JUDGE else str(args.judge)
    return agents[0] if agents and args.answers else ""


def dimensions(text: str) -> tuple[Dimension, ...]:
    """The dimensions of --dimensions: built-in ones by name, others with their prompt's file.

    Raises BadDimension, TemplateError, and BadInput for a file that can't be read.
    """
    parts = [part.strip().partition("=") for part in text.split(",")]
    return tuple(
        Dimension(name, Template(_text(Path(path)))) if is_own else dimension_of(name) for name, is_own, path in parts
    )


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"--dimensions: {path} can't be read: {error}") from error


def not_indexed(store: Store, index: Index, examples: Sequence[Example]) -> list[Example]:
    """The examples none of whose reference pages is in the index: no retrieval can find them."""
    pages = {page_of(source) for example in examples for source in example.sources}
    there = {chunk.url for chunk in store.chunks_of_pages(index.id, pages)}
    return [example for example in examples if not there & set(map(page_of, example.sources))]


def live_index(store: Store, configuration: Configuration, named: str | None) -> Index:
    """The index that is measured. Raises BadInput with the collections there are."""
    names = [row["name"] for row in store.collections()]
    own = [name for name in names if not is_copy(name)]
    name = named or configuration.collection or (own[0] if len(own) == 1 else "")
    if name not in names:
        which = f"there is no collection {name!r}" if name else "name one with --collection"
        raise BadInput(f"{which}; there are: {', '.join(own) or 'none'}")
    return store.live_index(name)


def judge_name(job: AskJob, store: Store) -> str:
    """Names the judge of answers: its model and its prompts. Raises BadDimension."""
    if not job.judge:
        return ""
    judge = make_judge(job.configuration, job.judge, job.dimensions, store)
    prompts = digest(*(part for each in judge.dimensions for part in (each.name, each.template.text)))
    return f"{judge.llm.model} {prompts}"


def ask(args: argparse.Namespace, job: AskJob, examples: Sequence[Example], store: Store) -> int:
    """Ask what has no whole row yet; returns how many had one."""
    known = store.evaluated_questions(job.evaluation)
    left = [example for example in examples if example.id not in known or not whole(known[example.id])]
    kept = len(examples) - len(left)
    if kept:
        say(f"{kept:,} of {len(examples):,} questions were asked before (--fresh asks them anew)")
    if not left:
        return kept
    if args.workers or len(left) > FEW:
        ask_over_ray(job, left, args.workers)
    else:
        ask_here(job, left)
    return kept


def evaluate(args: argparse.Namespace, job: AskJob, examples: Sequence[Example], store: Store) -> dict[str, Any]:
    """Ask, write down and sum up. Raises NothingAnswered."""
    began, index, plan = time.perf_counter(), job.index, job.plan
    dataset = {"name": args.dataset.name, "questions": len(examples), "fingerprint": dataset_fingerprint(examples)}
    name = fingerprint(examples, plan, index, job.configuration, judge_name(job, store))
    described_as = described(job.configuration)
    number = store.begin_evaluation(name, index.collection, index.id, index.revision, dataset, described_as, args.fresh)
    kept = ask(args, replace(job, evaluation=number), examples, store)
    rows = store.evaluated_questions(number)
    errors = [row.error for row in rows.values() if row.error]
    if len(errors) == len(rows):
        raise NothingAnswered(f"every question failed, the first with: {errors[0]}")
    absent = not_indexed(store, index, examples)
    if absent:
        say(f"{len(absent):,} of {len(examples):,} questions name no page of the index, first {absent[0].sources[0]}")
    result = {
        "collection": index.collection,
        "dataset": args.dataset.name,
        **results.results(examples, rows, plan),
        "num_not_indexed": len(absent),
        "judge": job.judge or None,
        "num_kept": kept,
        "seconds": round(time.perf_counter() - began, 3),
        "index": index.id,
        "revision": index.revision,
        "evaluation": number,
        "fingerprint": name,
        "seed": plan.seed,
        "configuration": described_as,
    }
    store.finish_evaluation(number, result)
    if args.out:
        results.write(args.out, result, results.per_question(examples, rows, plan))
    return result


def work(args: argparse.Namespace) -> int:
    configuration, ks = read_configuration(), numbers(args.k)
    check(args, configuration)
    every = read_dataset(args.dataset)
    examples = sample(every, args.limit or len(every), args.seed)
    with open_store() as store:
        index = live_index(store, configuration, args.collection)
        at_once = args.at_once or (ANSWERS_AT_ONCE if args.answers and all_agents(configuration) else 1)
        plan = Plan(index.collection, ks, args.answers, args.seed, args.answers and args.component)
        judge = judging(args, configuration)
        job = AskJob(store.url, configuration, plan, index, 0, at_once, judge, dimensions(args.dimensions))
        result = evaluate(args, job, examples, store)
    finish(result, args.json, describe(result))
    return 0


def describe(result: Mapping[str, Any]) -> str:
    """The results for a person."""
    counts = {"failed": result["num_errors"], "degraded": result["num_degraded"]}
    remarks = "".join(f", {count:,} {what}" for what, count in counts.items() if count)
    asked = f"{result['num_questions']:,} questions of {result['dataset']}{remarks}"
    total = result["timings"]["total"]
    lines = [
        f"collection {result['collection']}, index {result['index']} revision {result['revision']}: {asked}",
        f"  {'k':>3}  {'retrieval score':22}{'section score':22}{'recall':8}nDCG",
        *(_line_of(result, k) for k in result["retrieval_score"]),
        f"  MRR {_with_interval(result, 'mrr')}",
        *(f"  {name} {_with_interval(result, name)}" for name in result.get("num_scored", {}) if name in result),
        *(f"  {name}: {n:,} could not be scored" for name, n in result.get("score_errors", {}).items() if n),
        f"  seconds a question {total['mean']:.3f}, 95 % within {total['p95']:.3f}; {result['seconds']:.1f} in all",
    ]
    return "\n".join(lines)


def _line_of(result: Mapping[str, Any], k: str) -> str:
    scores = "".join(f"{_with_interval(result, name, k):22}" for name in ("retrieval_score", "section_score"))
    return f"  {k:>3}  {scores}{result['recall'][k]:<8.3f}{result['ndcg'][k]:.3f}"


def _with_interval(result: Mapping[str, Any], name: str, k: str = "") -> str:
    value, bounds = result[name], result["intervals"][name]
    value, (low, high) = (value[k], bounds[k]) if k else (value, bounds)
    return f"{value:.3f} [{low:.3f}, {high:.3f}]"


if __name__ == "__main__":
    main(arguments(), work)
