"""Parses the Retry-After header of HTTP."""

import re
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime


def parse_retry_after(value: str) -> float | None:
    """Return the seconds to wait, from a number or a date (RFC 9110, 10.2.3), never negative; None if invalid."""
    if re.fullmatch(r"\d+(\.\d+)?", value.strip()):  # servers send fractions too
        return float(value)
    try:
        moment = parsedate_to_datetime(value)
    except ValueError:
        return None
    return max(0.0, (moment.astimezone(UTC) - datetime.now(UTC)).total_seconds())
