"""The folder of exported models may be broken, or not be writable: embedding goes on."""

from pathlib import Path

import numpy as np
import pytest

from pipelines.embedding import embedder
from pipelines.embedding import onnx as exporting
from pipelines.embedding.onnx import ExportFailed, export_path, exported, open_export
from pipelines.embedding.tokens import TokenCounter, load_tokenizer

onnx = pytest.importorskip("onnx")
MODEL = "all-MiniLM-L6-v2"


@pytest.fixture(scope="module")
def model() -> bytes:
    """A model that ONNX Runtime loads."""
    ends = [onnx.helper.make_tensor_value_info(name, 1, [1]) for name in "xy"]
    node = onnx.helper.make_node("Identity", ["x"], ["y"])
    graph = onnx.helper.make_graph([node], "one", ends[:1], ends[1:])
    opsets = [onnx.helper.make_opsetid("", 17)]
    return onnx.helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString()


@pytest.fixture
def written(model: bytes, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the files that were exported, of a model that takes no time."""
    names: list[str] = []

    def write(counter: TokenCounter, path: Path, fp32: Path | None) -> None:
        names.append(path.name)
        path.write_bytes(model)

    monkeypatch.setattr(exporting, "_write_apart", write)
    return names


@pytest.mark.parametrize("left", [b"", b"no model", 40], ids=["empty", "other bytes", "half of it"])
def test_a_broken_file_is_made_anew(model: bytes, written: list[str], tmp_path: Path, left: bytes | int) -> None:
    counter = load_tokenizer(MODEL)
    path = export_path(counter, tmp_path)
    path.write_bytes(model[:left] if isinstance(left, int) else left)
    _, session = open_export(counter, tmp_path)
    assert session.run(None, {"x": np.ones(1, np.float32)})[0] == 1
    assert written == [path.name]
    open_export(counter, tmp_path)
    assert written == [path.name]  # a whole file stays


def test_no_int8_model_is_made_of_a_broken_one(model: bytes, written: list[str], tmp_path: Path) -> None:
    counter = load_tokenizer(MODEL)
    fp32, int8 = export_path(counter, tmp_path), export_path(counter, tmp_path, int8=True)
    fp32.write_bytes(b"no model")
    assert exported(counter, tmp_path, int8=True) == int8
    assert written == [fp32.name, int8.name]


def test_a_model_that_never_loads_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exporting, "_write_apart", lambda counter, path, fp32: path.write_bytes(b"no model"))
    with pytest.raises(ExportFailed, match=r"\.onnx, the export of all-MiniLM-L6-v2, does not load"):
        open_export(load_tokenizer(MODEL), tmp_path)


@pytest.mark.parametrize("name", [MODEL, f"int8:{MODEL}"])
def test_a_folder_that_cannot_be_written_costs_speed_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(embedder, "TorchEmbedder", lambda counter, *_: counter.model)
    monkeypatch.setattr(embedder, "multiplies_int8", lambda: True)
    folder = tmp_path / "models"
    folder.write_text("a file where the folder should be")
    with pytest.warns(RuntimeWarning, match=r"embedding slower on a CPU: .*models"):
        assert embedder.load_embedder(name, device="cpu", cache=folder) == name
    with pytest.raises(ExportFailed, match=r"no exported model can be kept in .*models"):
        embedder.load_embedder(name, device="cpu", backend="onnx", cache=folder)
