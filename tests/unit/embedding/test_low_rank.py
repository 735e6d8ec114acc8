"""The model tuned for documentation: a packaged model's folder with changed weights."""

from pathlib import Path

import numpy as np
from safetensors.numpy import load_file

from pipelines.embedding.load import load_tokenizer
from pipelines.embedding.low_rank import CHANGES, digest_of_changes
from pipelines.embedding.onnx.export import export_path
from pipelines.embedding.torch import load_modules
from pipelines.training.embedder import load_model

BASE, DOCS = "all-MiniLM-L6-v2", "all-MiniLM-L6-docs-v1"
LAYER = "encoder.layer.3.attention.self.query"


def weight(model) -> np.ndarray:
    return model[0].auto_model.get_submodule(LAYER).weight.detach().numpy()


def test_every_transformer_layer_gets_the_product_of_its_matrices():
    thin = load_file(CHANGES[DOCS])
    change = thin[f"{LAYER}.b"].astype(np.float32) @ thin[f"{LAYER}.a"].astype(np.float32)
    base, docs = (load_modules(load_tokenizer(name), device="cpu") for name in (BASE, DOCS))
    assert np.abs(change).max() > 0.001
    assert np.allclose(weight(docs), weight(base) + change, atol=1e-6)
    encoder = docs[0].auto_model.encoder
    layers = {name.removesuffix(".weight") for name, value in encoder.named_parameters() if value.dim() == 2}
    assert {name.rpartition(".")[0] for name in thin} == {f"encoder.{name}" for name in layers}
    assert np.allclose(weight(load_model(DOCS)), weight(docs))  # training starts with these weights


def test_changed_model_differs_in_identity_and_export(tmp_path: Path):
    base, docs = load_tokenizer(BASE), load_tokenizer(DOCS)
    assert (docs.folder, docs.dimension, docs.max_tokens) == (base.folder, base.dimension, base.max_tokens)
    assert docs.identity != base.identity
    assert export_path(docs, tmp_path) != export_path(base, tmp_path)
    assert export_path(load_tokenizer(f"int8:{DOCS}"), tmp_path) == export_path(docs, tmp_path)
    assert digest_of_changes(BASE) == "" != digest_of_changes(DOCS)
