"""Parses what servers say about their limits: that a request is too long, or when to retry.

Knows the wording of many providers; knows no request and no client. Never raises.
"""

import re
from collections.abc import Iterator

from pipelines.text.phrases import read_phrases

_PHRASES = read_phrases(__name__)
TOO_LARGE = 413
# Statuses of a request that is refused for its content. 0 is an error inside a stream, which has no status.
ABOUT_CONTENT = (0, 400, TOO_LARGE, 422)
# The smallest number that can be a context window. Smaller ones are indexes, codes and percentages.
LEAST_WINDOW = 256
LONGEST_NUMBER = 20  # characters; Python reads at most 4,300 digits as a number
_NUMBER = re.compile(r"(?<![\w.-])\d{1,3}(?:,\d{3})+(?![\w,])|(?<![\w.,-])\d+(?![\w,]*\d)")


def is_about_length(message: str, status: int) -> bool:
    """Return whether a request was refused as too long, judging by the status and the wording of the refusal."""
    if status == TOO_LARGE:
        return True
    if status not in ABOUT_CONTENT or _PHRASES["other"].search(message):
        return False
    return bool(
        _PHRASES["code"].search(message) or (_PHRASES["what"].search(message) and _PHRASES["excess"].search(message))
    )


def stated_limit(message: str) -> int | None:
    """Return how many tokens the server accepts, if its refusal of a long request says so."""
    written = [found for found in _NUMBER.finditer(message) if len(found[0]) <= LONGEST_NUMBER]
    found = [(int(number[0].replace(",", "")), number.start()) for number in written]
    numbers = [(value, at) for value, at in found if value >= LEAST_WINDOW]
    if not numbers:
        return None
    named = [value for value, at in numbers if _PHRASES["limit"].search(message[max(0, at - 50) : at])]
    values = sorted({value for value, _ in numbers})
    if named:
        return min(named)
    return values[-2] if len(values) > 1 else None  # the largest is the size of the request


def seconds_to_wait(message: str) -> float | None:
    """Return the seconds that a refusal asks the client to wait, in words or in its JSON; None if it names no time."""
    found = _PHRASES["wait"].search(message)
    if not found:
        return None
    parts = list(_durations(message[found.end() : found.end() + 40]))
    return sum(parts) if parts else None


_DURATION = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(ms|milli\w*|hours?|h|min\w*|m|sec\w*|s)?(?![a-z])", re.IGNORECASE)
_UNITS = {"m": 60.0, "h": 3600.0, "s": 1.0, "": 1.0}


def _durations(text: str) -> Iterator[float]:
    """Yield the seconds of each part of the duration at the start of `text`, as in "1m12.5s"."""
    at = 0
    while part := _DURATION.match(text, at):
        unit = (part[2] or "").lower()
        yield float(part[1]) * (0.001 if unit.startswith(("ms", "milli")) else _UNITS[unit[:1]])
        at = part.end()
        if not unit:
            return
