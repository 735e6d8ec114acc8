"""A calibrated text classifier on disk: TF-IDF, logistic regression, skops.

Knows texts, labels and probabilities; not what a label decides (router.py, reranker.py), nor what in a folder can be
trusted (classifier_folder.py).
"""

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED

import numpy as np
from numpy.typing import NDArray

from pipelines.answering.routing.classifier_folder import (
    CARD_FILE,
    MODEL_FILE,
    VERSION,
    check_replaceable,
    read_card,
    read_estimator,
    refusal,
)
from pipelines.whole import whole_folder

# Chosen on both labelled sets of the Ray assistant (1,801 routed and 2,906 tagged questions, 4-fold accuracy): single
# words with C=10 give 0.840 and 0.766; pairs of words too 0.842 and 0.764, with a fit that takes three times as long;
# C=1 with pairs 0.813 and 0.703; leaving out what stands in one text only 0.827 and 0.751.
C = 10.0
FOLDS = 5

# Where a camelCase or PascalCase name is cut; capitals in a row stay together (HTTPServer: HTTP, Server).
HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
# Marks that tell how a question is asked rather than what about.
SIGNS = {
    "question": "?", "lines": "\n", "code": "```", "call": "(", "assign": "=", "dot": ".", "name": "_", "error": "rror",
    "trace": "Traceback", "colon": ":",
}  # fmt: skip
WORD = re.compile(r"[^\W_]+[+#]*")


class CannotLearn(ValueError):
    """Examples from which no classifier can be fitted."""


def words(text: str) -> str:
    """The lower-case words of `text` with single spaces; camelCase, snake_case and dotted names come apart."""
    return " ".join(WORD.findall(HUMP.sub(" ", text))).lower()


def signs(text: str) -> str:
    """What `words` loses of `text`, as words of their own: its length, first words, marks of code, errors, scripts."""
    said = words(text).split()
    marks = [f"sign{name}" for name, mark in SIGNS.items() if mark in text]
    other = [] if text.isascii() else ["signscript"]
    return " ".join([f"length{min(len(text.split()) // 4, 8)}", *marks, *other, *_start(said)])


def _start(said: Sequence[str]) -> list[str]:
    return [f"first{said[0]}", f"start{'x'.join(said[:2])}"] if said else []


