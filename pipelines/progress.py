"""Messages about a long work for a person: those that last, and those that the next one replaces."""

from collections.abc import Callable

Progress = Callable[[str], None]

# Less than this share of a work says little about the rest of it.
LEAST_SHARE = 0.02


class Passing(str):
    """A message that the next one replaces where that is possible: on a terminal."""

    __slots__ = ()


def seconds_left(done: float, total: float, elapsed_s: float) -> float | None:
    """Return how long the rest takes at the pace so far, None while too little is done to tell."""
    if done <= 0 or done < LEAST_SHARE * total:
        return None
    return max(0.0, total - done) / done * elapsed_s


def describe_seconds(seconds: float) -> str:
    """Return a duration as a person says it: "40 s", "3 min", "2 h 10 min"."""
    if seconds < 100:
        return f"{max(1, round(seconds))} s"
    hours, minutes = divmod(round(seconds / 60), 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min"
