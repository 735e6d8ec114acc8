"""Candidates for an extractive answer: the passages of the hits, with their scores.

The scores are by words, places and the ranks of the hits. Knows no model and writes no text.
"""

import itertools
import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from pipelines.answering.hits import heading
from pipelines.answering.retrieval.legs import VECTOR
from pipelines.answering.synthesis.passages import (
    Kind,
    Passage,
    count_sentences,
    is_aside,
    leans,
    sentences,
    split_passages,
    widen,
)
from pipelines.answering.synthesis.quotes import Quote
from pipelines.lexical import STOP_TERMS, terms
from pipelines.records import Hit

ABOUT = 0.5  # share of a heading's words that a question has which is about that section
LEAD_SENTENCES = 3  # longer beginnings without code introduce, they do not answer
USUAL_COSINE = 0.62  # of a passage that is quoted
NEAR = 4  # words between two words of the question that belong together
SAME_SECTION = 0.95  # share of the best score that another passage of its section needs
MOST_PASSAGES = 3  # of a section, besides its beginning
REPEATED = 0.8  # share of a passage's words that another quote has: guides and references share paragraphs
SECOND = 0.9  # share of the best score that a second section needs

_OBJECT = re.compile(r"\w(?:[._]|::)\w")  # `ray.put`, `lru_cache`, `Vec::push`
_LETTER = re.compile(r"[^\W\d_]")  # what is without is the number of a section
_HISTORY = re.compile(r"what.?s new|release (?:notes|history|\d)|change ?log|version history", re.IGNORECASE)
_ASKS_HISTORY = re.compile(r"\b(?:new|changed?|release|version|since|deprecated|removed)\b|\d\.\d", re.IGNORECASE)
# What a question asks for shows in its words, and in those of a passage that answers it.
_COMPARES = re.compile(r"\b(?:differen\w+|vs\.?|versus|compared?|or)\b", re.IGNORECASE)
_CONTRAST = re.compile(r"\b(?:differ\w*|whereas|while|unlike|contrast|instead|in comparison|but)\b", re.IGNORECASE)
_ASKS_WHAT = re.compile(r"\s*what(?:'s| is| are)\b(?!.*differen)", re.IGNORECASE)
_SAYS_WHAT = re.compile(r"\W*(?:\S+\s+){1,6}?(?:is|are) (?:an? |the |essentially |one of )", re.IGNORECASE)


def estimate_support(share: float, near: float, cosine: float | None) -> float:
    """Return how likely a passage answers a question, by the share of its words, those near each other, and the cosine.

    Logistic regression: docs/citations.md has the labels and the figures.
    """
    fit = 4.6 * share + 1.7 * near + 3.2 * (USUAL_COSINE if cosine is None else cosine) - 6.3
    return 1 / (1 + math.exp(-fit))


@dataclass(frozen=True, slots=True)
class Candidate:
    """A passage of hit n (from 0), with its terms in order, its distinct terms and its score.

    `found` tells whether it is of the chunk that was found, not of one beside it.
    """

    hit: int
    passage: Passage
    terms: tuple[str, ...]
    words: frozenset[str]
    found: bool
    score: float = 0.0
    cosine: float | None = None

    @classmethod
    def of(cls, n: int, hit: Hit, passage: Passage) -> "Candidate":
        found = tuple(terms(passage.text))
        return cls(n, passage, found, frozenset(found), passage.blocks[-1].text[:50] in hit.text)


