"""Orders the hits that the legs found by how well their texts fit the question.

Knows texts, scores and the words of a question; not how a leg searched. The weights were learned from questions to
several sites; ranking.yaml has them.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from pipelines.answering.hits import heading
from pipelines.answering.retrieval.legs import VECTOR
from pipelines.lexical import STOP_TERMS, terms
from pipelines.markdown.plain import plain_text
from pipelines.records import Hit
from pipelines.text.phrases import read_table

LEARNED, FUSED = "learned", "fused"
RANKINGS = (LEARNED, FUSED)
DEPTH = 50  # hits that are put in order: as many as the weights were fitted on
BEGINNING, SHORT = 30, 40  # terms
NOT_FOUND = 0.02  # cosine of a hit that the vectors did not find, below the last one that they found

Features = NDArray[np.float64]

_TABLE = read_table(__name__)
NAMES = tuple(_TABLE["weights"])
WEIGHTS = np.array([float(_TABLE["weights"][name]) for name in NAMES])
_PAGE_COST = float(_TABLE["page_cost"])


def rank(
    question: str,
    hits: Sequence[Hit],
    priors: Sequence[float],
    k: int,
    *,
    spread: bool = True,
    weights: Features = WEIGHTS,
) -> list[Hit]:
    """Return the `k` best hits, best first; their score "learned" is the log odds that one answers the question.

    `priors` are the hits' weights (1 changes nothing). With `spread` a further hit of a page comes later. `weights` are
    those of NAMES.
    """
    odds = features(question, hits) @ weights + np.log(priors)
    left, before, ranked = list(range(len(hits))), defaultdict[str, float](float), list[Hit]()
    while left and len(ranked) < k:
        best = max(left, key=lambda n: (odds[n] - before[hits[n].url], -n))
        left.remove(best)
        before[hits[best].url] += _PAGE_COST if spread else 0.0
        score, hit = round(float(odds[best]), 6), hits[best]
        ranked.append(
            replace(
                hit,
                score=score,
                score_kind=LEARNED,
                scores={**hit.scores, LEARNED: score},
            )
        )
    return ranked


def features(question: str, hits: Sequence[Hit]) -> Features:
    """Return what tells whether a hit answers: float64, (hits, NAMES).

    `fused` and `page` are the scores of the fusion, its own and those of its page together, as shares of the best;
    `cosine` is the distance to the best one; `words` and `beginning` are the shares of the question's words, weighted
    by their rarity among the hits, in all of it with its headings and in its first BEGINNING terms; `short` and `first`
    are 1 for a text of less than SHORT terms and for the first one of its page, else 0.
    """
    texts = [_terms(hit.text) for hit in hits]
    whole = [frozenset(text) | _headings(hit) for text, hit in zip(texts, hits, strict=True)]
    asked = frozenset(terms(question)) - STOP_TERMS or frozenset(terms(question))
    frequency = Counter(term for text in whole for term in text & asked)
    weights = {term: math.log(1 + (1 + len(hits)) / (1 + frequency[term])) for term in sorted(asked)}
    total = sum(weights.values()) or 1.0
    pages = defaultdict[str, float](float)
    for hit in hits:
        pages[hit.url] += hit.score
    best, best_page = max((hit.score for hit in hits), default=1.0), max(pages.values(), default=1.0)
    cosines = _cosines(hits)

    def share(text: frozenset[str]) -> float:
        return sum(weight for term, weight in weights.items() if term in text) / total

    rows = [
        (
            hit.score / best,
            cosine,
            share(said),
            share(frozenset(text[:BEGINNING])),
            pages[hit.url] / best_page,
            len(text) < SHORT,
            hit.ordinal == 0,
        )
        for hit, text, said, cosine in zip(hits, texts, whole, cosines, strict=True)
    ]
    return np.array(rows, np.float64).reshape(len(hits), len(NAMES))


def _cosines(hits: Sequence[Hit]) -> list[float]:
    """Return how far the cosine of each hit is below the best one, 0 without vectors."""
    known = [hit.scores[VECTOR] for hit in hits if VECTOR in hit.scores]
    if not known:
        return [0.0] * len(hits)
    missing = min(known) - NOT_FOUND
    return [hit.scores.get(VECTOR, missing) - max(known) for hit in hits]


@lru_cache(maxsize=8192)
def _terms(text: str) -> tuple[str, ...]:
    return tuple(terms(plain_text(text)))


def _headings(hit: Hit) -> frozenset[str]:
    return frozenset(_terms(f"{heading(hit)} {hit.title}"))
