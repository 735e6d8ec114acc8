"""Classifies texts with calibrated probabilities: TF-IDF and a linear model, saved with skops.

This module works with texts, labels and probabilities. Other modules use the labels (router.py, reranking/tag.py) and
decide which files to trust (classifier_folder.py).
"""

import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED

import numpy as np
from numpy.typing import NDArray

from pipelines.answering.routing.classifier_folder import (
    KIND,
    MODEL_FILE,
    NotAClassifier,
    read_classifier_card,
    read_estimator,
)
from pipelines.files.model_cards import VERSION, write_card
from pipelines.text.counts import counted

# Features: words, word pairs, and character n-grams within words (for typos, inflections and joined names); STRENGTH is
# scikit-learn's C. Chosen on the 1,801 questions of the Ray assistant: with the signs, the AUC is 0.78 on disjoint
# folds; with single words, 0.75.
PAIRS, CHARACTERS, STRENGTH = (1, 2), (2, 4), 3.0
CALIBRATION_FOLDS = 5

# Splits camelCase and PascalCase names; consecutive capitals stay together (HTTPServer: HTTP, Server).
HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
# Marks that show how a question is written rather than its subject.
SIGNS = {
    "question": "?", "lines": "\n", "code": "```", "call": "(", "assign": "=", "dot": ".", "name": "_", "error": "rror",
    "trace": "Traceback", "colon": ":",
}  # fmt: skip
WORD = re.compile(r"[^\W_]+[+#]*")


class CannotLearn(ValueError):
    """No classifier can be fitted to these examples."""


def words(text: str) -> str:
    """Return the lower-case words of `text` with single spaces; camelCase, snake_case and dotted names are split."""
    return " ".join(WORD.findall(HUMP.sub(" ", text))).lower()


def signs(text: str) -> str:
    """Return the features that `words` drops, as words: length, first words, marks of code and errors, script."""
    first = words(text).split()[:2]
    marks = [f"sign{name}" for name, mark in SIGNS.items() if mark in text]
    script = [] if text.isascii() else ["signscript"]
    start = [f"first{first[0]}", f"start{'x'.join(first)}"] if first else []
    return " ".join([f"length{min(len(text.split()) // 4, 8)}", *marks, *script, *start])


