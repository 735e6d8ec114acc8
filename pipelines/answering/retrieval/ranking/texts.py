"""Orders the hits of all legs by how well their texts fit the question.

This module uses texts, scores and the words of a question; it doesn't know how a leg searches. The weights were learned
from questions to several sites; texts.yaml has them.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from pipelines.answering.hits import Headed, heading
from pipelines.answering.retrieval.legs import VECTOR
from pipelines.lexical import STOP_TERMS, terms
from pipelines.records import Hit
from pipelines.text.phrases import read_table

LEARNED, FUSED = "learned", "fused"
RANKINGS = (LEARNED, FUSED)
BEGINNING, SHORT = 200, 250  # characters
NOT_FOUND = 0.02  # a text that the vector search missed gets the lowest found cosine minus this

Features = NDArray[np.float64]

_TABLE = read_table(__name__)
NAMES = tuple(_TABLE["weights"])
WEIGHTS = np.array([float(_TABLE["weights"][name]) for name in NAMES])
_PAGE_COST = float(_TABLE["page_cost"])


class Found(Headed, Protocol):
    """A text that legs found. `score` is the fusion's, `scores` come from the legs."""

    @property
    def ordinal(self) -> int: ...

    @property
    def text(self) -> str: ...

    @property
    def score(self) -> float: ...

    @property
    def scores(self) -> Mapping[str, float]: ...


FoundT = TypeVar("FoundT", bound=Found)


def rank(
    question: str,
    found: Sequence[FoundT],
    priors: Sequence[float],
    k: int,
    *,
    spread: bool = True,
    weights: Features = WEIGHTS,
) -> list[tuple[FoundT, float]]:
    """Return the `k` best texts, best first, each with the log odds that it answers the question.

    `priors` are their weights (1 is neutral). With `spread`, further texts of a page rank lower. `weights` are in the
    order of NAMES.
    """
    odds = features(question, found) @ weights + np.log(priors)
    numbers: dict[str, int] = {}
    pages = np.array([numbers.setdefault(one.url, len(numbers)) for one in found])
    left, cost, ranked = odds.copy(), np.zeros(len(found)), list[tuple[FoundT, float]]()
    for _ in range(min(k, len(found))):
        best = int(np.argmax(left - cost))
        ranked.append((found[best], round(float(odds[best]), 6)))
        left[best] = -np.inf
        cost[pages == pages[best]] += _PAGE_COST if spread else 0.0
    return ranked


def with_odds(hit: Hit, odds: float) -> Hit:
    """Return a hit with its log odds from `rank` as its score."""
    return replace(hit, score=odds, score_kind=LEARNED, scores={**hit.scores, LEARNED: odds})


def features(question: str, found: Sequence[Found]) -> Features:
    """Return the features that predict whether a text answers: float64, (texts, NAMES).

    `fused` and `page` are the text's fusion score and the total of its page, as shares of the best; `cosine` is the
    difference to the best one. `words` and `beginning` are the shares of the question's words, weighted by rarity among
    the texts: in all of the text with its headings, and in its first BEGINNING characters. `short` and `first` are 1
    for a text with less than SHORT characters and for the first one of its page, otherwise 0.
    """
    stems = _stems(question)
    texts = [one.text.lower() for one in found]
    names = [f"\n{heading(one)}\n{one.title}".lower() for one in found]
    named = [text + name for text, name in zip(texts, names, strict=True)]
    shape = len(stems), len(found)
    starts = np.array([[_find(text, stem) for text in named] for stem in stems], np.int64).reshape(shape).T
    ends = np.array([len(text) for text in texts], np.int64)[:, None]  # after its text come its headings
    said = np.ascontiguousarray(starts >= 0, np.float64)
    begun = said * (starts <= BEGINNING - np.array([len(stem) for stem in stems])) * (starts < ends)
    weights = np.log(1 + (1 + len(found)) / (1 + said.sum(axis=0)))
    weights /= weights.sum() or 1.0
    pages = defaultdict[str, float](float)
    for one in found:
        pages[one.url] += one.score
    best, best_page = max((one.score for one in found), default=1.0), max(pages.values(), default=1.0)
    columns = {
        "fused": [one.score / best for one in found],
        "cosine": _cosines(found),
        "words": said @ weights,
        "beginning": begun @ weights,
        "page": [pages[one.url] / best_page for one in found],
        "short": [len(text) < SHORT for text in texts],
        "first": [one.ordinal == 0 for one in found],
    }
    return np.array([columns[name] for name in NAMES], np.float64).T


def _cosines(found: Sequence[Found]) -> list[float]:
    """Return the difference of each text's cosine to the best one, 0 without vectors."""
    known = [one.scores[VECTOR] for one in found if VECTOR in one.scores]
    if not known:
        return [0.0] * len(found)
    missing, best = min(known) - NOT_FOUND, max(known)
    return [one.scores.get(VECTOR, missing) - best for one in found]


def _stems(question: str) -> list[str]:
    """Return the prefixes of words that count as the question's; a stemmer turns a final y into i."""
    asked = frozenset(terms(question))
    return sorted(term[:-1] if len(term) > 3 and term.endswith("i") else term for term in asked - STOP_TERMS or asked)


def _find(text: str, stem: str) -> int:
    """Return where a word of `text`, or a part of a name such as `read_csv`, first begins with `stem`; -1 if none."""
    at = text.find(stem)
    while at > 0 and text[at - 1].isascii() and text[at - 1].isalnum():
        at = text.find(stem, at + 1)
    return at
