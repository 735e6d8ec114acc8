"""Training a router: folds that share no question, curves against hand-computed values, the gate."""

import json

import numpy as np
import pytest

from pipelines.answering.routing.classifier import TextClassifier
from pipelines.evaluation.dataset import BadDataset
from pipelines.training import curves, router
from pipelines.training.router import Labelled

EASY = ["what is ray", "what is a task", "what is an actor", "what is serve", "what is tune", "what is a replica"]
HARD = ["why does my job hang", "error in raylet log", "why is it slow", "error on start", "why crash", "error oom"]
ROWS = [Labelled(q, True) for q in EASY] + [Labelled(q, False) for q in HARD]


# ---------------------------------------------------------------------------------------------- folds


def test_the_same_question_in_other_words_is_in_one_group():
    questions = [
        "What is Ray?",
        "what is ray",
        "How do I tune a model with Ray Tune?",
        "how do i tune model with ray tune",
    ]
    one, same, other, near = curves.alike(questions)
    assert one == same
    assert other == near != one


def test_groups_are_closed_over_chains_of_near_duplicates():
    chain = ["a b c d e f g h i j", "a b c d e f g h i k", "a b c d e f g h l k"]
    assert len(set(curves.alike(chain))) == 1


def test_questions_that_share_some_words_only_stay_apart():
    assert len(set(curves.alike(["what is ray tune", "what is ray serve"]))) == 2


def test_questions_without_a_word_are_alike():
    assert len(set(curves.alike(["???", "…"]))) == 1


