"""Training a tag classifier: labels from URLs and people, folds without a shared page, a gate by gain in hits."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from kit.answering import make_hit
from kit.tiny_model import tiny_model
from pydantic import ValidationError

from pipelines.answering.reranking.tag import TagReranker
from pipelines.answering.routing.classifier_folder import NotAClassifier
from pipelines.answering.settings import AnswerSettings
from pipelines.embedding.load import load_tokenizer
from pipelines.evaluation.dataset import BadDataset, Example
from pipelines.evaluation.questions.tagged import TaggedQuestion, merge_rare, read_corrections, tag_by_url
from pipelines.training import classification, tags
from pipelines.training.folds import group_folds
from pipelines.training.ranking import JudgingHits
from pipelines.training.run import train

PREFIX = "https://docs.example/"
TUNE = ["tune a trial", "trial scheduler", "search space of trials", "asha scheduler", "stop a trial", "trial results"]
SERVE = [
    "deploy a model",
    "replicas of a deployment",
    "http endpoint",
    "deployment graph",
    "scale replicas",
    "proxy port",
]
ROWS = [TaggedQuestion(q, "tune", f"{PREFIX}tune/{n}") for n, q in enumerate(TUNE)]
ROWS += [TaggedQuestion(q, "serve", f"{PREFIX}serve/{n}") for n, q in enumerate(SERVE)]


def test_part_is_derived_from_the_url():
    examples = [
        Example("a?", (f"{PREFIX}tune/api.html#run-a-trial",)),
        Example("b?", (f"{PREFIX}index.html",)),
        Example("c?", ("https://elsewhere.example/tune/x",)),
    ]
    rows = tag_by_url(examples, PREFIX)
    assert [row.tag for row in rows] == ["tune", "other", "other"]
    assert rows[0].page == f"{PREFIX}tune/api.html"


def test_correction_wins_over_a_prediction(tmp_path):
    path = tmp_path / "corrections.csv"
    path.write_text('question,tag,correction\n"a, b?",data,\nc?,data,tune\n')
    assert read_corrections(path) == [TaggedQuestion("a, b?", "data"), TaggedQuestion("c?", "tune")]


def test_file_with_missing_columns_or_values_is_refused_with_lines(tmp_path):
    path = tmp_path / "corrections.csv"
    path.write_text("question,tag\na?,data\n")
    with pytest.raises(BadDataset, match="no column correction: it needs question, tag, correction"):
        read_corrections(path)
    path.write_text("question,tag,correction\na?,data,\n,data,\nb?,,\n")
    with pytest.raises(BadDataset) as caught:
        read_corrections(path)
    assert [line for line, _ in caught.value.mistakes] == [3, 4]


def test_rare_parts_become_other_and_a_single_part_is_refused_with_counts():
    rows = [*ROWS, TaggedQuestion("contribute?", "contribute")]
    assert [row.tag for row in merge_rare(rows, 2)] == [*(row.tag for row in ROWS), "other"]
    with pytest.raises(tags.BadPrefix, match=r"--at-least is 100: .*there are tune 6, serve 6"):
        tags.merge_parts(ROWS, 100)


def test_rows_that_share_a_page_or_a_question_are_one_group():
    rows = [
        TaggedQuestion("how to run", "a", "p1"),
        TaggedQuestion("what is that thing", "a", "p1"),
        TaggedQuestion("What is that thing?", "b"),
        TaggedQuestion("alone in the world", "b", "p2"),
        TaggedQuestion("and one more alone", "b"),
    ]
    one, two, three, four, five = tags.tag_groups(rows)
    assert one == two == three
    assert len({one, four, five}) == 3


def test_threshold_curve_against_hand_computed_values():
    probabilities = np.array([[0.9, 0.1, 0.0], [0.6, 0.4, 0.0], [0.3, 0.7, 0.0], [0.1, 0.1, 0.8]])
    points = classification.threshold_curve(
        probabilities, ["a", "b", "other"], ["a", "b", "b", "other"], never="other", thresholds=(0.0, 0.65, 0.99)
    )
    assert [(p["coverage"], p["precision"], p["recall"]) for p in points] == [
        (0.75, pytest.approx(2 / 3), pytest.approx(2 / 3)),
        (0.5, 1.0, pytest.approx(2 / 3)),
        (0.0, 1.0, 0.0),
    ]


@pytest.mark.parametrize("flags", [{"epochs": 2}, {"device": "cpu", "batch_size": 8}, {"precision": "bf16"}])
def test_transformer_flag_without_a_transformer_is_refused(flags):
    with pytest.raises(ValidationError, match=r"only a transformer is trained with .*give --base too"):
        tags.TagPlan(prefix=PREFIX, **flags)
    assert tags.TagPlan(prefix=PREFIX, base="x", **flags).base == "x"


# ---------------------------------------------------------------------------------------------- learning and judging

WORDS = {"tune": "trial search", "serve": "replica port"}
COUNT = 40


def judged_data(right_place: int, **plan: Any) -> tags.TagData:
    """Return questions about two parts, with the right hit at `right_place` of three and others of the other part."""
    examples = [
        Example(f"{words} number{n}", (f"{PREFIX}{part}/{n}.html",))
        for n in range(COUNT)
        for part, words in WORDS.items()
    ]
    rows = tag_by_url(examples, PREFIX)
    chosen = tags.TagPlan(prefix=PREFIX, folds=4, at_least=2, k=1, depth=3, **plan)
    fold = group_folds(tags.tag_groups(rows), chosen.folds)[0]
    judging = [examples[place] for place in fold]
    hits = []
    for example in judging:
        (page,) = example.pages
        other = page.replace("/serve/", "/x/").replace("/tune/", "/serve/").replace("/x/", "/tune/")
        urls = [other, f"{other}2"]
        urls.insert(right_place, page)
        hits.append([replace(make_hit(url, "text"), score=1.0 - n / 10) for n, url in enumerate(urls)])
    settings = AnswerSettings()
    base = load_tokenizer(chosen.base) if chosen.base else None
    return tags.TagData(chosen, rows, fold, JudgingHits(judging, hits, settings), "docs", base)


def read_card(folder: Path) -> dict[str, Any]:
    return dict(json.loads((folder / "card.json").read_text()))


def test_helpful_classifier_is_accepted_and_names_its_collection(tmp_path):
    result = train(tags.TagKind(), judged_data(right_place=1), tmp_path / "tags")
    card = read_card(tmp_path / "tags")
    assert result.accepted and card["kind"] == "tag" and card["gate"]["gain"]["difference"] == 1
    assert (card["prefix"], card["collection"], card["base"]) == (PREFIX, "docs", None)
    assert [row["threshold"] for row in card["gain_by_threshold"]] == [0, 0.3, 0.5, 0.7, 0.9]
    assert card["metrics"]["accuracy"] == {"all": 1.0, "pages": 1.0} and card["metrics"]["questions"] == 20
    reranker = TagReranker.load(str(tmp_path / "tags"))
    assert reranker.threshold == card["settings"]["threshold"] and reranker.prefix == PREFIX


def test_classifier_without_a_gain_is_rejected_and_loads_only_if_forced(tmp_path):
    result = train(tags.TagKind(), judged_data(right_place=0), tmp_path / "tags")
    assert not result.accepted and "not accepted" in str(result.described())
    with pytest.raises(NotAClassifier, match="did not accept it"):
        TagReranker.load(str(tmp_path / "tags"))
    train(tags.TagKind(), judged_data(right_place=0), tmp_path / "tags", accept=True)
    assert read_card(tmp_path / "tags")["forced"] and TagReranker.load(str(tmp_path / "tags"), 0.2).threshold == 0.2


@pytest.mark.slow
@pytest.mark.exhaustive
def test_transformer_head_is_trained_judged_and_loaded(tmp_path):
    pytest.importorskip("accelerate")
    pytest.importorskip("datasets")
    more = {"base": str(tiny_model(tmp_path)), "epochs": 20, "learning_rate": 1e-2, "device": "cpu"}
    result = train(tags.TagKind(), judged_data(right_place=1, **more), tmp_path / "tags")
    card = read_card(tmp_path / "tags")
    assert card["base"]["identity"] == load_tokenizer(more["base"]).identity
    assert card["metrics"]["questions"] == 20 and card["metrics"]["accuracy"]["all"] > 0.9 and result.accepted
    reranker = TagReranker.load(str(tmp_path / "tags"))
    assert reranker.classifier.predict("trial search number7")[0] == "tune"
    assert reranker.classifier.predict("")[1] > 0  # any text
    assert np.allclose(reranker.classifier.probabilities(["a", "replica port " * 99]).sum(axis=1), 1)
    assert [path.name for path in tmp_path.glob(".tags*")] == []
    (tmp_path / "tags" / "model.safetensors").write_bytes(b"no weights")
    with pytest.raises(NotAClassifier, match="its model does not load"):
        TagReranker.load(str(tmp_path / "tags"))
