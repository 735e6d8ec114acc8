"""The query adapter: only an accepted one for this model is used, and its map helps unseen questions."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pipelines.answering.factory import make_retriever
from pipelines.answering.settings import AnswerSettings
from pipelines.embedding.adapter import AdaptedEmbedder, AdapterMismatch, NotAnAdapter, QueryAdapter
from pipelines.embedding.embedder import EmbeddingFailed
from pipelines.embedding.load import load_embedder
from pipelines.training.adapter import AdapterPlan, fit_map, map_out_of_fold
from pipelines.training.mining import NothingToLearn
from pipelines.training.ranking import vector_ranks

CARD = {"kind": "query-adapter", "version": 1, "accepted": True, "base": {"identity": "hash:8", "dimension": 8}}


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Use one thread: small sums are slower on several threads, most of all when others compute too."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def save_adapter(folder: Path, matrix: Any = None, **card: Any) -> Path:
    """Save an adapter's folder with that card."""
    folder.mkdir(exist_ok=True)
    QueryAdapter(np.eye(8, dtype=np.float32) if matrix is None else matrix, "hash:8").save(folder)
    (folder / "card.json").write_text(json.dumps(CARD | card))
    return folder


def test_questions_go_through_the_map_and_chunks_do_not(tmp_path: Path) -> None:
    plain = load_embedder("hash:8")
    turned = np.roll(np.eye(8, dtype=np.float32), 1, axis=1) * 3
    adapted = AdaptedEmbedder(plain, QueryAdapter.load(save_adapter(tmp_path / "a", turned)))
    question = plain.embed_query("one two three")
    assert np.allclose(adapted.embed_query("one two three"), np.roll(question, 1))
    assert np.array_equal(adapted.embed_chunks(["one two three"])[0], question)


def test_adapter_of_another_model_is_refused(tmp_path: Path) -> None:
    adapter = QueryAdapter.load(save_adapter(tmp_path / "a"))
    with pytest.raises(AdapterMismatch, match=r"hash:8.*hash:16.*unset retrieval"):
        AdaptedEmbedder(load_embedder("hash:16"), adapter)
    with pytest.raises(AdapterMismatch, match=r"other.*hash:8"):
        AdaptedEmbedder(load_embedder("hash:8"), QueryAdapter(adapter.matrix, "other"))


@pytest.mark.parametrize(
    ("card", "message"),
    [
        ({"accepted": False}, "not accepted"),
        ({"accepted": "yes"}, "not accepted"),
        ({"kind": "router"}, "of kind 'router', and 'query-adapter' is needed"),
        ({"version": 2}, "version 2"),
        ({"base": {"identity": "hash:8", "dimension": 4}}, "do not fit the card"),
        ({"base": None}, "names no base model"),
    ],
)
def test_unusable_folder_is_named(tmp_path: Path, card: dict[str, Any], message: str) -> None:
    with pytest.raises(NotAnAdapter, match=message):
        QueryAdapter.load(save_adapter(tmp_path / "a", **card))


def test_weights_are_data_never_code(tmp_path: Path) -> None:
    folder = save_adapter(tmp_path / "a")
    np.savez(folder / "adapter.npz", matrix=np.array([print], object))
    with pytest.raises(NotAnAdapter, match=r"adapter\.npz cannot be read"):
        QueryAdapter.load(folder)
    (folder / "adapter.npz").write_bytes(b"not a zip")
    with pytest.raises(NotAnAdapter, match=r"adapter\.npz cannot be read"):
        QueryAdapter.load(folder)


def test_non_finite_weights_are_refused(tmp_path: Path) -> None:
    with pytest.raises(NotAnAdapter, match="not finite"):
        QueryAdapter.load(save_adapter(tmp_path / "a", np.full((8, 8), np.nan, np.float32)))


def test_question_is_never_mapped_to_zero() -> None:
    with pytest.raises(EmbeddingFailed, match="train it again"):
        QueryAdapter(np.zeros((2, 2), np.float32), "m")(np.ones(2, np.float32))


