"""Estimates how likely a quotation answers a question.

The features are its words, its cosine, the ranks of its hit and the odds of its section. This module looks at one
quotation at a time.
"""

import math
from collections import defaultdict
from collections.abc import Sequence, Set

from pipelines.answering.hits import heading
from pipelines.answering.retrieval.legs import BM25, VECTOR
from pipelines.answering.retrieval.ranking.texts import LEARNED
from pipelines.lexical import terms
from pipelines.records import Hit

# Defaults for unknown features of a quoted passage: its cosine, the ranks of its hit, the odds of its section.
USUAL_COSINE, USUAL_RANKS, USUAL_ODDS = 0.57, (0.28, 0.27), 0.0
LONG = 60  # words; a quotation of this length is rarely too short to answer
# The log odds, on the ranking's scale, that no hit answers. With this constant, a section's share of all odds tells
# right quotations from wrong ones as well as without it (area under the curve 0.79), and 0.9 of the quotations with a
# share above 0.8 are right.
NOTHING = 4.0


def support_of(said: Set[str], length: int, hit: Hit, asked: Set[str], cosine: float | None, odds: float) -> float:
    """Return how likely a quotation from a hit answers a question with the terms `asked`, 0 to 1.

    `said` are the quotation's terms, and `length` is its number of words. The result is 0 if it has no word of the
    question. `cosine` is the quotation's, and `odds` are the log odds of its section against the other hits. The
    weights come from two logistic regressions: one without `odds`, on 199 graded answers, whose weights were multiplied
    by 0.4; and one on 547 questions with their sections and 74 graded answers. benchmarks/results/quotation-support.md
    has the figures.
    """
    shared, headed = (len(asked & words) / max(len(asked), 1) for words in (said, set(terms(heading(hit)))))
    if not shared:
        return 0.0
    vector, bm25 = (1 / (1 + hit.ranks[leg]) if leg in hit.ranks else 0.0 for leg in (VECTOR, BM25))
    if not hit.ranks:
        vector, bm25 = USUAL_RANKS
    words = 0.71 * shared + 0.32 * headed + 0.82 * min(length, LONG) / LONG
    ranks = 0.88 * vector + 0.43 * bm25 + 0.7 * odds
    return 1 / (1 + math.exp(2.37 - words - 2.22 * (USUAL_COSINE if cosine is None else cosine) - ranks))


def section_odds(hits: Sequence[Hit]) -> list[float]:
    """Return for each hit the log odds that its section answers, computed from the ranking's scores of all hits."""
    if not all(LEARNED in hit.scores for hit in hits):
        return [USUAL_ODDS] * len(hits)
    odds = defaultdict[str, float](float)
    for hit in hits:
        odds[hit.source] += math.exp(hit.scores[LEARNED])
    others = {own: math.exp(NOTHING) + sum(odds[one] for one in odds if one != own) for own in odds}
    return [math.log(odds[hit.source] / others[hit.source]) for hit in hits]
