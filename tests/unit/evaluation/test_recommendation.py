"""A trial's counts recommend whole sections for a capable model, and quotations for one that invents or fails."""

from dataclasses import replace

import pytest

from pipelines.evaluation.dataset import Example
from pipelines.evaluation.trials.asked import ForeignQuestion
from pipelines.evaluation.trials.recommendation import TrialScores, recommend
from pipelines.evaluation.trials.trial import TrialQuestions, count_trial, describe_trial
from pipelines.records import Answer
from pipelines.records.answer import Claims

GOOD = TrialScores(
    asked=20, answered=20, cited=18, quoted=17, claims=100, supported=98, foreign=10, refused=10, words_s=30.0
)


@pytest.mark.parametrize(
    ("change", "form"),
    [
        ({}, "full"),
        ({"cited": 16}, "written"),  # fewer right sections than quotations cite
        ({"supported": 92}, "written"),
        ({"refused": 8}, "written"),
        ({"answered": 15}, "summary"),
        ({"supported": 60}, "summary"),
        ({"refused": 5}, "quoted"),
        ({"claims": 0, "supported": 0}, "quoted"),
    ],
)
def test_counts_recommend_a_form(change: dict[str, int], form: str) -> None:
    assert recommend(replace(GOOD, **change))[0] == form  # type: ignore[arg-type]


def test_failed_call_is_no_refusal() -> None:
    wrote = Answer("q", "It is so.", "a", claims=Claims(1, 1))
    refused, failed = Answer("q", "I do not know.", "a", known=False), Answer("q", "Quoted.", degraded=("llm:a",))
    foreign = [ForeignQuestion("q", ())] * 4
    questions = TrialQuestions([Example("q", ("https://d.test/",))], foreign, 0)
    scores = count_trial("a", questions, [failed, wrote, refused, failed, failed], [1.0] * 5)
    assert (scores.foreign, scores.refused, scores.answered, scores.failed) == (4, 1, 0, 3)


def test_failed_and_answered_off_topic_questions_are_not_confused() -> None:
    form, why = recommend(replace(GOOD, refused=0, failed=10))
    assert form == "quoted" and "it refuses only 0 of 10 questions about other things" in why


def test_progress_names_the_time_that_is_left() -> None:
    assert describe_trial([16.0, 14.0], 30) == "2 of 30 questions, about 7 min left"
    assert describe_trial([16.0, 14.0], 2) == "2 of 2 questions"
