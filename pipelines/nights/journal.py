"""Records the steps of a night in its run, so that the next night can resume after a kill.

Knows runs and their steps; knows no details of the steps.
"""

import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from pipelines import tracing
from pipelines.indexing.collection import Collection
from pipelines.records import digest
from pipelines.store import RunLock
from pipelines.text.progress import Progress

NIGHTLY = "nightly"  # the kind of run
BEGAN = "began"
# Steps stay valid for as long as the pages of a killed crawl are not fetched again.
HOURS = 12.0

StepResult = dict[str, Any]


def mark_of(collection: Collection) -> str:
    """Return a hash of a collection file: a night resumes only a night with the same file."""
    return digest(json.dumps(collection.as_stored(), sort_keys=True))


def night_steps(steps: Mapping[str, Any]) -> dict[str, StepResult]:
    """Return the steps of a night among the steps of its run, in order.

    The others are the store's, such as the build of an index: a resumed night stages its own pages.
    """
    own = {name: step for name, step in steps.items() if isinstance(step, dict) and "said" in step}
    return dict(sorted(own.items(), key=lambda one: int(one[1]["number"])))


class Journal:
    """The finished steps of the night of `run`, by name, with their results (JSON).

    A night that was killed in the last HOURS and has the same `mark` is resumed: its finished steps are not repeated.
    """

    def __init__(self, lock: RunLock, run: int, mark: str, tell: Progress) -> None:
        self._lock, self._run, self._tell = lock, run, tell
        stored = lock.unfinished_steps(run, NIGHTLY, HOURS)
        goes_on = stored.get(BEGAN, {}).get("mark") == mark
        opening = {"mark": mark, "first": run, "day": datetime.now(UTC).date().isoformat()}
        self._done: dict[str, StepResult] = {}
        for name, result in ({BEGAN: stored[BEGAN], **night_steps(stored)} if goes_on else {BEGAN: opening}).items():
            self._note(name, result)
        if goes_on:
            tell(f"continuing the night of run {self.first}; done are: {', '.join(night_steps(stored)) or 'no steps'}")

    @property
    def first(self) -> int:
        """The run that started this night."""
        return int(self._done[BEGAN]["first"])

    @property
    def day(self) -> str:
        """The day on which the night started, in UTC."""
        return str(self._done[BEGAN]["day"])

    def step(self, name: str, work: Callable[[], StepResult]) -> StepResult:
        """Return the result of a step; run it unless it is finished."""
        if name not in self._done:
            self._tell(f"step {name}")
            with tracing.span(name):
                self._note(name, work() | {"number": len(self._done)})
        return self._done[name]

    def _note(self, name: str, result: StepResult) -> None:
        self._done[name] = self._lock.once(self._run, name, lambda _: result)
