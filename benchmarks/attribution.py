"""Measures the cost of attribution: milliseconds per claim, and an answer's time with and without it.

    python benchmarks/attribution.py [--rounds N]

The answer has ten claims from Raydex's own documentation, in deltas of four characters. Its five passages are sections
of these pages. Both variants alternate, with all-MiniLM-L6-v2.
"""

import argparse
import asyncio
import re
import statistics
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from pipelines.answering.grounding.support import Passages
from pipelines.answering.sanitizing.stream import AnswerSanitizer
from pipelines.answering.synthesis.passages import sentences
from pipelines.answering.writing.attribution import Attributor
from pipelines.embedding.embedder import Embedder
from pipelines.embedding.load import load_embedder
from pipelines.records import Hit

DOCS = Path(__file__).parents[1] / "docs"
PAGES = ("answering", "citations", "crawling", "freshness", "indexing")
LONGEST, DELTA = 1500, 4  # characters of a passage and of a delta
CLAIMS = 10


def sections() -> list[Hit]:
    """Return one long section of each page."""
    hits = []
    for page in PAGES:
        text = (DOCS / f"{page}.md").read_text()
        body = max(re.split(r"^## ", text, flags=re.MULTILINE), key=len)[:LONGEST]
        hits.append(Hit(page, f"https://d.test/{page}", (), page, (page,), body, page, 0.0, "none"))
    return hits


def make_answer(hits: Sequence[Hit]) -> str:
    """Return claims from all passages in turn."""
    own = [[one for one in sentences(hit.text) if "|" not in one and not one.endswith(":")] for hit in hits]
    return " ".join([one for row in zip(*own, strict=False) for one in row][:CLAIMS])


async def answer(text: str, hits: Sequence[Hit], embedder: Embedder | None) -> tuple[float, float, Attributor | None]:
    """Stream an answer, and return its wall time, its CPU time and its attributor."""

    async def embed(texts: Sequence[str]) -> np.ndarray:
        return await asyncio.to_thread(embedder.embed_chunks, list(texts)) if embedder else np.zeros((0, 0))

    sanitizer = AnswerSanitizer(len(hits), [hit.url for hit in hits])
    attributor = Attributor(Passages(hits, embed), lambda _: None) if embedder else None
    began, processor = time.perf_counter(), time.process_time()
    for at in range(0, len(text), DELTA):
        delta = sanitizer.feed(text[at : at + DELTA])
        if attributor:
            await attributor.feed(delta)
    if attributor:
        await attributor.close()
    return time.perf_counter() - began, time.process_time() - processor, attributor


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    rounds = parser.parse_args().rounds
    hits, embedder = sections(), load_embedder("all-MiniLM-L6-v2")
    text = make_answer(hits)
    runs = [(asyncio.run(answer(text, hits, None)), asyncio.run(answer(text, hits, embedder))) for _ in range(rounds)]
    attributor = runs[-1][1][2]
    assert attributor
    claims = [one for one in attributor.checked if one.is_claim]
    print(f"{len(claims)} claims, {sum(bool(one.added) for one in claims)} attributed; medians of {rounds} rounds")
    for name, at in (("clock", 0), ("processor", 1)):
        plain = statistics.median(run[0][at] for run in runs) * 1000
        cited = statistics.median(run[1][at] for run in runs) * 1000
        each = (cited - plain) / len(claims)
        print(f"{name:9} without {plain:6.1f} ms, with {cited:7.1f} ms: {each:5.1f} ms a claim")


if __name__ == "__main__":
    main()
