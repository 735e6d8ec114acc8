"""Writes progress messages for a person: permanent ones, and ones that the next message replaces."""

from collections.abc import Callable

Progress = Callable[[str], None]


def silent(_message: str) -> None:
    """Drop a progress message."""


# A person who waits longer than this wants to know why.
TELL_S = 3.0


def describe_wait(what: str, most_s: float | None = None) -> str:
    """Return a message for a person who waits: the reason, the longest wait, and how to stop it."""
    return f"waiting for {what}{f', at most {most_s:.0f} s' if most_s else ''}; Ctrl-C ends the wait"


# A smaller share of a job says little about the rest of it.
LEAST_SHARE, LEAST_NOTES = 0.02, 4


class Passing(str):
    """A message that the next one replaces if the output allows it, as terminals do."""

    __slots__ = ()


class WorkPace:
    """Measures the pace of a job over the later half of its completed work.

    This ignores a slow start, and recovers from a stall. It uses half of the work instead of a time window, because a
    window filled by a stall says nothing about the pace.
    """

    def __init__(self) -> None:
        self._notes: list[tuple[float, float]] = []

    @property
    def done(self) -> float:
        """The amount of work done at the last note."""
        return self._notes[-1][1] if self._notes else 0.0

    def note(self, at_s: float, done: float) -> None:
        """Record the amount of work done at a time. The clock may start at any value."""
        if not self._notes or done > 0:
            self._notes = [*(note for note in self._notes if note[1] > 0), (at_s, done)]

    def seconds_left(self, total: float) -> float | None:
        """Return the remaining time at this pace, or None while too little is done for an estimate."""
        if self.done >= total:
            return 0.0
        each_s = self.seconds_each()
        return None if each_s is None or self.done < LEAST_SHARE * total else (total - self.done) * each_s

    def seconds_each(self) -> float | None:
        """Return the time per unit of work, or None while there are too few notes or no progress."""
        if len(self._notes) < LEAST_NOTES:
            return None
        now_s, done = self._notes[-1]
        since_s, before = next((note for note in reversed(self._notes) if note[1] <= done / 2), self._notes[0])
        return (now_s - since_s) / (done - before) if done > before else None


def describe_seconds(seconds: float) -> str:
    """Return a duration in everyday form: "40 s", "3 min", "2 h 10 min"."""
    whole = max(1, round(seconds))
    if whole < 100:
        return f"{whole} s"
    hours, minutes = divmod(round(whole / 60), 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min"
