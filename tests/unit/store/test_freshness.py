"""Messages about a collection's freshness, and warnings."""

from datetime import UTC, datetime, timedelta

from pipelines.store import Freshness

NOW = datetime(2026, 5, 1, tzinfo=UTC)


def ago(**span: float) -> datetime:
    return NOW - timedelta(**span)


def test_collection_of_last_night_is_fresh():
    fresh = Freshness(ago(hours=26), ago(hours=3))
    assert fresh.describe(NOW) == "every page was checked in the last 26 h; last full run 3 h ago"
    assert fresh.warnings(NOW) == []
    just_now = Freshness(ago(minutes=3), ago(seconds=40))
    assert just_now.describe(NOW) == "every page was checked in the last 3 min; last full run 40 s ago"


def test_forgotten_or_long_failing_collection_gets_a_warning():
    assert Freshness(ago(days=9), ago(days=8), 1).warnings(NOW) == [
        "no full run has ended well for 8 days",
        "a page of the index was not checked for 9 days",
        "1 page fails for more than 3 days",
    ]


def test_nothing_is_reported_if_nothing_is_known():
    assert (Freshness().describe(NOW), Freshness().warnings(NOW)) == ("", [])
