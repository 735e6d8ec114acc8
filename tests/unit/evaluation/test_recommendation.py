"""A trial's counts recommend whole sections for a capable model, and quotations for a model that invents."""

from dataclasses import replace

import pytest

from pipelines.evaluation.trials.recommendation import TrialScores, recommend

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
