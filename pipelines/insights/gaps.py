"""Finds gaps in the documentation: questions without a good answer, weighted by frequency.

Knows grouped rows of questions; knows no model and no database.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pipelines.answering.grounding.words import content_words, words_of, words_share
from pipelines.answering.retrieval.evidence import Yardstick
from pipelines.insights.figures import is_low, is_unknown
from pipelines.store import AskedQuestion

# How much an answer adds to the weight of its gap. Few readers rate answers, so a rating "incomplete" or "outdated"
# counts double; other thumbs down may be the assistant's fault. Low confidence counts least, because about a third of
# these answers are right (docs/quality.md).
LACKING, RATED_DOWN, UNKNOWN, DOUBTFUL = 2.0, 1.0, 1.0, 0.4
OF_DOCUMENTATION = {"incomplete", "outdated"}
# A question is probably off-topic if no hit has a cosine of NEAR, scaled by the model's yardstick, and none has more
# than SHARED of its words. This recognizes 7 of 12 off-topic questions, and wrongly 1 of 25 about gaps in the Ray
# documentation: it is better to show an off-topic question than to lose a gap.
NEAR, SHARED = 0.45, 0.4

# The counts of a gap, with their names in messages.
TROUBLES = {"unknown": "not known", "low": "of low confidence", "down": "rated down"}
# Unknown, low confidence, rated down.
Kind = Literal["missing", "thin", "disliked"]


@dataclass(frozen=True, slots=True)
class Trouble:
    """How badly some questions were answered.

    `kind` is the problem with the greatest weight.
    """

    weight: float
    kind: Kind

    @classmethod
    def of(cls, rows: Sequence[AskedQuestion]) -> "Trouble | None":
        """Weigh `rows`; None if every answer was good."""
        weights: defaultdict[Kind, float] = defaultdict(float)
        for row in rows:
            kind, weight = _weigh(row)
            weights[kind] += weight
        total = sum(weights.values())
        return cls(round(total, 2), max(weights, key=lambda kind: weights[kind])) if total else None


def _weigh(row: AskedQuestion) -> tuple[Kind, float]:
    """Return how much one answer adds. An answer rated up is good, unless it says that it does not know."""
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
    """Return whether a question is probably off-topic: the answer is unknown, and no hit was close."""
    scaled = yardstick.scale(max(row.cosines)) if yardstick and row.cosines else None
    words = content_words(row.question)
    shared = max((words_share(words, words_of(passage)) for passage in row.passages), default=0.0) if words else 0.0
    return is_unknown(row) and shared <= SHARED and (scaled is None or scaled < NEAR)


def nearest_source(rows: Sequence[AskedQuestion]) -> str:
    """Return the section most often found for `rows`, weighting the n-th hit by 1 / n; "" if none."""
    votes: defaultdict[str, float] = defaultdict(float)
    for row in rows:
        for place, source in enumerate(row.found, 1):
            votes[source] += 1 / place
    return max(votes, key=lambda source: votes[source], default="")


def describe_troubles(counts: Mapping[str, int]) -> str:
    """Describe how many answers to all questions were not good."""
    names = {"unknown": TROUBLES["unknown"], "low": TROUBLES["low"], "failed": "failed"}
    return ", ".join(f"{counts[kind]:,} {words}" for kind, words in names.items())


def describe_gap(gap: Mapping[str, Any], name: str = "") -> str:
    """Describe how often a gap was asked, and how its answers turned out."""
    troubles = ", ".join(f"{gap[kind]:,} {words}" for kind, words in TROUBLES.items() if gap[kind])
    return f"{name and f'{name}: '}asked {gap['count']:,}×: {troubles}"
