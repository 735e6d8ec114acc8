"""Whether loading a model exports it first is known before it is loaded, so that a command can say so."""

from pathlib import Path

from pipelines.embedding.load import load_tokenizer, runs_int8, will_export
from pipelines.embedding.onnx.export import export_path
from pipelines.records import IndexSettings


def test_model_of_files_is_exported_only_without_an_export_in_the_cache(tmp_path: Path) -> None:
    model = IndexSettings().embedding
    assert will_export(model, "auto", tmp_path) and not will_export(model, "torch", tmp_path)
    assert not will_export(model, "auto", None) and not will_export("hash:8", "auto", tmp_path)
    counter = load_tokenizer(model)
    export_path(counter, tmp_path, runs_int8(counter.model)).touch()
    assert not will_export(model, "auto", tmp_path)
