"""Messages about a long work for a person: those that last, and those that the next one replaces."""

from collections.abc import Callable

Progress = Callable[[str], None]


def silent(_message: str) -> None:
    """Drop a progress message."""


# Who waits longer than this wants to know what for.
TELL_S = 3.0


def describe_wait(what: str, most_s: float | None = None) -> str:
    """Return what a person who waits is told: what for, for how long at most, and how to end it."""
    return f"waiting for {what}{f', at most {most_s:.0f} s' if most_s else ''}; Ctrl-C ends the wait"


# Less than this share of a work says little about the rest of it.
LEAST_SHARE, LEAST_NOTES = 0.02, 4


class Passing(str):
    """A message that the next one replaces where that is possible: on a terminal."""

    __slots__ = ()


class WorkPace:
    """The pace of a work, by the later half of what is done: what starts slowly, or stands still, does not stay so.

    By half of the work, not of the time: a window of time that a stall fills knows nothing of the pace.
    """

    def __init__(self) -> None:
        self._notes: list[tuple[float, float]] = []

    @property
    def done(self) -> float:
        """How much was done when it was noted last."""
        return self._notes[-1][1] if self._notes else 0.0

    def note(self, at_s: float, done: float) -> None:
        """Note how much is done at a time; the clock starts anywhere."""
        if not self._notes or done > 0:
            self._notes = [*(note for note in self._notes if note[1] > 0), (at_s, done)]

    def seconds_left(self, total: float) -> float | None:
        """Return how long the rest takes at this pace, None while too little is done to tell."""
        if self.done >= total:
            return 0.0
        each_s = self.seconds_each()
        return None if each_s is None or self.done < LEAST_SHARE * total else (total - self.done) * each_s

    def seconds_each(self) -> float | None:
        """Return how long one of what is counted takes, None while too little was noted, or nothing moves."""
        if len(self._notes) < LEAST_NOTES:
            return None
        now_s, done = self._notes[-1]
        since_s, before = next((note for note in reversed(self._notes) if note[1] <= done / 2), self._notes[0])
        return (now_s - since_s) / (done - before) if done > before else None


def describe_seconds(seconds: float) -> str:
    """Return a duration as a person says it: "40 s", "3 min", "2 h 10 min"."""
    if seconds < 100:
        return f"{max(1, round(seconds))} s"
    hours, minutes = divmod(round(seconds / 60), 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min"
