"""The job that trains a router: a folder that the service loads, a gate with an exit code, bad input refused."""

import json
from pathlib import Path

import pytest
from kit.recorded import recorded
from kit.reindexing import Jobs

from pipelines.answering.routing.classifier import TextClassifier

SITE = "https://docs.example/"


@pytest.fixture
def jobs(capsys: pytest.CaptureFixture[str]) -> Jobs:
    """Return a runner of jobs without a database."""
    return Jobs("", capsys)


@pytest.mark.exhaustive
def test_router_is_trained_and_accepted_if_it_beats_chance(jobs: Jobs, tmp_path: Path):
    easy = [{"question": f"what is {thing}", "target": 1} for thing in "abcdefghijklmnopqrst"]
    hard = [{"question": f"why does {thing} crash", "target": 0} for thing in "abcdefghijklmnopqrst"]
    path = tmp_path / "questions.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in [*easy, *hard]))
    done = jobs.run("train", "router", "--dataset", path, "--output", tmp_path / "router", "--threshold", 0.5)
    assert (done.code, done.summary["accepted"]) == (0, True)
    assert done.summary["metrics"]["auc"] > 0.9
    loaded = TextClassifier.load(tmp_path / "router")
    assert loaded.metadata["data"]["fingerprint"] == done.summary["data"]["fingerprint"]
    assert loaded.probability("what is z", "1") > loaded.probability("why does z crash", "1")


@pytest.mark.parametrize(("words", "said"), [
    ("router", "missing.jsonl"),
    ("router --threshold 2", "--threshold is '2'"),
    ("router --strong-cost nan", "--strong-cost"),
    ("reranker --k 50", "k is 50 and depth"),
    ("embedder --learning-rate nan", "--learning-rate"),
    ("embedder --learning-rate -1", "--learning-rate"),
    ("embedder --learning-rate 0", "--learning-rate"),
    ("embedder --epochs 0", "--epochs"),
    ("embedder --low-rank 8 --layers embeddings", "give one"),
    ("embedder --new-words -1", "--new-words"),
    ("adapter --temperature 0", "--temperature"),
    ("tags --prefix https://docs.example/ --batch-size 8", "give --base too"),
    ("tags --prefix https://docs.example/ --k 40", "k is 40 and depth"),
])  # fmt: skip
def test_bad_input_is_refused_immediately(jobs: Jobs, tmp_path: Path, words: str, said: str):
    done = jobs.run("train", *words.split(), "--dataset", "missing.jsonl", "--output", tmp_path / "x")
    assert done.code == 2 and said in done.messages


@pytest.mark.parametrize("kind", ["router", "reranker", "embedder", "adapter", "tags --prefix x"])
@pytest.mark.parametrize("there", ["file", "thesis"])
def test_foreign_output_folder_is_refused_untouched_before_training(jobs: Jobs, kind, there, tmp_path):
    output = tmp_path / "output"
    path = output if there == "file" else output / "thesis.txt"
    path.parent.mkdir(exist_ok=True)
    path.write_text("do not remove")
    done = jobs.run("train", *kind.split(), "--dataset", "missing", "--output", output)
    assert done.code == 2 and "holds something else" in " ".join(done.messages.split())
    assert path.read_text() == "do not remove"


def test_ratings_are_read_from_the_store_with_their_question(store):
    from pipelines.evaluation.questions.feedback import from_ratings

    cited = [f"{SITE}a#x"]
    store.record_questions([
        recorded("1", "liked?", "docs", text="So.", cited=cited),
        recorded("2", "disliked?", "docs", found=[f"{SITE}b"]),
        recorded("3", "unrated?", "docs"),
        recorded("4", "elsewhere?", "other", cited=cited),
    ])  # fmt: skip
    for id, rating, key in (("1", 1, "a"), ("1", 1, "b"), ("2", -1, "a"), ("4", 1, "a")):
        store.record_feedback(id, rating, key_name=key)
    rows = store.rated_questions("docs")
    assert [(row.question, row.rating) for row in rows] == [("liked?", 2), ("disliked?", -1)]
    feedback = from_ratings(rows)
    assert [example.question for example in feedback.examples] == ["liked?"]
    assert [hit.url for hit in feedback.wrong("disliked?")] == [f"{SITE}b"]
