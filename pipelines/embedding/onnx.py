"""Embeds with ONNX Runtime: torch's vectors, faster on a CPU and without importing torch.

The whole sentence-transformers module (transformer, pooling, normalisation) is exported once into a cache folder.
Knows no GPU and no endpoint.
"""

import fcntl
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipelines.embedding.cpu import count_cpus
from pipelines.embedding.embedder import Embedder, Vectors, normalised
from pipelines.embedding.int8 import quantise
from pipelines.embedding.questions import WIDEST, QuestionSessions
from pipelines.embedding.tokens import TokenCounter, load_tokenizer, untruncated_tokenizer, weights_digest
from pipelines.files.atomic_files import whole_file
from pipelines.records import digest
from pipelines.text.cleaning import clean_for_tokenizer

# Tokens in a batch, padding included. A longer text is a batch of its own: its activations (166 tokens: 1 MB) then stay
# in a core's cache. In 16 texts at once a chunk costs 53 ms of CPU, alone 35 (Ray docs, fp32, two threads).
BATCH_TOKENS = 256
LEAST_COSINE = 0.99999  # between an export's vectors and torch's; a good export reaches 0.9999999
LEAST_INT8_COSINE = 0.99  # of int8's to fp32's: 0.999 for MiniLM; far less means a model that int8 destroys
GRAPH = "2"  # of the exported graph: another value exports anew
PROBES = ["a", "Ray Serve: How do I scale a Deployment?", "def f(x):\n    return x  # 漢字 " * 20]
# What the process that exports runs: folder of this source, model, file, fp32 export.
_WRITE = """
import sys
sys.path.insert(0, sys.argv[1])
from pipelines.embedding.onnx import write_export
write_export(*sys.argv[2:])
"""


class ExportFailed(RuntimeError):
    """The model could not be exported to ONNX with equal vectors."""


class OnnxEmbedder(Embedder):
    """A sentence-transformers model on ONNX Runtime. `cache` holds the exported models.

    `threads` batches are embedded at once, each by one thread (None: as many as CPUs): threads that share a batch wait
    for each other at each of its products. `int8` multiplies bytes (see int8.py). Raises ExportFailed.
    """

    def __init__(
        self, counter: TokenCounter, cache: Path, threads: int | None, batch_size: int | None, int8: bool = False
    ) -> None:
        super().__init__(counter)
        assert counter.folder is not None
        path, self._session = open_export(counter, cache, int8)
        # In int8 a question takes 2.5 ms on one thread and 3.5 on two, which wait for each other longer than they work.
        wide = 1 if int8 else min(threads or count_cpus(), WIDEST)
        self._questions = QuestionSessions(self._session, (lambda: open_session(path, wide)) if wide > 1 else None)
        self._tokenizer = untruncated_tokenizer(counter.folder)
        self._tokenizer.enable_truncation(counter.max_tokens)
        self._most_texts = batch_size
        self._threads = ThreadPoolExecutor(threads or count_cpus(), "raydex-embed")

    def embed_query(self, text: str) -> Vectors:
        """Return the vector of a question, (dimension,). Raises EmbeddingFailed."""
        texts = [clean_for_tokenizer(text)]
        ids = self._encode(texts, self.counter.query_prefix)
        with self._questions.take() as session:
            return normalised(self._run(ids, session), texts, self.dimension)[0]

    def _encode(self, texts: list[str], prefix: str) -> list[list[int]]:
        encodings = self._tokenizer.encode_batch_fast([prefix + text for text in texts])
        return [encoding.ids for encoding in encodings]

    def _vectors(self, texts: list[str], prefix: str) -> NDArray[Any]:
        ids = self._encode(texts, prefix)
        batches = list(batch_by_tokens([len(line) for line in ids], BATCH_TOKENS, self._most_texts))
        run = self._threads.map if len(batches) > 1 else map
        vectors = np.empty((len(ids), self.dimension), np.float32)
        for places, rows in zip(batches, run(lambda batch: self._run([ids[n] for n in batch]), batches), strict=True):
            vectors[places] = rows
        return vectors

    def _run(self, ids: list[list[int]], session: Any = None) -> NDArray[Any]:
        """Return the vectors of a batch; padding is masked, so its tokens do not matter."""
        padded = np.zeros((len(ids), max(map(len, ids))), np.int64)
        mask = np.zeros_like(padded)
        for row, line in enumerate(ids):
            padded[row, : len(line)] = line
            mask[row, : len(line)] = 1
        return (session or self._session).run(None, {"input_ids": padded, "attention_mask": mask})[0]


def open_session(path: Path, threads: int = 1) -> Any:
    """Return an ONNX Runtime session of an exported model; `threads` share each run."""
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")  # actors share the CPUs
    return ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def batch_by_tokens(lengths: Sequence[int], tokens: int, most: int | None = None) -> Iterator[list[int]]:
    """Yield the places of texts in batches, the longest first, so that no thread ends with a long one.

    A batch holds at most `tokens`, padding to its longest text included, and at most `most` texts, but always one.
    """
    batch: list[int] = []
    for place in sorted(range(len(lengths)), key=lambda place: -lengths[place]):
        if batch and ((len(batch) + 1) * lengths[batch[0]] > tokens or len(batch) == most):
            yield batch
            batch = []
        batch.append(place)
    if batch:
        yield batch


