"""Decides whether any hit could support an answer, and words the answer if none does.

This module uses the words and scores of hits, but no model. benchmarks/results/does-anything-answer.md has the
figures.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from pipelines.answering.grounding.words import content_words, words_of, words_share
from pipelines.answering.hits import full_text
from pipelines.answering.retrieval.evidence import Evidence
from pipelines.answering.retrieval.legs import VECTOR
from pipelines.records import Hit
from pipelines.text.languages import ENGLISH, LANGUAGES, join, say

UNKNOWN = say("unknown", ENGLISH)


@dataclass(frozen=True, slots=True)
class Threshold:
    """Lets hits pass by their share of the question's words and by their cosine.

    `nearly_all` of the words suffice, or `some` of them in a hit with a cosine of at least `close`; without vectors,
    `by_words`. Cosines differ between models: if all are high, the words decide.
    """

    close: float
    some: float
    by_words: float
    nearly_all: float = 0.8

    def passes(self, share: float, cosine: float | None) -> bool:
        """Return whether a share of the words, with a cosine if there are vectors, is enough."""
        if cosine is None:
            return share >= self.by_words
        return share >= self.nearly_all or (cosine >= self.close and share >= self.some)


# Lenient, as the model may still say that it does not know. With all-MiniLM-L6-v2, 82 of 83 users' questions pass, and
# 2 of 30 about other subjects; only by words, 83 and 20.
BEFORE_MODEL = Threshold(close=0.35, some=0.3, by_words=0.3)
# Strict, as quoted sentences can't say so; used for hits without evidence. Here rarer words count more.
BEFORE_QUOTING = Threshold(close=0.4, some=0.2, by_words=0.4)
# Logistic regression on the scaled cosine, the scaled BM25 score, the logarithm of the number of terms, and 1. Fitted
# on one half of 538 questions and keywords with their page, against questions about other subjects and to other sites,
# and against questions whose page was held out: benchmarks/results/does-anything-answer.md.
_BY_BOTH = (4.33, 1.74, 1.31, -8.68)
_BY_COSINE = (6.70, 0.0, -0.28, -4.50)
_BY_WORDS = (0.0, 2.68, 2.41, -8.08)
LIKELY = 0.2  # refuses 3.4% of 700 questions to twelve sites, and 6% of 83 users' questions
# At this likelihood and above, the closest passages are shown, below "I do not know" if the question is not CLOSE.
# Questions about cooking, sport and other products had 0.00 to 0.08 (32 of 36, on the Ray and the PostgreSQL
# documentation); wrongly refused questions had 0.04 to 0.25.
POSSIBLE = 0.04
# At this likelihood and above, a language model is asked, as it may still say that it does not know. All of 43 users'
# questions about Ray reach it, and 296 of 300 written ones. Of 20 questions about other subjects, none reaches it on
# the Ray documentation, and one each on PostgreSQL's and Python's (BEFORE_MODEL passes 43 and 297; of the others, 6, 3
# and 5).
ASKABLE = 0.13
# The best of fewer chunks scores lower, so the threshold falls by BY_SIZE (in log odds) for each factor of ten. Chosen
# on samples of a tenth to a thousandth of the same pages, where the share of wrong refusals stays the same or falls.
FITTED_TEXTS, BY_SIZE = 12_000, 1.2


# At this likelihood and above, results come without "I do not know", just as a model is asked; if a model does not
# know, the closest sections are named. 50 questions about other subjects, put to the 889 chunks of this documentation
# and to 1,758 of Ray's, are not LIKELY 92 times: 6 of these reach CLOSE (47 are POSSIBLE, 9 have 0.1). Of 37 users' and
# 50 written questions about these pages of Ray, and 104 about this documentation, 2 are not LIKELY: 0.198 and 0.096.
CLOSE = ASKABLE
CLOSEST = 3  # sections to name


def is_likely(evidence: Evidence) -> bool:
    """Return whether the index probably answers the question, so that a passage may be quoted as its answer."""
    return likelihood(evidence) >= LIKELY


def is_possible(evidence: Evidence) -> bool:
    """Return whether the closest passage is worth showing, though the index probably has no answer."""
    return likelihood(evidence) >= POSSIBLE


def likelihood(evidence: Evidence) -> float:
    """Return how likely the index answers the question, 0 to 1."""
    if evidence.words == 0:
        return 0.0  # the index has none of its words
    weights = _BY_WORDS if evidence.cosine is None else _BY_COSINE if evidence.words is None else _BY_BOTH
    features = (evidence.cosine or 0.0, evidence.words or 0.0, math.log1p(evidence.terms), 1.0)
    smaller = max(0.0, math.log10(FITTED_TEXTS / max(evidence.texts, 1)))
    odds = sum(weight * value for weight, value in zip(weights, features, strict=True)) + BY_SIZE * smaller
    return 1 / (1 + math.exp(-odds))


def is_askable(question: str, hits: Sequence[Hit], evidence: Evidence | None, *, again: bool = False) -> bool:
    """Return whether the index may answer the question, so that a language model should be asked.

    A question that continues a conversation (`again`) may lack the words that it refers to, so its hits count too.
    """
    if evidence is None:
        return is_answerable(question, hits)
    return bool(hits) and (likelihood(evidence) >= ASKABLE or (again and is_answerable(question, hits)))


def is_close(question: str, hits: Sequence[Hit], evidence: Evidence | None) -> bool:
    """Return whether the closest sections are worth naming if the question gets no answer."""
    return is_answerable(question, hits) if evidence is None else likelihood(evidence) >= CLOSE


def is_answerable(question: str, hits: Sequence[Hit]) -> bool:
    """Return whether some hit could support an answer, for hits without evidence from the index.

    A question in a non-Latin script needs no words in common if there are vectors.
    """
    words = content_words(question)
    share = max((words_share(words, words_of(full_text(hit))) for hit in hits), default=0.0) if words else 0.0
    cosines = [hit.scores[VECTOR] for hit in hits if VECTOR in hit.scores]
    if cosines and not (words and question.isascii()):
        share = max(share, BEFORE_MODEL.some)
    return bool(hits) and BEFORE_MODEL.passes(share, max(cosines, default=None))


def says_unknown(text: str) -> bool:
    """Return whether `text` begins with the prompts' sentence for "I do not know", in any language."""
    return _letters(text).startswith(_UNKNOWN)


def may_say_unknown(begin: str) -> bool:
    """Return whether a text with this beginning says so, or may still do so."""
    begun = _letters(begin)
    return begun.startswith(_UNKNOWN) or any(sentence.startswith(begun) for sentence in _UNKNOWN)


def _letters(text: str) -> str:
    return "".join(filter(str.isalnum, text.casefold()))


_UNKNOWN = tuple(_letters(say("unknown", language)) for language in LANGUAGES)


def unknown_answer(question: str, hits: Sequence[Hit], evidence: Evidence | None, language: str = ENGLISH) -> str:
    """Return the answer when nothing supports one: that it is unknown, and the closest sections that may help."""
    closest = [say("closest", language, numbers=numbers)] if (numbers := _closest(question, hits, evidence)) else []
    return join([say("unknown", language), *closest], language)


def _closest(question: str, hits: Sequence[Hit], evidence: Evidence | None) -> str:
    """Return the numbers of the first hits of the closest sections, or "" if none is close enough."""
    if not is_close(question, hits, evidence):
        return ""
    sections = dict.fromkeys(hit.source for hit in hits)
    sources = [hit.source for hit in hits]
    return " ".join(f"[{sources.index(source) + 1}]" for source in list(sections)[:CLOSEST])
