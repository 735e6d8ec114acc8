"""The text classifier: names come apart, probabilities are such, files are data and foreign ones are refused."""

import json
import pickle
import shutil

import numpy as np
import pytest

from pipelines.answering.routing.classifier import CannotLearn, ClassifierShape, TextClassifier, words
from pipelines.answering.routing.classifier_folder import TRUSTED, NotAClassifier

TEXTS = [f"{verb} a {noun}" for noun in ("deployment", "replica", "proxy") for verb in ("start", "scale", "stop")]
TEXTS += [f"{verb} a {noun}" for noun in ("policy", "rollout", "env") for verb in ("train", "sample", "reset")]
LABELS = ["serve"] * 9 + ["rllib"] * 9


@pytest.fixture(scope="module")
def classifier() -> TextClassifier:
    return TextClassifier.fit(TEXTS, LABELS, metadata={"prefix": "https://docs/"})


@pytest.fixture
def folder(classifier, tmp_path):
    classifier.save(tmp_path / "tags", "tags")
    return tmp_path / "tags"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ray.serve.startReplica", "ray serve start replica"),
        ("num_env_runners=4", "num env runners 4"),
        ("HTTPServer, getURLNow()", "http server get url now"),
        ("Why is C++ (slow?", "why is c++ slow"),
        ("Ünïcode été 東京", "ünïcode été 東京"),
        (" \n\t 😀 ", ""),
    ],
)
def test_names_come_apart_before_anything_is_counted(text, expected):
    assert words(text) == expected


def test_names_are_understood_by_their_parts(classifier):
    assert classifier.predict("serve.scaleDeployment")[0] == "serve"
    assert classifier.predict("train_policy")[0] == "rllib"


@pytest.mark.parametrize("calibrated", [True, False])
def test_probabilities_are_one_row_a_text_and_one_column_a_label(calibrated):
    classifier = TextClassifier.fit(TEXTS, LABELS, shape=ClassifierShape(calibrated=calibrated))
    rows = classifier.probabilities(["start a replica", "reset the env", "", "😀 nothing known"])
    assert classifier.labels == ("rllib", "serve")
    assert rows.shape == (4, 2)
    np.testing.assert_allclose(rows.sum(axis=1), 1)
    assert classifier.predict("start a replica") == ("serve", rows[0, 1])
    assert classifier.probability("start a replica", "rllib") == rows[0, 0]
    assert classifier.probabilities([]).shape == (0, 2)


@pytest.mark.parametrize(
    ("texts", "labels", "message"),
    [
        (["a b", "c d"], ["x"], "2 texts have 1 labels"),
        (["a b", "c d"], ["x", "x"], "two labels"),
        (["a b", "c d", "e f"], ["x", "x", "y"], "'y' has a single example"),
        (["?", "!", ".", ","], ["x", "x", "y", "y"], "has a word"),
        ([], [], "two labels"),
    ],
)
def test_what_cannot_be_learned_from_is_said(texts, labels, message):
    with pytest.raises(CannotLearn, match=message):
        TextClassifier.fit(texts, labels)


@pytest.mark.parametrize("calibrated", [True, False])
def test_what_was_saved_answers_the_same(calibrated, tmp_path):
    classifier = TextClassifier.fit(
        TEXTS, LABELS, shape=ClassifierShape(calibrated=calibrated), metadata={"prefix": "https://docs/"}
    )
    classifier.save(tmp_path / "new" / "tags", "tags")
    loaded = TextClassifier.load(tmp_path / "new" / "tags", "tags")
    np.testing.assert_array_equal(loaded.probabilities(TEXTS), classifier.probabilities(TEXTS))
    assert loaded.labels == classifier.labels
    assert loaded.metadata == {"prefix": "https://docs/"}


def test_saving_replaces_whole_and_leaves_nothing_beside_it(folder, classifier):
    TextClassifier.fit(["a b", "c d"], ["x", "y"], shape=ClassifierShape(calibrated=False)).save(folder, "tags")
    assert TextClassifier.load(folder, "tags").labels == ("x", "y")
    assert [path.name for path in folder.parent.iterdir()] == ["tags"]


def test_saving_never_removes_what_is_no_classifier(classifier, tmp_path):
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(NotAClassifier, match="something else"):
        classifier.save(tmp_path, "tags")
    assert (tmp_path / "thesis.txt").read_text() == "years of work"


def test_the_trusted_types_are_those_that_a_saved_classifier_needs(folder):
    from skops import io

    assert sorted(io.get_untrusted_types(file=folder / "model.skops")) == sorted(TRUSTED)


# ---------------------------------------------------------------------------------------------- refusals


