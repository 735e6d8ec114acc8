"""Clusters questions with the same meaning, by vectors, retrieved sections and words.

Knows vectors, sources and strings; knows no database and no model.
"""

import zlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pipelines.answering.retrieval.evidence import Yardstick
from pipelines.lexical import STOP_TERMS, terms

# Weights of the similarity of two questions: their cosine, the sections found for both, their common words. Sections
# found for a question without an answer are random, so they count less. Chosen on 404 wordings of 104 questions about
# three documentation sites (benchmarks/results/question-clusters.md): pairwise F1 is 0.56, and 0.59 for questions
# without an answer. Average linkage with only cosines reaches 0.38 and 0.34 at best.
ANSWERED, UNANSWERED, ALIKE = (0.3, 0.5, 0.2), (0.6, 0.2, 0.2), 0.25
SLOTS = 1024  # hash buckets for sections and words: in one of 5 questions, two of its 20 names collide
# Questions compared pairwise at a time: 4,000 take 64 MB and a second. More are processed in blocks.
BLOCK = 4_000
SLICE = 500  # points compared with all clusters at a time: 20 MB for 10,000 clusters


@dataclass(frozen=True, slots=True)
class Wording:
    """A question for comparison: its text, the sources of its hits, best first, and whether it was answered."""

    text: str
    found: Sequence[str] = ()
    known: bool = True


def place(vectors: np.ndarray, wordings: Sequence[Wording], yardstick: Yardstick | None = None) -> np.ndarray:
    """Return a point for each wording, float32 (wordings, dimension + SLOTS + 1), as input for `similarity`.

    `vectors` have length 1, (wordings, dimension). `yardstick` is their model's: the cosine of unrelated questions,
    which is high for some models, is shifted to 0. The last column subtracts it.
    """
    weights = np.array([ANSWERED if wording.known else UNANSWERED for wording in wordings], np.float32)
    by_cosine, by_sections, by_words = np.sqrt(weights.reshape(-1, 3)).T[:, :, None]
    level = min(max(yardstick.unrelated, 0.0), 0.9) if yardstick else 0.0
    sections = _hashed([_weigh_sections(wording.found) for wording in wordings])
    words = _hashed([dict.fromkeys({*terms(wording.text)} - STOP_TERMS, 1.0) for wording in wordings])
    hashed = by_sections * sections + by_words * words
    scaled, shift = by_cosine / np.sqrt(1 - level), np.sqrt(level)
    return np.hstack([scaled * vectors, hashed, scaled * shift], dtype=np.float32)


def similarity(points: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Return the similarity of questions, (points, others): about 0 for unrelated ones, 1 for equal ones."""
    return np.asarray(points[:, :-1] @ others[:, :-1].T - np.outer(points[:, -1], others[:, -1]))


def cluster(points: np.ndarray) -> np.ndarray:
    """Return the cluster number of each point, (points,), numbered in order of appearance.

    A point belongs to a cluster if its mean similarity to all its points is at least ALIKE. With more than BLOCK
    points, each block joins the clusters of earlier blocks, so the order matters a little.
    """
    labels = np.zeros(len(points), np.int64)
    sums, sizes = np.zeros((0, points.shape[1]), np.float32), np.zeros(0, np.int64)
    for start in range(0, len(points), BLOCK):
        block = points[start : start + BLOCK]
        own = _join(block, sums, sizes)
        rest = np.flatnonzero(own < 0)
        own[rest] = len(sums) + _link(block[rest])
        count = int(own.max(initial=len(sums) - 1)) + 1
        sums = np.vstack([sums, np.zeros((count - len(sums), points.shape[1]), np.float32)])
        np.add.at(sums, own, block)
        sizes = np.bincount(own, minlength=count) + np.pad(sizes, (0, count - len(sizes)))
        labels[start : start + BLOCK] = own
    return labels


def most_typical(points: np.ndarray, counts: Sequence[int]) -> int:
    """Return the index of the point most similar to all others, weighted by how often each was asked."""
    middle = np.asarray(counts, np.float32) @ points
    return int(np.argmax(similarity(points, middle[None])))


def _weigh_sections(sources: Sequence[str]) -> dict[str, float]:
    """Return the weights of the found sections and pages: 1 / n for the n-th hit."""
    weights: dict[str, float] = {}
    for place, source in enumerate(sources, 1):
        for name in (source, f"{source.partition('#')[0]} page"):
            weights[name] = weights.get(name, 0.0) + 1 / place
    return weights


def _hashed(weighed: Sequence[dict[str, float]]) -> np.ndarray:
    """Return the weighted names of each question as a vector of length 1, (questions, SLOTS); 0 if it has none.

    Names that few questions have count more, by the logarithm of their share.
    """
    vectors = np.zeros((len(weighed), SLOTS), np.float32)
    for vector, weights in zip(vectors, weighed, strict=True):
        for name, weight in weights.items():
            vector[zlib.crc32(name.encode()) % SLOTS] += weight
    questions = np.maximum(np.count_nonzero(vectors, axis=0), 1)
    vectors *= np.log1p(len(weighed) / questions).astype(np.float32)
    return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)


def _join(block: np.ndarray, sums: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Return the most similar cluster of each point, -1 if none is similar enough."""
    if not len(sums):
        return np.full(len(block), -1, np.int64)
    means = sums / sizes[:, None]
    return np.concatenate([_nearest(block[at : at + SLICE], means) for at in range(0, len(block), SLICE)])


def _nearest(points: np.ndarray, means: np.ndarray) -> np.ndarray:
    found = similarity(points, means)
    best = found.argmax(axis=1)
    return np.where(found[np.arange(len(points)), best] >= ALIKE, best, -1)


def _link(points: np.ndarray) -> np.ndarray:
    """Return the clusters of average linkage, numbered from 0 in order of appearance."""
    from scipy.cluster.hierarchy import fcluster, linkage
    from scipy.spatial.distance import squareform

    if len(points) < 2:
        return np.zeros(len(points), np.int64)
    distances = np.clip(1 - similarity(points, points), 0, None)
    np.fill_diagonal(distances, 0)
    found = fcluster(linkage(squareform(distances, checks=False), "average"), 1 - ALIKE, "distance")
    _, first, labels = np.unique(found, return_index=True, return_inverse=True)
    return np.asarray(np.argsort(np.argsort(first))[labels])