def test_unusable_configured_adapter_stops_the_startup(tmp_path: Path) -> None:
    with pytest.raises(NotAnAdapter, match=r"there is no card\.json"):
        make_retriever(AnswerSettings(retrieval={"query_adapter": tmp_path / "none"}), None)  # type: ignore[arg-type]


# ---------------------------------------------------------------------------------------------- learning


def rotated_world(questions: int, seed: int = 0) -> tuple[Any, Any, list[list[int]]]:
    """Return questions at the position of their chunk, all turned by the same rotation."""
    rng = np.random.default_rng(seed)
    chunks = rng.normal(size=(60, 8)).astype(np.float32)
    chunks /= np.linalg.norm(chunks, axis=1, keepdims=True)
    turn = np.linalg.qr(np.eye(8) + 0.4 * np.random.default_rng(7).normal(size=(8, 8)))[0].astype(np.float32)
    answering = [[int(place)] for place in rng.integers(60, size=questions)]
    questions = np.stack([chunks[places[0]] @ turn for places in answering]).astype(np.float32)
    return questions, chunks, answering


PLAN = AdapterPlan(epochs=12, batch_size=32, learning_rate=5e-2, temperature=0.1)


def found_first(questions: Any, chunks: Any, right: list[list[int]]) -> float:
    return float(
        np.mean([rank == 1 for rank in vector_ranks(questions, chunks, right, [str(n) for n in range(len(chunks))])])
    )


def test_learned_map_helps_unseen_questions() -> None:
    questions, chunks, answering = rotated_world(200)
    matrix = fit_map(questions[:150], chunks, answering[:150], PLAN)
    mapped = QueryAdapter(matrix, "m")(questions[150:])
    assert found_first(mapped, chunks, answering[150:]) > found_first(questions[150:], chunks, answering[150:]) + 0.3


def test_learning_is_reproducible_by_seed_and_starts_at_the_identity() -> None:
    questions, chunks, answering = rotated_world(40)
    once, again = (fit_map(questions, chunks, answering, PLAN) for _ in range(2))
    assert np.array_equal(once, again)
    assert np.array_equal(fit_map(questions, chunks, answering, PLAN.model_copy(update={"epochs": 0})), np.eye(8))


def test_map_stays_closer_to_the_identity_with_a_larger_weight() -> None:
    questions, chunks, answering = rotated_world(40)
    loose, held = (
        fit_map(questions, chunks, answering, PLAN.model_copy(update={"stay": stay})) for stay in (1e-4, 1.0)
    )
    assert np.linalg.norm(held - np.eye(8)) < np.linalg.norm(loose - np.eye(8)) / 2


def test_each_question_is_judged_by_a_map_that_has_not_seen_it() -> None:
    questions, chunks, answering = rotated_world(40)

    def learn(places: Any) -> QueryAdapter:
        return QueryAdapter(fit_map(questions[places], chunks, [answering[place] for place in places], PLAN), "m")

    mapped = map_out_of_fold(questions, [np.arange(20), np.arange(20, 40)], learn)
    without = fit_map(questions[20:], chunks, answering[20:], PLAN)
    assert np.allclose(mapped[:20], QueryAdapter(without, "m")(questions[:20]))


def test_questions_without_an_answering_chunk_teach_nothing() -> None:
    questions, chunks, answering = rotated_world(40)
    with pytest.raises(NothingToLearn):
        fit_map(questions, chunks, [[] for _ in answering], PLAN)
    assert np.isfinite(fit_map(questions, chunks, [[], *answering[1:]], PLAN)).all()


def test_ranks_count_distinct_texts() -> None:
    chunks = np.array([[1, 0], [0.9, 0.1], [0.8, 0.2], [0, 1]], np.float32)
    question = np.array([[1, 0]], np.float32)
    assert vector_ranks(question, chunks, [[2]], ["a", "b", "c", "d"]) == [3]
    assert vector_ranks(question, chunks, [[2]], ["a", "a", "c", "d"]) == [2]
    assert vector_ranks(question, chunks, [[3, 0]], ["a", "b", "c", "d"]) == [1]
    assert vector_ranks(question, chunks, [[]], ["a", "b", "c", "d"]) == [0]
