"""Training jobs on a real index: from questions to a folder that says whether it is usable, and to answers."""

import contextlib
import json
from pathlib import Path

import pytest
from kit.reindexing import Jobs
from kit.tiny_model import tiny_model
from kit.workshop import BASE, Workshop

from jobs.cli import NOT_ACCEPTED
from pipelines.answering.factory import make_reranker, make_retriever
from pipelines.answering.reranking.tag import OtherCollection
from pipelines.answering.retrieval.search import Search
from pipelines.answering.settings import AnswerSettings
from pipelines.embedding.adapter import AdaptedEmbedder, NotAnAdapter, QueryAdapter
from pipelines.embedding.load import load_embedder, load_tokenizer
from pipelines.evaluation.dataset import Example, read_dataset, write_dataset
from pipelines.store import Store
from pipelines.training.run import Workplace

# The site says "wheel" and readers ask for a "tyre": a map can learn that one word means the other.
PAGES, MODEL = 30, "hash:64"


@pytest.fixture
def questions(store: Store, tmp_path: Path) -> Path:
    """Publish a site and write questions about it."""
    site = {f"p{n}": {"part": f"About wheel{n} and axle{n}.", "rest": f"Wheels for number {n}."} for n in range(PAGES)}
    Workshop(store, model=MODEL).reindex(site)
    examples = [Example(f"Which is tyre{n}, wheel{n}?", (f"{BASE}p{n}#part",)) for n in range(PAGES)]
    write_dataset(tmp_path / "questions.jsonl", examples)
    return tmp_path / "questions.jsonl"


def test_impossible_training_is_reported_before_any_cost(jobs: Jobs, questions: Path, tmp_path: Path) -> None:
    other, output = tmp_path / "other.jsonl", tmp_path / "new"
    write_dataset(other, [Example("?", ("https://elsewhere.test/x#y",))])
    done = jobs.run("train", "reranker", "--dataset", other, "--output", output)
    assert done.code == 2 and "belong to this collection" in done.messages and not output.exists()
    pytest.importorskip("accelerate")
    pytest.importorskip("datasets")
    done = jobs.run("train", "embedder", "--dataset", questions, "--output", output, "--device", "cpu")
    assert done.code == 2 and "has no weights here" in done.messages and not output.exists()


def test_trained_model_is_judged_and_found_by_a_reindex(jobs: Jobs, questions: Path, tmp_path: Path) -> None:
    pytest.importorskip("accelerate")
    pytest.importorskip("datasets")
    base, folder = tiny_model(tmp_path), tmp_path / "trained"
    left = Workplace(folder).model / "evaluation"  # left by a run that died between saving and the card
    left.mkdir(parents=True)
    (left / "old").touch()
    words = ("--dataset", questions, "--model", base, "--output", folder, "--questions", 8)
    done = jobs.run("train", "embedder", *words, "--device", "cpu", "--batch-size", 4, "--accept", "--new-words", 2)
    assert done.code == 0, done.messages
    card = json.loads((folder / "card.json").read_text())
    assert card["kind"] == "embedding-model" and card["base"]["identity"] == load_tokenizer(str(base)).identity
    assert card["metrics"]["questions"] == PAGES // 5 and card["settings"]["triples"] == 8
    assert card["settings"]["words"] == 2  # "wheels" and another word on all pages
    assert len(list((folder / "evaluation").glob("*predictions*"))) == 2
    assert not (folder / "evaluation" / "old").exists()
    trained = load_embedder(str(folder), device="cpu", backend="torch")
    assert trained.counter.identity != card["base"]["identity"]
    assert trained.embed_query("wheel7").shape == (16,)
    assert [path.name for path in tmp_path.glob(".trained*")] == []


def test_reranker_is_trained_judged_and_loaded(jobs: Jobs, questions: Path, tmp_path: Path) -> None:
    pytest.importorskip("accelerate")
    pytest.importorskip("datasets")
    base, folder = tiny_model(tmp_path), tmp_path / "reranker"
    words = ("--dataset", questions, "--model", base, "--output", folder, "--questions", 6, "--device", "cpu")
    small = ("--held-out", 4, "--negatives", 2, "--depth", 5, "--k", 2, "--max-tokens", 32)
    done = jobs.run("train", "reranker", *words, *small, "--feedback", "--accept")
    assert done.code == 0, done.messages
    card = json.loads((folder / "card.json").read_text())
    assert card["kind"] == "cross-encoder" and card["metrics"]["questions"] == 4 and card["metrics"]["k"] == 2
    assert card["settings"]["negatives"] == 2 and card["settings"]["steps"] >= 1 and done.summary["rerank_s"] > 0
    settings = AnswerSettings(reranker={"kind": "cross-encoder", "model": str(folder)})
    assert make_reranker(settings).score([("wheel7", "About wheel7")]).shape == (1,)  # type: ignore[union-attr]
    assert [path.name for path in tmp_path.glob(".reranker*")] == []


