"""The folder of a text classifier: a card and a skops file, neither of them trusted before it is looked at.

A file is data, never code: nothing is unpickled, and only the types written down here are loaded.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

MODEL_FILE = "model.skops"
CARD_FILE = "card.json"
VERSION = 1
# What a card holds of the classifier itself; the rest is its metadata.
OWN = ("kind", "labels", "version", "signs", "sklearn")

# Every type in a saved classifier that skops does not itself know as harmless: the two private halves of
# scikit-learn's calibration. The rest (pipeline, TF-IDF, logistic regression, arrays) skops trusts.
TRUSTED = ("sklearn.calibration._CalibratedClassifier", "sklearn.calibration._SigmoidCalibration")


class NotAClassifier(ValueError):
    """A folder that holds no classifier, or one that must not be loaded."""


def refusal(folder: Path, wrong: str) -> NotAClassifier:
    return NotAClassifier(f"{folder}: {wrong}. Train it again, or name the folder of a trained classifier")


def check_replaceable(folder: Path) -> None:
    """Raise NotAClassifier if saving to `folder` would remove something that is no classifier."""
    if folder.exists() and not (folder / CARD_FILE).is_file() and any(folder.iterdir()):
        raise refusal(folder, "the folder holds something else, which saving would remove")


def read_card(folder: Path, kind: str) -> dict[str, Any]:
    path = folder / CARD_FILE
    try:
        card = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise refusal(folder, f"there is no {CARD_FILE}, so no classifier was saved here") from error
    except (OSError, ValueError, RecursionError) as error:
        raise refusal(folder, f"{CARD_FILE} cannot be read ({error})") from error
    if not isinstance(card, dict) or not isinstance(card.get("labels"), list):
        raise refusal(folder, f"{CARD_FILE} is not a classifier's card: it names no labels")
    if card.get("kind") != kind:
        raise refusal(folder, f"this is a classifier of kind {card.get('kind')!r}, and {kind!r} is needed")
    if card.get("version") != VERSION:
        raise refusal(folder, f"it was saved in version {card.get('version')!r}; this program reads {VERSION}")
    metadata = _metadata(card)
    if metadata.get("accepted", True) is not True:
        raise refusal(folder, "its evaluation did not accept it (--accept when training takes it all the same)")
    return {**card, "metadata": metadata}


def _metadata(card: Mapping[str, Any]) -> dict[str, Any]:
    """What a card says beside what the classifier itself needs; older ones have it under "metadata"."""
    if isinstance(card.get("metadata"), dict):
        return dict(card["metadata"])
    return {name: value for name, value in card.items() if name not in OWN}


def read_estimator(folder: Path, card: Mapping[str, Any]) -> Any:
    from skops import io

    path = folder / MODEL_FILE
    if not path.is_file():
        raise refusal(folder, f"{MODEL_FILE} is missing")
    try:
        foreign = sorted(set(io.get_untrusted_types(file=path)) - set(TRUSTED))
        estimator = None if foreign else io.load(path, trusted=list(TRUSTED))
    except Exception as error:  # a foreign file may fail in any way inside zipfile, json or skops
        raise refusal(
            folder,
            f"{MODEL_FILE} cannot be read as a skops file (a pickle never is; {type(error).__name__}: {error}). It was "
            f"saved with scikit-learn {card.get('sklearn', 'of unknown version')}",
        ) from error
    if foreign:
        raise refusal(folder, f"{MODEL_FILE} holds types that are not trusted: {', '.join(foreign)}")
    if not _is_ours(estimator):
        raise refusal(folder, f"{MODEL_FILE} holds a {type(estimator).__name__} that is no fitted text classifier")
    return estimator


def _is_ours(estimator: Any) -> bool:
    """Whether it is the pipeline that `fit` makes, fitted."""
    from sklearn.calibration import CalibratedClassifierCV
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import FeatureUnion, Pipeline

    if not isinstance(estimator, Pipeline) or len(estimator.steps) != 2:
        return False
    terms, regression = (step for _, step in estimator.steps)
    read = [part for _, part in terms.transformer_list] if isinstance(terms, FeatureUnion) else [terms]
    if not all(isinstance(part, TfidfVectorizer) for part in read):
        return False
    if not isinstance(regression, LogisticRegression | CalibratedClassifierCV):
        return False
    try:
        return estimator.predict_proba(["a word"]).shape == (1, len(estimator.classes_))
    except Exception:  # unfitted, or fitted on something else
        return False
