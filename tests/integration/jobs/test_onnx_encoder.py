"""ONNX Runtime computes torch's vectors, from a complete export that is made once."""

import multiprocessing
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pipelines.embedding.cpu import multiplies_int8
from pipelines.embedding.embedder import Embedder
from pipelines.embedding.load import UnknownBackend, load_embedder, load_tokenizer
from pipelines.embedding.onnx.embedder import OnnxEmbedder
from pipelines.embedding.onnx.export import ExportFailed, compare, export, open_export
from pipelines.embedding.tokens import TokenCounter

pytestmark = pytest.mark.slow

pytest.importorskip("onnx")
MODEL = "all-MiniLM-L6-docs-v1"
TEXTS = [f"Text {n} says: {'a Ray actor keeps state. ' * n}" for n in (*range(10), 20, 30, 39)] + ["短い", "\ud800"]


@pytest.mark.exhaustive
def test_concurrent_exports_leave_one_complete_file(tmp_path: Path) -> None:
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        first, second = pool.map(_export_into, [tmp_path, tmp_path])
    assert first == second
    assert {path.suffix for path in tmp_path.iterdir()} <= {".lock", ".onnx"}
    assert load_embedder(MODEL, device="cpu", backend="onnx", cache=tmp_path).embed_chunks(["a"]).shape == (1, 384)


@pytest.fixture(scope="module")
def onnx(exports: Path) -> Embedder:
    """Return the default model, which uses ONNX Runtime on a CPU if there is a cache."""
    onnx = load_embedder(MODEL, device="cpu", cache=exports, threads=2)
    assert isinstance(onnx, OnnxEmbedder)
    return onnx


@pytest.fixture(scope="module")
def int8(exports: Path) -> Embedder:
    return load_embedder(f"int8:{MODEL}", device="cpu", cache=exports, threads=2)


def test_vectors_equal_those_of_torch(onnx: Embedder) -> None:
    torch = load_embedder(MODEL, device="cpu", backend="torch")
    cosines = (onnx.embed_chunks(TEXTS) * torch.embed_chunks(TEXTS)).sum(axis=1)
    assert cosines.min() > 0.99999
    assert onnx.embed_query("how?") @ torch.embed_query("how?") > 0.99999


def test_existing_export_is_loaded_without_torch(exports: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from pipelines.embedding import load_embedder;"
        f"e = load_embedder({MODEL!r}, device='cpu', backend='onnx', cache=Path({str(exports)!r}));"
        "assert e.embed_chunks(['a']).shape == (1, 384);"
        "assert not {'torch', 'sentence_transformers', 'transformers'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(__file__).parents[3])


@pytest.mark.exhaustive
def test_error_in_the_exporting_process_is_raised_here(tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.mkdir()
    for name in ("config.json", "tokenizer.json"):
        (broken / name).write_bytes((load_tokenizer(MODEL).folder / name).read_bytes())
    (broken / "sentence_bert_config.json").write_text('{"max_seq_length": 64}')
    with pytest.raises(ExportFailed, match=r"broken can't be exported to ONNX .* use the backend torch"):
        open_export(load_tokenizer(str(broken)), tmp_path)
    assert not list(tmp_path.glob("*.onnx"))


def _export_into(folder: Path) -> Path:
    return open_export(load_tokenizer(MODEL), folder)[0]


class Other:
    """A model with vectors that differ from the export's."""

    def encode(self, texts: list[str], **_: object) -> np.ndarray:
        return np.eye(384, dtype=np.float32)[: len(texts)]


def test_export_with_different_vectors_is_refused(exports: Path) -> None:
    counter = load_tokenizer(MODEL)
    with pytest.raises(ExportFailed, match="cosine"):
        compare(counter, Other(), open_export(counter, exports)[0])


def test_failed_export_leaves_no_file(tmp_path: Path) -> None:
    counter = load_tokenizer(MODEL)
    with pytest.raises(ExportFailed, match="no-such-model"):  # in the exporting process
        open_export(replace(counter, model="no-such-model"), tmp_path)
    with pytest.raises(ExportFailed, match="use the backend torch"):
        open_export(replace(counter, max_tokens=-1), tmp_path, make=export)
    assert not list(tmp_path.glob("*.onnx"))


def test_missing_cache_folder_is_reported() -> None:
    with pytest.raises(UnknownBackend, match="cache"):
        load_embedder(MODEL, backend="onnx")


@pytest.mark.skipif(not multiplies_int8(), reason="int8 needs a CPU with VNNI")
def test_int8_model_has_its_own_export(int8: Embedder, exports: Path) -> None:
    assert isinstance(int8, OnnxEmbedder) and len(list(exports.glob("*-int8.onnx"))) == 1


@pytest.mark.parametrize("model", ["onnx", "int8"])
def test_vector_of_a_text_is_the_same_alone_and_in_a_batch(request: pytest.FixtureRequest, model: str) -> None:
    """A run resumed after a kill batches the remaining texts differently, and questions arrive one at a time."""
    embedder: Embedder = request.getfixturevalue(model)
    alone = np.stack([embedder.embed_query(text) for text in TEXTS])
    with ThreadPoolExecutor(8) as threads:
        among = np.stack(list(threads.map(embedder.embed_query, TEXTS)))
    assert np.abs(alone - among).max() <= 1e-6
    assert np.abs(alone - embedder.embed_chunks(TEXTS)).max() <= 1e-6


def test_too_long_text_is_counted_whole_and_read_in_part(onnx: Embedder) -> None:
    """The model adds two tokens of its own."""
    longer, whole = "word " * 255, "word " * 254
    assert onnx.counter.count_tokens([longer, whole]) == [onnx.counter.max_tokens + 1, onnx.counter.max_tokens]
    assert np.abs(np.subtract(*onnx.embed_chunks([longer, longer + "and an end"]))).max() < 1e-6


def test_inaccurate_int8_model_is_refused(exports: Path, tmp_path: Path) -> None:
    fp32 = open_export(load_tokenizer(MODEL), exports)[0]
    with pytest.raises(ExportFailed, match=r"cosine of 0\.9"):
        export(load_tokenizer(MODEL), tmp_path / "int8.onnx", fp32, least_int8_cosine=2.0)
    assert list(tmp_path.iterdir()) == []


def test_exact_model_embeds_if_there_is_no_int8_model(exports: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(counter: TokenCounter, folder: Path, int8: bool = False) -> tuple[Path, object]:
        if int8:
            raise ExportFailed("far off")
        return open_export(counter, folder)

    monkeypatch.setattr("pipelines.embedding.onnx.embedder.open_export", refuse)
    monkeypatch.setattr("pipelines.embedding.load.multiplies_int8", lambda: True)
    with pytest.warns(RuntimeWarning, match="far off"):
        assert isinstance(load_embedder(f"int8:{MODEL}", device="cpu", cache=exports), OnnxEmbedder)