class Planted:
    """Unpickling it leaves a mark."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (exec, (f"open({str(self.path)!r}, 'w').close()",))


def dump(thing, path):
    from skops import io

    io.dump(thing, path)


def refusal(folder, kind="tags") -> str:
    with pytest.raises(NotAClassifier) as error:
        TextClassifier.load(folder, kind)
    assert str(folder) in str(error.value)
    assert "Train it again" in str(error.value)
    return str(error.value)


def test_a_folder_without_a_classifier_is_refused(folder, tmp_path):
    assert "no card.json" in refusal(tmp_path / "nowhere")
    (folder / "model.skops").unlink()
    assert "model.skops is missing" in refusal(folder)


def test_a_pickle_is_refused_and_not_run(folder, tmp_path):
    (folder / "model.skops").write_bytes(pickle.dumps(Planted(tmp_path / "mark")))
    assert "cannot be read" in refusal(folder)
    assert not (tmp_path / "mark").exists()


@pytest.mark.parametrize("damage", [lambda old: b"", lambda old: b"not a zip", lambda old: old[: len(old) // 2]])
def test_a_damaged_file_is_refused(folder, damage):
    path = folder / "model.skops"
    path.write_bytes(damage(path.read_bytes()))
    assert "cannot be read" in refusal(folder)


def test_foreign_types_are_refused_by_name(folder):
    from sklearn.preprocessing import FunctionTransformer

    dump(FunctionTransformer(words), folder / "model.skops")
    assert "pipelines.answering.routing.classifier.words" in refusal(folder)


def test_harmless_models_of_another_make_are_refused(folder):
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import Pipeline

    for foreign in (
        {"a": 1},
        LogisticRegression(),
        Pipeline([("a", LogisticRegression()), ("b", LogisticRegression())]),
    ):
        dump(foreign, folder / "model.skops")
        assert type(foreign).__name__ in refusal(folder)


def test_an_unfitted_classifier_is_refused(folder):
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import Pipeline

    dump(Pipeline([("a", TfidfVectorizer()), ("b", LogisticRegression())]), folder / "model.skops")
    assert "no fitted classifier" in refusal(folder)


@pytest.mark.parametrize("accepted", [False, None, "no", 0])
def test_only_what_was_accepted_is_loaded(folder, accepted):
    card = json.loads((folder / "card.json").read_text())
    for entry in ({"accepted": accepted}, {"metadata": {"accepted": accepted}}):  # the second is how it once was
        (folder / "card.json").write_text(json.dumps(card | entry))
        assert "did not accept it" in refusal(folder)


def test_a_card_says_all_on_one_level_and_one_of_before_is_understood(tmp_path):
    classifier = TextClassifier.fit(TEXTS, LABELS, metadata={"date": "today", "metrics": {"auc": 1}})
    classifier.save(tmp_path / "model", "tags")
    card = json.loads((tmp_path / "model" / "card.json").read_text())
    assert card["date"] == "today" and card["metrics"] == {"auc": 1} and card["kind"] == "tags"
    assert TextClassifier.load(tmp_path / "model", "tags").metadata == classifier.metadata
    older = {name: value for name, value in card.items() if name not in classifier.metadata}
    (tmp_path / "model" / "card.json").write_text(json.dumps({**older, "metadata": classifier.metadata}))
    assert TextClassifier.load(tmp_path / "model", "tags").metadata == classifier.metadata


def test_another_kind_is_refused(folder):
    assert "kind 'tags', and 'router' is needed" in refusal(folder, "router")


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '"card"', '{"kind": "tags"}', "[" * 100_000, "\x00"])
def test_a_broken_card_is_refused(folder, text):
    (folder / "card.json").write_text(text)
    assert "card.json" in refusal(folder)


@pytest.mark.parametrize(("key", "value"), [("labels", ["rllib", "tune"]), ("version", 99)])
def test_card_and_model_must_agree(folder, key, value):
    card = json.loads((folder / "card.json").read_text())
    (folder / "card.json").write_text(json.dumps({**card, key: value}))
    refusal(folder)


def test_models_of_two_folders_are_not_mixed(folder, tmp_path):
    TextClassifier.fit(["a b", "c d"], ["x", "y"], shape=ClassifierShape(calibrated=False)).save(
        tmp_path / "other", "tags"
    )
    shutil.copy(tmp_path / "other" / "model.skops", folder / "model.skops")
    assert "the card names the labels" in refusal(folder)


# ---------------------------------------------------------------------------------------------- real questions


def test_real_questions_are_told_apart(data):
    rows = [json.loads(line) for line in (data / "routing-dataset-train.jsonl").read_text().splitlines()]
    texts, labels = [row["question"] for row in rows], [row["target"] for row in rows]
    learned = [place for place in range(len(texts)) if place % 5]
    router = TextClassifier.fit([texts[place] for place in learned], [labels[place] for place in learned])
    probabilities, suffices = router.probabilities(texts[::5])[:, router.labels.index("1")], np.array(labels[::5]) == 1
    assert np.mean((probabilities >= 0.5) == suffices) > 0.8
    # Calibrated: what it promises on the whole is what comes.
    assert abs(probabilities.mean() - suffices.mean()) < 0.05
