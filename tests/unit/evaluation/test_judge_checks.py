"""A judge that order, length or authorship sways is found out."""

import asyncio
import json

import pytest
from kit.queued_model import QueuedModel
from test_judge import EXAMPLE, answer

from pipelines.evaluation.judging.judge import Judge
from pipelines.evaluation.judging.position import NoChoice, measure_position_bias, parse_choice
from pipelines.evaluation.judging.self_preference import measure_self_preference
from pipelines.evaluation.judging.verbosity import measure_verbosity_bias, pad


@pytest.mark.parametrize(
    ("text", "choice"),
    [
        ('{"reasoning": "B is better in style, but A is right", "better": "A"}', "A"),
        ('```json\n{"better": "tie"}\n```', "tie"),
        ("{'better': 'B', 'reasoning': 'It is cut o", "B"),
        ('<think>{"better": "A"}?</think>{"better": "B"}', "B"),
        ("**Better: B**", "B"),
        ("It names the setting.\nBetter: answer A", "A"),
    ],
)
def test_a_choice_is_read(text, choice):
    assert parse_choice(text) == choice


@pytest.mark.parametrize(
    "text",
    ["", "B", "Both have merits.", "Better: A\nBetter: B", "It is better a little", '{"better": "C"}'],
)
def test_what_names_no_choice_or_both_is_none(text):
    with pytest.raises(NoChoice):
        parse_choice(text)


def by_words(prompt: str) -> str:
    """Prefers the answer that says "right", wherever it stands."""
    first = prompt.split("<answer_a>")[1].split("</answer_a>", maxsplit=1)[0]
    return json.dumps({"better": "A" if "right" in first else "B"})


@pytest.mark.parametrize(
    ("reply", "shares"), [(by_words, (1, 0, 0)), ('{"better": "A"}', (0, 1, 0)), ("Better: B", (0, 0, 1))]
)
def test_a_judge_that_looks_at_the_order_is_found_out(reply, shares):
    found = asyncio.run(
        measure_position_bias(QueuedModel(reply), [(EXAMPLE, "right", "wrong"), (EXAMPLE, "wrong", "right")])
    )
    assert (found.consistent.value, found.favours_first, found.favours_second) == shares
    assert (found.judged, found.errors, found.usage.calls) == (2, 0, 4)


def test_a_comparison_that_fails_is_counted_apart():
    found = asyncio.run(measure_position_bias(QueuedModel("Hm."), [(EXAMPLE, "one", "two")]))
    assert (found.consistent, found.favours_first, found.judged, found.errors) == (None, None, 0, 1)


def test_a_judge_that_likes_length_is_found_out():
    pairs = [(EXAMPLE, answer(f"Use num_replicas {n}.")) for n in range(4)]
    fond = Judge(QueuedModel(lambda p: "Score: 5" if "In summary" in p else "Score: 3"))
    found = asyncio.run(measure_verbosity_bias(fond, pairs))
    assert (found.difference.difference, found.raised, found.judged) == (2, 1, 4)
    fair = asyncio.run(measure_verbosity_bias(Judge(QueuedModel("Score: 4")), pairs))
    assert (fair.difference.difference, fair.raised) == (0, 0)
    assert len(pad("word").split()) > 2 and pad("num_cpus").count("num_cpus") == 2


def test_answers_judged_one_way_only_do_not_count_for_verbosity():
    found = asyncio.run(
        measure_verbosity_bias(
            Judge(QueuedModel(lambda p: "?" if "In summary" in p else "Score: 4")), [(EXAMPLE, answer())]
        )
    )
    assert (found.difference, found.judged, found.errors) == (None, 0, 1)


def test_self_preference_is_what_is_left_when_strictness_and_quality_are_taken_out():
    scores = {
        ("a", "a"): [5, 5, None, 4],
        ("a", "b"): [3, 3, 3, 2],
        ("b", "a"): [3, 3, 3, 2],
        ("b", "b"): [2, 2, 2, 1],
    }
    first, second = measure_self_preference(scores)
    assert (first.judge, first.own, first.others, first.preference.value) == ("a", 2, 1, 1)
    assert (second.judge, second.own, second.others) == ("b", -1, -2)
    assert first.preference.low == first.preference.high == 1
    assert measure_self_preference({("a", "a"): [5], ("a", "b"): [3]}) == []
    assert measure_self_preference({pair: [None] for pair in scores}) == []
