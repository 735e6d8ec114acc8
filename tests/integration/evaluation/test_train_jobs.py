"""The training jobs on a real index: questions in, a folder that says whether it may be used, and answers by it out."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from kit.tiny_model import tiny_model
from kit.workshop import BASE, Workshop

from jobs import train as job
from jobs.cli import run_job
from pipelines.answering.factory import make_reranker
from pipelines.answering.settings import AnswerSettings
from pipelines.embedding.load import load_embedder, load_tokenizer
from pipelines.evaluation.dataset import Example, write_dataset
from pipelines.store import Store
from pipelines.training.run import Workplace

# The site says "wheel", its readers ask for a "tyre": a word that a map can learn to stand for the other.
PAGES, MODEL = 30, "hash:64"


@dataclass
class Done:
    code: int
    out: str
    err: str

    @property
    def summary(self) -> dict[str, Any]:
        return dict(json.loads(self.out.strip().splitlines()[-1]))


@pytest.fixture
def train(database_url, monkeypatch, capsys):
    """`raydex train <words>`, in this process, on a fresh database."""
    monkeypatch.setenv("DATABASE_URL", database_url)

    def run(*words: str) -> Done:
        capsys.readouterr()
        code = run_job(job.arguments(), job.run, words)
        return Done(code, *capsys.readouterr())

    return run


@pytest.fixture
def questions(store: Store, tmp_path: Path) -> Path:
    """A published site and questions to it."""
    site = {f"p{n}": {"part": f"About wheel{n} and axle{n}.", "rest": f"Wheels for number {n}."} for n in range(PAGES)}
    Workshop(store, model=MODEL).reindex(site)
    examples = [Example(f"Which is tyre{n}, wheel{n}?", (f"{BASE}p{n}#part",)) for n in range(PAGES)]
    write_dataset(tmp_path / "questions.jsonl", examples)
    return tmp_path / "questions.jsonl"


def test_what_cannot_be_trained_is_said_before_anything_is_spent(train, questions: Path, tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.txt").write_text("do not remove")
    done = train("embedder", "--dataset", str(questions), "--output", str(tmp_path / "full"))
    assert done.code == 2 and "holds something else" in done.err
    assert (tmp_path / "full" / "thesis.txt").exists()
    other = tmp_path / "other.jsonl"
    write_dataset(other, [Example("?", ("https://elsewhere.test/x#y",))])
    done = train("reranker", "--dataset", str(other), "--output", str(tmp_path / "new"))
    assert done.code == 2 and "belong to this collection" in done.err and not (tmp_path / "new").exists()


def test_a_model_is_trained_judged_and_put_where_a_reindex_finds_it(train, questions: Path, tmp_path: Path) -> None:
    pytest.importorskip("accelerate")
    pytest.importorskip("datasets")
    base, folder = tiny_model(tmp_path), tmp_path / "trained"
    left = Workplace(folder).model / "evaluation"  # by a run that died between saving and the card
    left.mkdir(parents=True)
    (left / "old").touch()
    words = ("--dataset", str(questions), "--model", str(base), "--output", str(folder), "--questions", "8")
    done = train("embedder", *words, "--device", "cpu", "--batch-size", "4", "--accept", "--json")
    assert done.code == 0, done.err
    card = json.loads((folder / "card.json").read_text())
    assert card["kind"] == "embedding-model" and card["base"]["identity"] == load_tokenizer(str(base)).identity
    assert card["metrics"]["questions"] == PAGES // 5 and card["settings"]["triples"] == 8
    assert len(list((folder / "evaluation").glob("*predictions*"))) == 2
    assert not (folder / "evaluation" / "old").exists()
    trained = load_embedder(str(folder), device="cpu", backend="torch")
    assert trained.counter.identity != card["base"]["identity"]
    assert trained.embed_query("wheel7").shape == (16,)
    assert [path.name for path in tmp_path.glob(".trained*")] == []


def test_a_model_without_weights_here_is_refused(train, questions: Path, tmp_path: Path) -> None:
    pytest.importorskip("accelerate")
    pytest.importorskip("datasets")
    done = train("embedder", "--dataset", str(questions), "--output", str(tmp_path / "model"), "--device", "cpu")
    assert done.code == 2 and "has no weights here" in done.err and not (tmp_path / "model").exists()


def test_a_reranker_is_trained_judged_and_loaded(train, store: Store, questions: Path, tmp_path: Path) -> None:
    pytest.importorskip("accelerate")
    pytest.importorskip("datasets")
    base, folder = tiny_model(tmp_path), tmp_path / "reranker"
    words = ("--dataset", str(questions), "--model", str(base), "--output", str(folder), "--questions", "6")
    small = ("--held-out", "4", "--negatives", "2", "--depth", "5", "--k", "2", "--max-tokens", "32", "--device", "cpu")
    done = train("reranker", *words, *small, "--feedback", "--accept", "--json")
    assert done.code == 0, done.err
    card = json.loads((folder / "card.json").read_text())
    assert card["kind"] == "cross-encoder" and card["metrics"]["questions"] == 4 and card["metrics"]["k"] == 2
    assert card["settings"]["negatives"] == 2 and card["settings"]["steps"] >= 1 and done.summary["rerank_s"] > 0
    settings = AnswerSettings(reranker={"kind": "cross-encoder", "model": str(folder)})
    assert make_reranker(settings).score([("wheel7", "About wheel7")]).shape == (1,)  # type: ignore[union-attr]
    assert [path.name for path in tmp_path.glob(".reranker*")] == []
