"""A router learns from labelled questions which of them the cheap model answers well enough.

Judged on questions that it has not seen in any wording, and by what it saves. Knows no model and no prices of any.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pipelines.answering.routing.classifier import TextClassifier
from pipelines.evaluation.dataset import BadDataset
from pipelines.evaluation.statistics import PairedTest, paired_test
from pipelines.records import digest
from pipelines.training import curves

SUFFICES, NEEDS_STRONG = "1", "0"
LABELS = (NEEDS_STRONG, SUFFICES)
# What a strong model's answer costs against the cheap one's. Prices per million tokens of 2023, when the questions
# were labelled, gpt-4 30 to 60 USD and llama-2-70b 1: the factor moves the cost axis, not the order of the curves.
STRONG_COST, CHEAP_COST = 30.0, 1.0
# Chosen on the 1,801 questions of the Ray assistant: AUC 0.78 on disjoint folds, single words 0.75.
SHAPE: Mapping[str, Any] = {"characters": (2, 4), "pairs": True, "signs": True, "strength": 3.0}
SHARES = tuple(round(0.1 * step, 1) for step in range(11))


@dataclass(frozen=True, slots=True)
class Labelled:
    """A question, and whether the cheap model will do."""

    question: str
    suffices: bool


@dataclass(frozen=True, slots=True)
class CostPoint:
    """Where the threshold sends the `share` of questions to the cheap model: what they cost and how many are served.

    `served`: the share of all questions that went to the strong model, or to the cheap one that does for them. `random`
    is that of a router that sends as many by chance, `perfect` of one that knows. `cost` is a question's mean, in
    units of the cheap model's.
    """

    threshold: float
    share: float
    cost: float
    served: float
    random: float
    perfect: float


@dataclass(frozen=True, slots=True)
class Judgement:
    """What out-of-fold probabilities say of a router. `gain`: served above a random router that costs the same."""

    questions: int
    suffices: int
    folds: int
    auc: float
    brier: float
    brier_of_rate: float
    calibration: curves.Calibration
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


def read_labelled(path: Path) -> list[Labelled]:
    """JSONL of {"question", "target"}: target 1, the cheap model will do, or 0. Raises BadDataset."""
    rows: list[Labelled] = []
    mistakes: list[tuple[int, str]] = []
    try:
        lines = path.read_text(encoding="utf-8-sig").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise BadDataset(path, [(0, f"can't be read as UTF-8 text ({error})")]) from error
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                rows.append(_labelled(json.loads(line)))
            except (ValueError, RecursionError) as error:
                mistakes.append((number, str(error)))
    if mistakes or not rows:
        raise BadDataset(path, mistakes or [(0, "there is no question in it")])
    return rows


def _labelled(row: Any) -> Labelled:
    question = row.get("question") if isinstance(row, dict) else None
    if not isinstance(question, str) or not question.strip():
        raise ValueError(f"question is {question!r}: it must be a text")
    if row.get("target") not in (0, 1):
        raise ValueError(f"target is {row.get('target')!r}: it must be 1 (the cheap model will do) or 0")
    return Labelled(question.strip(), bool(row["target"]))


def fingerprint(rows: Sequence[Labelled]) -> str:
    """Names the labelled questions."""
    return digest(*(f"{row.suffices:d}{row.question}" for row in rows))


def fit(rows: Sequence[Labelled], metadata: dict[str, Any] | None = None, **shape: Any) -> TextClassifier:
    """A classifier with the labels "1" (the cheap model suffices) and "0"; `shape` as TextClassifier.fit takes it."""
    labels = [SUFFICES if row.suffices else NEEDS_STRONG for row in rows]
    return TextClassifier.fit([row.question for row in rows], labels, metadata=metadata, **{**SHAPE, **shape})


def probabilities(rows: Sequence[Labelled], folds: int = curves.FOLDS, seed: int = 0, **shape: Any) -> list[float]:
    """How probable it is for each question that the cheap model suffices, by a router that has not seen it.

    Questions alike in wording are all in one fold. Raises TooFewGroups.
    """
    texts = [row.question for row in rows]
    parts = curves.group_folds(curves.alike(texts), folds, seed)
    out = curves.out_of_fold(lambda places: fit([rows[p] for p in places], **shape), texts, LABELS, parts)
    return [float(p) for p in out[:, LABELS.index(SUFFICES)]]


def judge(
    rows: Sequence[Labelled],
    probability: Sequence[float],
    *,
    threshold: float = 0.5,
    folds: int = curves.FOLDS,
    strong: float = STRONG_COST,
    cheap: float = CHEAP_COST,
) -> Judgement:
    """All that is said of a router by `probability` for each of `rows`, and its gain at `threshold`."""
    truth = [row.suffices for row in rows]
    labels = [SUFFICES if right else NEEDS_STRONG for right in truth]
    said = [SUFFICES if p >= 0.5 else NEEDS_STRONG for p in probability]
    rate = sum(truth) / len(truth)
    return Judgement(
        questions=len(rows),
        suffices=sum(truth),
        folds=folds,
        auc=curves.auc(probability, truth),
        brier=curves.brier(probability, truth),
        brier_of_rate=curves.brier([rate] * len(truth), truth),
        calibration=curves.calibration(probability, truth),
        majority=curves.majority(labels),
        accuracy=sum(a == b for a, b in zip(said, labels, strict=True)) / len(labels),
        confusion=curves.confusion(labels, said),
        by_label=curves.by_label(labels, said),
        thresholds=[at_threshold(probability, truth, t) for t in curves.THRESHOLDS],
        costs=cost_curve(probability, truth, strong=strong, cheap=cheap),
        gain=gain(probability, truth, threshold),
    )


def at_threshold(probability: Sequence[float], truth: Sequence[bool], threshold: float) -> dict[str, float]:
    """Precision and recall of "the cheap model will do" where it is said from `threshold` on, and its share."""
    taken = np.asarray(probability) >= threshold
    right = taken & np.asarray(truth, bool)
    return {
        "threshold": float(threshold),
        "share": float(taken.mean()),
        "precision": float(right.sum() / taken.sum()) if taken.any() else 1.0,
        "recall": float(right.sum() / max(1, sum(truth))),
    }


def cost_curve(
    probability: Sequence[float], truth: Sequence[bool], *, strong: float = STRONG_COST, cheap: float = CHEAP_COST
) -> list[CostPoint]:
    """A point for each share of questions that the cheap model gets, the surest first."""
    sure, does = np.asarray(probability), np.asarray(truth, np.float64)
    order = np.argsort(-sure, kind="stable")
    return [_cost_point(sure[order], does[order], round(share * len(sure)), strong, cheap) for share in SHARES]


def _cost_point(sure: Any, does: Any, sent: int, strong: float, cheap: float) -> CostPoint:
    """`sure` and `does` by falling probability; the first `sent` go to the cheap model."""
    share, rate = sent / len(sure), float(does.mean())
    return CostPoint(
        threshold=float(sure[sent - 1]) if sent else 1.0,
        share=share,
        cost=share * cheap + (1 - share) * strong,
        served=1 - share + float(does[:sent].sum()) / len(sure),
        random=1 - share + share * rate,
        perfect=1 - max(0.0, share - rate),
    )


def gain(probability: Sequence[float], truth: Sequence[bool], threshold: float) -> PairedTest:
    """What the router serves above one that sends the same share to the cheap model by chance, question by question.

    The random router's score of a question is its expectation, so chance adds no noise of its own.
    """
    does = np.asarray(truth, np.float64)
    taken = np.asarray(probability) >= threshold
    share = float(taken.mean())
    return paired_test(np.where(taken, does, 1.0).tolist(), (share * does + 1 - share).tolist())


def area(costs: Sequence[CostPoint]) -> dict[str, float]:
    """Mean share of served questions over all shares sent to the cheap model, by the trapezoid rule.

    Of the router, of one that sends by chance, and of one that knows.
    """
    shares = [point.share for point in costs]
    curve = {name: [getattr(point, name) for point in costs] for name in ("served", "random", "perfect")}
    return {name: float(np.trapezoid(values, shares)) for name, values in curve.items()}


def card(rows: Sequence[Labelled], judgement: Judgement, settings: dict[str, Any], forced: bool) -> dict[str, Any]:
    """What the router's card says beside its labels."""
    return {
        "accepted": judgement.accepted or forced,
        "forced": forced and not judgement.accepted,
        "data": {"fingerprint": fingerprint(rows), "questions": len(rows)},
        "settings": settings,
        "metrics": {**asdict(judgement), "area": area(judgement.costs)},
    }
