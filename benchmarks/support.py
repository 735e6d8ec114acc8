"""Measures how well words and vectors separate supported claims from others, for the thresholds in support.py.

    python benchmarks/support.py [--pages FOLDER] [--model MODEL]

Claims: the sentences of the reference answers in RAYDEX_DATA/eval-dev.jsonl. Each is paired with the section labeled as
its source (supported), another section of the same page, and another question's section (not supported). Pages:
RAYDEX_DATA/ray-docs-html.tar.xz, or the folder of an unpacked `en/master`.
"""

import argparse
import json
import os
import random
import tarfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from sklearn.metrics import roc_auc_score

from pipelines.answering.grounding.support import best_window, combine
from pipelines.answering.grounding.words import content_words, words_of, words_share
from pipelines.answering.synthesis.passages import sentences
from pipelines.embedding.load import load_embedder
from pipelines.indexing.reading.read import read_page
from pipelines.page.flow import flat_blocks
from pipelines.records import Page

DATA = Path(os.environ.get("RAYDEX_DATA", Path(__file__).parents[2] / "shared" / "data"))
BASE = "https://docs.ray.io/en/master/"
LONGEST = 1500  # characters of a section: about a chunk


def bodies(urls: set[str], folder: Path | None) -> dict[str, bytes]:
    """Return the existing pages of `urls`."""
    names = {url.removeprefix(BASE): url for url in urls}
    if folder:
        return {url: (folder / name).read_bytes() for name, url in names.items() if (folder / name).is_file()}
    with tarfile.open(DATA / "ray-docs-html.tar.xz") as archive:
        members = ((names.get(m.name.removeprefix("en/master/")), m) for m in archive)
        return {url: file.read() for url, m in members if url and (file := archive.extractfile(m))}


def sections(url: str, body: bytes) -> dict[str, str]:
    """Return heading path and text of each section with text, by anchor."""
    texts = {
        s.anchor: "\n\n".join([" ".join(s.headings), *(b.text for b in flat_blocks(s.content))])
        for s in read_page(Page(url, body)).sections
    }
    return {anchor: text[:LONGEST] for anchor, text in texts.items() if len(text) > 100}


def pairs(folder: Path | None) -> list[tuple[str, str, str]]:
    """Return (claim, passage, kind) of each pair."""
    chance = random.Random(7)
    rows = [json.loads(line) for line in (DATA / "eval-dev.jsonl").read_text().splitlines()]
    found = bodies({row["source"].partition("#")[0] for row in rows}, folder)
    pages = {url: sections(url, body) for url, body in found.items()}
    known = [(r, u, a) for r in rows for u, _, a in [r["source"].partition("#")] if a in pages.get(u, {})]
    made = []
    for row, url, anchor in known:
        for claim in sentences(row["answer"]):
            if "context" in claim:
                continue
            made.append((claim, pages[url][anchor], "own"))
            if others := sorted(set(pages[url]) - {anchor}):
                made.append((claim, pages[url][chance.choice(others)], "page"))
            _, other, place = chance.choice([k for k in known if k[1] != url])
            made.append((claim, pages[other][place], "other"))
    return made


def report(name: str, values: np.ndarray, kinds: Sequence[str]) -> None:
    """Print the AUC against both kinds of negatives, and the threshold of the best balanced accuracy."""
    own = np.array([kind == "own" for kind in kinds])
    page = np.array([kind == "page" for kind in kinds])
    balanced = {t: ((values[own] >= t).mean() + (values[~own] < t).mean()) / 2 for t in np.arange(0.2, 0.9, 0.025)}
    best = max(balanced, key=lambda t: balanced[t])
    print(
        f"{name:10} AUC other page {roc_auc_score(own[~page], values[~page]):.3f}, "
        f"same page {roc_auc_score(own[own | page], values[own | page]):.3f}; threshold {best:.3f}: "
        f"balanced accuracy {balanced[best]:.3f}, own kept {(values[own] >= best).mean():.3f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pages", type=Path)
    parser.add_argument("--model", default="all-MiniLM-L6-docs-v1")
    args = parser.parse_args()
    made = pairs(args.pages)
    embedder = load_embedder(args.model)
    words = np.array([words_share(content_words(claim), words_of(passage)) for claim, passage, _ in made])
    windows = [best_window(claim, passage) for claim, passage, _ in made]
    claimed, borne = embedder.embed_chunks([claim for claim, _, _ in made]), embedder.embed_chunks(windows)
    cosines = np.einsum("nd,nd->n", claimed.astype(np.float32), borne.astype(np.float32))
    kinds = [kind for *_, kind in made]
    print({kind: kinds.count(kind) for kind in ("own", "page", "other")})
    for name, values in (
        ("words", words),
        ("vectors", cosines),
        ("both", np.array(list(map(combine, words, cosines)))),
    ):
        report(name, values, kinds)


if __name__ == "__main__":
    main()
