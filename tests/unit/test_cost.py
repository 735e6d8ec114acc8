"""What answers cost is the sum of their tokens' prices; a frontier and a router's curve agree with hand computation."""

import pytest

from pipelines.evaluation.experiments.cost import (
    BadPrices,
    BadRouting,
    Point,
    Price,
    UnknownPrice,
    against_random,
    bill,
    frontier,
    load_prices,
    price_of,
    router_effect,
)
from pipelines.records import Usage


def test_prices_are_dollars_per_million_tokens():
    assert Price(30, 60).cost(1_000, 500) == pytest.approx(0.06)
    assert Price(embedding=0.1).cost(embedded_tokens=2_000_000) == pytest.approx(0.2)


def test_a_model_is_found_under_its_providers_name_and_every_price_has_a_source():
    prices = load_prices()
    assert price_of("meta-llama/Llama-2-70b-chat-hf", prices) == prices["llama-2-70b-chat-hf"]
    assert price_of("openai:text-embedding-3-small", prices).embedding == 0.02
    assert price_of("GPT-4", prices).completion == 60
    assert all(price.source in ("study", "list") for price in prices.values())
    with pytest.raises(UnknownPrice, match=r"'gpt-4-turbo'; near it: .*gpt-4"):
        price_of("gpt-4-turbo", prices)


def test_a_file_of_ones_own_wins_model_by_model(tmp_path):
    (path := tmp_path / "prices.yaml").write_text("models: {GPT-4: {prompt: 1, completion: 2}, mine: {prompt: 0}}")
    prices = load_prices(path)
    assert prices["gpt-4"] == Price(1, 2) and prices["mine"] == Price() and prices["gpt-4o"].prompt == 2.5
    (path := tmp_path / "prices.json").write_text('{"mine": {"embedding": 3}}')
    assert load_prices(path)["mine"].embedding == 3


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("- gpt-4", "must be a table"),
        ("gpt-4: 30", "gpt-4: give any of"),
        ("gpt-4: {input: 30}", "gpt-4: give any of"),
        ("gpt-4: {prompt: -1}", "prompt is -1"),
        ("gpt-4: {prompt: .nan}", "prompt is nan"),
        ("gpt-4: {prompt: a lot}", "prompt is 'a lot'"),
        ("a: [", "can't be read"),
    ],
)
def test_a_price_file_that_can_not_be_used_says_why(tmp_path, text, words):
    (path := tmp_path / "prices.yaml").write_text(text)
    with pytest.raises(BadPrices, match=r"prices\.yaml") as error:
        load_prices(path)
    assert words in str(error.value)
    with pytest.raises(BadPrices, match="gone"):
        load_prices(tmp_path / "gone.yaml")


def test_a_bill_is_of_one_question_and_of_a_thousand():
    usages = [Usage(1_000, 100, 1, 0.5), Usage(3_000, 300, 3, 1.5)]
    recorded = bill(usages)
    assert (recorded.questions, recorded.total, recorded.per_question, recorded.per_1000) == (2, 2.0, 1.0, 1_000.0)
    assert (recorded.prompt_tokens, recorded.completion_tokens, recorded.calls) == (2_000, 200, 2)
    assert bill(usages, Price(30, 60)).total == pytest.approx(0.12 + 0.024)
    assert bill(usages, embedding=0.5).total == pytest.approx(recorded.total + 0.5)
    assert bill([]).per_1000 == 0


def test_the_frontier_holds_what_no_other_one_beats():
    points = [Point("dear", 4.0, 9.0), Point("cheap", 3.0, 1.0), Point("worse", 2.9, 2.0), Point("best", 4.0, 8.0),
              Point("free", 1.0, 0.0), Point("same", 3.0, 1.0)]  # fmt: skip
    assert [point.name for point in frontier(points)] == ["free", "cheap", "best"]
    assert frontier([]) == []


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
