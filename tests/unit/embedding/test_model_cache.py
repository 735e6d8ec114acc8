"""Embedding continues if the folder of exported models is broken or not writable."""

from pathlib import Path

import numpy as np
import pytest

from pipelines.embedding import load
from pipelines.embedding.load import load_tokenizer
from pipelines.embedding.onnx.export import ExportFailed, export_path, open_export
from pipelines.embedding.tokens import TokenCounter

onnx = pytest.importorskip("onnx")
MODEL = "all-MiniLM-L6-v2"


@pytest.fixture(scope="module")
def model() -> bytes:
    """Return a model that ONNX Runtime loads."""
    ends = [onnx.helper.make_tensor_value_info(name, 1, [1]) for name in "xy"]
    node = onnx.helper.make_node("Identity", ["x"], ["y"])
    graph = onnx.helper.make_graph([node], "one", ends[:1], ends[1:])
    opsets = [onnx.helper.make_opsetid("", 17)]
    return onnx.helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString()


class Maker:
    """Exports a model that takes no time, and records the `names` of the files."""

    def __init__(self, model: bytes) -> None:
        self._model, self.names = model, list[str]()

    def __call__(self, counter: TokenCounter, path: Path, fp32: Path | None) -> None:
        self.names.append(path.name)
        path.write_bytes(self._model)


@pytest.mark.parametrize("left", [b"", b"no model", 40], ids=["empty", "other bytes", "half of it"])
def test_broken_file_is_rebuilt(model: bytes, tmp_path: Path, left: bytes | int) -> None:
    counter, make = load_tokenizer(MODEL), Maker(model)
    path = export_path(counter, tmp_path)
    path.write_bytes(model[:left] if isinstance(left, int) else left)
    _, session = open_export(counter, tmp_path, make=make)
    assert session.run(None, {"x": np.ones(1, np.float32)})[0] == 1
    assert make.names == [path.name]
    open_export(counter, tmp_path, make=make)
    assert make.names == [path.name]  # an intact file stays


def test_no_int8_model_is_made_from_a_broken_one(model: bytes, tmp_path: Path) -> None:
    counter, make = load_tokenizer(MODEL), Maker(model)
    fp32, int8 = export_path(counter, tmp_path), export_path(counter, tmp_path, int8=True)
    fp32.write_bytes(b"no model")
    assert open_export(counter, tmp_path, int8=True, make=make)[0] == int8
    assert make.names == [fp32.name, int8.name]


def test_model_that_never_loads_is_reported(tmp_path: Path) -> None:
    with pytest.raises(ExportFailed, match=r"\.onnx, the export of all-MiniLM-L6-v2, does not load"):
        open_export(load_tokenizer(MODEL), tmp_path, make=Maker(b"no model"))


@pytest.mark.parametrize("name", [MODEL, f"int8:{MODEL}"])
def test_read_only_folder_costs_only_speed(tmp_path, monkeypatch, name):
    monkeypatch.setattr(load, "TorchEmbedder", lambda counter, *_: counter.model)
    monkeypatch.setattr(load, "multiplies_int8", lambda: True)
    folder = tmp_path / "models"
    folder.write_text("a file where the folder should be")
    with pytest.warns(RuntimeWarning, match=r"embedding slower on a CPU: .*models"):
        assert load.load_embedder(name, device="cpu", cache=folder) == name
    with pytest.raises(ExportFailed, match=r"no exported model can be kept in .*models"):
        load.load_embedder(name, device="cpu", backend="onnx", cache=folder)