@pytest.mark.exhaustive
def test_tags_are_judged_by_the_gain_in_hits_of_a_collection(jobs: Jobs, store: Store, tmp_path: Path) -> None:
    parts = {"tune": "trial scheduler", "serve": "replica deployment"}
    site = {
        f"{part}/{n}": {"a": f"The {words} number{n} of {part}."} for part, words in parts.items() for n in range(12)
    }
    Workshop(store, model=MODEL).reindex(site)
    examples = [
        Example(f"{words} number{n}?", (f"{BASE}{part}/{n}#a",)) for part, words in parts.items() for n in range(12)
    ]
    dataset, people, folder = tmp_path / "qa.jsonl", tmp_path / "people.csv", tmp_path / "tags"
    write_dataset(dataset, examples)
    people.write_text("question,tag,correction\nhow do I scale a replica?,tune,serve\n")
    words = ("--dataset", dataset, "--corrections", people, "--output", folder, "--depth", 5, "--k", 2)
    done = jobs.run("train", "tags", *words, "--prefix", BASE, "--at-least", 2, "--accept")
    assert done.code == 0, done.messages
    gate = done.summary["gate"]
    assert gate["k"] == 2 and 1 <= gate["questions"] <= 24 and done.summary["data"]["questions"] == 25
    assert (done.summary["prefix"], done.summary["collection"]) == (BASE, "docs")
    settings = AnswerSettings(reranker={"kind": "tag", "model": str(folder)})
    assert make_reranker(settings, store)
    with pytest.raises(OtherCollection, match="'docs'"):
        make_reranker(settings.model_copy(update={"collection": "other"}), store)
    for prefix, flags, said in (
        ("https://elsewhere.test/", (), "no source lies in a folder below it"),
        (BASE, ("--at-least", 50), "--at-least is 50"),
        (BASE, ("--at-least", 2, "--folds", 99), "99 folds of"),
        (BASE, ("--epochs", 2), "give --base too"),
    ):
        done = jobs.run("train", "tags", *words, "--prefix", prefix, *flags)
        assert done.code == 2 and said in " ".join(done.messages.split())
    done = jobs.run(
        "train", "tags", *words[:2], "--corrections", tmp_path / "no.csv", "--output", folder, "--prefix", BASE
    )
    assert done.code == 2 and "no.csv" in done.messages


def test_adapter_is_trained_judged_and_used(jobs: Jobs, store: Store, questions: Path, tmp_path: Path) -> None:
    folder, check = tmp_path / "adapter", tmp_path / "check.jsonl"
    write_dataset(check, read_dataset(questions)[:5])
    words = ("train", "adapter", "--dataset", questions, "--output", folder)
    done = jobs.run(*words, "--check", check)
    assert done.code in (0, NOT_ACCEPTED), done.messages
    card = json.loads((folder / "card.json").read_text())
    assert card["accepted"] is (done.code == 0) and card["metrics"]["questions"] == PAGES
    assert card["base"] == {"model": MODEL, "identity": MODEL, "dimension": 64}
    assert card["check"]["questions"] == 5 and card["data"]["pages"] == PAGES

    assert jobs.run(*words, "--accept").code == 0
    adapter, plain = QueryAdapter.load(folder), load_embedder(MODEL)
    wanted = adapter(plain.embed_query("wheel7"))
    assert AdaptedEmbedder(plain, adapter).embed_query("wheel7") == pytest.approx(wanted)
    vectors = store.vectors(store.live_index("docs").id)
    nearest = max(float(vector @ wanted) for vector in vectors.values())
    by_vectors = {"query_adapter": folder, "bm25_weight": 0, "ranking": "fused"}
    with contextlib.closing(make_retriever(AnswerSettings(retrieval=by_vectors), store)) as retriever:
        (hit,) = retriever.retrieve(Search(("wheel7",), k=1)).hits
    assert hit.scores["vector"] == pytest.approx(nearest, abs=1e-4)


def test_adapter_without_a_gain_stops_the_startup_and_is_retrained(
    jobs: Jobs, store: Store, questions: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "adapter"
    words = ("train", "adapter", "--dataset", questions, "--output", folder)
    done = jobs.run(*words, "--epochs", 0)
    assert done.code == NOT_ACCEPTED and done.summary["accepted"] is False
    with pytest.raises(NotAnAdapter, match="not accepted"):
        make_retriever(AnswerSettings(retrieval={"query_adapter": folder}), store)
    monkeypatch.setenv("RAYDEX_RETRIEVAL__QUERY_ADAPTER", str(folder))
    assert jobs.run(*words, "--epochs", 0).code == NOT_ACCEPTED  # the one that does not load is no obstacle
    done = jobs.run(*words, "--check", questions)
    assert done.code == 2 and "nothing is left to learn from" in done.messages
