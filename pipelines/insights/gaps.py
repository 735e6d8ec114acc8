"""Finds what the documentation lacks: questions without a good answer, weighed by how often.

Knows rows of questions, grouped; no model and no database.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pipelines.answering.grounding.words import content_words, words_of, words_share
from pipelines.answering.retrieval.evidence import Yardstick
from pipelines.insights.figures import is_low, is_unknown
from pipelines.store import AskedQuestion

# What an answer adds to the weight of its gap. Of many readers few rate, so that one who calls an answer incomplete or
# outdated counts double; other thumbs down may be the assistant's fault. Low confidence counts least, as half of such
# answers are right (docs/insights.md).
LACKING, RATED_DOWN, UNKNOWN, DOUBTFUL = 2.0, 1.0, 1.0, 0.4
OF_DOCUMENTATION = {"incomplete", "outdated"}
# A question is probably about other things if no hit has a cosine of NEAR, as the model's yardstick scales it, and none
# more than SHARED of its words. Of 12 questions about other things 7 are, of 25 about things that the Ray documentation
# lacks one: such a question is better shown in vain than lost.
NEAR, SHARED = 0.45, 0.4

# What is counted of a gap, as it is told.
TROUBLES = {"unknown": "not known", "low": "of low confidence", "down": "rated down"}
# Not known, of low confidence, rated down.
Kind = Literal["missing", "thin", "disliked"]


@dataclass(frozen=True, slots=True)
class Trouble:
    """How badly some questions were answered.

    `kind` is the sort that weighs most.
    """

    weight: float
    kind: Kind

    @classmethod
    def of(cls, rows: Sequence[AskedQuestion]) -> "Trouble | None":
        """Weigh `rows`; None if every answer was well."""
        weights: defaultdict[Kind, float] = defaultdict(float)
        for row in rows:
            kind, weight = _weigh(row)
            weights[kind] += weight
        total = sum(weights.values())
        return cls(round(total, 2), max(weights, key=lambda kind: weights[kind])) if total else None


def _weigh(row: AskedQuestion) -> tuple[Kind, float]:
    """Return what one answer adds; one that a reader rated up is well, unless it is that nothing is known."""
    disliked = 0.0
    if row.downs > row.ups:
        disliked = LACKING if OF_DOCUMENTATION & set(row.reasons) else RATED_DOWN
    if is_unknown(row):
        return "missing", max(UNKNOWN, disliked)
    if disliked:
        return "disliked", disliked
    return "thin", DOUBTFUL if is_low(row) and row.ups <= row.downs else 0.0


def is_troubled(row: AskedQuestion) -> bool:
    """Return whether the answer adds to a gap."""
    return _weigh(row)[1] > 0


def is_elsewhere(row: AskedQuestion, yardstick: Yardstick | None) -> bool:
    """Return whether a question is probably about other things: nothing is known, and nothing near was found."""
    scaled = yardstick.scale(max(row.cosines)) if yardstick and row.cosines else None
    words = content_words(row.question)
    shared = max((words_share(words, words_of(passage)) for passage in row.passages), default=0.0) if words else 0.0
    return is_unknown(row) and shared <= SHARED and (scaled is None or scaled < NEAR)


def nearest_source(rows: Sequence[AskedQuestion]) -> str:
    """Return the section that the search found first for most of `rows`, a later hit counting less; "" if none."""
    votes: defaultdict[str, float] = defaultdict(float)
    for row in rows:
        for place, source in enumerate(row.found, 1):
            votes[source] += 1 / place
    return max(votes, key=lambda source: votes[source], default="")


def describe_gap(gap: Mapping[str, Any], name: str = "") -> str:
    """Return for a person how often a gap was asked, and what came of it."""
    troubles = ", ".join(f"{gap[kind]:,} {words}" for kind, words in TROUBLES.items() if gap[kind])
    return f"{name and f'{name}: '}asked {gap['count']:,}×: {troubles}"
