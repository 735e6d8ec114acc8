"""`python -m jobs.experiment sweep.yaml`: compare configurations on the same questions, and report what each is worth.

Each is measured as jobs.evaluate would; what was measured before is not asked again. A configuration that fails is
shown with its error and stops nothing. Exit codes: 0 done, 1 failed (every configuration did), 2 bad input, 4 the gate
(--fail-below) did not pass.
"""

import argparse
import json
import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table
from rich.text import Text

from jobs.cli import FAILED, BadInput, command, finish, main, say
from jobs.environment import home, open_store, read_configuration
from jobs.experiment_cell import Measuring
from jobs.experiment_index import SweepIndexes, drop
from pipelines.answering.settings import describe_errors
from pipelines.evaluation.dataset import Example, dataset_fingerprint, read_dataset
from pipelines.evaluation.experiments.comparison import Record, best, experiment, main_metric
from pipelines.evaluation.experiments.cost import load_prices
from pipelines.evaluation.experiments.gate import Judged, gate, read_results, same_questions
from pipelines.evaluation.experiments.report import around, as_html, as_markdown, into_page
from pipelines.evaluation.experiments.sweep import Cell, Sweep, read_sweep
from pipelines.indexing.collection import IndexChoices
from pipelines.store import Store

GATE_FAILED = 4
WIDTH = 150  # of the table where there is no terminal


def arguments() -> argparse.ArgumentParser:
    parser = command("experiment", __doc__)
    parser.add_argument("file", type=Path, help="sweep file (benchmarks/sweeps/*.yaml)")
    parser.add_argument("--out", type=Path, help="folder of report.html and results.json (default: in RAYDEX_HOME)")
    parser.add_argument("--metric", help="what is ranked and judged by (default: retrieval_score at the largest k ≤ 9)")
    parser.add_argument("--write", type=Path, metavar="PAGE.md", help="put the table into this page, between its marks")
    parser.add_argument("--prices", type=Path, metavar="FILE", help="prices of models; they win over the known ones")
    parser.add_argument("--study", type=Path, metavar="FILE", help="the study's results, for a table beside ours")
    gating = parser.add_argument_group("gate")
    gating.add_argument(
        "--baseline", metavar="RUN", help="compare with this run, or with a results.json of another day"
    )
    gating.add_argument("--fail-below", type=how_far, metavar="X", help="exit 4 if a run scores more than X below it")
    gating.add_argument("--candidate", metavar="RUN", help="judge this run alone (default: all but the baseline)")
    running = parser.add_argument_group("running")
    running.add_argument("--fresh", action="store_true", help="ask everything anew, whatever is stored already")
    running.add_argument("--workers", type=int, default=0, help="Ray actors (default: none for few questions)")
    running.add_argument(
        "--drop-indexes", action="store_true", help="drop the collection's experiment indexes thereafter"
    )
    running.add_argument("--dry-run", action="store_true", help="say what would be measured, do nothing")
    running.add_argument("--json", action="store_true", help="print a summary as one JSON object, last line")
    return parser


def how_far(text: str) -> float:
    """The X of --fail-below: how far below, so its sign says nothing. Raises ArgumentTypeError."""
    try:
        value = abs(float(text))
    except ValueError:
        value = math.inf
    if not math.isfinite(value):
        raise argparse.ArgumentTypeError(f"{text!r} is no number: say how far a score may fall, like 0.02")
    return value


