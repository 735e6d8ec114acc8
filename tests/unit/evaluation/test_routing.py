"""A router's curve and its gain over a coin agree with hand computation."""

import pytest

from pipelines.evaluation.experiments.routing import BadRouting, against_random, router_effect

# Two hard questions and two easy ones: the strong agent gets all right, the cheap one the easy ones.
EASY = [(1.0, 1.0), (1.0, 1.0), (0.0, 1.0), (0.0, 1.0)]
HARD = [(1.0, 5.0)] * 4


def test_a_perfect_router_keeps_the_score_at_half_the_share():
    effect = router_effect(EASY, HARD, [0.9, 0.8, 0.2, 0.1])
    assert [point.easy_share for point in effect.curve] == [1.0, 0.75, 0.5, 0.25, 0.0]
    assert [point.score for point in effect.curve] == [0.5, 0.75, 1.0, 1.0, 1.0]
    assert [point.cost for point in effect.curve] == [1.0, 2.0, 3.0, 4.0, 5.0]
    assert [point.random_score for point in effect.curve] == [0.5, 0.625, 0.75, 0.875, 1.0]
    assert [point.gain for point in effect.curve] == pytest.approx([0, 0.125, 0.25, 0.125, 0])
    assert effect.area == pytest.approx(0.125)  # trapezoids of those gains, 0.25 wide
    assert effect.at(0.5).threshold == 0.8 and effect.at(0.5).easy_share == 0.5
    assert effect.cheapest(1.0).easy_share == 0.5 and effect.cheapest(0.5).easy_share == 1.0


def test_a_router_that_says_the_same_of_all_is_a_coin_and_a_wrong_one_is_worse():
    flat = router_effect(EASY, HARD, [0.5] * 4)
    assert [(point.easy_share, point.gain) for point in flat.curve] == [(1.0, 0), (0.0, 0)] and flat.area == 0
    assert router_effect(EASY, HARD, [0.1, 0.2, 0.8, 0.9]).area == pytest.approx(-0.125)


def test_the_coin_it_is_held_against_costs_as_much():
    # The easy agent is sent the questions whose hard answers are dear: the same share saves more than a coin's.
    easy, hard = [(0.0, 1.0), (0.0, 1.0)], [(1.0, 9.0), (1.0, 3.0)]
    (point,) = router_effect(easy, hard, [0.9, 0.1], [0.5]).curve
    assert (point.easy_share, point.score, point.cost, point.random_cost) == (0.5, 0.5, 2.0, 3.5)
    assert point.random_score == 0.5 and point.gain == pytest.approx(0.5 - 0.2)
    (same,) = router_effect([(0.0, 2.0), (1.0, 2.0)], [(1.0, 2.0), (1.0, 2.0)], [0.1, 0.9], [0.5]).curve
    assert same.gain == pytest.approx(0.25)


def test_questions_without_both_scores_are_left_out_and_counted():
    effect = router_effect([*EASY, (None, 1.0)], [*HARD, (1.0, 5.0)], [0.9, 0.8, 0.2, 0.1, 0.99])
    assert (effect.questions, effect.left_out) == (4, 1) and effect.area == pytest.approx(0.125)
    with pytest.raises(BadRouting, match="no question"):
        router_effect([(None, 1.0)], [(1.0, 1.0)], [0.5])
    with pytest.raises(BadRouting, match="2 probabilities"):
        router_effect(EASY, HARD, [0.5, 0.5])


def test_routing_is_compared_with_the_coin_question_by_question():
    found = against_random([1, 1, 0, 0] * 10, [1, 1, 1, 1] * 10, [0.9, 0.8, 0.2, 0.1] * 10, 0.5)
    assert found.difference == pytest.approx(0.25) and found.low > 0 and found.p < 0.01
