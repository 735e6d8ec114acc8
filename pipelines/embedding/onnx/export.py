"""Exports a model to ONNX, once into a cache folder, and compares its vectors with torch's.

The whole sentence-transformers module is exported: transformer, pooling, normalization.
"""

import fcntl
import json
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipelines.embedding.low_rank import digest_of_changes
from pipelines.embedding.onnx.int8 import quantise
from pipelines.embedding.tokens import INT8, TokenCounter, count_for_files, untruncated_tokenizer, weights_digest
from pipelines.embedding.torch import load_modules
from pipelines.files.atomic_files import whole_file
from pipelines.owned import run_owned
from pipelines.records import EmbeddingModel, digest

LEAST_COSINE = 0.99999  # between an export's vectors and torch's; a good export reaches 0.9999999
LEAST_INT8_COSINE = 0.99  # between int8 and fp32: 0.999 for MiniLM; far less means that int8 ruins the model
GRAPH = "2"  # version of the exported graph: a new value exports again
PROBES = ["a", "Ray Serve: How do I scale a Deployment?", "def f(x):\n    return x  # 漢字 " * 20]
# The program of the exporting process; its arguments: source folder, model as JSON, file, fp32 export.
_WRITE = """
import sys
sys.path.insert(0, sys.argv[1])
from pipelines.owned import end_with_owner
end_with_owner()
from pipelines.embedding.onnx.export import write_export
write_export(*sys.argv[2:])
"""
# Writes the export of a model to a path, in int8 if the path of its fp32 export is given.
Maker = Callable[[TokenCounter, Path, Path | None], None]


class ExportFailed(RuntimeError):
    """The model could not be exported to ONNX with equal vectors."""


def open_session(path: Path, threads: int = 1) -> Any:
    """Return an ONNX Runtime session of an exported model; each run uses `threads`."""
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")  # actors share the CPUs
    return ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def export_path(counter: TokenCounter, cache: Path, int8: bool = False) -> Path:
    """Return the path in `cache` of the exported model, which may not exist yet."""
    assert counter.folder is not None
    parts = weights_digest(counter.folder), version("torch"), version("sentence-transformers"), GRAPH
    changes = digest_of_changes(counter.model.removeprefix(INT8))
    name = digest(*parts, *filter(None, [counter.pooling, changes]))
    return cache / f"{name}{'-int8' if int8 else ''}.onnx"


def open_export(counter: TokenCounter, cache: Path, int8: bool = False, make: Maker | None = None) -> tuple[Path, Any]:
    """Return the exported model in `cache` with a session; export it if missing or broken (takes some seconds).

    One process at a time exports. `make` None means `export_apart`, which keeps torch out of this process, because it
    may embed for hours. Raises ExportFailed.
    """
    path = export_path(counter, cache, int8)
    session = _session_of(path)
    if session is None:
        with _lock(path.with_suffix(".lock")):
            session = _session_of(path)  # another process may have exported it meanwhile
            if session is None:
                fp32 = open_export(counter, cache, make=make)[0] if int8 else None
                (make or export_apart)(counter, path, fp32)
                try:
                    session = open_session(path)
                except Exception as error:
                    raise ExportFailed(f"{path}, the export of {counter.model}, does not load: {error}") from error
    return path, session


def _session_of(path: Path) -> Any:
    """Return a session of an exported model, None if it is missing or broken."""
    try:
        return open_session(path)
    except Exception:  # ONNX Runtime raises errors of many types
        return None


def export_apart(counter: TokenCounter, path: Path, fp32: Path | None) -> None:
    """Write an export in a separate process, which ends with this one. Raises ExportFailed."""
    model = json.dumps([counter.model, counter.query_prefix, counter.chunk_prefix, counter.pooling or None])
    command = [sys.executable, "-c", _WRITE, str(Path(__file__).parents[3]), model, str(path), str(fp32 or "")]
    code, said = run_owned(command)
    if code:
        raise ExportFailed((said.strip().splitlines() or [f"exit status {code}"])[-1])


def write_export(model: str, path: str, fp32: str) -> None:
    """Write the export of `model`, the JSON of an EmbeddingModel's fields; in int8 if its `fp32` export is given.

    On failure, exits the process with the error message.
    """
    used = EmbeddingModel(*json.loads(model))
    try:
        export(count_for_files(used.name).using(used), Path(path), Path(fp32) if fp32 else None)
    except ExportFailed as error:
        sys.exit(" ".join(str(error).split()))


def export(counter: TokenCounter, path: Path, fp32: Path | None, least_int8_cosine: float = LEAST_INT8_COSINE) -> None:
    """Write the export of a model, in int8 if its `fp32` export is given. Raises ExportFailed."""
    with whole_file(path) as target:
        try:
            if fp32:
                quantise(fp32, target)
                _check_cosines(_probe(counter, target), _probe(counter, fp32), least_int8_cosine, "fp32's")
            else:
                _export(counter, target)
        except Exception as error:  # the exporters raise errors of any kind
            raise ExportFailed(
                f"{counter.model} can't be exported to ONNX ({type(error).__name__}: {error}): use the backend torch"
            ) from error


def _export(counter: TokenCounter, target: Path) -> None:
    import torch

    # torch's fused attention is exported as many small nodes (a fourth of int8's time), the plain one as a few.
    plain = {"attn_implementation": "eager"}
    model = load_modules(counter, device="cpu", model_kwargs=plain).eval()
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
    with warnings.catch_warnings():  # the exporter warns about its deprecation and each traced shape
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
    expected = model.encode(PROBES, prompt="", normalize_embeddings=True, show_progress_bar=False)
    _check_cosines(_probe(counter, target), expected, LEAST_COSINE, "torch's")


def _probe(counter: TokenCounter, path: Path) -> NDArray[Any]:
    """Return the normalized vectors of PROBES from an exported model."""
    tokenizer = untruncated_tokenizer(counter.folder)  # pyrefly: ignore[bad-argument-type]
    tokenizer.enable_truncation(counter.max_tokens)
    session = open_session(path)
    rows = []
    for text in PROBES:
        ids = np.array([tokenizer.encode(text).ids], np.int64)
        rows += list(session.run(None, {"input_ids": ids, "attention_mask": np.ones_like(ids)})[0])
    return np.array([row / np.linalg.norm(row) for row in rows])


def _check_cosines(vectors: NDArray[Any], expected: NDArray[Any], least: float, whose: str) -> None:
    """Raise ExportFailed unless the vectors of PROBES are close to the expected ones."""
    for text, vector, other in zip(PROBES, vectors, expected, strict=True):
        cosine = float(vector @ other)
        if not cosine >= least:
            raise ExportFailed(f"its vector of {text[:40]!r} has a cosine of {cosine:.6f} with {whose}")


@contextmanager
def _lock(path: Path) -> Iterator[None]:
    """Hold a lock between the processes of this machine; create its folder. Raises ExportFailed."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.open("w")
    except OSError as error:
        raise ExportFailed(f"no exported model can be kept in {path.parent}: {error.strerror}") from error
    with file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
