"""Reads a text classifier from its folder: a card and a skops file, neither of them trusted.

A file is data, never code: nothing is unpickled, and only the types listed here are loaded.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pipelines.files.model_cards import CARD_FILE, BadCard, read_card

KIND, MODEL_FILE = "router", "model.skops"
# The entries of a card that describe the classifier itself; the others are its metadata.
OWN = ("kind", "labels", "version", "sklearn")

# The types in a saved classifier that skops does not trust by default: two private classes of scikit-learn's
# calibration. It trusts the others (pipeline, TF-IDF, logistic regression, arrays).
TRUSTED = ("sklearn.calibration._CalibratedClassifier", "sklearn.calibration._SigmoidCalibration")


class NotAClassifier(ValueError):
    """A folder has no classifier, or one that must not be loaded."""

    def __init__(self, folder: Path, problem: str) -> None:
        super().__init__(
            f"{folder}: {problem}. Train it again with `raydex train`, or name the folder of a trained classifier"
        )


def read_classifier_card(folder: Path, kind: str = KIND) -> dict[str, Any]:
    """Return the card of a classifier of this `kind`, with its metadata under "metadata". Raises NotAClassifier."""
    try:
        card = read_card(folder, kind)
    except BadCard as error:
        raise NotAClassifier(folder, str(error)) from error
    if not isinstance(card.get("labels"), list):
        raise NotAClassifier(folder, f"{CARD_FILE} is not a classifier's card: it has no labels")
    metadata = _metadata(card)
    if metadata.get("accepted", True) is not True:
        raise NotAClassifier(folder, "its evaluation did not accept it (train with --accept to use it anyway)")
    return {**card, "metadata": metadata}


def _metadata(card: Mapping[str, Any]) -> dict[str, Any]:
    """Return the entries of a card that do not describe the classifier itself."""
    return {name: value for name, value in card.items() if name not in OWN}


def read_estimator(folder: Path, card: Mapping[str, Any]) -> Any:
    """Return the fitted scikit-learn pipeline from a folder. Raises NotAClassifier."""
    from skops import io

    path = folder / MODEL_FILE
    if not path.is_file():
        raise NotAClassifier(folder, f"{MODEL_FILE} is missing")
    try:
        foreign = sorted(set(io.get_untrusted_types(file=path)) - set(TRUSTED))
        estimator = None if foreign else io.load(path, trusted=list(TRUSTED))
    except Exception as error:  # an untrusted file may raise anything inside zipfile, json or skops
        raise NotAClassifier(
            folder,
            f"{MODEL_FILE} cannot be read as a skops file (a pickle never is; {type(error).__name__}: {error}). It was "
            f"saved with scikit-learn {card.get('sklearn', 'of unknown version')}",
        ) from error
    if foreign:
        raise NotAClassifier(folder, f"{MODEL_FILE} holds types that are not trusted: {', '.join(foreign)}")
    if not _is_classifier(estimator):
        raise NotAClassifier(folder, f"{MODEL_FILE} holds a {type(estimator).__name__} that is not a fitted classifier")
    return estimator


def _is_classifier(estimator: Any) -> bool:
    """Return whether it is a fitted pipeline of the kind that `TextClassifier.fit` makes."""
    from sklearn.calibration import CalibratedClassifierCV
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import FeatureUnion, Pipeline

    if not isinstance(estimator, Pipeline) or len(estimator.steps) != 2:
        return False
    terms, regression = (step for _, step in estimator.steps)
    vectorizers = [part for _, part in terms.transformer_list] if isinstance(terms, FeatureUnion) else [terms]
    if not all(isinstance(vectorizer, TfidfVectorizer) for vectorizer in vectorizers):
        return False
    if not isinstance(regression, LogisticRegression | CalibratedClassifierCV):
        return False
    try:
        return estimator.predict_proba(["a word"]).shape == (1, len(estimator.classes_))
    except Exception:  # unfitted, or fitted on something else
        return False
