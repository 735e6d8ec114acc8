"""Claim: on a CPU, ONNX Runtime embeds real chunks faster than torch, with equal vectors, and starts sooner.

Run: python benchmarks/embedding.py --archive ray-docs-html.tar.xz --cache FOLDER [--chunks 240 --rounds 5 --threads 2]
The engines take turns in every round, so that a busy machine slows all alike. Prints medians and ratios.
"""

import argparse
import statistics
import subprocess
import sys
import tarfile
import time
from itertools import islice
from pathlib import Path

import numpy as np

from pipelines.embedding.embedder import Embedder, load_embedder
from pipelines.embedding.tokens import load_tokenizer
from pipelines.indexing.chunking.chunker import Chunker
from pipelines.indexing.reading.read import read_page
from pipelines.records import Page

MODEL = "all-MiniLM-L6-v2"
ENGINES = ("torch", "onnx", "onnx-int8")
STEP = 25  # every 25th page of the archive, so that all its parts are among them
COLD = (
    "from pathlib import PosixPath; from pipelines.embedding.embedder import load_embedder as load; "
    "load(**{}).embed_query('warm')"
)


def real_chunks(archive: Path, count: int) -> list[str]:
    chunker = Chunker(load_tokenizer(MODEL))
    texts: list[str] = []
    with tarfile.open(archive) as tar:
        members = (m for m in tar if m.name.endswith(".html") and "_modules" not in m.name)
        for member in islice(members, 0, None, STEP):
            file = tar.extractfile(member)
            if file and len(texts) < count:
                page = read_page(Page(f"https://docs.ray.io/{member.name}", file.read()))
                texts += [chunk.embed_text for chunk in chunker(page)]
    return texts[:count]


def seconds(embedder: Embedder, texts: list[str]) -> float:
    began = time.perf_counter()
    embedder.embed_chunks(texts)
    return time.perf_counter() - began


def cold_start(values: dict[str, object]) -> float:
    """Return the seconds from starting Python to the first query's vector."""
    began = time.perf_counter()
    subprocess.run([sys.executable, "-W", "ignore", "-c", COLD.format(values)], check=True, stderr=subprocess.DEVNULL)
    return time.perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--archive", type=Path, required=True)
    parser.add_argument("--cache", type=Path, required=True)
    parser.add_argument("--chunks", type=int, default=240)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()

    texts = real_chunks(args.archive, args.chunks)
    values = {
        engine: {"model": MODEL, "device": "cpu", "backend": engine, "threads": args.threads, "cache": args.cache}
        for engine in ENGINES
    }
    embedders = {engine: load_embedder(**values[engine]) for engine in ENGINES}
    torch_vectors = embedders["torch"].embed_chunks(texts)
    passes: dict[str, list[float]] = {engine: [] for engine in ENGINES}
    queries: dict[str, list[float]] = {engine: [] for engine in ENGINES}
    for _ in range(args.rounds):
        for engine, embedder in embedders.items():
            passes[engine].append(seconds(embedder, texts))
            queries[engine] += [seconds(embedder, ["How do I scale a deployment?"]) for _ in range(10)]
    starts: dict[str, list[float]] = {engine: [] for engine in ENGINES}
    for _ in range(3):
        for engine in ENGINES:
            starts[engine].append(cold_start(values[engine]))

    print(f"{len(texts)} chunks, {args.threads} threads, {args.rounds} interleaved rounds, medians")
    print("engine      chunks/s  x torch  query ms  cold start s  cosine min / mean")
    for engine, embedder in embedders.items():
        ratios = [base / own for base, own in zip(passes["torch"], passes[engine], strict=True)]
        cosines = np.sum(embedder.embed_chunks(texts) * torch_vectors, axis=1)
        print(
            f"{engine:10} {len(texts) / statistics.median(passes[engine]):9.1f} {statistics.median(ratios):8.2f}"
            f" {statistics.median(queries[engine]) * 1e3:9.1f} {statistics.median(starts[engine]):13.2f}"
            f"  {cosines.min():.6f} / {cosines.mean():.6f}"
        )


if __name__ == "__main__":
    main()