class Classifier(ABC):
    """Predicts the probability of each of `labels` for a text; `metadata` has the other entries of its card."""

    def __init__(self, labels: Sequence[str], metadata: Mapping[str, Any] | None = None) -> None:
        self.labels = tuple(labels)
        self.metadata = dict(metadata or {})

    @abstractmethod
    def probabilities(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """Return one row per text and one column per label, in the order of `labels`; rows sum to 1."""

    @abstractmethod
    def save(self, folder: Path, entries: Mapping[str, Any]) -> None:
        """Write the model into `folder`, then its card with the extra `entries`."""

    def predict(self, text: str) -> tuple[str, float]:
        """Return the most probable label of `text` and its probability."""
        row = self.probabilities([text])[0]
        best = int(row.argmax())
        return self.labels[best], float(row[best])

    def probability(self, text: str, label: str) -> float:
        """Return the probability of `label`, one of `labels`, for `text`."""
        return float(self.probabilities([text])[0][self.labels.index(label)])

    def threshold(self, otherwise: float) -> float:
        """Return the probability threshold that its evaluation chose, or `otherwise` if its card has none."""
        settings = self.metadata.get("settings")
        judged = settings.get("threshold") if isinstance(settings, Mapping) else None
        return float(judged) if isinstance(judged, int | float) and 0 <= judged <= 1 else otherwise


class TextClassifier(Classifier):
    """A linear model over the words of a text and its `signs`.

    Term weights and regression are scikit-learn's. Probabilities are calibrated with Platt's sigmoid over
    cross-validation folds (Platt 1999; scikit-learn's CalibratedClassifierCV).
    """

    def __init__(self, estimator: Any, metadata: Mapping[str, Any] | None = None) -> None:
        super().__init__([str(label) for label in estimator.classes_], metadata)
        self._estimator = estimator

    @classmethod
    def fit(cls, texts: Sequence[str], labels: Sequence[str]) -> "TextClassifier":
        """Return a classifier fitted to `texts` and their `labels`, in the same order. Raises CannotLearn."""
        _check_examples(texts, labels)
        estimator = _estimator(labels)
        estimator.fit([_features(text) for text in texts], np.array([str(label) for label in labels]))
        return cls(estimator)

    def probabilities(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """Return one row per text and one column per label, in the order of `labels`; rows sum to 1."""
        if not texts:
            return np.empty((0, len(self.labels)))
        return np.asarray(self._estimator.predict_proba([_features(text) for text in texts]), np.float64)

    def save(self, folder: Path, entries: Mapping[str, Any]) -> None:
        """Write the model into `folder`, then its card with the extra `entries`."""
        import sklearn
        from skops import io

        folder.mkdir(parents=True, exist_ok=True)
        io.dump(self._estimator, folder / MODEL_FILE, compression=ZIP_DEFLATED)
        own = {"labels": list(self.labels), "version": VERSION, "sklearn": sklearn.__version__}
        write_card(folder, {"kind": KIND, **entries, **own})

    @classmethod
    def load(cls, folder: Path, kind: str = KIND) -> "TextClassifier":
        """Return the classifier of this `kind` that `save` wrote to `folder`. Raises NotAClassifier."""
        card = read_classifier_card(folder, kind)
        classifier = cls(read_estimator(folder, card), card["metadata"])
        if list(classifier.labels) != card["labels"]:
            raise NotAClassifier(
                folder, f"the card names the labels {card['labels']}, the model {list(classifier.labels)}"
            )
        return classifier


def _features(text: str) -> str:
    """Return the words that the estimator reads; preprocessing is never part of a saved model."""
    return f"{words(text)} {signs(text)}"


# ---------------------------------------------------------------------------------------------- fitting


def _check_examples(texts: Sequence[str], labels: Sequence[str]) -> None:
    if len(texts) != len(labels):
        raise CannotLearn(
            f"{counted(len(texts), 'text has', 'texts have')} {counted(len(labels), 'label')}: give each text one"
        )
    counts = Counter(str(label) for label in labels)
    if len(counts) < 2:
        raise CannotLearn(
            f"all {counted(len(texts), 'text')} have the label(s) {sorted(counts)}: two labels are needed"
        )
    label, fewest = min(counts.items(), key=lambda item: (item[1], item[0]))
    if fewest < 2:
        raise CannotLearn(f"label {label!r} has a single example; calibration needs two of each: add one")
    if not any(words(text) for text in texts):
        raise CannotLearn(f"none of the {counted(len(texts), 'text')} has a word")


def _estimator(labels: Sequence[str]) -> Any:
    from sklearn.calibration import CalibratedClassifierCV
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import FeatureUnion, Pipeline

    single = TfidfVectorizer(lowercase=False, token_pattern=r"\S+", sublinear_tf=True, ngram_range=PAIRS)
    # An n-gram that occurs in only one text says nothing about another, and there are very many.
    runs = TfidfVectorizer(lowercase=False, analyzer="char_wb", ngram_range=CHARACTERS, sublinear_tf=True, min_df=2)
    regression = LogisticRegression(C=STRENGTH, max_iter=1000)
    # The rarest label limits the number of folds. A single regression on all texts keeps the file small.
    folds = min(CALIBRATION_FOLDS, *Counter(str(label) for label in labels).values())
    calibrated = CalibratedClassifierCV(regression, method="sigmoid", cv=folds, ensemble=False)
    return Pipeline([("terms", FeatureUnion([("words", single), ("characters", runs)])), ("regression", calibrated)])
