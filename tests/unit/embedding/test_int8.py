"""Int8 products are close to float products in any batch, and the default is chosen by machine and index."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pipelines.embedding import cpu, load
from pipelines.embedding.load import load_tokenizer
from pipelines.embedding.onnx.embedder import batch_by_tokens
from pipelines.embedding.onnx.export import open_session
from pipelines.embedding.onnx.int8 import quantise
from pipelines.embedding.tokens import ModelNotFound
from pipelines.indexing import settings
from pipelines.indexing.collection import AUTO, INDEX
from pipelines.indexing.settings import choose_model

onnx = pytest.importorskip("onnx")
INT8_DEFAULT = f"int8:{INDEX.model}"


@pytest.fixture(scope="module")
def two_layers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a model of two products and the layer between them: y = gelu(x · A) · B, and x · A itself."""
    rng = np.random.default_rng(0)
    weights = {"a": rng.normal(size=(24, 40)), "b": rng.normal(size=(40, 8))}
    held = [onnx.numpy_helper.from_array(value.astype(np.float32), name) for name, value in weights.items()]
    nodes = [
        onnx.helper.make_node("MatMul", ["x", "a"], ["xa"]),
        onnx.helper.make_node("Relu", ["xa"], ["h"]),
        onnx.helper.make_node("MatMul", ["h", "b"], ["y"]),
    ]
    shape = ["texts", "tokens"]
    values = [onnx.helper.make_tensor_value_info(name, 1, [*shape, n]) for name, n in (("x", 24), ("y", 8))]
    graph = onnx.helper.make_graph(nodes, "two", values[:1], values[1:], held)
    path = tmp_path_factory.mktemp("int8") / "two.onnx"
    onnx.save(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8), path)
    quantise(path, path.with_name("two-int8.onnx"))
    return path


def run(path: Path, x: np.ndarray) -> np.ndarray:
    return open_session(path).run(None, {"x": x})[0]


@pytest.mark.skipif(not cpu.multiplies_int8(), reason="byte products saturate on a CPU without VNNI")
def test_int8_products_are_close_and_tokens_are_independent(two_layers: Path) -> None:
    x = np.random.default_rng(1).normal(size=(3, 5, 24)).astype(np.float32)
    x[1] *= 1000  # with one scale for the batch, the others would be rounded to zero
    x[2, 0] = 0  # all activations of a token are equal
    int8, fp32 = run(two_layers.with_name("two-int8.onnx"), x), run(two_layers, x)
    near = np.linalg.norm(int8 - fp32, axis=-1) <= 0.02 * np.linalg.norm(fp32, axis=-1) + 1e-6
    assert near.all()
    assert np.array_equal(int8[:1], run(two_layers.with_name("two-int8.onnx"), x[:1]))


def test_all_weight_products_use_int8(two_layers: Path) -> None:
    model = onnx.load(two_layers.with_name("two-int8.onnx"))
    kinds = [node.op_type for node in model.graph.node]
    assert kinds.count("MatMulIntegerToFloat") == 2 and "MatMul" not in kinds
    assert not {"a", "b"} & {weight.name for weight in model.graph.initializer}


def test_batches_contain_all_texts_within_the_budget() -> None:
    lengths = [300, 5, 90, 100, 4, 128, 129, 3]
    batches = list(batch_by_tokens(lengths, 256))
    assert sorted(n for batch in batches for n in batch) == list(range(len(lengths)))
    assert all(len(batch) * max(lengths[n] for n in batch) <= 256 for batch in batches if len(batch) > 1)
    assert batches[:2] == [[0], [6]] and [5, 3] in batches
    assert list(batch_by_tokens([], 256)) == []


def test_int8_model_has_its_own_identity() -> None:
    plain, int8 = load_tokenizer(INDEX.model), load_tokenizer(INT8_DEFAULT)
    assert int8.identity == INT8_DEFAULT != plain.identity
    assert replace(int8, model=plain.model, identity=plain.identity, count=plain.count) == plain


@pytest.mark.parametrize("name", ["int8:", "int8:hash:64", "int8:openai:x", "int8:int8:all-MiniLM-L6-v2"])
def test_int8_requires_a_model_in_files(name: str) -> None:
    with pytest.raises(ModelNotFound, match="int8:"):
        load_tokenizer(name)


@pytest.mark.parametrize(
    ("named", "live", "vnni", "gpu", "chosen"),
    [
        (AUTO, "", True, False, INT8_DEFAULT),
        (AUTO, "", True, True, INDEX.model),
        (AUTO, "", False, False, INDEX.model),
        (AUTO, INDEX.model, True, False, INDEX.model),  # an index keeps its own model
        (AUTO, INT8_DEFAULT, False, True, INT8_DEFAULT),
        (AUTO, "int8:all-MiniLM-L6-v2", True, False, "int8:all-MiniLM-L6-v2"),  # the previous default
        (AUTO, "hash:64", False, False, INDEX.model),
        (INDEX.model, INT8_DEFAULT, True, False, INDEX.model),
        ("hash:64", INDEX.model, True, False, "hash:64"),
    ],
)
def test_int8_model_is_chosen_only_where_it_is_fast_and_new(monkeypatch, named, live, vnni, gpu, chosen):
    monkeypatch.setattr(settings, "multiplies_int8", lambda: vnni)
    monkeypatch.setattr(settings, "has_gpu", lambda: gpu)
    assert choose_model(named, live) == chosen


@pytest.mark.parametrize(("vnni", "int8"), [(True, True), (False, False)])
def test_int8_runs_only_if_it_is_exact(monkeypatch: pytest.MonkeyPatch, vnni: bool, int8: bool) -> None:
    monkeypatch.setattr(load, "multiplies_int8", lambda: vnni)
    assert load.runs_int8(INT8_DEFAULT) is int8
    assert not load.runs_int8(INDEX.model)


def test_flags_are_read_from_the_first_processor(tmp_path: Path) -> None:
    info = tmp_path / "cpuinfo"
    info.write_text("processor\t: 0\nflags\t\t: fpu avx2 avx512_vnni\n\nprocessor\t: 1\nflags\t\t: fpu\n")
    assert cpu.cpu_flags(info) == {"fpu", "avx2", "avx512_vnni"}
    assert cpu.cpu_flags(tmp_path / "none") == frozenset()
