"""Decides whether runs may pass: their scores against those of a baseline.

The baseline is a run of the same experiment, or of an earlier one. Knows records as they stand in results.json.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipelines.evaluation.experiments.comparison import FORMAT, UnknownRun, difference, run_of
from pipelines.evaluation.experiments.record import Record


class NotComparable(ValueError):
    """Two experiments did not ask the same questions, or a file holds no experiment."""


@dataclass(frozen=True, slots=True)
class GateResult:
    """Whether a run passes: its `difference` [difference, low, high, p] to the baseline must be at least -`drop`."""

    run: str
    baseline: str
    metric: str
    drop: float
    difference: Sequence[float]
    error: str = ""

    @property
    def passed(self) -> bool:
        return not self.error and self.difference[0] >= -self.drop - 1e-9

    def __str__(self) -> str:
        verdict = "passed" if self.passed else "FAILED"
        if self.error:
            return f"{verdict}: {self.run} could not be judged: {self.error}"
        value, low, high, p = self.difference
        return (
            f"{verdict}: {self.run} against {self.baseline}: {self.metric} {value:+.4f} ({low:+.4f} to {high:+.4f}, "
            f"p {p:.3g}); it may lose {self.drop:g}"
        )


def gate(
    current: Mapping[str, Any], earlier: Mapping[str, Any] | None, metric: str, drop: float | None, challenger: str = ""
) -> list[GateResult]:
    """Judge `challenger`, or every run but the baseline, on the questions that both were asked; nothing without `drop`.

    The baseline is that of `current`; with `earlier` (the results of another experiment) it is the run of the same
    name there, or the only one. Raises UnknownRun and NotComparable.
    """
    if drop is None:
        return []
    if earlier:
        check_same_questions(earlier, current["dataset"])
    own = run_of(current["runs"], current["baseline"]) if not earlier else None
    runs = [run_of(current["runs"], challenger)] if challenger else [run for run in current["runs"] if run is not own]
    if not runs:
        raise UnknownRun("there is nothing to judge: the baseline is the only run")
    return [_judge(run, own or _earlier_run(earlier or {}, run["name"]), metric, drop) for run in runs]


def check_same_questions(earlier: Mapping[str, Any], dataset: Mapping[str, Any]) -> None:
    """Raise NotComparable unless an earlier experiment asked the questions of `dataset`."""
    if earlier["dataset"]["fingerprint"] != dataset["fingerprint"]:
        raise NotComparable(
            f"the baseline was asked {earlier['dataset']['name']} ({earlier['dataset']['questions']} questions), "
            f"this experiment {dataset['name']} ({dataset['questions']}): they must be the same"
        )


def read_results(path: Path) -> dict[str, Any]:
    """Return an experiment's results.json. Raises NotComparable for any other file."""
    try:
        read = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise NotComparable(f"{path} can't be read as an experiment's results.json: {error}") from error
    if not isinstance(read, dict) or read.get("format") != FORMAT:
        raise NotComparable(f"{path} is no results.json of an experiment ({FORMAT})")
    return read


def _earlier_run(earlier: Mapping[str, Any], name: str) -> Record:
    runs = earlier["runs"]
    return runs[0] if len(runs) == 1 else run_of(runs, name)


def _judge(run: Record, baseline: Record, metric: str, drop: float) -> GateResult:
    for one in (run, baseline):
        if one["state"] != "done":
            return GateResult(run["name"], baseline["name"], metric, drop, (), _reason(one, run))
    try:
        return GateResult(run["name"], baseline["name"], metric, drop, difference(run, baseline, metric))
    except UnknownRun as error:
        return GateResult(run["name"], baseline["name"], metric, drop, (), str(error))


def _reason(one: Record, run: Record) -> str:
    return str(one["error"]) if one is run else f"the baseline {one['name']!r} could not be measured: {one['error']}"
