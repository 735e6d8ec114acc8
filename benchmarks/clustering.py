"""Compares methods of clustering questions on wordings with known meanings, and times the chosen one.

    python benchmarks/clustering.py             # the table of benchmarks/results/question-clusters.md
    python benchmarks/clustering.py --time 10000

The wordings were written by hand: 104 questions about three documentations, each in two to five wordings, as sentences,
keywords and error messages. 10 of the questions are about subjects missing in the Ray documentation. The file also has
the hits of an index of each documentation, and whether quotations answered the questions. Each method uses its best
threshold.
"""

import argparse
import json
import resource
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from sklearn.cluster import HDBSCAN, AgglomerativeClustering
from sklearn.metrics import adjusted_rand_score

from pipelines.answering.retrieval.evidence import Yardstick
from pipelines.embedding import load_embedder
from pipelines.insights import clustering
from pipelines.insights.clustering import Wording, cluster, place, similarity

FILE = Path(__file__).parent / "questions" / "wordings.jsonl"
COSINES, SECTIONS, CHOSEN = (1.0, 0.0, 0.0), (0.5, 0.5, 0.0), (clustering.ANSWERED, clustering.UNANSWERED)
Labels = np.ndarray
Likeness = np.ndarray


def leaders(alike: Likeness, least: float) -> Labels:
    """Assign each question to the nearest cluster leader, or make it a new leader."""
    labels, first = np.zeros(len(alike), int), []
    for n in range(len(alike)):
        near = alike[n, first] if first else np.zeros(0)
        if len(near) and near.max() >= least:
            labels[n] = int(near.argmax())
        else:
            labels[n] = len(first)
            first.append(n)
    return labels


def linked(linkage: str) -> Callable[[Likeness, float], Labels]:
    def cluster_by(alike: Likeness, least: float) -> Labels:
        model = AgglomerativeClustering(None, metric="precomputed", linkage=linkage, distance_threshold=2 - least)
        return model.fit_predict(np.maximum(2 - alike, 0))

    return cluster_by


def by_density(alike: Likeness, _: float) -> Labels:
    labels = HDBSCAN(min_cluster_size=2, metric="precomputed", copy=True).fit_predict(np.maximum(2.0 - alike, 0))
    labels[labels < 0] = labels.max() + 1 + np.arange((labels < 0).sum())
    return labels


WAYS = {"average": linked("average"), "complete": linked("complete"), "leaders": leaders, "HDBSCAN": by_density}


def pairs(sets: list[tuple[Labels, Labels, np.ndarray]]) -> tuple[float, float, float]:
    """Return precision, recall and F1 of pairs of questions, over sets of (labels, meanings, counted questions)."""
    together = right = wanted = 0
    for labels, meanings, rows in sets:
        same, alike = np.equal.outer(labels, labels), np.equal.outer(meanings, meanings)
        np.fill_diagonal(same, False)
        np.fill_diagonal(alike, False)
        together, wanted = together + same[rows].sum(), wanted + alike[rows].sum()
        right += (same & alike)[rows].sum()
    precision, recall = right / max(together, 1), right / wanted
    return precision, recall, 2 * precision * recall / max(precision + recall, 1e-9)


def compare() -> None:
    embedder = load_embedder("all-MiniLM-L6-v2")
    yardstick = Yardstick.of(embedder)
    rows = [json.loads(line) for line in FILE.read_text().splitlines()]
    np.random.default_rng(0).shuffle(rows)
    sets = [[row for row in rows if row["documentation"] == name] for name in ("ray", "postgresql", "python")]
    meanings = [np.array([row["meaning"] for row in part]) for part in sets]
    unknown = [np.array([not row["known"] for row in part]) for part in sets]
    print("| compared by | way | threshold | precision | recall | F1 | adjusted Rand | F1, unanswered |")
    print("|---|---|---|---|---|---|---|---|")
    for name, weights in (
        ("cosine", (COSINES, COSINES)),
        ("and sections", (SECTIONS, SECTIONS)),
        ("and words", CHOSEN),
    ):
        clustering.ANSWERED, clustering.UNANSWERED = weights
        wordings = [[Wording(row["question"], row["found"], row["known"]) for row in part] for part in sets]
        points = [place(embedder.embed_chunks([w.text for w in part]), part, yardstick) for part in wordings]
        alike = [similarity(part, part) for part in points]
        for way, cluster_by in WAYS.items():
            found = []
            for least in np.arange(0.15, 0.75, 0.05) if way != "HDBSCAN" else [0.0]:
                labels = [cluster_by(part, least) for part in alike]
                every = pairs([(a, b, np.ones(len(b), bool)) for a, b in zip(labels, meanings, strict=True)])
                without = pairs(list(zip(labels, meanings, unknown, strict=True)))
                rand = adjusted_rand_score(meanings[0], labels[0])
                found.append((every[2], least, *every[:2], rand, without[2]))
            f1, least, precision, recall, rand, without_f1 = max(found)
            shown = f"{least:.2f}" if least else "–"
            figures = " | ".join(f"{value:.2f}" for value in (precision, recall, f1, rand, without_f1))
            print(f"| {name} | {way} | {shown} | {figures} |", flush=True)


def take_time(count: int) -> None:
    """Cluster `count` generated questions: the file's wordings with a number, so that no two are equal."""
    rows = [json.loads(line) for line in FILE.read_text().splitlines()]
    texts = [f"{rows[n % len(rows)]['question']} {n}" for n in range(count)]
    wordings = [Wording(text, rows[n % len(rows)]["found"]) for n, text in enumerate(texts)]
    embedder = load_embedder("all-MiniLM-L6-v2", device="cpu")
    started = time.perf_counter()
    vectors = np.vstack([embedder.embed_chunks(texts[at : at + 256]) for at in range(0, count, 256)])
    embedded = time.perf_counter()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    labels = cluster(place(vectors, wordings))
    more = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    took = time.perf_counter() - embedded
    print(f"{count:,} wordings: embedded in {embedded - started:.1f} s, clustered in {took:.1f} s")
    print(f"{labels.max() + 1:,} clusters, {more:,.0f} MB more memory at the peak")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--time", type=int, metavar="N", help="cluster N made questions instead")
    args = parser.parse_args()
    take_time(args.time) if args.time else compare()


if __name__ == "__main__":
    main()
