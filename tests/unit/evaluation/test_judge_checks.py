"""A judge that is biased by order, length or authorship is detected, and a fair one passes."""

import asyncio
import json
import re

import pytest
from kit.queued_model import QueuedModel
from test_judge import EXAMPLE

from pipelines.evaluation.judging.checks import (
    GradedAnswer,
    NoChoice,
    check_agreement,
    check_position,
    check_self_preference,
    check_verbosity,
    parse_choice,
)
from pipelines.evaluation.judging.judge import Judge

PAIRS = [(EXAMPLE.question, "right", "wrong"), (EXAMPLE.question, "wrong", "right")] * 4
ANSWERS = [(EXAMPLE, f"Use num_replicas {n}.") for n in range(8)]


def judged_of(prompt: str) -> str:
    """Return the answer that a prompt wants scored."""
    return prompt.split("<generated_answer>")[1].split("</generated_answer>", maxsplit=1)[0]


def by_words(prompt: str) -> str:
    """Prefer the answer that says "right", in either position."""
    first = prompt.split("<answer_a>")[1].split("</answer_a>", maxsplit=1)[0]
    return json.dumps({"better": "A" if "right" in first else "B"})


def by_length(prompt: str) -> str:
    """Score long answers higher."""
    return json.dumps({"score": 5 if len(judged_of(prompt)) > 100 else 3})


@pytest.mark.parametrize(
    ("reply", "value", "passed"),
    [
        (by_words, 0, True),
        ('{"better": "A"}', 1, False),
        ('{"better": "B"}', -1, False),
        ('{"better": "tie"}', 0, True),
    ],
)
def test_judge_with_position_bias_is_detected(reply, value, passed):
    found = asyncio.run(check_position(Judge(QueuedModel(reply)), PAIRS))
    assert (found.value, found.passed, found.judged, found.failed) == (value, passed, 8, 0)


@pytest.mark.parametrize(("reply", "value", "passed"), [(by_length, 2, False), ('{"score": 4}', 0, True)])
def test_judge_that_prefers_length_is_detected(reply, value, passed):
    found = asyncio.run(check_verbosity(Judge(QueuedModel(reply)), ANSWERS))
    assert (found.value, found.passed, found.judged) == (value, passed, 8)


def test_judge_that_punishes_length_is_not_flagged():
    short = QueuedModel(lambda prompt: json.dumps({"score": 2 if len(judged_of(prompt)) > 100 else 4}))
    found = asyncio.run(check_verbosity(Judge(short), ANSWERS))
    assert (found.value, found.passed) == (-2, True)


def author(liked: str, strict: int = 0) -> QueuedModel:
    """Give 3 points, two more for one author's answers, and fewer to all if strict."""
    return QueuedModel(lambda prompt: json.dumps({"score": 3 - strict + 2 * (liked in judged_of(prompt))}), model=liked)


def test_judge_that_prefers_its_own_answers_is_detected():
    examples, texts = [EXAMPLE] * 8, {"one": ["by one"] * 8, "two": ["by two"] * 8}
    fond = {"one": Judge(author("one")), "two": Judge(author("nobody", strict=1))}
    found = asyncio.run(check_self_preference(fond, examples, texts))
    assert (found.value, found.passed, found.judged) == (2, False, 8)
    fair = {"one": Judge(author("nobody")), "two": Judge(author("nobody", strict=2))}
    assert asyncio.run(check_self_preference(fair, examples, texts)).passed
    good = {"one": Judge(author("one")), "two": Judge(author("one", strict=1))}
    assert asyncio.run(check_self_preference(good, examples, texts)).passed, "both find the answers of one better"


def test_agreement_with_people_is_kappa():
    graded = [GradedAnswer(EXAMPLE, f"Answer {grade}", grade) for grade in (1, 2, 3, 4, 5)]
    agrees = Judge(QueuedModel(lambda prompt: json.dumps({"score": int(re.findall(r"Answer (\d)", prompt)[0])})))
    reverse = Judge(QueuedModel(lambda prompt: json.dumps({"score": 6 - int(re.findall(r"Answer (\d)", prompt)[0])})))
    same = Judge(QueuedModel('{"score": 3}'))
    found = [asyncio.run(check_agreement(judge, graded)) for judge in (agrees, reverse, same)]
    assert [(one.value, one.passed) for one in found] == [(1, True), (-1, False), (0, False)]
    alike = asyncio.run(check_agreement(same, [GradedAnswer(EXAMPLE, "Answer", 3)] * 4))
    assert alike.value is None
    assert "different grades" in alike.skipped


def test_unjudged_pairs_are_counted_and_fail_the_check():
    found = asyncio.run(check_position(Judge(QueuedModel("Hm.")), PAIRS))
    assert (found.value, found.judged, found.failed, found.passed) == (None, 0, 8, False)
    found = asyncio.run(check_verbosity(Judge(QueuedModel("Hm.")), ANSWERS))
    assert (found.value, found.failed, found.passed) == (None, 8, False)


@pytest.mark.parametrize("text", ["", "B", "Both have merits.", '{"better": "A"} {"better": "B"}', '{"better": "C"}'])
def test_reply_with_no_choice_or_both_is_rejected(text):
    with pytest.raises(NoChoice):
        parse_choice(text)
