"""How far a classifier can be trusted: folds that share no question, threshold curves, calibration, cost.

Arithmetic over probabilities and labels. Knows neither what is classified nor what a label decides.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pipelines.answering.routing.classifier import TextClassifier, words

FOLDS = 5
BINS = 10  # of equal width: the expected calibration error as Guo et al. (2017) define it
THRESHOLDS = tuple(round(0.05 * step, 2) for step in range(20))
# Questions whose words overlap so much (Jaccard) are one question in two wordings. At 0.8 the pairs of the Ray
# assistant's questions that were looked at differ in an article, a typo or a mark; at 0.6 many ask different things.
ALIKE = 0.8

Probabilities = NDArray[np.float64]


class TooFewGroups(ValueError):
    """There are fewer groups of questions than folds."""


# ------------------------------------------------------------------------------------------- folds


def alike(questions: Sequence[str], share: float = ALIKE) -> list[int]:
    """The group of each question: those with the same words, or whose sets of words overlap by `share`, are together.

    Groups are connected components; numbered by their first question.
    """
    bags = [frozenset(words(question).split()) for question in questions]
    parents = list(range(len(bags)))

    def root(place: int) -> int:
        while parents[place] != place:
            parents[place] = place = parents[parents[place]]
        return place

    for one, other in _candidates(bags, share):
        if len(bags[one] & bags[other]) >= share * len(bags[one] | bags[other]):
            low, high = sorted((root(one), root(other)))
            parents[high] = low
    return [root(place) for place in range(len(bags))]


def _candidates(bags: Sequence[frozenset[str]], share: float) -> set[tuple[int, int]]:
    """Pairs that may overlap by `share`: they share one of their rarest words (prefix filtering; Chaudhuri, 2006)."""
    counts = Counter(word for bag in bags for word in bag)
    holding: dict[str, list[int]] = {}
    pairs: set[tuple[int, int]] = set()
    for place, bag in enumerate(bags):
        rarest = sorted(bag, key=lambda word: (counts[word], word))
        for word in rarest[: len(bag) - int(np.ceil(share * len(bag))) + 1] or [""]:
            pairs.update((other, place) for other in holding.get(word, ()))
            holding.setdefault(word, []).append(place)
    return pairs


def group_folds(groups: Sequence[Hashable], n: int = FOLDS, seed: int = 0) -> list[NDArray[np.intp]]:
    """`n` lists of places, about as long as each other; a group is whole in one of them. Raises TooFewGroups."""
    distinct = {group: place for place, group in enumerate(dict.fromkeys(groups))}
    if not 2 <= n <= len(distinct):
        raise TooFewGroups(f"{len(distinct)} groups of questions can't be split into {n} folds: label more questions")
    numbers = np.array([distinct[group] for group in groups])
    sizes = np.bincount(numbers)
    order = np.random.default_rng(seed).permutation(len(sizes))
    order = order[np.argsort(-sizes[order], kind="stable")]
    fold_of, loads = np.empty(len(sizes), np.intp), np.zeros(n, np.intp)
    for group in order:
        fold_of[group] = loads.argmin()
        loads[fold_of[group]] += sizes[group]
    return [np.flatnonzero(fold_of[numbers] == fold) for fold in range(n)]


def out_of_fold(
    fit: Callable[[NDArray[np.intp]], TextClassifier],
    texts: Sequence[str],
    labels: Sequence[str],
    parts: Sequence[NDArray[np.intp]],
) -> Probabilities:
    """The probability of each of `labels` for each text, by a classifier that `fit` made of the other folds' places.

    A label that those folds lack has the probability 0.
    """
    result = np.zeros((len(texts), len(labels)))
    for part in parts:
        classifier = fit(np.setdiff1d(np.arange(len(texts)), part))
        found = classifier.probabilities([texts[place] for place in part])
        for column, label in enumerate(classifier.labels):
            result[part, labels.index(label)] = found[:, column]
    return result


# ------------------------------------------------------------------------------------------- what they are worth


@dataclass(frozen=True, slots=True)
class Point:
    """Of questions whose label is at least as probable as `threshold`: their share, and how many of them are right.

    `recall` is the share of all questions that belong to a label that are answered by it, and rightly.
    """

    threshold: float
    coverage: float
    precision: float
    recall: float


def threshold_curve(
    probabilities: Probabilities,
    labels: Sequence[str],
    truth: Sequence[str],
    *,
    never: str = "",
    thresholds: Sequence[float] = THRESHOLDS,
) -> list[Point]:
    """Precision, recall and coverage of the best label by threshold; the label `never` counts as no answer."""
    best = np.array(labels)[probabilities.argmax(axis=1)]
    sure, right = probabilities.max(axis=1), best == np.array(truth)
    belongs = np.array([label != never for label in truth])
    points = []
    for threshold in thresholds:
        taken = (sure >= threshold) & (best != never)
        hits = int((taken & right).sum())
        precision = hits / int(taken.sum()) if taken.any() else 1.0
        recall = hits / int(belongs.sum()) if belongs.any() else 0.0
        points.append(Point(float(threshold), float(taken.mean()), precision, recall))
    return points


def confusion(truth: Sequence[str], said: Sequence[str]) -> dict[str, dict[str, int]]:
    """How often each true label was taken for each: {true: {said: count}}, only what happened."""
    counts = Counter(zip(truth, said, strict=True))
    return {
        label: {other: counts[label, other] for other in sorted(set(said)) if counts[label, other]}
        for label in sorted(set(truth))
    }


def by_label(truth: Sequence[str], said: Sequence[str]) -> dict[str, dict[str, float]]:
    """Precision, recall and number of each label."""
    true, guessed = Counter(truth), Counter(said)
    right = Counter(label for label, other in zip(truth, said, strict=True) if label == other)
    return {
        label: {
            "precision": right[label] / guessed[label] if guessed[label] else 0.0,
            "recall": right[label] / true[label],
            "count": true[label],
        }
        for label in sorted(true)
    }


def majority(truth: Sequence[str]) -> float:
    """The accuracy of always saying the most frequent label."""
    return max(Counter(truth).values()) / len(truth)


@dataclass(frozen=True, slots=True)
class Calibration:
    """`ece`: mean gap between how sure and how right, weighted by `bins`: (mean probability, share right, number)."""

    ece: float
    bins: tuple[tuple[float, float, int], ...]


def calibration(probability: Sequence[float], happened: Sequence[bool], bins: int = BINS) -> Calibration:
    """Whether what is said to happen with a probability happens that often."""
    sure, right = np.asarray(probability, np.float64), np.asarray(happened, np.float64)
    places = np.minimum((sure * bins).astype(int), bins - 1)
    rows = [
        (float(sure[places == b].mean()), float(right[places == b].mean()), int((places == b).sum()))
        for b in range(bins)
        if (places == b).any()
    ]
    return Calibration(sum(abs(said - was) * n for said, was, n in rows) / len(sure), tuple(rows))


def brier(probability: Sequence[float], happened: Sequence[bool]) -> float:
    """Mean squared error of probabilities, 0 at best (Brier, 1950)."""
    return float(np.mean((np.asarray(probability, np.float64) - np.asarray(happened, np.float64)) ** 2))


def auc(score: Sequence[float], happened: Sequence[bool]) -> float:
    """Area under the ROC curve; 0.5 where only one outcome happened."""
    from sklearn.metrics import roc_auc_score

    return float(roc_auc_score(list(happened), list(score))) if 0 < sum(happened) < len(happened) else 0.5


def as_rows(points: Sequence[Mapping[str, float]]) -> str:
    """Points as a Markdown table."""
    names = list(points[0])
    lines = ["| " + " | ".join(names) + " |", "|---" * len(names) + "|"]
    return "\n".join([*lines, *("| " + " | ".join(f"{row[name]:.3f}" for name in names) + " |" for row in points)])
