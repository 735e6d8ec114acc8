"""Embeds with ONNX Runtime: torch's vectors, faster on a CPU and without importing torch.

The whole sentence-transformers module (transformer, pooling, normalisation) is exported once into a cache folder.
Knows no GPU and no endpoint.
"""

import fcntl
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipelines.embedding.embedder import Embedder
from pipelines.embedding.tokens import TokenCounter, untruncated_tokenizer, weights_digest
from pipelines.records import digest
from pipelines.whole import whole_file

BATCH = 16  # texts of similar length; 8 and 32 are within noise of it (Ray docs, 2 threads)
LEAST_COSINE = 0.99999  # between an export's vectors and torch's; a good export reaches 0.9999999
PROBES = ["a", "Ray Serve: How do I scale a Deployment?", "def f(x):\n    return x  # 漢字 " * 20]


class ExportFailed(RuntimeError):
    """The model could not be exported to ONNX with equal vectors."""


class OnnxEmbedder(Embedder):
    """A sentence-transformers model on ONNX Runtime. `cache` holds the exported models; `threads` None uses all CPUs.

    `int8` quantises the weights: faster, but a text's vector then depends on its batch (cosine down to 0.985), so never
    mix such vectors with others in an index. Raises ExportFailed.
    """

    def __init__(
        self, counter: TokenCounter, cache: Path, threads: int | None, batch_size: int | None, int8: bool = False
    ) -> None:
        super().__init__(counter)
        import onnxruntime as ort

        assert counter.folder is not None
        path = exported(counter, cache, int8)
        options = ort.SessionOptions()
        options.intra_op_num_threads = threads or 0
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")  # actors share the CPUs
        self._session = ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        self._tokenizer = untruncated_tokenizer(counter.folder)
        self._tokenizer.enable_truncation(counter.max_tokens)
        self._batch_size = batch_size or BATCH

    def _vectors(self, texts: list[str], prefix: str) -> NDArray[Any]:
        ids = [encoding.ids for encoding in self._tokenizer.encode_batch_fast([prefix + text for text in texts])]
        order = sorted(range(len(ids)), key=lambda place: len(ids[place]))
        vectors = np.empty((len(ids), self.dimension), np.float32)
        for start in range(0, len(order), self._batch_size):
            places = order[start : start + self._batch_size]
            vectors[places] = self._run([ids[place] for place in places])
        return vectors

    def _run(self, ids: list[list[int]]) -> NDArray[Any]:
        """Return the vectors of a batch; padding is masked, so its tokens do not matter."""
        padded = np.zeros((len(ids), max(map(len, ids))), np.int64)
        mask = np.zeros_like(padded)
        for row, line in enumerate(ids):
            padded[row, : len(line)] = line
            mask[row, : len(line)] = 1
        return self._session.run(None, {"input_ids": padded, "attention_mask": mask})[0]


def export_path(counter: TokenCounter, cache: Path, int8: bool = False) -> Path:
    """Return where in `cache` the exported model is, or will be."""
    assert counter.folder is not None
    name = digest(weights_digest(counter.folder), version("torch"), version("sentence-transformers"))
    return cache / f"{name}{'-int8' if int8 else ''}.onnx"


def exported(counter: TokenCounter, cache: Path, int8: bool = False) -> Path:
    """Return the exported model in `cache`, made by one process at a time (some seconds) if it is missing."""
    path = export_path(counter, cache, int8)
    if not path.is_file():
        cache.mkdir(parents=True, exist_ok=True)
        with _lock(path.with_suffix(".lock")):
            if not path.is_file():
                _write(counter, path, exported(counter, cache) if int8 else None)
    return path


def _write(counter: TokenCounter, path: Path, fp32: Path | None) -> None:
    with whole_file(path) as target:
        try:
            if fp32:
                _quantise(fp32, target)
            else:
                _export(counter, target)
        except Exception as error:  # the exporters raise errors of any kind
            raise ExportFailed(
                f"{counter.model} can't be exported to ONNX ({type(error).__name__}: {error}): use the backend torch"
            ) from error


def _quantise(source: Path, target: Path) -> None:
    from onnxruntime.quantization import QuantType, quantize_dynamic

    quantize_dynamic(source, target, weight_type=QuantType.QInt8, per_channel=True)


def _export(counter: TokenCounter, target: Path) -> None:
    import torch
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(counter.folder), device="cpu", local_files_only=True).eval()
    if counter.chunk_prefix and not all(getattr(module, "include_prompt", True) for module in model):
        raise ExportFailed("its pooling excludes the prompt, which the export can't do")

    class Whole(torch.nn.Module):
        def forward(self, input_ids: Any, attention_mask: Any) -> Any:
            return model({"input_ids": input_ids, "attention_mask": attention_mask})["sentence_embedding"]

    whole = Whole()
    whole.model = model
    ids = torch.full((2, 9), 7)
    mask = torch.ones_like(ids)
    mask[1, 6:] = 0
    lengths = {0: "texts", 1: "tokens"}
    with warnings.catch_warnings():  # the exporter warns that it is deprecated, and of each traced shape
        warnings.simplefilter("ignore")
        torch.onnx.export(
            whole,
            (ids, mask),
            str(target),
            input_names=["input_ids", "attention_mask"],
            output_names=["embedding"],
            dynamic_axes={"input_ids": lengths, "attention_mask": lengths, "embedding": {0: "texts"}},
            opset_version=17,
            dynamo=False,  # the other exporter needs onnxscript
        )
    compare(counter, model, target)


def compare(counter: TokenCounter, model: Any, target: Path) -> None:
    """Raise ExportFailed unless the export's vectors equal torch's."""
    import onnxruntime as ort

    tokenizer = untruncated_tokenizer(counter.folder)  # type: ignore[arg-type]
    tokenizer.enable_truncation(counter.max_tokens)
    session = ort.InferenceSession(str(target), providers=["CPUExecutionProvider"])
    expected = model.encode(PROBES, prompt="", normalize_embeddings=True, show_progress_bar=False)
    for text, vector in zip(PROBES, expected, strict=True):
        ids = np.array([tokenizer.encode(text).ids], np.int64)
        [got] = session.run(None, {"input_ids": ids, "attention_mask": np.ones_like(ids)})[0]
        cosine = float(got @ vector / np.linalg.norm(got))
        if not cosine >= LEAST_COSINE:
            raise ExportFailed(f"its vector of {text[:40]!r} has a cosine of {cosine:.6f} with torch's")


@contextmanager
def _lock(path: Path) -> Iterator[None]:
    """Hold a lock that one process of this machine has at a time."""
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