class TextClassifier:
    """Says which of its labels a text has, and how probable that is.

    Term weights and regression are scikit-learn's; probabilities are calibrated by Platt's sigmoid over
    cross-validation folds (Platt 1999; scikit-learn's CalibratedClassifierCV). `metadata` travels in the card.
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
        *,
        calibrated: bool = True,
        characters: tuple[int, int] | None = None,
        pairs: bool = False,
        strength: float = C,
        margin: bool = False,
        signs: bool = False,
        metadata: Mapping[str, Any] | None = None,
    ) -> "TextClassifier":
        """Learns from `texts` and their `labels`, in the same order. Raises CannotLearn.

        Reads single words; with `pairs` also two that follow each other, with `characters` also runs of so many
        letters inside of words ((2, 4): typos, inflections, names run together). `strength` is scikit-learn's C: the
        higher, the closer the fit. `margin` takes a linear support vector machine, one a label, in place of the
        regression; it says only with calibration how probable a label is. `signs` reads how a text is written, too.
        """
        _check_examples(texts, labels, calibrated)
        if margin and not calibrated:
            raise CannotLearn("a margin alone gives no probability: fit with calibrated=True")
        estimator = _estimator(labels, calibrated, _terms(characters, pairs), strength, margin)
        estimator.fit([_read(text, signs) for text in texts], np.array([str(label) for label in labels]))
        return cls(estimator, metadata, signs)

    def probabilities(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """One row a text, one column a label in the order of `labels`; rows sum to 1."""
        if not texts:
            return np.empty((0, len(self.labels)))
        return np.asarray(self._estimator.predict_proba([_read(text, self._signs) for text in texts]), np.float64)

    def predict(self, text: str) -> tuple[str, float]:
        """The most probable label of `text` and its probability."""
        row = self.probabilities([text])[0]
        best = int(row.argmax())
        return self.labels[best], float(row[best])

    def probability(self, text: str, label: str) -> float:
        """How probable `label`, one of `labels`, is for `text`."""
        return float(self.probabilities([text])[0][self.labels.index(label)])

    def threshold(self, otherwise: float) -> float:
        """The probability from which it was judged to be of use; `otherwise` where its card names none."""
        settings = self.metadata.get("settings")
        judged = settings.get("threshold") if isinstance(settings, Mapping) else None
        return float(judged) if isinstance(judged, int | float) and 0 <= judged <= 1 else otherwise

    def save(self, folder: str | Path, kind: str) -> None:
        """Writes model and card to `folder`, all or nothing; a classifier that is there is replaced.

        `kind` says what the labels decide ("router", "tags"): `load` asks for it.
        """
        from skops import io

        folder = Path(folder)
        check_replaceable(folder)
        with whole_folder(folder) as making:
            io.dump(self._estimator, making / MODEL_FILE, compression=ZIP_DEFLATED)
            (making / CARD_FILE).write_text(json.dumps(self._card(kind), indent=2, ensure_ascii=False) + "\n")

    @classmethod
    def load(cls, folder: str | Path, kind: str) -> "TextClassifier":
        """The classifier that `save` wrote there. Raises NotAClassifier, saying what is wrong and what to do."""
        folder = Path(folder)
        card = read_card(folder, kind)
        classifier = cls(read_estimator(folder, card), card["metadata"], card.get("signs") is True)
        if list(classifier.labels) != card["labels"]:
            raise refusal(folder, f"the card names the labels {card['labels']}, the model {list(classifier.labels)}")
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


def _read(text: str, with_signs: bool) -> str:
    """What the estimator is given of a text: preprocessing is never part of what is saved."""
    return f"{words(text)} {signs(text)}" if with_signs else words(text)


# ---------------------------------------------------------------------------------------------- fitting


def _check_examples(texts: Sequence[str], labels: Sequence[str], calibrated: bool) -> None:
    if len(texts) != len(labels):
        raise CannotLearn(f"{len(texts)} texts have {len(labels)} labels: give each text one")
    counts = Counter(str(label) for label in labels)
    if len(counts) < 2:
        raise CannotLearn(f"all {len(texts)} texts have the label(s) {sorted(counts)}: two labels are needed")
    label, fewest = min(counts.items(), key=lambda item: (item[1], item[0]))
    if calibrated and fewest < 2:
        raise CannotLearn(
            f"label {label!r} has a single example; calibration needs two of each: add one, or fit with "
            "calibrated=False"
        )
    if not any(words(text) for text in texts):
        raise CannotLearn(f"none of the {len(texts)} texts has a word")


def _estimator(labels: Sequence[str], calibrated: bool, terms: Any, strength: float, margin: bool) -> Any:
    from sklearn.calibration import CalibratedClassifierCV
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import Pipeline
    from sklearn.svm import LinearSVC

    regression = LinearSVC(C=strength) if margin else LogisticRegression(C=strength, max_iter=1000)
    if calibrated:
        # As many folds as the rarest label allows. One regression on all texts keeps the file small.
        folds = min(FOLDS, *Counter(str(label) for label in labels).values())
        regression = CalibratedClassifierCV(regression, method="sigmoid", cv=folds, ensemble=False)
    return Pipeline([("terms", terms), ("regression", regression)])


def _terms(characters: tuple[int, int] | None, pairs: bool) -> Any:
    """Weights of words, and of runs of characters beside them; both as `words` has cut them."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.pipeline import FeatureUnion

    single = TfidfVectorizer(
        lowercase=False, token_pattern=r"\S+", sublinear_tf=True, ngram_range=(1, 2 if pairs else 1)
    )
    if characters is None:
        return single
    # A run that stands in one text only tells nothing of another, and there are very many of those.
    runs = TfidfVectorizer(lowercase=False, analyzer="char_wb", ngram_range=characters, sublinear_tf=True, min_df=2)
    return FeatureUnion([("words", single), ("characters", runs)])
