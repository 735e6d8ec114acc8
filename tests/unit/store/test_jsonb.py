"""Any value becomes JSON that Postgres accepts, with its type kept."""

from datetime import UTC, date, datetime
from decimal import Decimal

import numpy as np
import pytest

from pipelines.store.database.jsonb import to_jsonb


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (np.int64(3), "3"),
        (np.uint8(3), "3"),
        (np.int64(2**62 + 1), str(2**62 + 1)),  # no float holds it
        (np.bool_(True), "true"),
        (np.float32(0.5), "0.5"),
        (np.float32("nan"), "null"),
        (np.float64("inf"), "null"),
        (np.str_("a\0b"), '"ab"'),
        (np.array([[1, 2], [3, 4]]), "[[1, 2], [3, 4]]"),
        (np.array([0.5, np.nan]), "[0.5, null]"),
        ({np.int64(1): (np.int64(2),)}, '{"1": [2]}'),
        (datetime(2026, 1, 2, tzinfo=UTC), '"2026-01-02T00:00:00+00:00"'),
        (date(2026, 1, 2), '"2026-01-02"'),
        (Decimal("0.5"), "0.5"),
        (Decimal("NaN"), "null"),
        ([True, None, 1], "[true, null, 1]"),
    ],
)
def test_values_keep_their_type(value, text):
    stored = to_jsonb(value)
    assert stored.dumps and stored.dumps(stored.obj) == text
