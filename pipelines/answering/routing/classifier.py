"""Classifies texts by calibrated probabilities: TF-IDF and a linear model, saved with skops.

Knows texts, labels and probabilities; not the use of a label (router.py), nor which files can be
trusted (classifier_folder.py).
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED

import numpy as np
from numpy.typing import NDArray

from pipelines.answering.routing.classifier_folder import (
    MODEL_FILE,
    NotAClassifier,
    check_replaceable,
    read_classifier_card,
    read_estimator,
)
from pipelines.files.atomic_files import whole_folder
from pipelines.files.model_cards import VERSION, write_card

# Chosen on both labelled sets of the Ray assistant (1,801 routed and 2,906 tagged questions, 4-fold accuracy): single
# words with C=10 give 0.840 and 0.766; pairs of words too 0.842 and 0.764, with a fit that takes three times as long;
# C=1 with pairs 0.813 and 0.703; leaving out words that occur in one text only 0.827 and 0.751.
C = 10.0
CALIBRATION_FOLDS = 5

# Where a camelCase or PascalCase name is cut; capitals in a row stay together (HTTPServer: HTTP, Server).
HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
# Marks that tell how a question is written rather than what it is about.
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
    """Return the features that `words` loses, as words: length, first words, marks of code and errors, script."""
    first = words(text).split()[:2]
    marks = [f"sign{name}" for name, mark in SIGNS.items() if mark in text]
    script = [] if text.isascii() else ["signscript"]
    start = [f"first{first[0]}", f"start{'x'.join(first)}"] if first else []
    return " ".join([f"length{min(len(text.split()) // 4, 8)}", *marks, *script, *start])


@dataclass(frozen=True, slots=True)
class ClassifierShape:
    """The features that a classifier reads, and how closely it fits.

    The features are single words; with `pairs` also two consecutive words, with `characters` also runs of so many
    letters within words ((2, 4): typos, inflections, names run together), with `signs` how a text is written.
    `strength` is scikit-learn's C: the higher, the closer the fit.
    """

    characters: tuple[int, int] | None = None
    pairs: bool = False
    strength: float = C
    signs: bool = False


PLAIN = ClassifierShape()


class TextClassifier:
    """Gives the probability of each label for a text.

    Term weights and regression are scikit-learn's; probabilities are calibrated by Platt's sigmoid over
    cross-validation folds (Platt 1999; scikit-learn's CalibratedClassifierCV). `metadata` is kept in the card.
    """

    def __init__(self, estimator: Any, metadata: Mapping[str, Any] | None = None, signs: bool = False) -> None:
        self._estimator, self._signs = estimator, signs
        self.metadata = dict(metadata or {})
        self.labels = tuple(str(label) for label in estimator.classes_)

    @classmethod
    def fit(
        cls,
        texts: Sequence[str],
        labels: Sequence[str],
        shape: ClassifierShape = PLAIN,
        metadata: Mapping[str, Any] | None = None,
    ) -> "TextClassifier":
        """Return a classifier that learned from `texts` and their `labels`, in the same order. Raises CannotLearn."""
        _check_examples(texts, labels)
        estimator = _estimator(labels, shape)
        estimator.fit([_features(text, shape.signs) for text in texts], np.array([str(label) for label in labels]))
        return cls(estimator, metadata, shape.signs)

    def probabilities(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """Return one row a text and one column a label, in the order of `labels`; rows sum to 1."""
        if not texts:
            return np.empty((0, len(self.labels)))
        return np.asarray(self._estimator.predict_proba([_features(text, self._signs) for text in texts]), np.float64)

    def probability(self, text: str, label: str) -> float:
        """Return the probability of `label`, one of `labels`, for `text`."""
        return float(self.probabilities([text])[0][self.labels.index(label)])

    def threshold(self, otherwise: float) -> float:
        """Return the probability from which its evaluation found it useful, `otherwise` if its card has none."""
        settings = self.metadata.get("settings")
        judged = settings.get("threshold") if isinstance(settings, Mapping) else None
        return float(judged) if isinstance(judged, int | float) and 0 <= judged <= 1 else otherwise

    def save(self, folder: str | Path, kind: str) -> None:
        """Write model and card to `folder`, all or nothing; a classifier that is there is replaced.

        `kind` is the use of the labels ("router", "tag"), which `load` compares. Raises NotAClassifier if the folder
        holds something else.
        """
        from skops import io

        folder = Path(folder)
        check_replaceable(folder)
        with whole_folder(folder) as making:
            io.dump(self._estimator, making / MODEL_FILE, compression=ZIP_DEFLATED)
            write_card(making, self._card(kind))

    @classmethod
    def load(cls, folder: str | Path, kind: str) -> "TextClassifier":
        """Return the classifier that `save` wrote to `folder`. Raises NotAClassifier."""
        folder = Path(folder)
        card = read_classifier_card(folder, kind)
        classifier = cls(read_estimator(folder, card), card["metadata"], card.get("signs") is True)
        if list(classifier.labels) != card["labels"]:
            raise NotAClassifier(
                folder, f"the card names the labels {card['labels']}, the model {list(classifier.labels)}"
            )
        return classifier

    def _card(self, kind: str) -> dict[str, Any]:
        import sklearn

        return {
            **self.metadata,
            "kind": kind,
            "labels": list(self.labels),
            "version": VERSION,
            "signs": self._signs,
            "sklearn": sklearn.__version__,
        }


def _features(text: str, with_signs: bool) -> str:
    """Return the words that the estimator reads: preprocessing is never part of a saved model."""
    return f"{words(text)} {signs(text)}" if with_signs else words(text)


# ---------------------------------------------------------------------------------------------- fitting


def _check_examples(texts: Sequence[str], labels: Sequence[str]) -> None:
    if len(texts) != len(labels):
        raise CannotLearn(f"{len(texts)} texts have {len(labels)} labels: give each text one")
    counts = Counter(str(label) for label in labels)
    if len(counts) < 2:
        raise CannotLearn(f"all {len(texts)} texts have the label(s) {sorted(counts)}: two labels are needed")
    label, fewest = min(counts.items(), key=lambda item: (item[1], item[0]))
    if fewest < 2:
        raise CannotLearn(f"label {label!r} has a single example; calibration needs two of each: add one")
    if not any(words(text) for text in texts):
        raise CannotLearn(f"none of the {len(texts)} texts has a word")


def _estimator(labels: Sequence[str], shape: ClassifierShape) -> Any:
    from sklearn.calibration import CalibratedClassifierCV
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import Pipeline

    regression = LogisticRegression(C=shape.strength, max_iter=1000)
    # As many folds as the rarest label allows. One regression on all texts keeps the file small.
    folds = min(CALIBRATION_FOLDS, *Counter(str(label) for label in labels).values())
    calibrated = CalibratedClassifierCV(regression, method="sigmoid", cv=folds, ensemble=False)
    return Pipeline([("terms", _terms(shape.characters, shape.pairs)), ("regression", calibrated)])


def _terms(characters: tuple[int, int] | None, pairs: bool) -> Any:
    """Return the vectorizer of words, with runs of characters beside them if wanted; both read `words`."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.pipeline import FeatureUnion

    single = TfidfVectorizer(
        lowercase=False, token_pattern=r"\S+", sublinear_tf=True, ngram_range=(1, 2 if pairs else 1)
    )
    if characters is None:
        return single
    # A run that occurs in one text only tells nothing of another, and there are very many of those.
    runs = TfidfVectorizer(lowercase=False, analyzer="char_wb", ngram_range=characters, sublinear_tf=True, min_df=2)
    return FeatureUnion([("words", single), ("characters", runs)])