def check(args: argparse.Namespace, sweep: Sweep) -> dict[str, Any] | None:
    """The earlier experiment that --baseline names as a file, if it does.

    Raises BadInput, NotComparable and NoPlace for what would only be noticed when all is measured.
    """
    for cell in sweep.cells:
        check_index(args.file, cell)
    if args.write:
        around(args.write, sweep.name)
    study_of(args)
    names = [cell.name for cell in sweep.cells]
    if (args.fail_below is not None or args.candidate) and not args.baseline:
        raise BadInput("--fail-below and --candidate need --baseline: a run of this sweep, or a results.json")
    if args.candidate and args.candidate not in names:
        raise BadInput(f"there is no run {args.candidate!r}; there are: {'; '.join(names)}")
    known = [f"{name}@{k}" for name in ("retrieval_score", "section_score", "ndcg") for k in sweep.ks] + ["mrr"]
    if args.metric and args.metric not in known and (not sweep.answers or "@" in args.metric):
        raise BadInput(f"--metric {args.metric!r} is not measured; there are: {', '.join(known)}")
    if args.baseline and args.baseline not in names:
        if not Path(args.baseline).is_file():
            raise BadInput(f"--baseline {args.baseline!r} is neither a file nor a run; runs are: {'; '.join(names)}")
        return read_results(Path(args.baseline))
    return None


def check_index(file: Path, cell: Cell) -> None:
    """Raise BadInput for values that no index can have."""
    try:
        IndexChoices.model_validate(cell.index)
    except ValidationError as error:
        raise BadInput(f"{file}: {cell.name}: {describe_errors(error)}") from error


def study_of(args: argparse.Namespace) -> list[dict[str, Any]]:
    """The runs of --study. Raises BadInput."""
    try:
        runs = json.loads(args.study.read_text(encoding="utf-8")) if args.study else []
        return [{**run, "retrieval_score": float(run["retrieval_score"])} for run in runs]
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise BadInput(
            f"--study {args.study} can't be read as a list of runs with retrieval_score: {error!r}"
        ) from error


def work(args: argparse.Namespace) -> int:
    environment = read_configuration().model_dump()
    sweep = read_sweep(args.file, environment)
    earlier = check(args, sweep)
    examples = read_dataset(sweep.dataset)
    dataset = dataset_fingerprint(examples)
    if earlier:
        same_questions(earlier, {"name": sweep.dataset.name, "questions": len(examples), "fingerprint": dataset})
    args.metric = args.metric or main_metric(sweep.ks)
    prices = load_prices(args.prices)
    with open_store() as store:
        if args.dry_run:
            return dry_run(store, sweep, examples, args)
        measure = Measuring(store, sweep, examples, environment, SweepIndexes(store, sweep.collection), args, prices)
        records = [measure(number, cell) for number, cell in enumerate(sweep.cells, 1)]
        if args.drop_indexes:
            say(f"dropped: {', '.join(drop(store, sweep.collection)) or 'nothing'}")
    own = args.baseline if args.baseline and not earlier else ""
    found = experiment(sweep, examples, records, dataset, args.metric, own)
    judged = (
        gate(found, earlier, args.metric, args.fail_below, args.candidate or "") if args.fail_below is not None else []
    )
    folder = write(args, found, judged)
    show(found)
    for verdict in judged:
        say(f"gate {verdict}")
    finish(summary(found, judged, folder), args.json, f"{folder / 'report.html'}")
    if not any(record["state"] == "done" for record in records):
        return FAILED
    return 0 if all(verdict.passed for verdict in judged) else GATE_FAILED


def dry_run(store: Store, sweep: Sweep, examples: Sequence[Example], args: argparse.Namespace) -> int:
    """Say what would be measured, and which indexes it needs."""
    indexes = SweepIndexes(store, sweep.collection)
    plan: dict[str, Any] = {"questions": len(examples), "runs": {}, "failing": {}}
    for cell in sweep.cells:
        try:
            plan["runs"][cell.name] = indexes.name(cell.index)
        except Exception as error:  # as a run it would fail with the same error
            plan["failing"][cell.name] = f"{type(error).__name__}: {error}"
    wanted = sorted(set(plan["runs"].values()) - {sweep.collection})
    plan["to_build"] = [name for name in wanted if name not in store.copies(sweep.collection)]
    lines = [f"  {name}: {index}" for name, index in plan["runs"].items()]
    lines += [f"  {name}: will fail: {error}" for name, error in plan["failing"].items()]
    text = "\n".join([f"dry run: {len(examples):,} questions, {len(sweep.cells)} runs", *lines,
                      f"indexes to build: {', '.join(plan['to_build']) or 'none'}"])  # fmt: skip
    finish(plan, args.json, text)
    return 0


