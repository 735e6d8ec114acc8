"""Compares the configurations of a sweep file on the same questions, and writes a report.

Each configuration is measured as by `raydex evaluate`; questions asked before are not asked again. A failed
configuration is shown with its error and does not stop the others. Exit codes: 0 done, 1 failed (every configuration
did), 2 bad input, 4 the gate (--fail-below, --at-least) did not pass.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Group, Parameter

from jobs import cli
from jobs.environment import home, indexing_options, open_store, ray_address, read_configuration
from jobs.flags import RUNNING, AtOnce, Fresh, Json, Workers, command
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

DATASET = "questions to ask instead of the sweep's own; several: --dataset A --dataset B"
GATE = Group("Gate", sort_key=2)
METRIC = "metric to rank runs by (default: retrieval_score at the largest k ≤ 9)"
BASELINE = "compare with this run, or with an earlier results.json"
FLOOR = "exit 4 if a score of a run is lower, such as claims_supported=0.85; repeatable"
CANDIDATE = "judge only this run (default: all; with --fail-below all but the baseline)"


def how_far(fall: float | None) -> float | None:
    """Return the X of --fail-below without its sign: how far a score may fall. Raises BadInput."""
    if fall is not None and not math.isfinite(fall):
        raise cli.BadInput(f"--fail-below is {fall}: give how far a score may fall, such as 0.02")
    return None if fall is None else abs(fall)


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


def run(
    file: Annotated[Path, Parameter(help="sweep file (benchmarks/sweeps/*.yaml)")],
    /,
    *,
    dataset: Annotated[tuple[Path, ...], Parameter(help=DATASET)] = (),
    out: Annotated[
        Path | None, Parameter(help="folder of report.html and results.json (default: in RAYDEX_HOME)")
    ] = None,
    metric: Annotated[str | None, Parameter(help=METRIC)] = None,
    write: Annotated[Path | None, Parameter(help="write the table into this page, between its markers")] = None,
    prices: Annotated[Path | None, Parameter(help="prices of models, which override the built-in ones")] = None,
    baseline: Annotated[str | None, Parameter(group=GATE, help=BASELINE)] = None,
    fail_below: Annotated[
        float | None, Parameter(group=GATE, help="exit 4 if a run scores more than this below the baseline")
    ] = None,
    at_least: Annotated[tuple[str, ...], Parameter(group=GATE, help=FLOOR)] = (),
    challenger: Annotated[str, Parameter("--candidate", group=GATE, help=CANDIDATE)] = "",
    fresh: Fresh = False,
    workers: Workers = 0,
    at_once: AtOnce = 0,
    drop_indexes: Annotated[
        bool, Parameter(group=RUNNING, help="drop the collection's experiment indexes at the end")
    ] = False,
    dry_run: Annotated[bool, Parameter(group=RUNNING, help="print what would be measured, do nothing")] = False,
    as_json: Json = False,
) -> int:
    most_fall = how_far(fail_below)
    environment = read_configuration().model_dump()
    sweep = read_sweep(file, environment)
    sweep = replace(sweep, datasets=dataset) if dataset else sweep
    # What would otherwise fail when everything is measured is checked first.
    check_places(sweep.name, out, write, make=not dry_run)
    check_gate(baseline, most_fall, challenger, at_least)
    check_names(sweep, metric or "", challenger)
    names = score_names(sweep.ks, sweep.answers, sweep.dimensions if sweep.judge else ())
    floors = gate.read_floors(at_least, names)
    earlier = read_baseline(baseline, sweep)
    examples = read_datasets(sweep.datasets)
    if earlier:
        gate.check_same_questions(earlier, describe_dataset(name_datasets(sweep.datasets), examples))
    options = ExperimentOptions(
        metric=metric or main_metric(sweep.ks),
        baseline="" if earlier else baseline or "",
        environment=environment,
        prices=load_prices(prices),
        evaluation=EvaluationOptions(fresh, workers, at_once, ray_address()),
        explain=lambda error: cli.describe_error(error)[0],
    )
    reindexing = ReindexOptions(**indexing_options())
    with open_store() as store:
        indexes = SweepIndexes(store, sweep.collection, home(), reindexing, cli.say)
        if dry_run:
            cli.finish(plan := plan_experiment(store, sweep, examples, indexes), as_json, table.describe_plan(plan))
            return cli.DONE
        found = run_experiment(store, sweep, examples, indexes, options, cli.say)
        if drop_indexes:
            cli.say(f"dropped: {', '.join(indexes.drop()) or 'nothing'}")
    results = gate.judge_runs(found, earlier, most_fall, challenger, floors)
    summary = write_report(out or home() / "experiments" / table.file_name(sweep.name), found, results)
    if write:
        table.write_into_page(write, sweep.name, table.as_markdown(found))
    notes = [*(f"gate {result}" for result in results), f"report: {summary['report']}"]
    sheet = table.as_sheet(found, notes)
    if as_json:
        cli.say(str(sheet))
    cli.finish(summary, as_json, sheet)
    judged = cli.DONE if all(result.passed for result in results) else cli.NOT_ACCEPTED
    return cli.FAILED if summary["num_failed"] == len(found["runs"]) else judged


app = command("experiment", __doc__, run)


if __name__ == "__main__":
    cli.main(app)
