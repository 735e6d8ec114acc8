"""Runs a check, which yields findings, within a time limit; an exception becomes a finding, too.

This module knows none of the checks.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal

from pipelines.llm.servers.http import OutOfTime, within

State = Literal["ok", "warn", "failed"]


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of a check: `found` for a person, and `remedy` for fixing a problem."""

    state: State
    found: str
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class Check:
    """A name, the function that does the checking, and the seconds after which it is given up."""

    name: str
    work: Callable[[], Iterable[Finding]]
    limit_s: float


def fine(found: str) -> Finding:
    """Return the finding that something works."""
    return Finding("ok", found)


def warning(found: str, remedy: str = "") -> Finding:
    """Return the finding that something works, but not as it should."""
    return Finding("warn", found, remedy)


def failed(found: str, remedy: str) -> Finding:
    """Return the finding that something does not work."""
    return Finding("failed", found, remedy)


def run_check(check: Check, report: Callable[[Finding], None]) -> None:
    """Run a check, reporting each finding as it comes. Raises nothing."""
    over = False

    def work() -> bool:
        for finding in _findings(check):
            if over:  # the check was given up: drop late findings
                break
            report(finding)
        return True

    with suppress(OutOfTime):
        within(check.limit_s, work)
        return
    over = True
    report(failed(f"no result within {check.limit_s:g} s", "check whether the machine is overloaded, then try again"))


def _findings(check: Check) -> Iterator[Finding]:
    try:
        yield from check.work()
    except Exception as error:  # a check runs code that may be broken
        text = " ".join(str(error).split()) or type(error).__name__
        yield failed(
            f"{type(error).__name__}: {text[:500]}", "the command that needs it shows more with RAYDEX_DEBUG=1"
        )
