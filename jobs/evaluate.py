"""Measures how well a collection's live index answers the questions of a data set.

Measures the results of /search, and with --answers the answers of /query, with the settings of this environment.
Resumes an interrupted evaluation of the same questions, index and settings. Exit codes: 0 done (failed questions are
counted), 1 failed (every question did, or no language model replied), 2 bad input, 4 a score is below --at-least.
"""

import argparse
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from jobs import cli
from jobs.environment import open_store, ray_address, read_configuration
from pipelines.answering.retrieval.live import choose_collection
from pipelines.answering.settings import AnswerSettings, all_agents, change
from pipelines.evaluation.dataset import Example, count_left_out, name_datasets, read_datasets, sample
from pipelines.evaluation.evaluator import EvaluationPlan
from pipelines.evaluation.experiments.gate import judge_floors, read_floors
from pipelines.evaluation.experiments.record import flatten_scores
from pipelines.evaluation.judge_check import as_table, check_judge, read_graded
from pipelines.evaluation.judging.dimensions import parse_dimensions
from pipelines.evaluation.metrics import score_names
from pipelines.evaluation.result_text import as_text
from pipelines.evaluation.results import per_question, write_results
from pipelines.evaluation.run import EvaluationOptions, evaluate

KS = "1,3,5,9,13,18"  # the numbers of chunks in the study's table
MOST = 100  # maximum hits of one search
NO_JUDGE = "none"


def arguments() -> argparse.ArgumentParser:
    parser = cli.command("evaluate", __doc__)
    cli.add_collection(parser, "default: the only one")
    dataset = "questions as JSONL, a JSON array or CSV; several: --dataset A --dataset B"
    parser.add_argument("--dataset", type=Path, required=True, action="append", help=dataset)
    parser.add_argument("--k", default=KS, help=f"numbers of hits to score, comma-separated (default {KS})")
    parser.add_argument("--limit", type=int, help="ask only this many questions, sampled with --seed")
    parser.add_argument("--seed", type=int, default=0, help="seed of --limit and of the intervals")
    answers = parser.add_argument_group("answers")
    answers.add_argument("--answers", action="store_true", help="answer each question too, and score the answers")
    judge = "its model judges the answers, with one call per answer (default: none)"
    answers.add_argument("--judge", metavar="AGENT", help=judge)
    dimensions = "dimensions to judge, comma-separated; NAME=FILE gives a prompt (default: quality if there is a judge)"
    answers.add_argument("--dimensions", help=dimensions)
    check = "check the judge too: is it swayed by the order, length or author of answers, and do people agree with it?"
    answers.add_argument("--check-judge", action="store_true", help=check)
    grades = "with --check-judge: graded answers as JSONL, {question, answer, reference, grade}; grade is 1 to 5"
    answers.add_argument("--grades", type=Path, metavar="FILE", help=grades)
    component = (
        "also answer each question from its reference section: twice the calls, for a score independent of retrieval"
    )
    answers.add_argument("--component", action=argparse.BooleanOptionalAction, default=False, help=component)
    without = "answer without the answers that people wrote (`raydex answers`)"
    answers.add_argument("--without-verified", action="store_true", help=without)
    floor = "exit 4 if this score is lower, such as claims_supported=0.85 or mrr=0.4; repeatable"
    parser.add_argument("--at-least", action="append", default=[], metavar="SCORE=X", help=floor)
    running = parser.add_argument_group("running")
    cli.add_asking(running)
    out = "write results.json, questions.jsonl and, with --answers, answers.md there"
    running.add_argument("--out", type=Path, metavar="FOLDER", help=out)
    cli.add_json(parser)
    return parser


def numbers(text: str) -> tuple[int, ...]:
    """Return the numbers in --k, ascending. Raises BadInput."""
    parts = [part.strip() for part in text.split(",")]
    wrong = [part for part in parts if not (part.isascii() and part.isdigit() and 1 <= int(part) <= MOST)]
    if wrong:
        raise cli.BadInput(f"--k is {text!r}: {wrong[0]!r} is not a number from 1 to {MOST}")
    return tuple(sorted({int(part) for part in parts}))


