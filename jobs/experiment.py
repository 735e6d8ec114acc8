"""Compares the configurations of a sweep file on the same questions, and writes a report.

Each configuration is measured as by `raydex evaluate`; questions asked before are not asked again. A failed
configuration is shown with its error and does not stop the others. Exit codes: 0 done, 1 failed (every configuration
did), 2 bad input, 4 the gate (--fail-below, --at-least) did not pass.
"""

import argparse
import contextlib
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jobs import cli
from jobs.environment import home, indexing_options, open_store, ray_address, read_configuration
from pipelines.evaluation.dataset import describe_dataset, name_datasets, read_datasets
from pipelines.evaluation.experiments import gate, table
from pipelines.evaluation.experiments.comparison import check_names, main_metric
from pipelines.evaluation.experiments.indexes import SweepIndexes
from pipelines.evaluation.experiments.prices import load_prices
from pipelines.evaluation.experiments.report import write_report
from pipelines.evaluation.experiments.runner import ExperimentOptions, plan_experiment, run_experiment
from pipelines.evaluation.experiments.sweep import Sweep, read_sweep
from pipelines.evaluation.metrics import score_names
from pipelines.evaluation.run import EvaluationOptions
from pipelines.indexing.settings import ReindexOptions


def arguments() -> argparse.ArgumentParser:
    parser = cli.command("experiment", __doc__)
    parser.add_argument("file", type=Path, help="sweep file (benchmarks/sweeps/*.yaml)")
    parser.add_argument("--out", type=Path, help="folder of report.html and results.json (default: in RAYDEX_HOME)")
    parser.add_argument("--metric", help="metric to rank runs by (default: retrieval_score at the largest k ≤ 9)")
    parser.add_argument(
        "--write", type=Path, metavar="PAGE.md", help="write the table into this page, between its markers"
    )
    parser.add_argument(
        "--prices", type=Path, metavar="FILE", help="prices of models, which override the built-in ones"
    )
    gating = parser.add_argument_group("gate")
    gating.add_argument("--baseline", metavar="RUN", help="compare with this run, or with an earlier results.json")
    gating.add_argument("--fail-below", type=how_far, metavar="X", help="exit 4 if a run scores more than X below it")
    floor = "exit 4 if a score of a run is lower, such as claims_supported=0.85; repeatable"
    gating.add_argument("--at-least", action="append", default=[], metavar="SCORE=X", help=floor)
    gating.add_argument(
        "--candidate",
        dest="challenger",
        default="",
        metavar="RUN",
        help="judge only this run (default: all; with --fail-below all but the baseline)",
    )
    running = parser.add_argument_group("running")
    cli.add_asking(running)
    running.add_argument("--drop-indexes", action="store_true", help="drop the collection's experiment indexes")
    running.add_argument("--dry-run", action="store_true", help="print what would be measured, do nothing")
    cli.add_json(parser)
    return parser


def how_far(text: str) -> float:
    """Return the X of --fail-below without its sign: how far a score may drop. Raises ArgumentTypeError."""
    with contextlib.suppress(ValueError):
        if math.isfinite(value := abs(float(text))):
            return value
    raise argparse.ArgumentTypeError(f"{text!r} is not a number: give how far a score may fall, such as 0.02")


def read_baseline(baseline: str | None, sweep: Sweep) -> dict[str, Any] | None:
    """Return the earlier experiment in the file --baseline; None if it names a run. Raises BadInput."""
    if not baseline or baseline in sweep.names:
        return None
    if Path(baseline).is_file():
        return gate.read_results(Path(baseline))
    raise cli.BadInput(f"--baseline {baseline!r} is neither a file nor a run; runs are: {'; '.join(sweep.names)}")


def check_gate(baseline: str | None, drop: float | None, challenger: str, floors: Sequence[str]) -> None:
    """Raise BadInput for gate flags that need another flag."""
    if drop is not None and not baseline:
        raise cli.BadInput("--fail-below needs --baseline: a run of this sweep, or a results.json")
    if challenger and drop is None and not floors:
        raise cli.BadInput("--candidate needs --fail-below or --at-least: there is nothing else to judge it by")


def check_places(name: str, out: Path | None, page: Path | None, make: bool) -> None:
    """Check the output paths of experiment `name`, and `make` the folders. Raises BadInput, and NoPlace for a page."""
    if page:
        table.split_page(page, name)
    for flag, folder in {"--out": out, "--write": page and page.parent}.items():
        if folder and make:
            cli.make_folder(flag, folder)


def run(args: argparse.Namespace) -> int:
    environment = read_configuration().model_dump()
    sweep = read_sweep(args.file, environment)
    # Check first everything that could otherwise fail after all the measuring.
    check_places(sweep.name, args.out, args.write, make=not args.dry_run)
    check_gate(args.baseline, args.fail_below, args.challenger, args.at_least)
    check_names(sweep, args.metric, args.challenger)
    names = score_names(sweep.ks, sweep.answers, sweep.dimensions if sweep.judge else ())
    floors = gate.read_floors(args.at_least, names)
    earlier = read_baseline(args.baseline, sweep)
    examples = read_datasets(sweep.datasets)
    if earlier:
        gate.check_same_questions(earlier, describe_dataset(name_datasets(sweep.datasets), examples))
    options = ExperimentOptions(
        metric=args.metric or main_metric(sweep.ks),
        baseline="" if earlier else args.baseline or "",
        environment=environment,
        prices=load_prices(args.prices),
        evaluation=EvaluationOptions(args.fresh, args.workers, args.at_once, ray_address()),
        explain=lambda error: cli.describe_error(error)[0],
    )
    reindexing = ReindexOptions(**indexing_options())
    with open_store() as store:
        indexes = SweepIndexes(store, sweep.collection, home(), reindexing, cli.say)
        if args.dry_run:
            cli.finish(plan := plan_experiment(store, sweep, examples, indexes), args.json, table.plan_as_text(plan))
            return cli.DONE
        found = run_experiment(store, sweep, examples, indexes, options, cli.say)
        if args.drop_indexes:
            cli.say(f"dropped: {', '.join(indexes.drop()) or 'nothing'}")
    results = gate.judge_runs(found, earlier, args.fail_below, args.challenger, floors)
    summary = write_report(args.out or home() / "experiments" / table.file_name(sweep.name), found, results)
    if args.write:
        table.write_into_page(args.write, sweep.name, table.as_markdown(found))
    cli.say("\n".join([table.as_text(found), *(f"gate {result}" for result in results)]))
    cli.finish(summary, args.json, summary["report"])
    judged = cli.DONE if all(result.passed for result in results) else cli.NOT_ACCEPTED
    return cli.FAILED if summary["num_failed"] == len(found["runs"]) else judged


if __name__ == "__main__":
    cli.main(arguments(), run)
