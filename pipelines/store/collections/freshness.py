"""Tells how fresh a collection is, and what needs attention."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from pipelines.text.counts import counted
from pipelines.text.progress import describe_seconds

# Sites are updated every night or after each release, so a week without an update is probably an oversight. A page that
# fails for a shorter time may be back after the next night.
STALE, FAILING = timedelta(days=7), timedelta(days=3)


@dataclass(frozen=True, slots=True)
class Freshness:
    """When the longest-unchecked page of the live index was checked, and when the last full run succeeded.

    `failing` counts the pages that could not be read for longer than FAILING.
    """

    oldest_check: datetime | None = None
    last_run: datetime | None = None
    failing: int = 0

    def seconds_since(self, now: datetime | None = None) -> dict[str, float]:
        """Return the seconds since each known time, by name."""
        now = now or datetime.now(UTC)
        times = {"oldest_check": self.oldest_check, "last_run": self.last_run}
        return {name: (now - time).total_seconds() for name, time in times.items() if time}

    def describe(self, now: datetime | None = None) -> str:
        """Return a description in a few words, "" if nothing is known."""
        since = self.seconds_since(now)
        names = {"oldest_check": "every page was checked in the last {}", "last_run": "last full run {} ago"}
        return "; ".join(names[name].format(_shown(seconds)) for name, seconds in since.items())

    def warnings(self, now: datetime | None = None) -> list[str]:
        """Return a warning for each thing that needs attention."""
        since, stale = self.seconds_since(now), STALE.total_seconds()
        found = []
        if since.get("last_run", 0.0) > stale:
            found.append(f"no full run has ended well for {_shown(since['last_run'])}")
        if since.get("oldest_check", 0.0) > stale:
            found.append(f"a page of the index was not checked for {_shown(since['oldest_check'])}")
        if self.failing:
            pages = counted(self.failing, "page fails", "pages fail")
            found.append(f"{pages} for more than {counted(FAILING.days, 'day')}")
        return found


def _shown(seconds: float) -> str:
    hours = seconds / 3600
    if hours < 2:
        return describe_seconds(seconds)
    return f"{round(hours)} h" if hours < 48 else f"{counted(round(hours / 24), 'day')}"