def choose_judge(named: str | None, wanted: bool, settings: AnswerSettings) -> str:
    """Return the agent whose model judges: the named one, or the first if one is `wanted`; "" for none.

    Raises BadInput if one is wanted and there is none.
    """
    default = next((agent.name for agent in all_agents(settings)), "") if wanted else ""
    judge = "" if named == NO_JUDGE else named or default
    if wanted and not judge:
        raise cli.BadInput("there is no agent to judge: configure one, or leave out --dimensions and --check-judge")
    return judge


def read_questions(
    paths: Sequence[Path], limit: int | None, seed: int, answers: bool
) -> tuple[list[Example], dict[str, int]]:
    """Return the questions to ask, and the counts of rows left out by review state. Raises BadInput and BadDataset."""
    examples, left = read_datasets(paths), count_left_out(paths)
    if left:
        counts = ", ".join(f"{count:,} {state}" for state, count in left.items())
        cli.say(f"left out, as nobody has accepted them: {counts} (`raydex questions review FILE`)")
    examples = sample(examples, limit or len(examples), seed)
    if not (answers or any(example.answerable for example in examples)):
        raise cli.BadInput("every question is about other things (answerable is false): only --answers measures them")
    return examples, left


def run(args: argparse.Namespace) -> int:
    settings, ks = read_configuration(), numbers(args.k)
    cli.check_range("--limit", args.limit, 1)
    cli.check_range("--workers", args.workers, 0)
    cli.check_range("--at-once", args.at_once, 0)
    cli.check_range("--seed", args.seed, 0)
    for flag in ("judge", "dimensions", "check-judge", "component", "without-verified"):
        if getattr(args, flag.replace("-", "_")) and not args.answers:
            raise cli.BadInput(f"--{flag} needs --answers: without them only hits are measured")
    if args.grades and not args.check_judge:
        raise cli.BadInput("--grades needs --check-judge: grades are what a judge is compared with")
    graded = read_graded(args.grades) if args.grades else ()
    if args.without_verified:
        settings = change(settings, {"verified.enabled": False})
    if args.out:
        cli.make_folder("--out", args.out)
    examples, left = read_questions(args.dataset, args.limit, args.seed, args.answers)
    dimensions = parse_dimensions(args.dimensions or "quality")
    judge = choose_judge(args.judge, bool(args.dimensions or args.check_judge), settings)
    judged = [dimension.name for dimension in dimensions] if judge else []
    floors = read_floors(args.at_least, score_names(ks, args.answers, judged, args.component))
    options = EvaluationOptions(args.fresh, args.workers, args.at_once, ray_address())
    with open_store() as store:
        collection = choose_collection(store.collections(), args.collection or settings.collection)
        plan = EvaluationPlan(collection, ks, args.answers, args.seed, args.component, judge, dimensions)
        result = evaluate(
            store, settings, examples, plan, dataset=name_datasets(args.dataset), options=options, progress=cli.say
        )
        checks = (
            check_judge(
                store, settings, examples, plan, result["evaluation"], graded, options=options, progress=cli.say
            )
            if args.check_judge
            else []
        )
        if args.out:
            rows = store.evaluated_questions(result["evaluation"])
            write_results(args.out, result, per_question(examples, rows, plan))
    verdicts = judge_floors([{"name": result["dataset"], "error": None, "scores": flatten_scores(result)}], floors)
    gate = [asdict(verdict) | {"passed": verdict.passed} for verdict in verdicts]
    result |= {"left_out": left}
    result |= {"judge_check": [asdict(check) for check in checks]} if checks else {}
    cli.finish(
        result | ({"gate": gate} if gate else {}),
        args.json,
        "\n".join([as_text(result), *as_table(checks), *(f"gate {v}" for v in verdicts)]),
    )
    return cli.DONE if all(verdict.passed for verdict in verdicts) else cli.NOT_ACCEPTED


if __name__ == "__main__":
    cli.main(arguments(), run)
