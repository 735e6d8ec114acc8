"""Measures the speed of embedding by engine and precision, and the accuracy of the vectors compared with torch.

Uses real chunks of the Ray documentation. The engines alternate in every round, so that a busy machine slows all of
them equally. CPU time counts in addition to wall time, because other work disturbs it less. The former use of ONNX
Runtime (one session whose threads share batches of 16 texts) is measured next to today's. `raydex experiment
benchmarks/sweeps/int8.yaml` compares the retrieval scores of int8.
"""

import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import common
from benchmarks.tables import as_table
from pipelines.embedding.cpu import count_cpus
from pipelines.embedding.embedder import Embedder
from pipelines.embedding.load import load_embedder, load_tokenizer, runs_int8
from pipelines.embedding.onnx.embedder import OnnxEmbedder
from pipelines.embedding.onnx.export import export_path, open_session
from pipelines.indexing.reading.read import read_page
from pipelines.page.cut.chunker import Chunker
from pipelines.records import Page

MODEL = "all-MiniLM-L6-v2"
INT8 = f"int8:{MODEL}"
TORCH = "torch fp32"
QUESTION = "How do I scale a deployment?"
OLD_BATCH = 16
COLD = (
    "from pathlib import PosixPath; from pipelines.embedding import load_embedder as load; "
    "load(**{}).embed_query('warm')"
)


class SharedBatches(OnnxEmbedder):
    """ONNX Runtime as used formerly: batches of 16 texts of similar length, with all threads on each."""

    def __init__(self, cache: Path, threads: int) -> None:
        counter = load_tokenizer(MODEL)
        super().__init__(counter, cache, 1)
        self._session = open_session(export_path(counter, cache), threads)

    def _vectors(self, texts: list[str], prefix: str) -> Any:
        ids = [encoding.ids for encoding in self._tokenizer.encode_batch_fast([prefix + text for text in texts])]
        order = sorted(range(len(ids)), key=lambda place: len(ids[place]))
        vectors = np.empty((len(ids), self.dimension), np.float32)
        for start in range(0, len(order), OLD_BATCH):
            places = order[start : start + OLD_BATCH]
            vectors[places] = self._run([ids[place] for place in places])
        return vectors


def real_chunks(folder: Path, count: int) -> list[str]:
    """Return `count` chunks from as many pages as possible."""
    chunker = Chunker(load_tokenizer(MODEL))
    texts: list[str] = []
    for path in sorted(folder.rglob("*.html")):
        page = read_page(Page(f"{common.BASE_URL}{path.relative_to(folder)}", path.read_bytes()))
        texts += [chunk.embed_text for chunk in chunker(page)]
    return texts[:: max(1, len(texts) // count)][:count]


def engine_flags(cache: Path, threads: int) -> dict[str, dict[str, Any]]:
    """Return the arguments of load_embedder for each engine. int8 is included only if the CPU supports it."""
    common_flags = {"device": "cpu", "threads": threads, "cache": cache}
    flags = {
        TORCH: {"model": MODEL, "backend": "torch"},
        "ONNX Runtime fp32": {"model": MODEL, "backend": "onnx"},
        "ONNX Runtime int8": {"model": INT8, "backend": "onnx"},
    }
    return {name: own | common_flags for name, own in flags.items() if runs_int8(INT8) or own["model"] != INT8}


def timed(work: Callable[[], Any]) -> tuple[float, float]:
    """Return a call's wall and CPU seconds."""
    began, cpu = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - began, time.process_time() - cpu


def cold_start(flags: dict[str, Any]) -> tuple[float, float]:
    """Return the wall and CPU seconds from starting Python to the first question's vector."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run([sys.executable, "-W", "ignore", "-c", COLD.format(flags)], check=True, stderr=subprocess.DEVNULL,
                   cwd=common.ROOT)  # fmt: skip
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.perf_counter() - began, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def cosine_of_single(embedder: Embedder, texts: list[str]) -> float:
    """Return the minimum cosine between a text's vector in a batch and its vector in a batch of one."""
    apart = np.concatenate([embedder.embed_chunks([text]) for text in texts])
    return float(np.sum(embedder.embed_chunks(texts) * apart, axis=1).min())


HEAD = (
    "engine", "chunks/s", "÷ torch", "CPU a chunk", "one question", "cold start", "cosine to torch (least)",
    "to itself in a batch of one (least)",
)  # fmt: skip


def measure(embedders: dict[str, Embedder], flags: dict[str, Any], texts: list[str], rounds: int) -> dict[str, Any]:
    """Return each engine's figures."""
    work = {name: partial(timed, partial(embedder.embed_chunks, texts)) for name, embedder in embedders.items()}
    ask = {name: partial(timed, partial(embedder.embed_query, QUESTION)) for name, embedder in embedders.items()}
    for warm in work.values():
        warm()
    passes, asked = common.interleave(work, rounds), common.interleave(ask, 20 * rounds)
    starts = common.interleave({name: partial(cold_start, own) for name, own in flags.items()}, min(3, rounds))
    torch_vectors, torch_s = embedders[TORCH].embed_chunks(texts), [wall for wall, _ in passes[TORCH]]
    found = {}
    for name, embedder in embedders.items():
        wall, cpu = zip(*passes[name], strict=True)
        cosines = np.sum(embedder.embed_chunks(texts) * torch_vectors, axis=1)
        found[name] = {
            "chunks_per_s": len(texts) / statistics.median(wall),
            "to_torch": common.ratio(torch_s, wall),
            "cpu_ms": 1000 * statistics.median(cpu) / len(texts),
            "question_ms": 1000 * statistics.median(seconds for seconds, _ in asked[name]),
            "start_s": statistics.median(seconds for seconds, _ in starts[name]) if name in starts else None,
            "cosine_mean": float(cosines.mean()),
            "cosine_least": float(cosines.min()),
            "cosine_of_single": cosine_of_single(embedder, texts[:24]),
        }
    return found


def row(name: str, own: dict[str, Any]) -> list[str]:
    """Return an engine's row of the table."""
    speed = [f"{own['chunks_per_s']:.1f}", f"{own['to_torch']:.2f}", f"{own['cpu_ms']:.1f} ms"]
    start = f"{own['start_s']:.1f} s" if own["start_s"] else ""
    cosines = [f"{own['cosine_mean']:.5f} ({own['cosine_least']:.5f})", f"{own['cosine_of_single']:.7f}"]
    return [name, *speed, f"{own['question_ms']:.1f} ms", start, *cosines]


def main() -> None:
    args = common.parse(common.arguments(__doc__), "encoder")
    cache, threads = args.home / "models", count_cpus()
    count, rounds = (48, 1) if args.quick else (160, 5)
    texts = real_chunks(common.ray_docs(args.home, 153), count)
    flags = engine_flags(cache, threads)
    embedders: dict[str, Embedder] = {name: load_embedder(**own) for name, own in flags.items()}
    embedders["ONNX Runtime fp32, batches of 16"] = SharedBatches(cache, threads)
    figures = measure(embedders, flags, texts, rounds)
    table = as_table(HEAD, [row(name, own) for name, own in figures.items()])
    common.report(args, "encoder", table, figures, packages=["onnxruntime", "torch", "sentence-transformers"])


if __name__ == "__main__":
    main()
