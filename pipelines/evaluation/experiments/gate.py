"""Decides whether runs pass: compares their scores with a baseline's, or with floors.

The baseline is a run of the same experiment or of an earlier one. Knows records in the format of results.json.
"""

import contextlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipelines.evaluation.experiments.comparison import FORMAT, UnknownRun, difference, run_of
from pipelines.evaluation.experiments.record import Record
from pipelines.text.counts import counted
from pipelines.text.parsing import parse_json
from pipelines.text.tables import with_interval


class NotComparable(ValueError):
    """Two experiments asked different questions, or a file is not an experiment."""


class BadFloor(ValueError):
    """A floor can't be parsed, or its score is not measured."""


@dataclass(frozen=True, slots=True)
class Floor:
    """The lowest value of a score that passes."""

    metric: str
    least: float

    @classmethod
    def parse(cls, text: str) -> "Floor":
        """Return the floor of a string like "claims_supported=0.85". Raises BadFloor."""
        metric, _, value = text.partition("=")
        with contextlib.suppress(ValueError):
            if metric.strip() and math.isfinite(least := float(value)):
                return cls(metric.strip(), least)
        raise BadFloor(f"--at-least is {text!r}: write a score and a number, such as claims_supported=0.85")


@dataclass(frozen=True, slots=True)
class FloorResult:
    """Whether the score [value, low, high] of a run reaches its floor; a missing score does not."""

    run: str
    metric: str
    least: float
    score: Sequence[float]
    error: str = ""

    @property
    def passed(self) -> bool:
        return not self.error and bool(self.score) and self.score[0] >= self.least - 1e-9

    def __str__(self) -> str:
        verdict = "passed" if self.passed else "FAILED"
        wanted = f"it must be at least {self.least:g}"
        if self.error or not self.score:
            why = self.error or "no question or answer has this score"
            return f"{verdict}: {self.run}: {self.metric} could not be measured ({why}); {wanted}"
        return f"{verdict}: {self.run}: {self.metric} {with_interval(self.score, '.4f')}; {wanted}"


def read_floors(texts: Sequence[str], known: Sequence[str]) -> list[Floor]:
    """Return the floors in `texts`; `known` are the scores that will be measured. Raises BadFloor."""
    floors = [Floor.parse(text) for text in texts]
    for floor in floors:
        if floor.metric not in known:
            raise BadFloor(f"--at-least {floor.metric}: it is not measured here; there are: {', '.join(known)}")
    return floors


def judge_floors(runs: Sequence[Record], floors: Sequence[Floor]) -> list[FloorResult]:
    """Judge each run by each floor; a run that could not be measured passes none."""
    return [
        FloorResult(run["name"], floor.metric, floor.least, run["scores"].get(floor.metric, ()), run["error"] or "")
        for run in runs
        for floor in floors
    ]


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
    """Judge `challenger`, or every run except the baseline, on the questions that both were asked; [] without `drop`.

    The baseline is the one of `current`. With `earlier` (the results of another experiment) it is the run with the same
    name there, or the only run. Raises UnknownRun and NotComparable.
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


def judge_runs(
    found: Mapping[str, Any],
    earlier: Mapping[str, Any] | None,
    drop: float | None,
    challenger: str,
    floors: Sequence[Floor],
) -> list[GateResult | FloorResult]:
    """Judge `challenger`, or every run, by the gate and by each floor. Raises UnknownRun and NotComparable."""
    judged = [run_of(found["runs"], challenger)] if challenger else found["runs"]
    return [*gate(found, earlier, found["metric"], drop, challenger), *judge_floors(judged, floors)]


def check_same_questions(earlier: Mapping[str, Any], dataset: Mapping[str, Any]) -> None:
    """Raise NotComparable unless an earlier experiment asked the questions of `dataset`."""
    if earlier["dataset"]["fingerprint"] != dataset["fingerprint"]:
        raise NotComparable(
            f"the baseline was asked {earlier['dataset']['name']} "
            f"({counted(earlier['dataset']['questions'], 'question')}), "
            f"this experiment {dataset['name']} ({dataset['questions']}): they must be the same"
        )


def read_results(path: Path) -> dict[str, Any]:
    """Return an experiment's results.json. Raises NotComparable for any other file."""
    try:
        read = parse_json(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise NotComparable(f"{path} can't be read as an experiment's results.json: {error}") from error
    if not isinstance(read, dict) or read.get("format") != FORMAT:
        raise NotComparable(f"{path} is not the results.json of an experiment ({FORMAT})")
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
