"""Measures BM25 on 200,000 chunks of real text: tantivy in LexicalIndex and bm25s, in alternating rounds.

    python benchmarks/lexical.py [--chunks 200000] [--rounds 3]

Text: the Ray documentation (RAYDEX_DATA/ray-docs-html.tar.xz), roughly stripped and cut at 700 characters, repeated
with an added number until there are enough chunks. Questions: RAYDEX_DATA/embedding_qa.json. Requires `pip install
bm25s`.
"""

import argparse
import json
import os
import re
import resource
import statistics
import tarfile
import tempfile
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from html import unescape
from pathlib import Path

import bm25s

from pipelines.lexical import LexicalIndex, terms
from pipelines.records import Hit, Index, IndexSettings, digest
from pipelines.store.lexical_archives import Piece

DATA = Path(os.environ.get("RAYDEX_DATA", Path(__file__).parents[2] / "shared" / "data"))
UPSERTS, QUESTIONS, K = 200, 200, 50


def real_texts() -> Iterator[tuple[str, str, str]]:
    """Yield (url, title, text of about 700 characters)."""
    with tarfile.open(DATA / "ray-docs-html.tar.xz") as archive:
        for member in archive:
            file = archive.extractfile(member) if member.name.endswith(".html") else None
            if file is None or "_modules" in member.name:
                continue
            page = file.read().decode("utf-8", "replace")
            main = re.sub(r"<(script|style|nav|head)\b.*?</\1>|<[^>]*>", " ", page, flags=re.DOTALL)
            text = unescape(" ".join(main.split()))
            title = re.search(r"<title>(.*?)</title>", page, re.DOTALL)
            for start in range(0, len(text), 700):
                yield f"https://docs.ray.io/{member.name}", title[1].strip() if title else "", text[start : start + 700]


def chunks(most: int) -> list[Hit]:
    """Return `most` chunks. Each repetition of a text has a unique word."""
    texts = list(real_texts())
    return [
        Hit(digest(str(n)), url, (), title, (title,), f"{text} copy{n // len(texts)}", str(n), 0.0, "none")
        for n, (url, title, text) in ((n, texts[n % len(texts)]) for n in range(most))
    ]


class Chunks:
    """Replaces the store: a scan and one publish of changed chunks."""

    def __init__(self, hits: list[Hit]) -> None:
        self.hits, self.revision = hits, 1

    @contextmanager
    def scan_chunks(self, index: int) -> Iterator[tuple[int, Iterator[Hit]]]:
        yield self.revision, iter(self.hits)

    def lexical_pieces(self, index: int) -> AbstractContextManager[tuple[None, Iterator[Piece]]]:
        return nullcontext((None, iter(())))

    def changes_since(self, index: int, revision: int) -> tuple[int, list[tuple[str, Hit | None]]]:
        start = (self.revision * UPSERTS) % len(self.hits)
        return self.revision, [(hit.chunk_id, hit) for hit in self.hits[start : start + UPSERTS]]

    @property
    def index(self) -> Index:
        return Index(1, "bench", IndexSettings(), "live", self.revision)


def seconds(call: object, *arguments: object) -> float:
    started = time.perf_counter()
    call(*arguments)  # type: ignore[operator]
    return time.perf_counter() - started


def peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--chunks", type=int, default=200_000)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    questions = [row["question"] for row in json.loads((DATA / "embedding_qa.json").read_text())][::28][:QUESTIONS]
    store = Chunks(chunks(args.chunks))
    print(f"{len(store.hits):,} chunks, {len(questions)} questions, {K} hits each, peak {peak_mb():,.0f} MB before")

    with tempfile.TemporaryDirectory() as folder:
        lexical = LexicalIndex(Path(folder) / "1")
        cpu, build = time.process_time(), seconds(lexical.sync, store, store.index)
        print(f"tantivy build {build:6.1f} s ({time.process_time() - cpu:.1f} s CPU), peak {peak_mb():,.0f} MB")
        size = sum(path.stat().st_size for path in Path(folder).rglob("*") if path.is_file())
        print(
            f"tantivy folder {size / 1e6:,.0f} MB; opened by another {_reopen(Path(folder) / '1', store) * 1e3:.0f} ms"
        )

        started, cpu = time.perf_counter(), time.process_time()
        peer = bm25s.BM25()
        peer.index([terms(f"{h.title} {h.url} {h.text}") for h in store.hits], show_progress=False)
        build, cpu = time.perf_counter() - started, time.process_time() - cpu
        print(f"bm25s   build {build:6.1f} s ({cpu:.1f} s CPU), peak {peak_mb():,.0f} MB")

        def ask_peer(question: str) -> None:
            peer.retrieve([terms(question)], k=K, show_progress=False, n_threads=1)

        for number in range(args.rounds):
            ours = [seconds(lexical.search, question, K) for question in questions]
            theirs = [seconds(ask_peer, question) for question in questions]
            store.revision += 1
            sync = seconds(lexical.sync, store, store.index)
            print(
                f"round {number + 1}: tantivy {_spread(ours)}, bm25s {_spread(theirs)}, "
                f"ratio of medians {statistics.median(theirs) / statistics.median(ours):.2f}, "
                f"{UPSERTS} upserts {sync * 1e3:.0f} ms (bm25s: build again)"
            )


def _reopen(folder: Path, store: Chunks) -> float:
    return seconds(LexicalIndex(folder).sync, store, store.index)


def _spread(times: list[float]) -> str:
    return f"p50 {statistics.median(times) * 1e3:.2f} ms p95 {statistics.quantiles(times, n=20)[-1] * 1e3:.2f} ms"


if __name__ == "__main__":
    main()
