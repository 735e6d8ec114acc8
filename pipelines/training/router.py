"""Trains a router on labelled questions: which of them the cheap model answers well enough.

Judged on questions that it has not seen in any wording, and by the cost that it saves. Knows no model and no prices.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from pydantic import Field

from pipelines.answering.routing.classifier import ClassifierShape, TextClassifier
from pipelines.evaluation.questions.alike import question_groups
from pipelines.evaluation.questions.labelled import LabelledQuestion, fingerprint_labelled
from pipelines.evaluation.statistics import PairedTest, paired_test
from pipelines.training import classification
from pipelines.training.card import ModelFolder, TrainingPlan, TrainingResult, acceptance
from pipelines.training.classification import Calibration, markdown_table
from pipelines.training.folds import FOLDS, group_folds, predict_out_of_fold

KIND = "router"
SUFFICES, NEEDS_STRONG = "1", "0"
LABELS = (NEEDS_STRONG, SUFFICES)
# Chosen on the 1,801 questions of the Ray assistant: AUC 0.78 on disjoint folds, single words 0.75.
SHAPE = ClassifierShape(characters=(2, 4), pairs=True, signs=True, strength=3.0)
SHARES = tuple(round(0.1 * step, 1) for step in range(11))


class RouterPlan(TrainingPlan):
    """How a router is judged.

    The costs are prices per million tokens of 2023, when the questions were labelled: gpt-4 30 to 60 USD, llama-2-70b
    1. The factor moves the cost axis, not the order of the curves.
    """

    threshold: float = Field(0.8, ge=0, le=1, description="probability from which the gate sends to the cheap model")
    folds: int = Field(FOLDS, ge=2, description="of the cross-validation")
    strong_cost: float = Field(30.0, ge=0, description="of an answer")
    cheap_cost: float = Field(1.0, ge=0, description="of an answer")


def train_router(
    rows: Sequence[LabelledQuestion], output: ModelFolder, plan: RouterPlan, *, accept: bool = False
) -> TrainingResult:
    """Judge routers on questions that they have not seen, then put one that learned from all into `output`.

    `accept` accepts it whatever the verdict is. Raises BadFolds and CannotLearn.
    """
    scores = score_router(rows, probabilities_out_of_fold(rows, plan.folds, plan.seed), plan)
    entries = router_card(rows, scores, plan, accept)
    fit_router(rows, entries).save(output.path, KIND)
    return TrainingResult(output.path, entries, describe(scores, plan.threshold), {"kind": KIND})


# ------------------------------------------------------------------------------------------- learning


def fit_router(rows: Sequence[LabelledQuestion], metadata: dict[str, Any] | None = None) -> TextClassifier:
    """Return a classifier with the labels "1" (the cheap model suffices) and "0". Raises CannotLearn."""
    labels = [SUFFICES if row.suffices else NEEDS_STRONG for row in rows]
    return TextClassifier.fit([row.question for row in rows], labels, SHAPE, metadata)


def probabilities_out_of_fold(rows: Sequence[LabelledQuestion], folds: int = FOLDS, seed: int = 0) -> list[float]:
    """Return for each question the probability that the cheap model suffices, by a router that has not seen it.

    Questions alike in wording are all in one fold. Raises BadFolds.
    """
    texts = [row.question for row in rows]
    parts = group_folds(question_groups(texts), folds, seed)
    out = predict_out_of_fold(lambda places: fit_router([rows[p] for p in places]), texts, LABELS, parts)
    return [float(p) for p in out[:, LABELS.index(SUFFICES)]]


# ------------------------------------------------------------------------------------------- judging


@dataclass(frozen=True, slots=True)
class CostPoint:
    """The cost and quality of sending the `share` of questions from `threshold` on to the cheap model.

    `served` is the share of all questions that are answered well: by the strong model, or by the cheap one where it
    suffices. `random` is that of a router that sends as many by chance, `perfect` of one that knows. `cost` is the mean
    of a question, in units of the cheap model's.
    """

    threshold: float
    share: float
    cost: float
    served: float
    random: float
    perfect: float


@dataclass(frozen=True, slots=True)
class RouterScores:
    """Scores of out-of-fold probabilities. `gain` is in `served`, over a random router that costs the same."""

    questions: int
    suffices: int
    folds: int
    auc: float
    brier: float
    brier_of_rate: float
    calibration: Calibration
    majority: float
    accuracy: float
    confusion: dict[str, dict[str, int]]
    by_label: dict[str, dict[str, float]]
    thresholds: list[dict[str, float]]
    costs: list[CostPoint]
    gain: PairedTest

    @property
    def accepted(self) -> bool:
        """Whether the paired interval of the gain over random routing lies above 0."""
        return self.gain.low > 0


def score_router(rows: Sequence[LabelledQuestion], probability: Sequence[float], plan: RouterPlan) -> RouterScores:
    """Return the scores of `probability`, that the cheap model suffices, for `rows`."""
    from sklearn.metrics import accuracy_score, brier_score_loss

    truth = [row.suffices for row in rows]
    labels = [SUFFICES if target else NEEDS_STRONG for target in truth]
    predicted = [SUFFICES if p >= 0.5 else NEEDS_STRONG for p in probability]
    rate = [sum(truth) / len(truth)] * len(truth)
    return RouterScores(
        questions=len(rows),
        suffices=sum(truth),
        folds=plan.folds,
        auc=classification.area_under_curve(probability, truth),
        brier=float(brier_score_loss(truth, probability)),
        brier_of_rate=float(brier_score_loss(truth, rate)),
        calibration=classification.calibration(probability, truth),
        majority=classification.majority_share(labels),
        accuracy=float(accuracy_score(labels, predicted)),
        confusion=classification.confusion(labels, predicted),
        by_label=classification.scores_by_label(labels, predicted),
        thresholds=[score_threshold(probability, truth, t) for t in classification.THRESHOLDS],
        costs=cost_curve(probability, truth, strong=plan.strong_cost, cheap=plan.cheap_cost),
        gain=gain_over_chance(probability, truth, plan.threshold),
    )


def score_threshold(probability: Sequence[float], truth: Sequence[bool], threshold: float) -> dict[str, float]:
    """Return precision and recall of "the cheap model suffices" from `threshold` on, and the share sent to it."""
    taken = np.asarray(probability) >= threshold
    right = taken & np.asarray(truth, bool)
    return {
        "threshold": float(threshold),
        "share": float(taken.mean()),
        "precision": float(right.sum() / taken.sum()) if taken.any() else 1.0,
        "recall": float(right.sum() / max(1, sum(truth))),
    }


def cost_curve(probability: Sequence[float], truth: Sequence[bool], *, strong: float, cheap: float) -> list[CostPoint]:
    """Return a point for each share of questions that the cheap model gets, the most probable first."""
    probabilities, suffices = np.asarray(probability), np.asarray(truth, np.float64)
    order = np.argsort(-probabilities, kind="stable")
    sends = [round(share * len(order)) for share in SHARES]
    return [_cost_point(probabilities[order], suffices[order], sent, strong, cheap) for sent in sends]


def _cost_point(probabilities: Any, suffices: Any, sent: int, strong: float, cheap: float) -> CostPoint:
    """Return the point where the first `sent` questions, by falling probability, go to the cheap model."""
    share, rate = sent / len(probabilities), float(suffices.mean())
    return CostPoint(
        threshold=float(probabilities[sent - 1]) if sent else 1.0,
        share=share,
        cost=share * cheap + (1 - share) * strong,
        served=1 - share + float(suffices[:sent].sum()) / len(probabilities),
        random=1 - share + share * rate,
        perfect=1 - max(0.0, share - rate),
    )


def gain_over_chance(probability: Sequence[float], truth: Sequence[bool], threshold: float) -> PairedTest:
    """Compare, question by question, with a router that sends the same share to the cheap model by chance.

    The random router's score of a question is its expectation, so chance adds no noise of its own.
    """
    suffices = np.asarray(truth, np.float64)
    taken = np.asarray(probability) >= threshold
    share = float(taken.mean())
    return paired_test(np.where(taken, suffices, 1.0).tolist(), (share * suffices + 1 - share).tolist())


def area_under_costs(costs: Sequence[CostPoint]) -> dict[str, float]:
    """Return the mean share of well-answered questions over all shares sent, by the trapezoid rule.

    Of the router, of one that sends by chance, and of one that knows.
    """
    shares = [point.share for point in costs]
    curve = {name: [getattr(point, name) for point in costs] for name in ("served", "random", "perfect")}
    return {name: float(np.trapezoid(values, shares)) for name, values in curve.items()}


# ------------------------------------------------------------------------------------------- the card


def router_card(
    rows: Sequence[LabelledQuestion], scores: RouterScores, plan: RouterPlan, accept: bool = False
) -> dict[str, Any]:
    """Return the entries of the router's card beside its labels."""
    return {
        **acceptance(scores.accepted, accept),
        "data": {"fingerprint": fingerprint_labelled(rows), "questions": len(rows)},
        "settings": {"threshold": plan.threshold, "folds": plan.folds, "seed": plan.seed},
        "metrics": {**asdict(scores), "area": area_under_costs(scores.costs)},
    }


def describe(scores: RouterScores, threshold: float) -> str:
    """Return the scores for a person."""
    gain, area = scores.gain, area_under_costs(scores.costs)
    lines = [
        f"{scores.questions:,} questions, for {scores.suffices:,} the cheap model suffices; {scores.folds} folds",
        f"AUC {scores.auc:.3f}; accuracy {scores.accuracy:.3f}, majority {scores.majority:.3f}",
        f"Brier {scores.brier:.3f} (of the rate {scores.brier_of_rate:.3f}), ECE {scores.calibration.ece:.3f}",
        f"confusion (true: predicted) {scores.confusion}",
        "",
        markdown_table([asdict(point) for point in scores.costs]),
        "",
        f"area {area['served']:.3f}, by chance {area['random']:.3f}, of one that knows {area['perfect']:.3f}",
        f"gain over chance {gain.difference:+.3f} [{gain.low:+.3f}, {gain.high:+.3f}], p = {gain.p:.4f}",
        f"from the threshold {threshold:g} on",
    ]
    return "\n".join(lines)
