"""Orders the hits of all legs by how well their texts fit the question.

This module uses texts, scores and the words of a question; it doesn't know how a leg searches. The weights were learned
from questions to several sites; texts.yaml has them.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from pipelines.answering.hits import heading
from pipelines.answering.retrieval.legs import VECTOR
from pipelines.lexical import STOP_TERMS, terms
from pipelines.records import Hit
from pipelines.text.phrases import read_table

LEARNED, FUSED = "learned", "fused"
RANKINGS = (LEARNED, FUSED)
BEGINNING, SHORT = 200, 250  # characters
NOT_FOUND = 0.02  # a hit that the vector search missed gets the lowest found cosine minus this

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

    `priors` are the hits' weights (1 is neutral). With `spread`, further hits of a page rank lower. `weights` are in
    the order of NAMES.
    """
    odds = features(question, hits) @ weights + np.log(priors)
    left, before, ranked = list(range(len(hits))), defaultdict[str, float](float), list[Hit]()
    while left and len(ranked) < k:
        best = max(left, key=lambda n: (odds[n] - before[hits[n].url], -n))
        left.remove(best)
        before[hits[best].url] += _PAGE_COST if spread else 0.0
        score, hit = round(float(odds[best]), 6), hits[best]
        ranked.append(replace(hit, score=score, score_kind=LEARNED, scores={**hit.scores, LEARNED: score}))
    return ranked


def features(question: str, hits: Sequence[Hit]) -> Features:
    """Return the features that predict whether a hit answers: float64, (hits, NAMES).

    `fused` and `page` are the hit's fusion score and the total of its page, as shares of the best; `cosine` is the
    difference to the best one. `words` and `beginning` are the shares of the question's words, weighted by rarity among
    the hits: in all of the text with its headings, and in its first BEGINNING characters. `short` and `first` are 1 for
    a text with less than SHORT characters and for the first one of its page, otherwise 0.
    """
    stems = _stems(question)
    texts = [hit.text.lower() for hit in hits]
    named = [f"{heading(hit)}\n{hit.title}\n".lower() for hit in hits]
    said = np.array([[_has(text, stem) for stem in stems] for text in map(str.__add__, named, texts)], np.float64)
    begun = np.array([[_has(text[:BEGINNING], stem) for stem in stems] for text in texts], np.float64)
    weights = np.log(1 + (1 + len(hits)) / (1 + said.sum(axis=0))) if hits else np.ones(len(stems))
    weights /= weights.sum() or 1.0
    pages = defaultdict[str, float](float)
    for hit in hits:
        pages[hit.url] += hit.score
    best, best_page = max((hit.score for hit in hits), default=1.0), max(pages.values(), default=1.0)
    columns = {
        "fused": [hit.score / best for hit in hits],
        "cosine": _cosines(hits),
        "words": said.reshape(len(hits), len(stems)) @ weights,
        "beginning": begun.reshape(len(hits), len(stems)) @ weights,
        "page": [pages[hit.url] / best_page for hit in hits],
        "short": [len(text) < SHORT for text in texts],
        "first": [hit.ordinal == 0 for hit in hits],
    }
    return np.array([columns[name] for name in NAMES], np.float64).T


def _cosines(hits: Sequence[Hit]) -> list[float]:
    """Return the difference of each hit's cosine to the best one, 0 without vectors."""
    known = [hit.scores[VECTOR] for hit in hits if VECTOR in hit.scores]
    if not known:
        return [0.0] * len(hits)
    missing = min(known) - NOT_FOUND
    return [hit.scores.get(VECTOR, missing) - max(known) for hit in hits]


def _stems(question: str) -> list[str]:
    """Return the prefixes of words that count as the question's; a stemmer turns a final y into i."""
    asked = frozenset(terms(question))
    return sorted(term[:-1] if len(term) > 3 and term.endswith("i") else term for term in asked - STOP_TERMS or asked)


def _has(text: str, stem: str) -> bool:
    """Return whether a word of `text`, or a part of a name such as `read_csv`, begins with `stem`."""
    at = text.find(stem)
    while at > 0 and text[at - 1].isascii() and text[at - 1].isalnum():
        at = text.find(stem, at + 1)
    return at >= 0
