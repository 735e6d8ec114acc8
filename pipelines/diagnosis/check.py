"""A check yields findings; it is run within a time limit, and whatever it raises becomes a finding.

Knows nothing of what is checked.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal

from pipelines.llm.servers.http import OutOfTime, within

State = Literal["ok", "warn", "failed"]


@dataclass(frozen=True, slots=True)
class Finding:
    """What a check found: `found` for a person, and for what is not well what to do about it."""

    state: State
    found: str
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class Check:
    """A name, what does the checking, and the seconds after which it is given up."""

    name: str
    work: Callable[[], Iterable[Finding]]
    limit_s: float


def fine(found: str) -> Finding:
    """Return the finding of something that works."""
    return Finding("ok", found)


def warning(found: str, remedy: str = "") -> Finding:
    """Return the finding of something that works, but not as it should."""
    return Finding("warn", found, remedy)


def failed(found: str, remedy: str) -> Finding:
    """Return the finding of something that does not work."""
    return Finding("failed", found, remedy)


def run_check(check: Check, report: Callable[[Finding], None]) -> None:
    """Run a check, reporting each finding as it comes. Raises nothing."""
    over = False

    def work() -> bool:
        for finding in _findings(check):
            if over:  # it was given up: what comes late belongs to nothing
                break
            report(finding)
        return True

    with suppress(OutOfTime):
        within(check.limit_s, work)
        return
    over = True
    report(failed(f"no result within {check.limit_s:g} s", "look whether the machine is overloaded, then try again"))


def _findings(check: Check) -> Iterator[Finding]:
    try:
        yield from check.work()
    except Exception as error:  # a check goes where things are broken
        text = " ".join(str(error).split()) or type(error).__name__
        yield failed(f"{type(error).__name__}: {text[:500]}", "RAYDEX_DEBUG=1 and the command that needs it show more")
