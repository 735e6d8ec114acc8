"""Records the steps of a night in its run, so that the next one goes on after a kill.

Knows runs and their steps; not what a step does.
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
# As long as a killed crawl's pages are not fetched again, its steps hold too.
HOURS = 12.0

StepResult = dict[str, Any]


def mark_of(collection: Collection) -> str:
    """Return a hash of a collection file: a night goes on only with what was begun with the same one."""
    return digest(json.dumps(collection.as_stored(), sort_keys=True))


def night_steps(steps: Mapping[str, Any]) -> dict[str, StepResult]:
    """Return the steps of a night among those of its run, in their order.

    The others are the store's, such as the build of an index: a night that goes on stages pages of its own.
    """
    own = {name: step for name, step in steps.items() if isinstance(step, dict) and "said" in step}
    return dict(sorted(own.items(), key=lambda one: int(one[1]["number"])))


class Journal:
    """The steps that the night of `run` has done, by name, with their results (JSON).

    A night that ended without an end, in the last HOURS and with the same `mark`, is gone on with: its steps are done.
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
            tell(
                f"going on with the night of run {self.first}; done are: {', '.join(night_steps(stored)) or 'no steps'}"
            )

    @property
    def first(self) -> int:
        """The run that began this night."""
        return int(self._done[BEGAN]["first"])

    @property
    def day(self) -> str:
        """The day on which it began, in UTC."""
        return str(self._done[BEGAN]["day"])

    def step(self, name: str, work: Callable[[], StepResult]) -> StepResult:
        """Return the result of a step, which is done unless it was."""
        if name not in self._done:
            self._tell(f"step {name}")
            with tracing.span(name):
                self._note(name, work() | {"number": len(self._done)})
        return self._done[name]

    def _note(self, name: str, result: StepResult) -> None:
        self._done[name] = self._lock.once(self._run, name, lambda _: result)
