"""The result of a night, as plain values.

Knows no store.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from pipelines.nights.gate import WorseQuestion

Verdict = Literal["published", "unchanged", "refused"]
REFUSED: Verdict = "refused"


def outcome_of(run: Mapping[str, Any]) -> str:
    """Return how a run ended: the verdict of a finished night, else the state of the run."""
    counts = run["counts"] or {}
    if run["state"] == "running" and not run["alive"]:
        return "abandoned"  # as the next run on the collection will mark it
    if run["state"] == "done" and counts.get("index", 0) is None:
        return "done, and indexed nothing"
    return str(counts.get("night", {}).get("verdict", run["state"]))


@dataclass(frozen=True, slots=True)
class NightResult:
    """How a night ended: its verdict, the reason for a refusal, and each step with its outcome.

    `index` is the summary of the reindex. `judged` is the gate's JSON (empty if nothing had to be judged). `worse` are
    the questions that got worse, the worst first.
    """

    collection: str
    run: int
    verdict: Verdict
    reason: str
    index: Mapping[str, Any]
    judged: Mapping[str, Any] = field(default_factory=dict)
    worse: Sequence[WorseQuestion] = ()
    steps: Mapping[str, str] = field(default_factory=dict)

    def as_counts(self) -> dict[str, Any]:
        """Return the data for the row of the run, without the text of any question."""
        night = {"verdict": self.verdict, "reason": self.reason, "judged": dict(self.judged)}
        return {**self.index, "night": night}
