"""Scores a classifier on unseen questions: thresholds, calibration, confusion.

Arithmetic over probabilities and labels. Knows no questions and no use of the labels.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

BINS = 10  # of equal width, as in the expected calibration error of Guo et al. (2017)
THRESHOLDS = tuple(round(0.05 * step, 2) for step in range(20))


def threshold_curve(
    probabilities: NDArray[np.float64],
    labels: Sequence[str],
    truth: Sequence[str],
    *,
    never: str,
    thresholds: Sequence[float],
) -> list[dict[str, float]]:
    """Return precision, recall and coverage of the best label by threshold; the label `never` counts as no answer.

    `coverage` is the share of all questions whose best label is at least as probable. `precision` is the share of these
    that are right. `recall` is the share of all labelled questions that are covered and right.
    """
    best = np.array(labels)[probabilities.argmax(axis=1)]
    confidence, right = probabilities.max(axis=1), best == np.array(truth)
    labelled = sum(label != never for label in truth)
    points = []
    for threshold in thresholds:
        taken = (confidence >= threshold) & (best != never)
        hits = int((taken & right).sum())
        points.append(
            {
                "threshold": float(threshold),
                "coverage": float(taken.mean()),
                "precision": hits / int(taken.sum()) if taken.any() else 1.0,
                "recall": hits / labelled if labelled else 0.0,
            }
        )
    return points


def confusion(truth: Sequence[str], predicted: Sequence[str]) -> dict[str, dict[str, int]]:
    """Return the confusion counts {true: {predicted: count}}, without zeros."""
    from sklearn.metrics import confusion_matrix

    labels = sorted({*truth, *predicted})
    rows = zip(labels, confusion_matrix(truth, predicted, labels=labels).tolist(), strict=True)
    counts = {label: {other: n for other, n in zip(labels, row, strict=True) if n} for label, row in rows}
    return {label: row for label, row in counts.items() if row}


def scores_by_label(truth: Sequence[str], predicted: Sequence[str]) -> dict[str, dict[str, float]]:
    """Return precision, recall and count of each true label."""
    from sklearn.metrics import precision_recall_fscore_support

    labels = sorted(set(truth))
    precision, recall, _, count = precision_recall_fscore_support(truth, predicted, labels=labels, zero_division=0.0)
    columns = zip(labels, precision.tolist(), recall.tolist(), count.tolist(), strict=True)
    return {label: {"precision": p, "recall": r, "count": n} for label, p, r, n in columns}


def majority_share(truth: Sequence[str]) -> float:
    """Return the accuracy of always predicting the most frequent label."""
    return max(Counter(truth).values()) / len(truth)


def calibration(probability: Sequence[float], happened: Sequence[bool], bins: int = BINS) -> dict[str, Any]:
    """Return how well `probability` matches `happened` (scikit-learn's calibration_curve returns no counts per bin).

    `bins` has (mean probability, share that happened, count) of each non-empty bin. `ece` is the mean gap between the
    first two, weighted by the third.
    """
    expected, observed = np.asarray(probability, np.float64), np.asarray(happened, np.float64)
    bin_of = np.minimum((expected * bins).astype(int), bins - 1)
    rows = [
        (float(expected[bin_of == b].mean()), float(observed[bin_of == b].mean()), int((bin_of == b).sum()))
        for b in np.unique(bin_of)
    ]
    return {"ece": sum(abs(mean - share) * n for mean, share, n in rows) / len(expected), "bins": rows}


def area_under_curve(score: Sequence[float], happened: Sequence[bool]) -> float:
    """Return the area under the ROC curve; 0.5 if only one outcome happened."""
    from sklearn.metrics import roc_auc_score

    return float(roc_auc_score(list(happened), list(score))) if 0 < sum(happened) < len(happened) else 0.5
