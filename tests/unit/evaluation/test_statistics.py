"""Intervals and paired tests equal hand-computed values."""

import numpy as np
import pytest

from pipelines.evaluation.statistics import BadPair, NothingToScore, bootstrap, paired_test


def test_interval_is_around_the_mean_and_reproducible_by_seed():
    values = [1.0] * 60 + [0.0] * 40
    interval = bootstrap({"x": values}, seed=1)["x"]
    # the normal approximation: 0.6 ± 1.96 · sqrt(0.6 · 0.4 / 100)
    assert interval.value == 0.6
    assert interval.low == pytest.approx(0.504, abs=0.015) and interval.high == pytest.approx(0.696, abs=0.015)
    assert bootstrap({"x": values}, seed=1)["x"] == interval
    assert bootstrap({"y": [5.0] * 3})["y"].low == bootstrap({"y": [5.0] * 3})["y"].high == 5


def test_interval_does_not_depend_on_the_other_metrics():
    values = np.random.default_rng(0).random(30).tolist()
    beside = bootstrap({"other": [0.0] * 30, "x": values})["x"]
    assert beside.low == pytest.approx(bootstrap({"x": values})["x"].low)


def test_p_is_the_share_of_sign_flips_at_least_as_extreme():
    # three differences of 1, and one question without: of 8 flips, all + and all - reach |3|
    test = paired_test([1, 1, 1, 0], [0, 0, 0, 0])
    assert test.difference == 0.75 and test.p == 2 / 8
    # +2 -1: of the sums 1 3 -3 -1 all are at least 1 from 0
    assert paired_test([2, 0], [0, 1]).p == 1
    # +3 +1 -1: |sum| is 3; of 8 flips |5| twice, |3| four times, |1| twice
    assert paired_test([3, 1, 0], [0, 0, 1]).p == 6 / 8


def test_equal_configurations_do_not_differ():
    test = paired_test([1, 0, 1], [1, 0, 1])
    assert (test.difference, test.low, test.high, test.p) == (0, 0, 0, 1)


def test_many_questions_approximate_the_binomial_p():
    # 15 wins against 5: two-sided sign test p = 0.0414
    a, b = [1] * 15 + [0] * 5 + [1] * 80, [0] * 15 + [1] * 5 + [1] * 80
    test = paired_test(a, b)
    assert test.difference == pytest.approx(0.1)
    assert 0 < test.low < 0.1 < test.high
    assert test.p == pytest.approx(0.0414, abs=0.008)
    assert paired_test(b, a).p == test.p and paired_test(b, a).difference == -test.difference


def test_clear_gain_never_has_a_p_of_zero():
    assert 0 < paired_test([1.0] * 100, [0.0] * 100).p < 0.001


def test_missing_unpaired_or_non_numeric_values_are_refused():
    with pytest.raises(NothingToScore):
        bootstrap({"x": []})
    with pytest.raises(BadPair, match="3 values and 2"):
        paired_test([1, 2, 3], [1, 2])
    for wrong in (float("nan"), float("inf")):
        with pytest.raises(BadPair, match="not a number"):
            paired_test([1, wrong], [1, 2])
