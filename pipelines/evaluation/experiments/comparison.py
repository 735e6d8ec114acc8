"""Compares the runs of a sweep, with paired differences to a baseline.

Names the best run. Knows records in the format of results.json; knows no engine and no database.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from pipelines.evaluation.dataset import Example, as_row, name_datasets
from pipelines.evaluation.experiments.effects import effects, label_runs
from pipelines.evaluation.experiments.record import DECIMALS, Record
from pipelines.evaluation.experiments.sweep import Sweep
from pipelines.evaluation.metrics import answer_metrics, hit_metrics
from pipelines.evaluation.statistics import paired_test

FORMAT = "raydex experiment 1"
# Above this, a score at k depends more on the length of the list than on its order.
MAIN_K = 9


class UnknownRun(LookupError):
    """The experiment has no run or metric with the given name."""


def compare_runs(
    sweep: Sweep, examples: Sequence[Example], records: Sequence[Record], dataset: str, metric: str, baseline: str = ""
) -> dict[str, Any]:
    """Return all records as one object, with effects and the differences to `baseline` ("": the first measured run).

    `dataset` is the fingerprint of the questions. Raises UnknownRun for a baseline that is not among the records.
    """
    runs = [dict(record) for record in records]
    measured = [run["name"] for run in runs if run["state"] == "done"]
    baseline = run_of(runs, baseline)["name"] if baseline else next(iter(measured), "")
    label_runs(sweep, runs)
    for run in runs:
        if run["state"] == "done" and run["name"] != baseline and baseline in measured:
            run["against"] = differences(run, run_of(runs, baseline))
    return {
        "format": FORMAT,
        "name": sweep.name,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "collection": sweep.collection,
        "dataset": {
            "name": name_datasets(sweep.datasets),
            "fingerprint": dataset,
            "questions": len(examples),
            "unanswerable": sum(not example.answerable for example in examples),
        },
        "ks": list(sweep.ks),
        "metric": metric,
        "baseline": baseline,
        "parameters": list(sweep.parameters),
        "questions": [{"id": example.id, **as_row(example)} for example in examples],
        "effects": effects(runs, sweep.parameters),
        "places": _number_places(runs),
        "runs": runs,
    }


def _number_places(runs: Sequence[Record]) -> list[list[str]]:
    """Return every [source, title] that was found, once; the runs' hits become [its number, relevance]."""
    places: dict[tuple[str, str], int] = {}

    def numbered(row: Record) -> Record:
        hits = [[places.setdefault((source, title), len(places)), right] for source, title, right in row["hits"]]
        return {**row, "hits": hits}

    for run in runs:
        if run["state"] == "done":
            run["found"] = list(map(numbered, run["found"]))
    return [list(place) for place in places]


def main_metric(ks: Sequence[int]) -> str:
    """Return the metric that a report opens with: the study's metric, at the largest k up to MAIN_K."""
    return f"{hit_metrics()[0].name}@{max((k for k in ks if k <= MAIN_K), default=min(ks))}"


def check_names(sweep: Sweep, metric: str = "", *runs: str) -> None:
    """Raise UnknownRun unless the sweep has all `runs` ("" means none) and its runs can be ranked by `metric`."""
    for name in runs:
        if name and name not in sweep.names:
            raise UnknownRun(f"there is no run {name!r}; there are: {'; '.join(sweep.names)}")
    known = [column for declared in hit_metrics() if declared.by_question for column in declared.columns(sweep.ks)]
    if sweep.answers:
        known += [*(declared.name for declared in answer_metrics()), *sweep.dimensions]
    if metric and metric not in known:
        raise UnknownRun(f"metric {metric!r} is not measured; there are: {', '.join(known)}")


def run_of(runs: Iterable[Record], name: str) -> Record:
    """Return the run with that name. Raises UnknownRun."""
    runs = list(runs)
    for run in runs:
        if run["name"] == name:
            return run
    raise UnknownRun(f"there is no run {name!r}; there are: {'; '.join(run['name'] for run in runs)}")


def best_run(runs: Iterable[Record], metric: str) -> Record | None:
    """Return the measured run with the highest score; the first one in a tie."""
    measured = [run for run in runs if metric in run["scores"]]
    return max(measured, key=lambda run: run["scores"][metric][0], default=None)


def differences(run: Record, other: Record) -> dict[str, list[float]]:
    """Return [difference, low, high, p] per metric: how much better `run` is than `other` where both answered."""
    return {name: difference(run, other, name) for name in run["values"] if _pairs(run, other, name)}


def difference(run: Record, other: Record, metric: str) -> list[float]:
    """Return [difference, low, high, p] of one metric. Raises UnknownRun for a metric that one of them lacks."""
    pairs = _pairs(run, other, metric)
    if not pairs:
        raise UnknownRun(f"{run['name']!r} and {other['name']!r} have no question with {metric!r} in common")
    test = paired_test([a for a, _ in pairs], [b for _, b in pairs])
    return [round(value, DECIMALS) for value in (test.difference, test.low, test.high, test.p)]


def _pairs(run: Record, other: Record, metric: str) -> list[tuple[float, float]]:
    both = zip(run.get("values", {}).get(metric, ()), other.get("values", {}).get(metric, ()), strict=False)
    return [(a, b) for a, b in both if a is not None and b is not None]


# The keys of each run in a summary.
IN_SUMMARY = (
    "name", "state", "error", "varied", "scores", "against", "cost_per_question", "cost_per_1000", "agents", "errors",
    "degraded", "stand_ins", "score_errors", "fingerprint", "num_kept", "seconds",
)  # fmt: skip


def summarise_experiment(found: Mapping[str, Any]) -> dict[str, Any]:
    """Return an experiment without its questions."""
    leader = best_run(found["runs"], found["metric"])
    return {
        **{key: found[key] for key in ("name", "metric", "baseline")},
        "best": leader and leader["name"],
        "num_questions": found["dataset"]["questions"],
        "num_failed": sum(run["state"] == "failed" for run in found["runs"]),
        "runs": [{key: run[key] for key in IN_SUMMARY if key in run} for run in found["runs"]],
    }
