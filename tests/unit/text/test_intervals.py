"""Intervals are shown only where they mean something: not for a few questions or identical results."""

from pipelines.text.tables import with_interval


def test_interval_of_few_questions_says_so() -> None:
    assert with_interval([1, 1, 1], count=2) == "1.000 (too few to tell)"
    assert with_interval([0.5, 0.2, 0.8], count=9) == "0.500 (too few to tell)"
    assert with_interval([0.5, 0.2, 0.8], count=10) == "0.500 [0.200, 0.800]"


def test_identical_answers_have_no_interval() -> None:
    assert with_interval([1, 1, 1], count=50) == "1.000 (all 50 alike)"