def write(args: argparse.Namespace, found: Mapping[str, Any], judged: Sequence[Judged]) -> Path:
    """results.json, report.html and the page of --write; returns the folder."""
    folder: Path = args.out or home() / "experiments" / "".join(
        c if c.isalnum() or c in "-_." else "-" for c in found["name"]
    )
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "results.json").write_text(json.dumps(found, ensure_ascii=False) + "\n", encoding="utf-8")
    (folder / "report.html").write_text(as_html(found, [str(verdict) for verdict in judged]), encoding="utf-8")
    if args.write:
        into_page(args.write, found["name"], as_markdown(found, study_of(args)))
    return folder


def summary(found: Mapping[str, Any], judged: Sequence[Judged], folder: Path) -> dict[str, Any]:
    """What came of it, without the questions."""
    kept = (
        "name",
        "state",
        "error",
        "varied",
        "scores",
        "against",
        "cost_per_question",
        "cost_per_1000",
        "agents",
        "errors",
        "degraded",
        "score_errors",
        "fingerprint",
        "num_kept",
        "seconds",
    )
    leader = best(found["runs"], found["metric"])
    return {
        "name": found["name"],
        "metric": found["metric"],
        "baseline": found["baseline"],
        "best": leader and leader["name"],
        "num_questions": found["dataset"]["questions"],
        "num_failed": sum(run["state"] == "failed" for run in found["runs"]),
        "frontier": found["frontier"],
        "routers": found["routers"],
        "runs": [{key: run[key] for key in kept if key in run} for run in found["runs"]],
        "gate": [{**asdict(verdict), "passed": verdict.passed} for verdict in judged],
        "report": str(folder / "report.html"),
        "results": str(folder / "results.json"),
    }


def show(found: Mapping[str, Any]) -> None:
    """The runs as a table, best first."""
    metric, baseline = found["metric"], found["baseline"]
    family = metric.partition("@")[0]
    names = next((list(run["scores"]) for run in found["runs"] if run["state"] == "done"), [])
    answers = next((name for name in ("quality", "similarity", "token_f1") if name in names), "")
    columns = [name for name in names if name.startswith(f"{family}@") or name in (metric, "mrr", answers)]
    table = Table(title=f"{found['name']}: {family}, {found['dataset']['questions']:,} questions", title_justify="left",
                  box=SIMPLE)  # fmt: skip
    table.add_column("run", min_width=24)
    for heading in (*(name.removeprefix(family) or name for name in columns), f"95 % {metric.removeprefix(family)}",
                    "to baseline", "p", "ms", "$/1000"):  # fmt: skip
        table.add_column(heading, justify="right", no_wrap=True)
    for run in sorted(found["runs"], key=lambda run: -run["scores"].get(metric, [-1])[0]):
        if run["state"] == "failed":
            table.add_row(Text(f"{run['name']}\n{run['error'].splitlines()[0]}", style="red"))
            continue
        name = Text(run["name"], style="bold" if run["name"] == baseline else "")
        scores = [f"{run['scores'][name][0]:.3f}" if name in run["scores"] else "–" for name in columns]
        cost = "–" if run["cost_per_1000"] is None else f"{run['cost_per_1000']:.2f}"
        table.add_row(name, *scores, *_beside(run, metric), f"{run['timings']['total']['p50'] * 1000:.0f}", cost)
    Console(stderr=True, highlight=False, width=None if sys.stderr.isatty() else WIDTH).print(table)


def _beside(run: Record, metric: str) -> tuple[str, str, str]:
    """The interval, the difference to the baseline and its p."""
    score, against = run["scores"].get(metric), run.get("against", {}).get(metric)
    interval = f"{score[1]:.2f} – {score[2]:.2f}" if score else ""
    if not against:
        return interval, "", ""
    return interval, f"{against[0]:+.3f} [{against[1]:+.2f}, {against[2]:+.2f}]", f"{against[3]:.3f}"


if __name__ == "__main__":
    main(arguments(), work)
