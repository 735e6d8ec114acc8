"""The accuracy of int8 compared with fp32: for real questions, for odd texts, and between processors.

CPUs without VNNI do not use int8. There, the same model with exact products simulates a CPU with VNNI.
"""

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from kit.integer_products import write_exact
from kit.reporting import table

from pipelines.embedding.cpu import multiplies_int8
from pipelines.embedding.embedder import Embedder
from pipelines.embedding.load import load_embedder, load_tokenizer
from pipelines.embedding.onnx.embedder import OnnxEmbedder
from pipelines.embedding.onnx.export import export_path, open_session
from pipelines.embedding.onnx.int8 import quantise
from pipelines.indexing.reading.read import read_page
from pipelines.page.cut.chunker import Chunker
from pipelines.records import Page

pytestmark = pytest.mark.slow

pytest.importorskip("onnx")
ROOT = Path(__file__).parents[3]
MODEL = "all-MiniLM-L6-docs-v1"
# Promised by docs/indexing.md. 104 questions reached at least 0.9982, and 0.9989 on average. A text without words has
# only two tokens, whose few activations decide: 0.9915.
LEAST, LEAST_MEAN, LEAST_ODD = 0.997, 0.9985, 0.98
ODD = ["", " ", "\x00", "\ud800", "\u200b", "a", "?", "...", "é", "🙂", "短い", "x" * 3000, "how?", "漢字 " * 400]
EXACT, OTHER, OWN = "exact products", "floats summed in another order", "this processor's int8"


class OtherSession(OnnxEmbedder):
    """The default model, loaded from the file at `path`."""

    def __init__(self, cache: Path, path: Path) -> None:
        super().__init__(load_tokenizer(MODEL), cache, 2)
        self._session = open_session(path)


@pytest.fixture(scope="module")
def embedders(exports: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Embedder]:
    folder = tmp_path_factory.mktemp("exact")
    quantise(export_path(load_tokenizer(MODEL), exports), folder / "int8.onnx")
    exact = write_exact(folder / "int8.onnx", folder / "exact.onnx")
    found: dict[str, Embedder] = {"fp32": load_embedder(MODEL, device="cpu", cache=exports, threads=2)}
    found |= {EXACT: OtherSession(exports, exact)}
    return found | {OWN: load_embedder(f"int8:{MODEL}", device="cpu", cache=exports, threads=2)}


@pytest.fixture(params=[EXACT, pytest.param(OTHER, marks=pytest.mark.exhaustive), OWN])
def int8(request: pytest.FixtureRequest, embedders: dict[str, Embedder], exports: Path, tmp_path: Path) -> Embedder:
    if request.param == OWN and not multiplies_int8():
        pytest.skip("int8 needs a CPU with VNNI")
    if request.param == OTHER:
        quantise(export_path(load_tokenizer(MODEL), exports), tmp_path / "int8.onnx")
        return OtherSession(exports, write_exact(tmp_path / "int8.onnx", tmp_path / "other.onnx", jitter=1e-6))
    return embedders[request.param]


def questions() -> list[str]:
    lines = (ROOT / "benchmarks/questions/newcomers.jsonl").read_text().splitlines()
    return [json.loads(line)["question"] for line in lines][:24]


def chunks(*names: str) -> list[str]:
    chunker = Chunker(load_tokenizer(MODEL))
    pages = [Page(f"https://d.test/{name}", (ROOT / "docs" / name).read_bytes()) for name in names]
    return [chunk.embed_text for page in pages for chunk in chunker(read_page(page))]


def cosines(a: Embedder, b: Embedder, texts: list[str]) -> np.ndarray:
    return (a.embed_chunks(texts) * b.embed_chunks(texts)).sum(axis=1)


def test_int8_vectors_of_real_questions_are_close_to_fp32(embedders: dict[str, Embedder], int8: Embedder) -> None:
    found = cosines(int8, embedders["fp32"], questions() + chunks("start.md", "mcp.md")[:12])
    assert len(found) == 36
    assert LEAST < found.min() < 0.99999 and found.mean() > LEAST_MEAN


def test_two_processors_produce_nearly_equal_vectors(embedders: dict[str, Embedder], int8: Embedder) -> None:
    """An index may be built on one machine and queried on another."""
    assert cosines(int8, embedders[EXACT], questions()).min() > LEAST


def test_odd_text_has_a_complete_vector_close_to_fp32(embedders: dict[str, Embedder], int8: Embedder) -> None:
    vectors = int8.embed_chunks(ODD)
    assert np.isfinite(vectors).all() and np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    assert cosines(int8, embedders["fp32"], ODD).min() > LEAST_ODD


def test_int8_model_without_vnni_has_the_vectors_of_fp32(
    embedders: dict[str, Embedder], exports: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pipelines.embedding.load.multiplies_int8", lambda: False)
    instead = load_embedder(f"int8:{MODEL}", device="cpu", cache=exports, threads=2)
    assert np.array_equal(instead.embed_chunks(ODD), embedders["fp32"].embed_chunks(ODD))


@pytest.fixture(scope="module")
def ray_chunks(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    from benchmarks import common
    from benchmarks.embedding import real_chunks

    try:
        folder = common.ray_docs(tmp_path_factory.mktemp("docs"), 450)
    except SystemExit as error:
        pytest.skip(f"no Ray documentation: {error}")
    return real_chunks(folder, 1000)


fidelity = table("int8 vectors of 1,000 chunks", ("arithmetic", "compared with", "least cosine", "mean"))


@pytest.mark.exhaustive
@pytest.mark.timeout(1800)
def test_thousand_chunks_of_the_ray_docs_have_int8_vectors_close_to_fp32(
    request: pytest.FixtureRequest,
    embedders: dict[str, Embedder],
    int8: Embedder,
    ray_chunks: list[str],
    fidelity: list[Sequence[str]],
) -> None:
    assert len(ray_chunks) == 1000
    for other in ("fp32", EXACT):
        found = cosines(int8, embedders[other], ray_chunks)
        fidelity.append((request.node.callspec.id, other, f"{found.min():.5f}", f"{found.mean():.5f}"))
        assert found.min() > LEAST and found.mean() > LEAST_MEAN
