"""Crawler and language model client share the parser of Retry-After."""

import pytest

from pipelines.text.retry_after import parse_retry_after


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("7", 7),
        ("0.5", 0.5),
        (" 7 ", 7),
        ("", None),
        ("soon", None),
        ("-3", None),
        ("Mon, 01 Jan 2001 00:00:00 GMT", 0),
    ],
)
def test_retry_after_is_seconds_or_a_date(value, seconds):
    assert parse_retry_after(value) == seconds


def test_retry_after_date_becomes_the_seconds_until_then():
    assert (parse_retry_after("Fri, 31 Dec 2100 23:59:59 GMT") or 0) > 1e6


@pytest.mark.parametrize("value", ["9" * 400, "1" + "0" * 308 + ".5", "Mon, 01 Jan 0001 00:00:00 +1400"])
def test_absurd_values_are_bounded_or_invalid(value):
    assert (parse_retry_after(value) or 0) <= 1e9
