"""Intervals and paired tests against values that were computed by hand."""

import numpy as np
import pytest

from pipelines.evaluation.statistics import BadPair, NothingToScore, bootstrap, paired_test


def test_an_interval_is_that_of_a_mean_and_the_same_for_a_seed():
    values = [1.0] * 60 + [0.0] * 40
    interval = bootstrap({"x": values}, seed=1)["x"]
    # the normal approximation: 0.6 ± 1.96 · sqrt(0.6 · 0.4 / 100)
    assert interval.value == 0.6
    assert interval.low == pytest.approx(0.504, abs=0.015) and interval.high == pytest.approx(0.696, abs=0.015)
    assert bootstrap({"x": values}, seed=1)["x"] == interval
    assert bootstrap({"y": [5.0] * 3})["y"].low == bootstrap({"y": [5.0] * 3})["y"].high == 5


def test_an_interval_does_not_depend_on_what_is_beside_it():
    values = np.random.default_rng(0).random(30).tolist()
    beside = bootstrap({"other": [0.0] * 30, "x": values})["x"]
    assert beside.low == pytest.approx(bootstrap({"x": values})["x"].low)


def test_p_is_the_share_of_sign_flips_that_are_as_far_from_nothing():
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


def test_many_questions_give_about_the_binomial_p():
    # 15 wins against 5: two-sided sign test p = 0.0414
    a, b = [1] * 15 + [0] * 5 + [1] * 80, [0] * 15 + [1] * 5 + [1] * 80
    test = paired_test(a, b)
    assert test.difference == pytest.approx(0.1)
    assert 0 < test.low < 0.1 < test.high
    assert test.p == pytest.approx(0.0414, abs=0.008)
    assert paired_test(b, a).p == test.p and paired_test(b, a).difference == -test.difference


def test_a_clear_gain_is_never_p_nought():
    assert 0 < paired_test([1.0] * 100, [0.0] * 100).p < 0.001


def test_no_value_a_pair_of_different_questions_and_what_is_no_number_are_refused():
    with pytest.raises(NothingToScore):
        bootstrap({"x": []})
    with pytest.raises(BadPair, match="3 values and 2"):
        paired_test([1, 2, 3], [1, 2])
    for wrong in (float("nan"), float("inf")):
        with pytest.raises(BadPair, match="not a number"):
            paired_test([1, wrong], [1, 2])
