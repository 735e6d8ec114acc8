"""Whether a run may pass: its score against a baseline's, of the same experiment or of one of another day.

Knows records as they stand in results.json.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipelines.evaluation.experiments.comparison import FORMAT, NoSuchRun, Record, difference, run_of


class NotComparable(ValueError):
    """Two runs were not asked the same questions."""


@dataclass(frozen=True, slots=True)
class Judged:
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
    current: Mapping[str, Any], earlier: Mapping[str, Any] | None, metric: str, drop: float, candidate: str = ""
) -> list[Judged]:
    """Judge `candidate`, or every run but the baseline, on the questions that both were asked.

    The baseline is `current`'s own; with `earlier` (another experiment's results) it is the run of the same name
    there, or the only one. Raises NoSuchRun, NotComparable.
    """
    if earlier:
        same_questions(earlier, current["dataset"])
    own = run_of(current["runs"], current["baseline"]) if not earlier else None
    judged = [run_of(current["runs"], candidate)] if candidate else [run for run in current["runs"] if run is not own]
    if not judged:
        raise NoSuchRun("there is nothing to judge: the baseline is the only run")
    return [_judged(run, own or _earlier(earlier or {}, run["name"]), metric, drop) for run in judged]


def same_questions(earlier: Mapping[str, Any], asked: Mapping[str, Any]) -> None:
    """Raise NotComparable unless an `earlier` experiment asked what `asked` describes: name, questions, fingerprint."""
    if earlier["dataset"]["fingerprint"] != asked["fingerprint"]:
        raise NotComparable(
            f"the baseline was asked {earlier['dataset']['name']} ({earlier['dataset']['questions']} questions), "
            f"this experiment {asked['name']} ({asked['questions']}): they must be the same"
        )


def _earlier(earlier: Mapping[str, Any], name: str) -> Record:
    runs = earlier["runs"]
    return runs[0] if len(runs) == 1 else run_of(runs, name)


def _judged(run: Record, baseline: Record, metric: str, drop: float) -> Judged:
    for one in (run, baseline):
        if one["state"] != "done":
            return Judged(run["name"], baseline["name"], metric, drop, (), _why(one, run))
    try:
        return Judged(run["name"], baseline["name"], metric, drop, difference(run, baseline, metric))
    except NoSuchRun as error:
        return Judged(run["name"], baseline["name"], metric, drop, (), str(error))


def _why(one: Record, run: Record) -> str:
    return str(one["error"]) if one is run else f"the baseline {one['name']!r} could not be measured: {one['error']}"


def read_results(path: Path) -> dict[str, Any]:
    """An experiment's results.json. Raises NotComparable for a file that is none."""
    try:
        read = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise NotComparable(f"{path} can't be read as an experiment's results.json: {error}") from error
    if not isinstance(read, dict) or read.get("format") != FORMAT:
        raise NotComparable(f"{path} is no results.json of an experiment ({FORMAT})")
    return read
