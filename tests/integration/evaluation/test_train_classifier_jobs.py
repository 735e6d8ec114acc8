"""The job that trains a router: a folder that the service loads, a gate with an exit code, bad input refused."""

import json
from pathlib import Path

import pytest
from kit.recorded import recorded

from jobs import train
from jobs.cli import run_job
from pipelines.answering.routing.classifier import TextClassifier

SITE = "https://docs.example/"


def run(argv: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, dict]:
    code = run_job(train.arguments(), train.run, [*argv, "--json"])
    out = capsys.readouterr().out.strip()
    return code, json.loads(out.splitlines()[-1]) if out else {}


def test_a_router_is_trained_and_accepted_where_it_beats_chance(tmp_path: Path, capsys):
    easy = [{"question": f"what is {thing}", "target": 1} for thing in "abcdefghijklmnopqrst"]
    hard = [{"question": f"why does {thing} crash", "target": 0} for thing in "abcdefghijklmnopqrst"]
    path = tmp_path / "questions.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in [*easy, *hard]))
    argv = ["router", "--dataset", str(path), "--output", str(tmp_path / "router"), "--threshold", "0.5"]
    code, summary = run(argv, capsys)
    assert (code, summary["accepted"]) == (0, True)
    assert summary["metrics"]["auc"] > 0.9
    loaded = TextClassifier.load(tmp_path / "router", "router")
    assert loaded.metadata["data"]["fingerprint"] == summary["data"]["fingerprint"]
    assert loaded.probability("what is z", "1") > loaded.probability("why does z crash", "1")


@pytest.mark.parametrize(
    ("kind", "argv"),
    [
        ("router", ["--dataset", "missing.jsonl", "--output", "x"]),
        ("router", ["--dataset", "missing.jsonl", "--output", "x", "--threshold", "2"]),
        ("reranker", ["--dataset", "missing.jsonl", "--output", "x", "--k", "50"]),
        ("reranker", ["--dataset", "missing.jsonl", "--output", "tests"]),
    ],
)
def test_bad_input_is_refused_at_once(kind, argv, capsys):
    assert run([kind, *argv], capsys)[0] == 2


@pytest.mark.parametrize("kind", ["router", "reranker", "embedder"])
@pytest.mark.parametrize("there", ["file", "thesis"])
def test_nothing_of_ours_is_left_alone_before_anything_is_learned(kind, there, tmp_path, capsys):
    output = tmp_path / "output"
    path = output if there == "file" else output / "thesis.txt"
    path.parent.mkdir(exist_ok=True)
    path.write_text("do not remove")
    argv = [kind, "--dataset", "missing", "--output", str(output)]
    assert run_job(train.arguments(), train.run, argv) == 2
    assert "holds something else" in " ".join(capsys.readouterr().err.split())
    assert path.read_text() == "do not remove"


@pytest.mark.parametrize(
    ("kind", "flags"),
    [
        ("embedder", ["--learning-rate", "nan"]),
        ("embedder", ["--learning-rate", "-1"]),
        ("embedder", ["--epochs", "0"]),
        ("router", ["--strong-cost", "nan"]),
        ("embedder", ["--learning-rate", "0"]),
    ],
)
def test_settings_that_learn_nothing_are_refused(kind, flags, tmp_path, capsys):
    argv = [kind, "--dataset", "missing.jsonl", "--output", str(tmp_path / "x"), *flags]
    assert run_job(train.arguments(), train.run, argv) == 2
    assert flags[0] in capsys.readouterr().err


def test_ratings_come_out_of_the_store_with_their_question(store):
    from pipelines.evaluation.questions.feedback import from_ratings

    cited = [f"{SITE}a#x"]
    store.record_questions(
        [
            recorded("1", "liked?", "docs", text="So.", cited=cited),
            recorded("2", "disliked?", "docs", found=[f"{SITE}b"]),
            recorded("3", "unrated?", "docs"),
            recorded("4", "elsewhere?", "other", cited=cited),
        ]
    )
    for id, rating, key in (("1", 1, "a"), ("1", 1, "b"), ("2", -1, "a"), ("4", 1, "a")):
        store.record_feedback(id, rating, key_name=key)
    rows = store.rated_questions("docs")
    assert [(row.question, row.rating) for row in rows] == [("liked?", 2), ("disliked?", -1)]
    feedback = from_ratings(rows)
    assert [example.question for example in feedback.examples] == ["liked?"]
    assert [hit.url for hit in feedback.wrong("disliked?")] == [f"{SITE}b"]
