"""The text classifier: names are split, probabilities are valid, files are data, and foreign files are refused."""

import json
import pickle

import numpy as np
import pytest

from pipelines.answering.routing.classifier import CannotLearn, TextClassifier, words
from pipelines.answering.routing.classifier_folder import TRUSTED, NotAClassifier

TEXTS = [f"{verb} a {noun}" for noun in ("deployment", "replica", "proxy") for verb in ("start", "scale", "stop")]
TEXTS += [f"{verb} a {noun}" for noun in ("policy", "rollout", "env") for verb in ("train", "sample", "reset")]
LABELS = ["serve"] * 9 + ["rllib"] * 9


@pytest.fixture(scope="module")
def classifier() -> TextClassifier:
    return TextClassifier.fit(TEXTS, LABELS)


@pytest.fixture
def folder(classifier, tmp_path):
    classifier.save(tmp_path / "router", {"prefix": "https://docs/"})
    return tmp_path / "router"


@pytest.mark.parametrize(("text", "expected"), [
    ("ray.serve.startReplica", "ray serve start replica"),
    ("num_env_runners=4", "num env runners 4"),
    ("HTTPServer, getURLNow()", "http server get url now"),
    ("Why is C++ (slow?", "why is c++ slow"),
    ("Ünïcode été 東京", "ünïcode été 東京"),
    (" \n\t 😀 ", ""),
])  # fmt: skip
def test_names_are_split_into_words_first(text, expected):
    assert words(text) == expected


def test_names_are_recognized_by_their_parts(classifier):
    assert classifier.probability("serve.scaleDeployment", "serve") > 0.5
    assert classifier.probability("train_policy", "rllib") > 0.5


def test_probabilities_are_texts_by_labels_and_equal_after_saving(classifier, tmp_path):
    rows = classifier.probabilities(["start a replica", "reset the env", "", "😀 nothing known"])
    assert classifier.labels == ("rllib", "serve")
    assert rows.shape == (4, 2)
    np.testing.assert_allclose(rows.sum(axis=1), 1)
    assert classifier.probability("start a replica", "rllib") == rows[0, 0]
    assert classifier.probabilities([]).shape == (0, 2)
    classifier.save(tmp_path / "new" / "router", {"prefix": "https://docs/"})
    loaded = TextClassifier.load(tmp_path / "new" / "router")
    np.testing.assert_array_equal(loaded.probabilities(TEXTS), classifier.probabilities(TEXTS))
    assert (loaded.labels, loaded.metadata) == (classifier.labels, {"prefix": "https://docs/"})


@pytest.mark.parametrize(("texts", "labels", "message"), [
    (["a b", "c d"], ["x"], "2 texts have 1 label"),
    (["a b", "c d"], ["x", "x"], "two labels"),
    (["a b", "c d", "e f"], ["x", "x", "y"], "'y' has a single example"),
    (["?", "!", ".", ","], ["x", "x", "y", "y"], "has a word"),
    ([], [], "two labels"),
])  # fmt: skip
def test_unlearnable_data_is_reported(texts, labels, message):
    with pytest.raises(CannotLearn, match=message):
        TextClassifier.fit(texts, labels)


def test_trusted_types_are_exactly_those_in_a_saved_classifier(folder):
    from skops import io

    assert sorted(io.get_untrusted_types(file=folder / "model.skops")) == sorted(TRUSTED)


# ---------------------------------------------------------------------------------------------- refusals


class Planted:
    """Leaves a mark when unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (exec, (f"open({str(self.path)!r}, 'w').close()",))


def refusal(folder) -> str:
    with pytest.raises(NotAClassifier) as error:
        TextClassifier.load(folder)
    assert str(folder) in str(error.value)
    assert "Train it again" in str(error.value)
    return str(error.value)


def test_folder_without_a_classifier_is_refused(folder, tmp_path):
    assert "no card.json" in refusal(tmp_path / "nowhere")
    (folder / "model.skops").unlink()
    assert "model.skops is missing" in refusal(folder)


def test_pickle_is_refused_and_not_run(folder, tmp_path):
    (folder / "model.skops").write_bytes(pickle.dumps(Planted(tmp_path / "mark")))
    assert "cannot be read" in refusal(folder)
    assert not (tmp_path / "mark").exists()


@pytest.mark.parametrize("damage", [lambda old: b"", lambda old: b"not a zip", lambda old: old[: len(old) // 2]])
def test_damaged_file_is_refused(folder, damage):
    path = folder / "model.skops"
    path.write_bytes(damage(path.read_bytes()))
    assert "cannot be read" in refusal(folder)


def test_models_of_other_formats_are_refused_with_their_type(folder):
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import Pipeline
    from sklearn.preprocessing import FunctionTransformer
    from skops import io

    for foreign, said in (
        ({"a": 1}, "holds a dict that is not a fitted classifier"),
        (LogisticRegression(), "a LogisticRegression that is"),
        (Pipeline([("a", LogisticRegression()), ("b", LogisticRegression())]), "a Pipeline that is"),
        (Pipeline([("a", TfidfVectorizer()), ("b", LogisticRegression())]), "not a fitted classifier"),
        (FunctionTransformer(words), "not trusted: pipelines.answering.routing.classifier.words"),
    ):
        io.dump(foreign, folder / "model.skops")
        assert said in refusal(folder), said


def test_card_is_flat(tmp_path):
    said = {"date": "today", "metrics": {"auc": 1}}
    TextClassifier.fit(TEXTS, LABELS).save(tmp_path / "model", said)
    card = json.loads((tmp_path / "model" / "card.json").read_text())
    assert card["date"] == "today" and card["metrics"] == {"auc": 1} and card["kind"] == "router"
    assert TextClassifier.load(tmp_path / "model").metadata == said


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '"card"', '{"kind": "router"}', "[" * 100_000, "\x00"])
def test_broken_card_is_refused(folder, text):
    (folder / "card.json").write_text(text)
    assert "card.json" in refusal(folder)


NOT_ACCEPTED = [{"accepted": said} for said in (False, None, "no", 0)]


@pytest.mark.parametrize(("entry", "said"), [
    ({"labels": ["rllib", "tune"]}, "the card names the labels"),
    ({"version": 99}, "version"),
    ({"kind": "tags"}, "kind 'tags', and 'router' is needed"),
    *((entry, "did not accept it") for entry in NOT_ACCEPTED),
])  # fmt: skip
def test_card_of_another_kind_or_of_a_rejected_model_is_refused(folder, entry, said):
    card = json.loads((folder / "card.json").read_text())
    (folder / "card.json").write_text(json.dumps(card | entry))
    assert said in refusal(folder)


# ---------------------------------------------------------------------------------------------- real questions


def test_real_questions_are_distinguished(data):
    rows = [json.loads(line) for line in (data / "routing-dataset-train.jsonl").read_text().splitlines()]
    texts, labels = [row["question"] for row in rows], [row["target"] for row in rows]
    learned = [place for place in range(len(texts)) if place % 5]
    router = TextClassifier.fit([texts[place] for place in learned], [labels[place] for place in learned])
    probabilities, suffices = router.probabilities(texts[::5])[:, router.labels.index("1")], np.array(labels[::5]) == 1
    assert np.mean((probabilities >= 0.5) == suffices) > 0.8
    # Calibrated: the average promise equals the average result.
    assert abs(probabilities.mean() - suffices.mean()) < 0.05
