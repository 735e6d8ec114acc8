"""The query adapter: only an accepted one of this model is used, and what it learned helps questions it never saw."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pipelines.answering.adapter import AdaptedEmbedder, AdapterMismatch, NotAnAdapter, QueryAdapter
from pipelines.answering.configuration import Configuration, make_retriever
from pipelines.embed import EmbeddingFailed, load_embedder

CARD = {"kind": "query-adapter", "version": 1, "accepted": True, "base": {"identity": "hash:8", "dimension": 8}}


def saved(folder: Path, matrix: Any = None, **card: Any) -> Path:
    """An adapter's folder with that card."""
    folder.mkdir(exist_ok=True)
    QueryAdapter(np.eye(8, dtype=np.float32) if matrix is None else matrix, "hash:8").save(folder)
    (folder / "card.json").write_text(json.dumps(CARD | card))
    return folder


def test_questions_go_through_the_map_and_chunks_do_not(tmp_path: Path) -> None:
    plain = load_embedder("hash:8")
    turned = np.roll(np.eye(8, dtype=np.float32), 1, axis=1) * 3
    adapted = AdaptedEmbedder(plain, QueryAdapter.load(saved(tmp_path / "a", turned)))
    question = plain.embed_query("one two three")
    assert np.allclose(adapted.embed_query("one two three"), np.roll(question, 1))
    assert np.array_equal(adapted.embed_chunks(["one two three"])[0], question)


def test_an_adapter_of_another_model_is_refused(tmp_path: Path) -> None:
    adapter = QueryAdapter.load(saved(tmp_path / "a"))
    with pytest.raises(AdapterMismatch, match=r"hash:8.*hash:16.*leave query_adapter empty"):
        AdaptedEmbedder(load_embedder("hash:16"), adapter)
    with pytest.raises(AdapterMismatch, match=r"other.*hash:8"):
        AdaptedEmbedder(load_embedder("hash:8"), QueryAdapter(adapter.matrix, "other"))


@pytest.mark.parametrize(
    ("card", "said"),
    [
        ({"accepted": False}, "not accepted"),
        ({"accepted": "yes"}, "not accepted"),
        ({"kind": "router"}, "not that of a query adapter"),
        ({"version": 2}, "version 2"),
        ({"base": {"identity": "hash:8", "dimension": 4}}, "do not fit the card"),
        ({"base": None}, "not that of a query adapter"),
    ],
)
def test_a_folder_that_must_not_be_used_is_named(tmp_path: Path, card: dict[str, Any], said: str) -> None:
    with pytest.raises(NotAnAdapter, match=said):
        QueryAdapter.load(saved(tmp_path / "a", **card))


def test_weights_are_data_never_code(tmp_path: Path) -> None:
    folder = saved(tmp_path / "a")
    np.savez(folder / "adapter.npz", matrix=np.array([print], object))
    with pytest.raises(NotAnAdapter, match=r"adapter\.npz cannot be read"):
        QueryAdapter.load(folder)
    (folder / "adapter.npz").write_bytes(b"not a zip")
    with pytest.raises(NotAnAdapter, match=r"adapter\.npz cannot be read"):
        QueryAdapter.load(folder)


def test_weights_that_are_not_finite_are_refused(tmp_path: Path) -> None:
    with pytest.raises(NotAnAdapter, match="not finite"):
        QueryAdapter.load(saved(tmp_path / "a", np.full((8, 8), np.nan, np.float32)))


def test_a_question_is_never_mapped_to_nothing() -> None:
    with pytest.raises(EmbeddingFailed, match="train it again"):
        QueryAdapter(np.zeros((2, 2), np.float32), "m")(np.ones(2, np.float32))


def test_a_configured_adapter_that_cannot_be_used_stops_the_start(tmp_path: Path) -> None:
    with pytest.raises(NotAnAdapter, match=r"card\.json cannot be read"):
        make_retriever(Configuration(query_adapter=tmp_path / "none"), None)  # type: ignore[arg-type]
