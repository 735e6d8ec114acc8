"""The training jobs on a real index: questions in, a folder that says whether it may be used, and answers by it out."""

import contextlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from kit.tiny_model import tiny_model
from kit.workshop import BASE, Workshop, nearest_hits

from jobs import train as job
from jobs.cli import NOT_ACCEPTED, run_job
from pipelines.answering.factory import make_reranker, make_retriever
from pipelines.answering.retrieval.search import Search
from pipelines.answering.settings import AnswerSettings
from pipelines.embedding.adapter import AdaptedEmbedder, NotAnAdapter, QueryAdapter
from pipelines.embedding.load import load_embedder, load_tokenizer
from pipelines.evaluation.dataset import Example, read_dataset, write_dataset
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


def test_an_adapter_is_trained_judged_and_used(train, store: Store, questions: Path, tmp_path: Path) -> None:
    folder = tmp_path / "adapter"
    check = tmp_path / "check.jsonl"
    write_dataset(check, read_dataset(questions)[:5])
    words = ("--dataset", str(questions), "--check", str(check), "--output", str(folder), "--json")
    done = train("adapter", *words)
    assert done.code in (0, NOT_ACCEPTED), done.err
    card = json.loads((folder / "card.json").read_text())
    assert card["accepted"] is (done.code == 0) and card["metrics"]["questions"] == PAGES
    assert card["base"] == {"model": MODEL, "identity": MODEL, "dimension": 64}
    assert card["check"]["questions"] == 5
    assert card["data"]["pages"] == PAGES and done.summary["folder"] == str(folder)

    forced = train("adapter", *words, "--accept")
    assert forced.code == 0 and forced.summary["accepted"] is True
    adapter = QueryAdapter.load(folder)
    plain = load_embedder(MODEL)
    wanted = adapter(plain.embed_query("wheel7"))
    by_vectors = {"query_adapter": folder, "bm25_weight": 0, "ranking": "fused"}
    with contextlib.closing(make_retriever(AnswerSettings(retrieval=by_vectors), store)) as retriever:
        (hit,) = retriever.retrieve(Search(("wheel7",), k=1)).hits
    (nearest,) = nearest_hits(store, store.live_index("docs"), wanted, 1)
    assert hit.scores["vector"] == pytest.approx(nearest.score)
    assert AdaptedEmbedder(plain, adapter).embed_query("wheel7") == pytest.approx(wanted)


def test_an_adapter_that_was_not_accepted_stops_the_start(train, store, questions: Path, tmp_path: Path) -> None:
    folder = tmp_path / "adapter"
    done = train("adapter", "--dataset", str(questions), "--output", str(folder), "--epochs", "0", "--json")
    assert done.code == NOT_ACCEPTED and done.summary["accepted"] is False
    with pytest.raises(NotAnAdapter, match="not accepted"):
        make_retriever(AnswerSettings(retrieval={"query_adapter": folder}), store)


def test_what_cannot_be_trained_is_said_before_anything_is_spent(train, questions: Path, tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.txt").write_text("do not remove")
    done = train("adapter", "--dataset", str(questions), "--output", str(tmp_path / "full"))
    assert done.code == 2 and "holds something else" in done.err
    assert (tmp_path / "full" / "thesis.txt").exists()
    done = train("adapter", "--dataset", str(questions), "--check", str(questions), "--output", str(tmp_path / "n"))
    assert done.code == 2 and "nothing is left to learn from" in done.err
    other = tmp_path / "other.jsonl"
    write_dataset(other, [Example("?", ("https://elsewhere.test/x#y",))])
    done = train("adapter", "--dataset", str(other), "--output", str(tmp_path / "new"))
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


def test_tags_are_judged_by_the_gain_in_a_collections_hits(train, store: Store, tmp_path: Path) -> None:
    parts = {"tune": "trial scheduler", "serve": "replica deployment"}
    site = {
        f"{part}/{n}": {"a": f"The {words} number{n} of {part}."} for part, words in parts.items() for n in range(12)
    }
    Workshop(store, model=MODEL).reindex(site)
    examples = [
        Example(f"{words} number{n}?", (f"{BASE}{part}/{n}#a",)) for part, words in parts.items() for n in range(12)
    ]
    write_dataset(tmp_path / "qa.jsonl", examples)
    words = ("--dataset", str(tmp_path / "qa.jsonl"), "--prefix", BASE, "--output", str(tmp_path / "tags"))
    done = train("tags", *words, "--collection", "docs", "--at-least", "2", "--depth", "5", "--k", "2", "--json")
    assert done.code in (0, NOT_ACCEPTED), done.err
    gate = done.summary["gate"]
    assert gate["k"] == 2 and 1 <= gate["questions"] <= 24 and done.summary["accepted"] is (done.code == 0)
    assert done.summary["settings"]["threshold"] in [row["threshold"] for row in done.summary["gain_by_threshold"]]