def export_path(counter: TokenCounter, cache: Path, int8: bool = False) -> Path:
    """Return where in `cache` the exported model is, or will be."""
    assert counter.folder is not None
    name = digest(weights_digest(counter.folder), version("torch"), version("sentence-transformers"), GRAPH)
    return cache / f"{name}{'-int8' if int8 else ''}.onnx"


def open_export(counter: TokenCounter, cache: Path, int8: bool = False) -> tuple[Path, Any]:
    """Return the exported model in `cache` and a session of it; a file that is broken is made anew.

    Raises ExportFailed.
    """
    path = exported(counter, cache, int8)
    try:
        return path, open_session(path)
    except Exception:  # ONNX Runtime raises errors of many kinds
        path = exported(counter, cache, int8, is_whole=_opens)
    try:
        return path, open_session(path)
    except Exception as error:
        raise ExportFailed(f"{path}, the export of {counter.model}, does not load: {error}") from error


def exported(
    counter: TokenCounter, cache: Path, int8: bool = False, is_whole: Callable[[Path], bool] = Path.is_file
) -> Path:
    """Return the exported model in `cache`, made by one process at a time (some seconds) unless it `is_whole`.

    It is made in a process of its own: torch stays out of this one, which may embed for hours. Raises ExportFailed.
    """
    path = export_path(counter, cache, int8)
    if not is_whole(path):
        with _lock(path.with_suffix(".lock")):
            if not is_whole(path):
                _write_apart(counter, path, exported(counter, cache, is_whole=_opens) if int8 else None)
    return path


def _opens(path: Path) -> bool:
    try:
        open_session(path)
    except Exception:
        return False
    return True


def _write_apart(counter: TokenCounter, path: Path, fp32: Path | None) -> None:
    command = [sys.executable, "-c", _WRITE, str(Path(__file__).parents[2]), counter.model, str(path), str(fp32 or "")]
    done = subprocess.run(command, check=False, capture_output=True, text=True, errors="replace")
    if done.returncode:
        raise ExportFailed((done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1])


def write_export(model: str, path: str, fp32: str) -> None:
    """Write the export of `model`; in int8 if its `fp32` export is given. Ends the process with what went wrong."""
    try:
        _write(load_tokenizer(model), Path(path), Path(fp32) if fp32 else None)
    except ExportFailed as error:
        sys.exit(" ".join(str(error).split()))


def _write(counter: TokenCounter, path: Path, fp32: Path | None) -> None:
    with whole_file(path) as target:
        try:
            if fp32:
                quantise(fp32, target)
                compare_int8(counter, fp32, target)
            else:
                _export(counter, target)
        except Exception as error:  # the exporters raise errors of any kind
            raise ExportFailed(
                f"{counter.model} can't be exported to ONNX ({type(error).__name__}: {error}): use the backend torch"
            ) from error


def _export(counter: TokenCounter, target: Path) -> None:
    import torch
    from sentence_transformers import SentenceTransformer

    # torch's fused attention is exported as many small nodes (a fourth of int8's time), the plain one as few.
    plain = {"attn_implementation": "eager"}
    folder = str(counter.folder)
    model = SentenceTransformer(folder, device="cpu", local_files_only=True, model_kwargs=plain).eval()
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
    expected = model.encode(PROBES, prompt="", normalize_embeddings=True, show_progress_bar=False)
    _check_cosines(_probe(counter, target), expected, LEAST_COSINE, "torch's")


def compare_int8(counter: TokenCounter, fp32: Path, target: Path) -> None:
    """Raise ExportFailed unless the int8 vectors are near those of the exported `fp32`."""
    _check_cosines(_probe(counter, target), _probe(counter, fp32), LEAST_INT8_COSINE, "fp32's")


def _probe(counter: TokenCounter, path: Path) -> NDArray[Any]:
    """Return the vectors of PROBES by an exported model, of length 1."""
    tokenizer = untruncated_tokenizer(counter.folder)  # type: ignore[arg-type]
    tokenizer.enable_truncation(counter.max_tokens)
    session = open_session(path)
    rows = []
    for text in PROBES:
        ids = np.array([tokenizer.encode(text).ids], np.int64)
        rows += list(session.run(None, {"input_ids": ids, "attention_mask": np.ones_like(ids)})[0])
    return np.array([row / np.linalg.norm(row) for row in rows])


def _check_cosines(vectors: NDArray[Any], expected: NDArray[Any], least: float, whose: str) -> None:
    for text, vector, other in zip(PROBES, vectors, expected, strict=True):
        cosine = float(vector @ other)
        if not cosine >= least:
            raise ExportFailed(f"its vector of {text[:40]!r} has a cosine of {cosine:.6f} with {whose}")


@contextmanager
def _lock(path: Path) -> Iterator[None]:
    """Hold a lock that one process of this machine has at a time, in a folder that is made. Raises ExportFailed."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.open("w")
    except OSError as error:
        raise ExportFailed(f"no exported model can be kept in {path.parent}: {error.strerror}") from error
    with file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
