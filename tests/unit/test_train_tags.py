"""Training a tag classifier: labels by URL and by people, folds that share no page, minimum functionality."""

import json

import pytest

from pipelines.answering.routing.classifier import TextClassifier
from pipelines.evaluation.dataset import BadDataset, Example
from pipelines.training import tags
from pipelines.training.tags import Tagged

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
ROWS = [Tagged(q, "tune", f"{PREFIX}tune/{n}", "scheduler") for n, q in enumerate(TUNE)]
ROWS += [Tagged(q, "serve", f"{PREFIX}serve/{n}", "deployment") for n, q in enumerate(SERVE)]


def test_the_url_says_the_part():
    examples = [
        Example("a?", (f"{PREFIX}tune/api.html#run-a-trial",)),
        Example("b?", (f"{PREFIX}index.html",)),
        Example("c?", ("https://elsewhere.example/tune/x",)),
    ]
    rows = tags.of_examples(examples, PREFIX)
    assert [row.tag for row in rows] == ["tune", "other", "other"]
    assert (rows[0].page, rows[0].title) == (f"{PREFIX}tune/api.html", "api.html#run-a-trial")


def test_a_correction_wins_over_what_was_predicted(tmp_path):
    path = tmp_path / "corrections.csv"
    path.write_text('question,tag,correction\n"a, b?",data,\nc?,data,tune\n')
    assert tags.read_corrections(path) == [Tagged("a, b?", "data"), Tagged("c?", "tune")]


def test_a_file_without_the_columns_or_with_gaps_is_refused_with_lines(tmp_path):
    path = tmp_path / "corrections.csv"
    path.write_text("question,tag\na?,data\n")
    with pytest.raises(BadDataset, match="no column correction"):
        tags.read_corrections(path)
    path.write_text("question,tag,correction\na?,data,\n,data,\nb?,,\n")
    with pytest.raises(BadDataset) as caught:
        tags.read_corrections(path)
    assert [line for line, _ in caught.value.mistakes] == [3, 4]


def test_rare_parts_become_other():
    rows = [*ROWS, Tagged("contribute?", "contribute")]
    assert [row.tag for row in tags.merged(rows, 2)] == [*(row.tag for row in ROWS), "other"]


def test_rows_that_share_a_page_or_a_question_are_one_group():
    rows = [
        Tagged("how to run", "a", "p1"),
        Tagged("what is that thing", "a", "p1"),
        Tagged("What is that thing?", "b"),
        Tagged("alone in the world", "b", "p2"),
        Tagged("and one more alone", "b"),
    ]
    one, two, three, four, five = tags.groups(rows)
    assert one == two == three
    assert len({one, four, five}) == 3


def test_judgement_names_the_baselines_and_both_kinds_of_labels():
    judged = tags.judge(
        [*ROWS, *(Tagged(f"{q} please", t) for q, t in (("trial", "tune"), ("replicas", "serve")))], folds=3
    )
    assert set(judged.accuracy) == {"all", "pages", "people"}
    assert judged.majority == 0.5
    assert set(judged.page_disjoint) == set(judged.question_disjoint) == set(judged.accuracy)
    assert judged.study is not None and set(judged.study) == {"titled", "question"}
    assert 0 <= judged.macro_auc <= 1
    assert [point.coverage for point in judged.curve] == sorted((p.coverage for p in judged.curve), reverse=True)
    json.dumps(tags.card(ROWS, judged, tags.Functionality(0, ()), {"prefix": PREFIX}), default=vars)


def test_minimum_functionality_names_what_is_wrong_and_leaves_out_unknown_parts():
    classifier = tags.fit(ROWS)
    questions = [("stop a trial with the asha scheduler", "tune"), ("scale replicas", "tune"), ("x", "rllib")]
    found = tags.minimum(classifier, questions)
    assert found.passed == 1
    assert found.failed == (("scale replicas", "tune", "serve"),)


@pytest.mark.parametrize(
    "shape", [{}, {"characters": (2, 4)}, {"pairs": True}, {"signs": True}, {"characters": (2, 4), "margin": True}]
)
def test_a_classifier_of_any_shape_is_saved_and_loaded(shape, tmp_path):
    classifier = TextClassifier.fit([r.question for r in ROWS], [r.tag for r in ROWS], metadata={"a": 1}, **shape)
    classifier.save(tmp_path / "tags", "tag")
    loaded = TextClassifier.load(tmp_path / "tags", "tag")
    assert loaded.probabilities(["stop a trail"]).tolist() == classifier.probabilities(["stop a trail"]).tolist()


def test_runs_of_characters_see_through_a_typo():
    read = [TextClassifier.fit([r.question for r in ROWS], [r.tag for r in ROWS], characters=c) for c in (None, (2, 4))]
    plain, runs = (classifier.probability("schedulers trialz", "tune") for classifier in read)
    assert runs > plain
