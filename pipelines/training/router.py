"""The router: predicts which questions the cheap model answers well enough.

Judged on questions that it has not seen in any wording, and by the cost that it saves. Knows no model and no prices.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import Field

from pipelines.answering.routing.classifier import CannotLearn, TextClassifier
from pipelines.answering.routing.classifier_folder import KIND
from pipelines.answering.routing.router import SUFFICES
from pipelines.evaluation.questions.alike import question_groups
from pipelines.evaluation.questions.labelled import LabelledQuestion, fingerprint_labelled, read_labelled
from pipelines.evaluation.statistics import PairedTest, paired_test
from pipelines.text.counts import counted
from pipelines.text.sheets import Fact, Part
from pipelines.training import classification
from pipelines.training.folds import FOLDS, group_folds
from pipelines.training.ranking import describe_gain, table_of
from pipelines.training.run import ModelKind, TrainingOrder, TrainingPlan, TrainingScores, Workplace

NEEDS_STRONG = "0"  # the other label is SUFFICES
SHARES = tuple(round(0.1 * step, 1) for step in range(11))

Rows = Sequence[Mapping[str, float]]


class RouterPlan(TrainingPlan):
    """Settings for judging a router.

    The costs are prices per million tokens in 2023, when the questions were labelled: gpt-4 30 to 60 USD, llama-2-70b
    1. The factor scales the cost axis and does not change the order of the curves.
    """

    threshold: float = Field(0.8, ge=0, le=1, description="probability from which the gate chooses the cheap model")
    folds: int = Field(FOLDS, ge=2, description="folds of the cross-validation")
    strong_cost: float = Field(30.0, ge=0, description="cost of an answer of the strong model")
    cheap_cost: float = Field(1.0, ge=0, description="cost of an answer of the cheap model")


@dataclass(frozen=True, slots=True)
class RouterData:
    """Questions, and whether the cheap model answers each well enough."""

    plan: RouterPlan
    rows: Sequence[LabelledQuestion]


class RouterKind(ModelKind[RouterPlan, RouterData, TextClassifier]):
    """Judged by the gain over a router that sends as many questions to the cheap model at random."""

    name, card, plan = "router", KIND, RouterPlan
    help = "a router: which questions a cheap model answers well enough"

    def load(self, order: TrainingOrder, plan: RouterPlan) -> RouterData:
        """Read the labelled questions."""
        return RouterData(plan, read_labelled(order.dataset))

    def fit(self, data: RouterData, workplace: Workplace) -> TextClassifier:
        """Train on all questions. Raises CannotLearn."""
        return fit_router(data.rows)

    def judge(self, data: RouterData, model: TextClassifier, workplace: Workplace) -> TrainingScores:
        """Judge by the probabilities of routers that have not seen the question in any wording."""
        rows, plan = data.rows, data.plan
        gain, metrics = score_router(rows, probabilities_out_of_fold(data), plan)
        entries = {
            "data": {"fingerprint": fingerprint_labelled(rows), "questions": len(rows)},
            "settings": {"threshold": plan.threshold, "folds": plan.folds, "seed": plan.seed},
            "metrics": metrics,
        }
        return TrainingScores(gain.low > 0, entries, describe(metrics, gain, plan.threshold), {})

    def save(self, model: TextClassifier, folder: Path, card: Mapping[str, Any]) -> None:
        """Write the classifier, which adds its labels to the card."""
        model.save(folder, card)


def fit_router(rows: Sequence[LabelledQuestion]) -> TextClassifier:
    """Return a classifier with the labels "1" (the cheap model suffices) and "0". Raises CannotLearn."""
    return TextClassifier.fit([row.question for row in rows], labels_of(rows))


def labels_of(rows: Sequence[LabelledQuestion]) -> list[str]:
    """Return "1" for each question that the cheap model answers well enough, else "0"."""
    return [SUFFICES if row.suffices else NEEDS_STRONG for row in rows]


def probabilities_out_of_fold(
    data: RouterData, fit: Callable[[Sequence[LabelledQuestion]], TextClassifier] = fit_router
) -> list[float]:
    """Return the probability that the cheap model suffices for each question, from a router that has not seen it.

    Similar questions are all in one fold. `fit` makes the router of a fold from the questions of the other folds.
    Raises BadFolds and CannotLearn.
    """
    texts = [row.question for row in data.rows]
    probabilities = np.zeros(len(texts))
    for fold in group_folds(question_groups(texts), data.plan.folds, data.plan.seed):
        try:
            classifier = fit([data.rows[place] for place in np.setdiff1d(np.arange(len(texts)), fold)])
        except CannotLearn as error:
            raise CannotLearn(
                f"where one of {counted(data.plan.folds, 'fold')} is left out to judge by, {error}"
            ) from error
        of_fold = classifier.probabilities([texts[place] for place in fold])
        probabilities[fold] = of_fold[:, classifier.labels.index(SUFFICES)]
    return probabilities.tolist()


def score_router(
    rows: Sequence[LabelledQuestion], probability: Sequence[float], plan: RouterPlan
) -> tuple[PairedTest, dict[str, Any]]:
    """Return the gain of `probability` (that the cheap model suffices), and all scores for the card."""
    from sklearn.metrics import brier_score_loss

    truth, labels = [row.suffices for row in rows], labels_of(rows)
    predicted = [SUFFICES if p >= 0.5 else NEEDS_STRONG for p in probability]
    costs = cost_curve(probability, truth, strong=plan.strong_cost, cheap=plan.cheap_cost)
    gain = gain_over_chance(probability, truth, plan.threshold)
    return gain, {
        "questions": len(rows),
        "suffices": sum(truth),
        "folds": plan.folds,
        "auc": classification.area_under_curve(probability, truth),
        "brier": float(brier_score_loss(truth, probability)),
        "brier_of_rate": float(brier_score_loss(truth, [sum(truth) / len(truth)] * len(truth))),
        "calibration": classification.calibration(probability, truth),
        "majority": classification.majority_share(labels),
        "accuracy": float(np.mean([a == b for a, b in zip(labels, predicted, strict=True)])),
        "confusion": classification.confusion(labels, predicted),
        "by_label": classification.scores_by_label(labels, predicted),
        "thresholds": [score_threshold(probability, truth, t) for t in classification.THRESHOLDS],
        "costs": costs,
        "gain": {"difference": gain.difference, "low": gain.low, "high": gain.high, "p": gain.p},
        "area": area_under_costs(costs),
    }


def score_threshold(probability: Sequence[float], truth: Sequence[bool], threshold: float) -> dict[str, float]:
    """Return precision and recall of "the cheap model suffices" at `threshold`, and the share sent to it."""
    taken = np.asarray(probability) >= threshold
    right = taken & np.asarray(truth, bool)
    return {
        "threshold": float(threshold),
        "share": float(taken.mean()),
        "precision": float(right.sum() / taken.sum()) if taken.any() else 1.0,
        "recall": float(right.sum() / max(1, sum(truth))),
    }


def cost_curve(
    probability: Sequence[float], truth: Sequence[bool], *, strong: float, cheap: float
) -> list[dict[str, float]]:
    """Return a point for each share of questions sent to the cheap model, the most probable first.

    `served` is the share of all questions that are answered well: by the strong model, or by the cheap one if it
    suffices. `random` is the same for a router that sends as many at random, `perfect` for one that knows the labels.
    `cost` is the mean cost of a question, in units of the cheap model's.
    """
    probabilities, suffices = np.asarray(probability), np.asarray(truth, np.float64)
    order, rate = np.argsort(-probabilities, kind="stable"), float(suffices.mean())
    points = []
    for sent in (round(share * len(order)) for share in SHARES):
        share = sent / len(order)
        points.append(
            {
                "threshold": float(probabilities[order[sent - 1]]) if sent else 1.0,
                "share": share,
                "cost": share * cheap + (1 - share) * strong,
                "served": 1 - share + float(suffices[order[:sent]].sum()) / len(order),
                "random": 1 - share + share * rate,
                "perfect": 1 - max(0.0, share - rate),
            }
        )
    return points


def gain_over_chance(probability: Sequence[float], truth: Sequence[bool], threshold: float) -> PairedTest:
    """Compare, question by question, with a router that sends the same share to the cheap model at random.

    The random router's score of a question is its expected value, so that randomness adds no noise.
    """
    suffices = np.asarray(truth, np.float64)
    taken = np.asarray(probability) >= threshold
    share = float(taken.mean())
    return paired_test(np.where(taken, suffices, 1.0).tolist(), (share * suffices + 1 - share).tolist())


def area_under_costs(costs: Rows) -> dict[str, float]:
    """Return the mean share of well-answered questions over all shares sent, by the trapezoid rule.

    It is computed for the router, a random one, and one that knows the labels.
    """
    shares, names = [point["share"] for point in costs], ("served", "random", "perfect")
    return {name: float(np.trapezoid([point[name] for point in costs], shares)) for name in names}


def describe(metrics: Mapping[str, Any], gain: PairedTest, threshold: float) -> list[Part]:
    """Return the scores for a person."""
    of, area, ece = metrics, metrics["area"], metrics["calibration"]["ece"]
    asked = f"{counted(of['questions'], 'question')}, for {of['suffices']:,} the cheap model suffices"
    return [
        Fact("judged by", f"{asked}; {counted(of['folds'], 'fold')}"),
        Fact("AUC", f"{of['auc']:.3f}; accuracy {of['accuracy']:.3f}, majority {of['majority']:.3f}"),
        Fact("Brier", f"{of['brier']:.3f} (of the rate {of['brier_of_rate']:.3f}), ECE {ece:.3f}"),
        Fact("confusion", f"(true: predicted) {of['confusion']}"),
        "",
        table_of(of["costs"], ">"),
        "",
        Fact("area", f"{area['served']:.3f}, by chance {area['random']:.3f}, of one that knows {area['perfect']:.3f}"),
        Fact("gain", f"{describe_gain(gain)}, over chance"),
        Fact("threshold", f"{threshold:g} and above"),
    ]
