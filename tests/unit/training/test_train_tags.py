"""Training a tag classifier: labels by URL and by people, folds that share no page."""

import json

import pytest

from pipelines.answering.routing.classifier import ClassifierShape, TextClassifier
from pipelines.evaluation.dataset import BadDataset, Example
from pipelines.evaluation.questions.labelled import TaggedQuestion, merge_rare, read_corrections, tag_by_url
from pipelines.training import tags
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
ROWS = [TaggedQuestion(q, "tune", f"{PREFIX}tune/{n}", "scheduler") for n, q in enumerate(TUNE)]
ROWS += [TaggedQuestion(q, "serve", f"{PREFIX}serve/{n}", "deployment") for n, q in enumerate(SERVE)]


def test_the_url_says_the_part():
    examples = [
        Example("a?", (f"{PREFIX}tune/api.html#run-a-trial",)),
        Example("b?", (f"{PREFIX}index.html",)),
        Example("c?", ("https://elsewhere.example/tune/x",)),
    ]
    rows = tag_by_url(examples, PREFIX)
    assert [row.tag for row in rows] == ["tune", "other", "other"]
    assert (rows[0].page, rows[0].title) == (f"{PREFIX}tune/api.html", "api.html#run-a-trial")


def test_a_correction_wins_over_what_was_predicted(tmp_path):
    path = tmp_path / "corrections.csv"
    path.write_text('question,tag,correction\n"a, b?",data,\nc?,data,tune\n')
    assert read_corrections(path) == [TaggedQuestion("a, b?", "data"), TaggedQuestion("c?", "tune")]


def test_a_file_without_the_columns_or_with_gaps_is_refused_with_lines(tmp_path):
    path = tmp_path / "corrections.csv"
    path.write_text("question,tag\na?,data\n")
    with pytest.raises(BadDataset, match="no column correction"):
        read_corrections(path)
    path.write_text("question,tag,correction\na?,data,\n,data,\nb?,,\n")
    with pytest.raises(BadDataset) as caught:
        read_corrections(path)
    assert [line for line, _ in caught.value.mistakes] == [3, 4]


def test_rare_parts_become_other():
    rows = [*ROWS, TaggedQuestion("contribute?", "contribute")]
    assert [row.tag for row in merge_rare(rows, 2)] == [*(row.tag for row in ROWS), "other"]


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


def test_judgement_names_the_baseline_and_both_kinds_of_labels():
    people = [TaggedQuestion(f"{q} please", t) for q, t in (("trial", "tune"), ("replicas", "serve"))]
    scores = tags.score_tags([*ROWS, *people], count=3)
    assert set(scores["accuracy"]) == {"all", "pages", "people"}
    assert scores["majority"] == 0.5 and 0 <= scores["macro_auc"] <= 1
    coverage = [point["coverage"] for point in scores["curve"]]
    assert coverage == sorted(coverage, reverse=True)


def test_without_hits_nothing_is_accepted(tmp_path):
    data = tags.TagData(tags.TagPlan(prefix=PREFIX, folds=3), ROWS)
    result = train(tags.TagKind(), data, tmp_path / "tags")
    card = json.loads((tmp_path / "tags" / "card.json").read_text())
    assert not result.accepted and card["kind"] == "tag" and card["gate"] is None and card["prefix"] == PREFIX


@pytest.mark.parametrize(
    "shape", [{}, {"characters": (2, 4)}, {"pairs": True}, {"signs": True}, {"characters": (2, 4), "margin": True}]
)
def test_a_classifier_of_any_shape_is_saved_and_loaded(shape, tmp_path):
    classifier = TextClassifier.fit(
        [r.question for r in ROWS], [r.tag for r in ROWS], ClassifierShape(**shape), {"a": 1}
    )
    classifier.save(tmp_path / "tags", "tag")
    loaded = TextClassifier.load(tmp_path / "tags", "tag")
    assert loaded.probabilities(["stop a trail"]).tolist() == classifier.probabilities(["stop a trail"]).tolist()


def test_runs_of_characters_see_through_a_typo():
    shapes = (ClassifierShape(), ClassifierShape(characters=(2, 4)))
    read = [TextClassifier.fit([r.question for r in ROWS], [r.tag for r in ROWS], shape) for shape in shapes]
    plain, runs = (classifier.probability("schedulers trialz", "tune") for classifier in read)
    assert runs > plain
