"""Counts questions: how they were answered and rated, how long that took, and the cost.

Knows rows of questions; ignores their text.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, timedelta

import numpy as np

from pipelines.answering.answerers import SMALLTALK
from pipelines.records import LOW
from pipelines.store import AskedQuestion

# Maximum days of a chart; for a longer period each bar is a week.
MOST_DAYS = 120


@dataclass(frozen=True, slots=True)
class Quantiles:
    """Median and 95th percentile of seconds; None if none was measured."""

    p50: float | None
    p95: float | None

    @classmethod
    def of(cls, values: Iterable[float | None]) -> "Quantiles":
        known = [value for value in values if value is not None]
        if not known:
            return cls(None, None)
        p50, p95 = np.percentile(known, [50, 95])
        return cls(round(float(p50), 4), round(float(p95), 4))


@dataclass(frozen=True, slots=True)
class Figures:
    """The figures of a set of questions.

    `unknown` counts "I do not know" answers, `low` answers of low confidence, and `failed` questions without an answer.
    A question counts in at most one of the three. `up` and `down` count the questions whose ratings are mostly up or
    mostly down. `cost` is in US dollars.
    """

    questions: int
    unknown: int
    low: int
    failed: int
    up: int
    down: int
    cost: float
    prompt_tokens: int
    completion_tokens: int
    seconds: Quantiles
    first_word: Quantiles


def count(rows: Sequence[AskedQuestion]) -> Figures:
    """Return the figures of `rows`."""
    answered = [row for row in rows if not row.failed]
    return Figures(
        questions=len(rows),
        unknown=sum(map(is_unknown, rows)),
        low=sum(map(is_low, rows)),
        failed=len(rows) - len(answered),
        up=sum(row.ups > row.downs for row in rows),
        down=sum(row.downs > row.ups for row in rows),
        cost=round(sum(row.cost for row in rows), 6),
        prompt_tokens=sum(row.prompt_tokens for row in rows),
        completion_tokens=sum(row.completion_tokens for row in rows),
        seconds=Quantiles.of(row.seconds for row in answered),
        first_word=Quantiles.of(row.first_word for row in answered),
    )


def is_unknown(row: AskedQuestion) -> bool:
    """Return whether the answer says that the sources have no answer."""
    return not row.known and not row.failed


def is_low(row: AskedQuestion) -> bool:
    """Return whether there is an answer with low confidence."""
    return row.known and not row.failed and row.confidence == LOW


def is_smalltalk(row: AskedQuestion) -> bool:
    """Return whether it is not a question: a greeting, thanks."""
    return row.agent == SMALLTALK


def count_by(rows: Sequence[AskedQuestion], name_of: Callable[[AskedQuestion], str]) -> dict[str, Figures]:
    """Return the figures of `rows` by name, the name with the most questions first."""
    groups: dict[str, list[AskedQuestion]] = {}
    for row in rows:
        groups.setdefault(name_of(row), []).append(row)
    return {name: count(group) for name, group in sorted(groups.items(), key=lambda each: (-len(each[1]), each[0]))}


def count_by_day(rows: Sequence[AskedQuestion]) -> dict[str, Figures]:
    """Return the figures of each day in UTC from the first to the last question, including days without one.

    If there are more than MOST_DAYS, return figures of each week, named by its Monday.
    """
    if not rows:
        return {}
    days = [row.asked_at.astimezone(UTC).date() for row in rows]
    step = 1 if (max(days) - min(days)).days < MOST_DAYS else 7
    first, last = _start(min(days), step), max(days)
    groups: dict[date, list[AskedQuestion]] = {
        first + timedelta(days=n): [] for n in range(0, (last - first).days + 1, step)
    }
    for day, row in zip(days, rows, strict=True):
        groups[_start(day, step)].append(row)
    return {day.isoformat(): count(group) for day, group in groups.items()}


def _start(day: date, step: int) -> date:
    return day - timedelta(days=day.weekday()) if step == 7 else day