@pytest.mark.parametrize("seed", range(3))
def test_folds_hold_every_place_once_and_no_group_twice(seed):
    groups = [place // 3 for place in range(31)]
    parts = curves.group_folds(groups, 4, seed)
    assert sorted(np.concatenate(parts)) == list(range(31))
    assert sum(len({groups[place] for place in part}) for part in parts) == len(set(groups))


def test_too_few_groups_are_named():
    with pytest.raises(curves.TooFewGroups, match="2 groups of questions"):
        curves.group_folds(["a", "b", "b"], 3)


def test_no_probability_comes_from_a_classifier_that_saw_the_question():
    seen = []

    def fit(places):
        seen.append(set(places))
        return TextClassifier.fit(
            [ROWS[p].question for p in places], ["1" if ROWS[p].suffices else "0" for p in places]
        )

    parts = curves.group_folds(range(12), 3)
    out = curves.out_of_fold(fit, [row.question for row in ROWS], ["0", "1"], parts)
    assert [set(part) & places for part, places in zip(parts, seen, strict=True)] == [set()] * 3
    np.testing.assert_allclose(out.sum(axis=1), 1)


# ---------------------------------------------------------------------------------------------- curves by hand


def test_threshold_curve_against_hand_computed_values():
    probabilities = np.array([[0.9, 0.1, 0.0], [0.6, 0.4, 0.0], [0.3, 0.7, 0.0], [0.1, 0.1, 0.8]])
    points = curves.threshold_curve(
        probabilities, ["a", "b", "other"], ["a", "b", "b", "other"], never="other", thresholds=(0.0, 0.65, 0.99)
    )
    assert [(p.coverage, p.precision, p.recall) for p in points] == [
        (0.75, pytest.approx(2 / 3), pytest.approx(2 / 3)),
        (0.5, 1.0, pytest.approx(2 / 3)),
        (0.0, 1.0, 0.0),
    ]


def test_calibration_and_brier_against_hand_computed_values():
    found = curves.calibration([0.95, 0.95, 0.25, 0.25], [True, False, False, False])
    assert found.ece == pytest.approx(0.5 * 0.45 + 0.5 * 0.25)
    assert found.bins == ((0.25, 0.0, 2), (0.95, 0.5, 2))
    assert curves.brier([1.0, 0.5], [True, False]) == 0.125


def test_a_certain_probability_is_in_the_last_bin():
    assert curves.calibration([1.0], [True]).bins == ((1.0, 1.0, 1),)


def test_confusion_precision_and_recall_against_hand_computed_values():
    truth, said = ["a", "a", "b"], ["a", "b", "b"]
    assert curves.confusion(truth, said) == {"a": {"a": 1, "b": 1}, "b": {"b": 1}}
    assert curves.by_label(truth, said) == {
        "a": {"precision": 1.0, "recall": 0.5, "count": 2},
        "b": {"precision": 0.5, "recall": 1.0, "count": 1},
    }
    assert curves.majority(truth) == pytest.approx(2 / 3)


def test_auc_against_hand_computed_values_and_without_two_outcomes():
    assert curves.auc([0.9, 0.8, 0.3], [True, False, False]) == 1.0
    assert curves.auc([0.9, 0.1], [True, True]) == 0.5


def test_the_cost_curve_runs_from_all_strong_to_all_cheap():
    points = router.cost_curve([0.9, 0.1, 0.8, 0.2] * 5, [True, False, True, False] * 5, strong=10, cheap=1)
    first, half, last = points[0], points[5], points[-1]
    assert (first.cost, first.served, last.cost, last.served) == (10, 1, 1, 0.5)
    assert (half.share, half.cost, half.served, half.random, half.perfect) == (0.5, 5.5, 1.0, 0.75, 1.0)
    assert router.area(points) == pytest.approx({"served": 0.875, "random": 0.75, "perfect": 0.875})


# ---------------------------------------------------------------------------------------------- the gate


def test_a_router_that_knows_is_accepted_and_one_that_guesses_is_not():
    rows = [Labelled(f"question {n}", n % 2 == 0) for n in range(60)]
    knows = [0.9 if row.suffices else 0.1 for row in rows]
    guesses = [0.9 if n % 4 < 2 else 0.1 for n in range(60)]
    assert router.judge(rows, knows).accepted
    judged = router.judge(rows, guesses)
    assert not judged.accepted
    assert judged.gain.difference == pytest.approx(0)


def test_a_router_that_sends_all_one_way_gains_nothing():
    rows = [Labelled(f"question {n}", n % 2 == 0) for n in range(20)]
    assert router.judge(rows, [0.9] * 20).gain.difference == 0
    assert router.judge(rows, [0.1] * 20).gain.difference == 0


def test_a_trained_router_tells_the_questions_apart():
    classifier = router.fit(ROWS)
    assert classifier.probability("what is a dataset", "1") > classifier.probability("error why", "1")


def test_the_card_says_what_it_was_made_from_and_whether_it_may_be_used():
    judged = router.judge(ROWS, [0.5] * len(ROWS))
    card = router.card(ROWS, judged, {"threshold": 0.5}, forced=True)
    assert (card["accepted"], card["forced"], card["data"]["questions"]) == (True, True, 12)
    assert card["data"]["fingerprint"] != router.fingerprint(ROWS[1:])
    json.dumps(card)


# ---------------------------------------------------------------------------------------------- the file


def test_a_file_is_read(tmp_path):
    path = tmp_path / "questions.jsonl"
    path.write_text('{"question": " a? ", "target": 1}\n\n{"question": "b?", "target": 0}\n')
    assert router.read_labelled(path) == [Labelled("a?", True), Labelled("b?", False)]


def test_every_mistake_of_a_file_is_named_with_its_line(tmp_path):
    path = tmp_path / "questions.jsonl"
    path.write_text(
        '{"question": "a?", "target": 1}\n{"question": "", "target": 1}\n{"question": "b", "target": 2}\nx\n[]\n'
    )
    with pytest.raises(BadDataset) as caught:
        router.read_labelled(path)
    assert [line for line, _ in caught.value.mistakes] == [2, 3, 4, 5]


def test_a_line_of_brackets_is_a_mistake_of_the_file(tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_text("[" * 200_000 + "\n")
    with pytest.raises(BadDataset, match=r"rows\.jsonl:1"):
        router.read_labelled(path)


def test_a_missing_or_empty_file_is_refused(tmp_path):
    (tmp_path / "empty.jsonl").write_text("\n")
    for name in ("empty.jsonl", "missing.jsonl"):
        with pytest.raises(BadDataset):
            router.read_labelled(tmp_path / name)
