"""Hostile answers: no stage that an answer passes takes long for any text, however it comes.

Some shapes are tried, with a wide bound. `python -m kit.answer_readers` in `tests` prints the table of all shapes and
lengths, for all readers of what models and pages write, and for all patterns.
"""

import math

import pytest
from kit.answer_readers import STAGES
from kit.hostile import LENGTHS, SHAPES, timed
from kit.reporting import table

pytestmark = pytest.mark.slow

BOUND_S = 5.0  # of a processor: a reader that reads its text again and again needs minutes
OFTEN = dict(list(SHAPES.items())[::6])
PASSED = [
    name for name in STAGES if name.startswith(("sanitizing", "reading", "refusals", "marks")) and "of 1" not in name
]

rows = table("What readers take for hostile texts", ("reader", "shape", "seconds", "growth"))


@pytest.mark.parametrize("name", PASSED)
def test_a_stage_takes_no_long_time_for_a_hostile_answer(name: str, rows: list[tuple[str, ...]]) -> None:
    found = timed(STAGES[name], OFTEN, LENGTHS[:2], limit_s=BOUND_S, runs=1)
    shape, longest = max(found.items(), key=lambda one: one[1].longest)
    rows.append((name, shape, f"{longest.longest:.3f}", f"{max(one.growth for one in found.values()):.2f}"))
    assert not {title: one for title, one in found.items() if one.error or math.isinf(one.longest)}
