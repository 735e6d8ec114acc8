"""A router's gain over a coin agrees with hand computation."""

import pytest

from pipelines.evaluation.experiments.routing import against_random, routing_point

# Two hard questions and two easy ones: the strong agent gets all right, the cheap one the easy ones.
EASY = [(1.0, 1.0), (1.0, 1.0), (0.0, 1.0), (0.0, 1.0)]
HARD = [(1.0, 5.0)] * 4


@pytest.mark.parametrize(
    ("to_easy", "share", "score", "cost", "by_chance", "gain"),
    [
        ("....", 0.0, 1.0, 5.0, 1.0, 0.0),
        ("e...", 0.25, 1.0, 4.0, 0.875, 0.125),
        ("ee..", 0.5, 1.0, 3.0, 0.75, 0.25),
        ("eee.", 0.75, 0.75, 2.0, 0.625, 0.125),
        ("eeee", 1.0, 0.5, 1.0, 0.5, 0.0),
        ("..ee", 0.5, 0.5, 3.0, 0.75, -0.25),  # it sends the wrong ones
    ],
)
def test_a_router_is_held_against_a_coin_of_the_same_share(to_easy, share, score, cost, by_chance, gain):
    point = routing_point(EASY, HARD, [one == "e" for one in to_easy])
    assert (point.easy_share, point.score, point.cost, point.random_score) == (share, score, cost, by_chance)
    assert point.gain == pytest.approx(gain)


def test_the_coin_it_is_held_against_costs_as_much():
    # The easy agent is sent the questions whose hard answers are dear: the same share saves more than a coin's.
    point = routing_point([(0.0, 1.0), (0.0, 1.0)], [(1.0, 9.0), (1.0, 3.0)], [True, False])
    assert (point.easy_share, point.score, point.cost, point.random_cost) == (0.5, 0.5, 2.0, 3.5)
    assert point.random_score == 0.5 and point.gain == pytest.approx(0.5 - 0.2)
    assert routing_point([(0.0, 2.0), (1.0, 2.0)], [(1.0, 2.0), (1.0, 2.0)], [False, True]).gain == pytest.approx(0.25)


def test_routing_is_compared_with_the_coin_question_by_question():
    found = against_random([1, 1, 0, 0] * 10, [1, 1, 1, 1] * 10, [True, True, False, False] * 10)
    assert found.difference == pytest.approx(0.25) and found.low > 0 and found.p < 0.01