class Candidates:
    """The passages of all hits, scored by the question's words, weighted by rarity in them, and by the hits' ranks."""

    def __init__(self, question: str, hits: Sequence[Hit]) -> None:
        self._question = question.lower()
        asked = [term for term in terms(question) if term not in STOP_TERMS]
        self._pairs = list(dict.fromkeys(itertools.pairwise(asked)))
        self._compares = bool(_COMPARES.search(question))
        self._asks_what = bool(_ASKS_WHAT.match(question))
        self._asks_history = bool(_ASKS_HISTORY.search(question))
        self.hits = hits
        self._passages = [split_passages(hit.passage) for hit in hits]
        self._all = [Candidate.of(n, hits[n], passage) for n, own in enumerate(self._passages) for passage in own]
        self._headings = [frozenset(terms(f"{heading(hit)} {hit.title}")) for hit in hits]
        self._own = [frozenset(terms(hit.text)) for hit in hits]
        own = [one for one in self._all if one.found]
        frequency = Counter(term for one in own for term in one.words | self._headings[one.hit])
        self._weights = {term: math.log(1 + (1 + len(own)) / (1 + frequency[term])) for term in sorted(set(asked))}

    def share(self, words: frozenset[str]) -> float:
        """Return the weighted share of the question's words that are in `words`, 0 to 1."""
        total = sum(self._weights.values())
        return sum(weight for term, weight in self._weights.items() if term in words) / total if total else 0.0

    def rank(self) -> list[Candidate]:
        """Return the passages with their scores, best first."""
        scored = [replace(one, score=self._score(one)) for one in self._all]
        return sorted(scored, key=lambda one: (-one.score, one.hit, one.passage.place))

    def _score(self, one: Candidate) -> float:
        """Return how well a passage fits: its section, then its words, then its place.

        The weights are those of a conditional logistic regression: on the Ray documentation, the passages of the
        section that 137 written questions are about, and those most like the answers to 83 users' questions. The
        weights of what the documentation has little of (lists of changes, entries of an index, questions that name an
        object) are chosen by hand.
        """
        hit, passage, above = self.hits[one.hit], one.passage, self._headings[one.hit]
        covered = self._covered(hit)
        section = (
            1.65 * self.share(self._own[one.hit] | above)
            + 0.6 * covered
            + 0.7 * hit.scores.get(VECTOR, 0.0)
            + 0.8 / (1 + one.hit)
            + 2.0 * self._named(hit)
            - 1.0 * (not self._asks_history and bool(_HISTORY.search(f"{hit.title} {heading(hit)}")))
        )
        whole = list(sentences(passage.prose))
        first = whole[0] if whole else passage.text.split("\n", 1)[0]
        words = (
            0.9 * self.share(one.words)
            + 1.1 * self.share(one.words | above)
            + 0.9 * self.share(frozenset(terms(first)))
            + 1.6 * (self.share(one.words) if self._compares else self._near(one.terms))
        )
        kind = 0.5 * (self._compares and bool(_CONTRAST.search(passage.prose))) + 0.4 * (
            self._asks_what and bool(_SAYS_WHAT.match(first))
        )
        place = (0.2 + 0.4 * covered) / (1 + passage.place) + 0.3 * one.found
        faults = (
            0.5 * (len(passage.text.split()) < 12)
            + 0.6 * (not whole and not _has_code([passage]))
            + 0.25 * leans(passage)
            + 0.4 * is_aside(passage)
            + 1.5 * passage.text.endswith("?")
        )
        return section + words + kind + place - faults

    def _near(self, found: Sequence[str]) -> float:
        """Return the share of the question's neighbouring words that are near each other in `found`."""
        places: dict[str, list[int]] = {}
        for place, term in enumerate(found):
            places.setdefault(term, []).append(place)
        near = [
            any(0 < abs(one - other) <= NEAR for one in places.get(a, ()) for other in places.get(b, ()))
            for a, b in self._pairs
        ]
        return sum(near) / len(near) if near else 0.0

    def best_of(self, ranking: Sequence[Candidate]) -> tuple[Quote, ...]:
        """Return the best passages of the best section, and those of a second section if they add something."""
        best = self._quote(ranking[0], ranking)
        for other in ranking[1:]:
            if other.hit != best.hit and other.score >= SECOND * best.score and self._adds(other, best):
                return best, self._quote(other, said=best.words)
        return (best,)

    def _quote(self, one: Candidate, ranking: Sequence[Candidate] = (), said: frozenset[str] = frozenset()) -> Quote:
        """Return a passage with those of its section that belong to it, fit nearly as well, or begin the section.

        Those beside it that repeat what another quote has `said` are left out.
        """
        section = self._passages[one.hit]
        passages = {passage.place: passage for passage in widen(section, one.passage.place)}
        for other in ranking:
            near = other.hit == one.hit and other.score >= SAME_SECTION * one.score
            if near and len(passages) < MOST_PASSAGES:
                passages[other.passage.place] = other.passage
        if self._begins_with_an_answer(one.hit):
            passages[0] = section[0]
        chosen = tuple(
            passages[place]
            for place in sorted(passages)
            if place == one.passage.place or not _repeats(passages[place], said)
        )
        words = frozenset(terms("\n".join(passage.text for passage in chosen))) | self._headings[one.hit]
        support = estimate_support(self.share(words), self._near(one.terms), one.cosine)
        return Quote(one.hit, chosen, one.score, support, words)

    def _begins_with_an_answer(self, hit: int) -> bool:
        """Return whether the question is what the section is about, by its heading: then its beginning answers too."""
        first = self._passages[hit][0]
        telling = bool(first.attached) or count_sentences(first.prose) <= LEAD_SENTENCES
        return self._covered(self.hits[hit]) >= ABOUT and bool(first.prose) and telling and not is_aside(first)

    def _covered(self, hit: Hit) -> float:
        """Return the share of the words of the section's own heading that are the question's."""
        last = {term for term in terms(_last_heading(hit)) if term not in STOP_TERMS and _LETTER.search(term)}
        return len(last & self._weights.keys()) / max(len(last), 1)

    def _named(self, hit: Hit) -> bool:
        """Return whether the question names the object that the section documents, such as `ray.put`."""
        name = _last_heading(hit).split("(", 1)[0].strip().lower()
        return bool(_OBJECT.search(name)) and bool(re.search(rf"(?<![\w.]){re.escape(name)}(?!\w)", self._question))

    def _adds(self, one: Candidate, best: Quote) -> bool:
        """Return whether a passage has a word of the question that the best lacks, or code where that has none."""
        new = self.share(one.words - best.words) > 0.1
        code = _has_code([one.passage]) and not _has_code(best.passages)
        return (new or code) and len(one.words & best.words) < 0.6 * len(one.words)


def _last_heading(hit: Hit) -> str:
    return hit.headings[-1] if hit.headings else hit.title


def _repeats(passage: Passage, said: frozenset[str]) -> bool:
    words = frozenset(terms(passage.text))
    return len(words & said) > REPEATED * len(words)


def _has_code(passages: Sequence[Passage]) -> bool:
    return any(block.kind is Kind.CODE for passage in passages for block in passage.blocks)
