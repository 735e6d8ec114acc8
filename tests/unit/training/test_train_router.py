"""Training a router: curves equal hand-computed values, the gate, the data file."""

import json

import pytest

from pipelines.answering.routing.classifier import CannotLearn, TextClassifier
from pipelines.evaluation.dataset import BadDataset
from pipelines.evaluation.questions.labelled import LabelledQuestion, fingerprint_labelled, read_labelled
from pipelines.training import classification, router
from pipelines.training.router import RouterData, RouterKind, RouterPlan
from pipelines.training.run import train

EASY = ["what is ray", "what is a task", "what is an actor", "what is serve", "what is tune", "what is a replica"]
HARD = ["why does my job hang", "error in raylet log", "why is it slow", "error on start", "why crash", "error oom"]
ROWS = [LabelledQuestion(q, True) for q in EASY] + [LabelledQuestion(q, False) for q in HARD]


# ---------------------------------------------------------------------------------------------- curves by hand


def test_calibration_against_hand_computed_values():
    result = classification.calibration([0.95, 0.95, 0.25, 0.25], [True, False, False, False])
    assert result == {"ece": pytest.approx(0.5 * 0.45 + 0.5 * 0.25), "bins": [(0.25, 0.0, 2), (0.95, 0.5, 2)]}
    assert classification.calibration([1.0], [True])["bins"] == [(1.0, 1.0, 1)]  # a certain one is in the last bin


def test_confusion_precision_and_recall_against_hand_computed_values():
    truth, predicted = ["a", "a", "b"], ["a", "b", "b"]
    assert classification.confusion(truth, predicted) == {"a": {"a": 1, "b": 1}, "b": {"b": 1}}
    assert classification.scores_by_label(truth, predicted) == {
        "a": {"precision": 1.0, "recall": 0.5, "count": 2},
        "b": {"precision": 0.5, "recall": 1.0, "count": 1},
    }
    assert classification.majority_share(truth) == pytest.approx(2 / 3)


def test_auc_against_hand_computed_values_and_without_two_outcomes():
    assert classification.area_under_curve([0.9, 0.8, 0.3], [True, False, False]) == 1.0
    assert classification.area_under_curve([0.9, 0.1], [True, True]) == 0.5


def test_cost_curve_runs_from_all_strong_to_all_cheap():
    points = router.cost_curve([0.9, 0.1, 0.8, 0.2] * 5, [True, False, True, False] * 5, strong=10, cheap=1)
    first, half, last = points[0], points[5], points[-1]
    assert (first["cost"], first["served"], last["cost"], last["served"]) == (10, 1, 1, 0.5)
    assert half == {"threshold": 0.8, "share": 0.5, "cost": 5.5, "served": 1.0, "random": 0.75, "perfect": 1.0}
    assert router.area_under_costs(points) == pytest.approx({"served": 0.875, "random": 0.75, "perfect": 0.875})


# ---------------------------------------------------------------------------------------------- the gate


def gain(rows, probability):
    return router.score_router(rows, probability, RouterPlan())[0]


def test_informed_router_has_a_gain_and_guessing_or_constant_ones_do_not():
    rows = [LabelledQuestion(f"question {n}", n % 2 == 0) for n in range(60)]
    assert gain(rows, [0.9 if row.suffices else 0.1 for row in rows]).low > 0
    guessed = gain(rows, [0.9 if n % 4 < 2 else 0.1 for n in range(60)])
    assert guessed.low <= 0 and guessed.difference == pytest.approx(0)
    assert gain(rows, [0.9] * 60).difference == gain(rows, [0.1] * 60).difference == 0


def test_no_probability_comes_from_a_router_that_saw_the_question():
    asked, seen = {row.question for row in ROWS}, []

    def fit(rows):
        seen.append({row.question for row in rows})
        return router.fit_router(rows)

    probabilities = router.probabilities_out_of_fold(RouterData(RouterPlan(folds=3), ROWS), fit)
    assert len(seen) == 3 and set.union(*(asked - one for one in seen)) == asked
    assert len(probabilities) == len(ROWS) and all(0 < probability < 1 for probability in probabilities)


def test_label_too_rare_for_the_folds_is_reported_with_the_fold():
    rows = [row for row in ROWS if row.suffices] + [LabelledQuestion(q, False) for q in HARD[:2]]
    with pytest.raises(CannotLearn, match=r"^where one of 3 folds is left out to judge by, all 5 texts"):
        RouterKind().judge(RouterData(RouterPlan(folds=3), rows), None, None)


def test_router_card_shows_its_training_data_and_whether_it_is_usable(tmp_path):
    data = RouterData(RouterPlan(threshold=0.5, folds=3), ROWS)
    for accept in (False, True):
        result = train(RouterKind(), data, tmp_path / "router", accept=accept)
        card = json.loads((tmp_path / "router" / "card.json").read_text())
        gained = card["metrics"]["gain"]["low"] > 0
        assert card["accepted"] is result.accepted and card["forced"] is (accept and not gained)
    assert card["kind"] == "router" and card["accepted"] and card["data"]["questions"] == 12
    assert card["data"]["fingerprint"] != fingerprint_labelled(ROWS[1:])
    classifier = TextClassifier.load(tmp_path / "router")
    assert classifier.probability("what is a dataset", "1") > classifier.probability("error why", "1")


# ---------------------------------------------------------------------------------------------- the file


def test_labeled_file_is_read(tmp_path):
    path = tmp_path / "questions.jsonl"
    path.write_text('{"question": " a? ", "target": 1}\n\n{"question": "b?", "target": 0}\n')
    assert read_labelled(path) == [LabelledQuestion("a?", True), LabelledQuestion("b?", False)]


def test_every_mistake_of_a_file_is_named_with_its_line(tmp_path):
    path = tmp_path / "questions.jsonl"
    rows = ['{"question": "a?", "target": 1}', '{"question": "", "target": 1}', '{"question": "b", "target": 2}']
    path.write_text("\n".join([*rows, "x", "[]"]))
    with pytest.raises(BadDataset) as caught:
        read_labelled(path)
    assert [line for line, _ in caught.value.mistakes] == [2, 3, 4, 5]


def test_missing_empty_or_deeply_nested_file_is_refused(tmp_path):
    (tmp_path / "empty.jsonl").write_text("\n")
    (tmp_path / "deep.jsonl").write_text("[" * 200_000 + "\n")
    for name in ("empty.jsonl", "missing.jsonl", "deep.jsonl"):
        with pytest.raises(BadDataset):
            read_labelled(tmp_path / name)
