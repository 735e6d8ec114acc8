"""The result of a night, as plain values.

Knows no store.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from pipelines.nights.gate import WorseQuestion

Verdict = Literal["published", "unchanged", "refused"]
REFUSED: Verdict = "refused"


def verdict_of(run: Mapping[str, Any]) -> str:
    """Return the verdict of a run that is a finished night, "" for any other run."""
    counts = run["counts"] or {}
    return str(counts.get("night", {}).get("verdict", "")) if run["state"] == "done" else ""


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
