"""The jobs that train router and tags: a folder that the service loads, a gate with an exit code, bad input refused."""

import json
from pathlib import Path

import pytest
from kit.recorded import recorded

from jobs import train
from jobs.cli import run_job
from pipelines.answering.routing.classifier import TextClassifier
from pipelines.answering.routing.classifier_folder import NotAClassifier
from pipelines.evaluation.questions.labelled import TaggedQuestion
from pipelines.training.tags import select_unseen

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


def test_tags_without_a_measured_gain_are_not_accepted(tmp_path: Path, capsys):
    questions = tmp_path / "qa.jsonl"
    rows = [
        {"question": f"{word} {n} {thing}", "source": f"{SITE}{part}/{n}.html#a"}
        for part, word in (("tune", "trial scheduler"), ("serve", "replica deployment"))
        for n, thing in enumerate("abcdefghij")
    ]
    questions.write_text("".join(json.dumps(row) + "\n" for row in rows))
    argv = [
        "tags",
        "--dataset",
        str(questions),
        "--prefix",
        SITE,
        "--output",
        str(tmp_path / "tags"),
        "--at-least",
        "2",
    ]
    code, summary = run(argv, capsys)
    assert (code, summary["accepted"], summary["gate"]) == (4, False, None)
    assert summary["metrics"]["accuracy"]["pages"] > 0.9
    with pytest.raises(NotAClassifier, match="did not accept it"):
        TextClassifier.load(tmp_path / "tags", "tag")
    code, summary = run([*argv, "--accept"], capsys)
    assert (code, summary["accepted"], summary["forced"]) == (0, True, True)
    assert TextClassifier.load(tmp_path / "tags", "tag").metadata["prefix"] == SITE


@pytest.mark.parametrize(
    ("kind", "argv"),
    [
        ("router", ["--dataset", "missing.jsonl", "--output", "x"]),
        ("router", ["--dataset", "missing.jsonl", "--output", "x", "--threshold", "2"]),
        ("tags", ["--dataset", "missing.jsonl", "--prefix", SITE, "--output", "x"]),
        ("tags", ["--dataset", "missing.jsonl", "--prefix", SITE, "--output", "x", "--k", "50"]),
        ("reranker", ["--dataset", "missing.jsonl", "--output", "x", "--k", "50"]),
        ("reranker", ["--dataset", "missing.jsonl", "--output", "tests"]),
    ],
)
def test_bad_input_is_refused_at_once(kind, argv, capsys):
    assert run([kind, *argv], capsys)[0] == 2


@pytest.mark.parametrize("kind", ["router", "tags", "reranker", "embedder", "adapter"])
@pytest.mark.parametrize("there", ["file", "thesis"])
def test_nothing_of_ours_is_left_alone_before_anything_is_learned(kind, there, tmp_path, capsys):
    output = tmp_path / "output"
    path = output if there == "file" else output / "thesis.txt"
    path.parent.mkdir(exist_ok=True)
    path.write_text("do not remove")
    more = ["--prefix", SITE] if kind == "tags" else []
    argv = [kind, "--dataset", "missing", "--output", str(output), *more]
    assert run_job(train.arguments(), train.run, argv) == 2
    assert "holds something else" in " ".join(capsys.readouterr().err.split())
    assert path.read_text() == "do not remove"


@pytest.mark.parametrize(
    ("kind", "flags"),
    [
        ("adapter", ["--temperature", "0"]),
        ("adapter", ["--temperature", "nan"]),
        ("adapter", ["--learning-rate", "-1"]),
        ("adapter", ["--epochs", "-1"]),
        ("embedder", ["--epochs", "0"]),
        ("router", ["--strong-cost", "nan"]),
        ("embedder", ["--learning-rate", "0"]),
    ],
)
def test_settings_that_learn_nothing_are_refused(kind, flags, tmp_path, capsys):
    argv = [kind, "--dataset", "missing.jsonl", "--output", str(tmp_path / "x"), *flags]
    assert run_job(train.arguments(), train.run, argv) == 2
    assert flags[0] in capsys.readouterr().err


def test_a_prefix_that_no_source_has_is_named(tmp_path, capsys):
    path = tmp_path / "qa.jsonl"
    path.write_text('{"question": "why?", "source": "https://docs.example/tune/a#b"}\n')
    argv = ["tags", "--dataset", str(path), "--prefix", "https://elsewhere.example/", "--output", str(tmp_path / "x")]
    assert run_job(train.arguments(), train.run, argv) == 2
    assert "--prefix is https://elsewhere.example/" in capsys.readouterr().err


def test_near_duplicates_of_what_judges_are_not_learned_from():
    rows = [
        TaggedQuestion("how do I read a parquet file", "data", "p1"),
        TaggedQuestion("what is a trial", "tune", "p2"),
        TaggedQuestion("How do I read a parquet file?", "data"),
        TaggedQuestion("how do I stop a trial", "tune"),
    ]
    assert select_unseen(rows, [0]) == [rows[1], rows[3]]


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
