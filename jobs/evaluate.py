"""Measures how well a collection's live index answers the questions of a data set.

Measures the results of /search, and with --answers the answers of /query, with the settings of this environment.
Resumes an interrupted evaluation of the same questions, index and settings. Exit codes: 0 done (failed questions are
counted), 1 failed (every question did, or no language model replied), 2 bad input, 4 a score is below --at-least.
"""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

from cyclopts import Group, Parameter

from jobs import cli
from jobs.environment import open_store, ray_address, read_configuration
from jobs.flags import OR_DEFAULT, RUNNING, AtOnce, Fresh, Json, Workers, command
from pipelines.answering.retrieval.live import choose_collection
from pipelines.answering.settings import AnswerSettings, all_agents, change
from pipelines.evaluation.dataset import Example, count_left_out, name_datasets, read_datasets, sample
from pipelines.evaluation.evaluator import EvaluationPlan
from pipelines.evaluation.experiments.gate import judge_floors, read_floors
from pipelines.evaluation.experiments.record import flatten_scores
from pipelines.evaluation.judge_check import as_grid, check_judge, read_graded
from pipelines.evaluation.judging.dimensions import parse_dimensions
from pipelines.evaluation.metrics import score_names
from pipelines.evaluation.result_text import as_sheet
from pipelines.evaluation.results import per_question, write_results
from pipelines.evaluation.run import EvaluationOptions, evaluate

KS = "1,3,5,9,13,18"  # the numbers of chunks in the study's table
MOST = 100  # maximum hits of one search
NO_JUDGE = "none"


ANSWERS = Group("Answers", sort_key=2)
DATASET = "questions as JSONL, a JSON array or CSV; several: --dataset A --dataset B"
JUDGE = "the agent whose model judges the answers, with one call per answer (default: none)"
DIMENSIONS = "dimensions to judge, comma-separated; NAME=FILE gives a prompt (default: quality if there is a judge)"
CHECK = "check the judge too: is it swayed by the order, length or author of answers, and do people agree with it?"
GRADES = "with --check-judge: graded answers as JSONL, {question, answer, reference, grade}; grade is 1 to 5"
COMPONENT = (
    "also answer each question from its reference section: twice the calls, for a score independent of retrieval"
)
FLOOR = "exit 4 if this score is lower, such as claims_supported=0.85 or mrr=0.4; repeatable"
OUT = "write results.json, questions.jsonl and, with --answers, answers.md there"


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


def run(
    *,
    dataset: Annotated[list[Path], Parameter(help=DATASET)],
    collection: Annotated[str | None, Parameter(help=f"collection to ask {OR_DEFAULT}")] = None,
    k: Annotated[str, Parameter(help="numbers of hits to score, comma-separated")] = KS,
    limit: Annotated[int | None, Parameter(help="ask only this many questions, sampled with --seed")] = None,
    seed: Annotated[int, Parameter(help="seed of --limit and of the intervals")] = 0,
    at_least: Annotated[tuple[str, ...], Parameter(help=FLOOR)] = (),
    answers: Annotated[bool, Parameter(group=ANSWERS, help="answer each question too, and score the answers")] = False,
    judge: Annotated[str | None, Parameter(group=ANSWERS, help=JUDGE)] = None,
    dimensions: Annotated[str | None, Parameter(group=ANSWERS, help=DIMENSIONS)] = None,
    check_the_judge: Annotated[bool, Parameter("--check-judge", group=ANSWERS, help=CHECK)] = False,
    grades: Annotated[Path | None, Parameter(group=ANSWERS, help=GRADES)] = None,
    component: Annotated[bool, Parameter(group=ANSWERS, negative="--no-component", help=COMPONENT)] = False,
    without_verified: Annotated[
        bool, Parameter(group=ANSWERS, help="answer without the answers that people wrote (`raydex answers`)")
    ] = False,
    fresh: Fresh = False,
    workers: Workers = 0,
    at_once: AtOnce = 0,
    out: Annotated[Path | None, Parameter(group=RUNNING, help=OUT)] = None,
    as_json: Json = False,
) -> int:
    settings, ks = read_configuration(), numbers(k)
    cli.check_range("--limit", limit, 1)
    cli.check_range("--workers", workers, 0)
    cli.check_range("--at-once", at_once, 0)
    cli.check_range("--seed", seed, 0)
    of_answers = {"judge": judge, "dimensions": dimensions, "check-judge": check_the_judge, "component": component}
    for flag, given in {**of_answers, "without-verified": without_verified}.items():
        if given and not answers:
            raise cli.BadInput(f"--{flag} needs --answers: without them only hits are measured")
    if grades and not check_the_judge:
        raise cli.BadInput("--grades needs --check-judge: grades are what a judge is compared with")
    graded = read_graded(grades) if grades else ()
    if without_verified:
        settings = change(settings, {"verified.enabled": False})
    if out:
        cli.make_folder("--out", out)
    examples, left = read_questions(dataset, limit, seed, answers)
    judged_by = parse_dimensions(dimensions or "quality")
    judging = choose_judge(judge, bool(dimensions or check_the_judge), settings)
    judged = [dimension.name for dimension in judged_by] if judging else []
    floors = read_floors(at_least, score_names(ks, answers, judged, component))
    options = EvaluationOptions(fresh, workers, at_once, ray_address())
    with open_store() as store:
        asked = choose_collection(store.collections(), collection or settings.collection)
        plan = EvaluationPlan(asked, ks, answers, seed, component, judging, judged_by)
        result = evaluate(
            store, settings, examples, plan, dataset=name_datasets(dataset), options=options, progress=cli.say
        )
        checks = (
            check_judge(
                store, settings, examples, plan, result["evaluation"], graded, options=options, progress=cli.say
            )
            if check_the_judge
            else []
        )
        if out:
            rows = store.evaluated_questions(result["evaluation"])
            write_results(out, result, per_question(examples, rows, plan))
    verdicts = judge_floors([{"name": result["dataset"], "error": None, "scores": flatten_scores(result)}], floors)
    gate = [asdict(verdict) | {"passed": verdict.passed} for verdict in verdicts]
    result |= {"left_out": left}
    result |= {"judge_check": [asdict(check) for check in checks]} if checks else {}
    cli.finish(
        result | ({"gate": gate} if gate else {}),
        as_json,
        as_sheet(result, [*as_grid(checks), *(f"gate {verdict}" for verdict in verdicts)]),
    )
    return cli.DONE if all(verdict.passed for verdict in verdicts) else cli.NOT_ACCEPTED


app = command("evaluate", __doc__, run)


if __name__ == "__main__":
    cli.main(app)
