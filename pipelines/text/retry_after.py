"""Parses the Retry-After header of HTTP."""

import re
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

# About 30 years: more digits mean the same to every caller, and hundreds of them would be infinity.
LONGEST_S = 1e9


def parse_retry_after(value: str) -> float | None:
    """Return the seconds to wait, from a number or a date (RFC 9110, 10.2.3), never negative; None if invalid."""
    if re.fullmatch(r"\d+(\.\d+)?", value.strip()):  # servers send fractions too
        return min(float(value), LONGEST_S)
    try:
        moment = parsedate_to_datetime(value).astimezone(UTC)
    except (ValueError, OverflowError):
        return None
    return max(0.0, (moment - datetime.now(UTC)).total_seconds())
