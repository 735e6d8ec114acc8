"""Ranks the passages of the hits as candidates for an extractive answer.

The scores use words, positions and the ranks of the hits. This module uses no model and writes no text.
"""

import itertools
import math
import re
from collections import Counter
from collections.abc import Sequence, Set
from dataclasses import dataclass, replace

from pipelines.answering.grounding.confidence import UNCERTAIN
from pipelines.answering.hits import heading, own_heading
from pipelines.answering.retrieval.legs import BM25, VECTOR
from pipelines.answering.retrieval.ranking.texts import LEARNED
from pipelines.answering.synthesis.likelihood import section_odds, support_of
from pipelines.answering.synthesis.passages import (
    Passage,
    count_sentences,
    is_aside,
    is_bare,
    leans,
    says_more,
    sentences,
    split_passages,
    whole_steps,
    widen,
)
from pipelines.answering.synthesis.quotes import UNSURE, Quote, is_named, write
from pipelines.answering.synthesis.results import MOST_RESULTS
from pipelines.answering.synthesis.shortening import OMITTED, bound
from pipelines.lexical import STOP_TERMS, terms
from pipelines.page.blocks import BlockKind
from pipelines.page.stored import plain_of
from pipelines.records import Hit
from pipelines.text.phrases import read_phrases

ABOUT = 0.5  # least share of a heading's words in a question about that section
BEYOND = 0.5  # least share of the question's words outside the headings that a certain quotation must have; by hand
LEAD_SENTENCES = 3  # a longer beginning without code is an introduction, not an answer
NEAR = 4  # the most words between two words of the question that belong together
ACTS = 1.2  # weight of a passage that does the requested action; by hand
SAME_SECTION = 0.95  # share of the best score that another passage of its section needs
MOST_PASSAGES = 3  # passages of a section, besides its beginning
REPEATED = 0.8  # share of a passage's words in another quote; guides and references share paragraphs
SHORT = 150  # words; a shorter section is quoted whole; by hand
# Weight of a hit's distance below the best one, by log odds or by place. On 217 questions to five sites
# (benchmarks/results/choice-of-passages.md), 0.7 and 1 do equally well.
RANKED, PLACE = 0.7, 1.1
# Penalty for words with digits above the usual share, unless the question wants a number: a page of measurements has
# all words of its subject. By hand.
USUAL_DIGITS, DIGITS = 0.05, 8.0

_OBJECT = re.compile(r"\w(?:[._]|::)\w")  # `ray.put`, `lru_cache`, `Vec::push`
_PHRASES = read_phrases(__name__)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A passage of hit n (from 0), with its terms in order, its distinct terms and its score.

    `found` is true for a passage of the found chunk, rather than of a neighboring one.
    """

    hit: int
    passage: Passage
    terms: tuple[str, ...]
    words: frozenset[str]
    found: bool
    score: float = 0.0
    cosine: float | None = None

    @classmethod
    def of(cls, n: int, text: str, passage: Passage) -> "Candidate":
        found = tuple(terms(passage.substance))
        return cls(n, passage, found, frozenset(found), passage.blocks[-1].plain[:50] in text)


class Candidates:
    """The passages of all hits, scored by the question's words, weighted by rarity, and by the hits' ranks."""

    def __init__(self, question: str, hits: Sequence[Hit]) -> None:
        self._question = question.lower()
        asked = [term for term in terms(question) if term not in STOP_TERMS]
        self._pairs = list(dict.fromkeys(itertools.pairwise(asked)))
        verb = _PHRASES["asks_how"].search(question)
        self._verbs = frozenset(terms(verb[1]) if verb else ()) - STOP_TERMS
        self._objects = frozenset(asked) - self._verbs
        self._compares = bool(_PHRASES["compares"].search(question))
        self._asks_what = bool(_PHRASES["asks_what"].match(question))
        self._asks_number = bool(_PHRASES["asks_number"].search(question))
        self._asks_history = bool(_PHRASES["asks_history"].search(question))
        self.hits = hits
        self._passages = [split_passages(hit.passage) for hit in hits]
        texts = [plain_of(hit) for hit in hits]
        self._all = [Candidate.of(n, texts[n], passage) for n, own in enumerate(self._passages) for passage in own]
        self._headings = [frozenset(terms(f"{heading(hit)} {hit.title}")) for hit in hits]
        self._own = [frozenset(terms(text)) for text in texts]
        self._odds = section_odds(hits)
        own = [one for one in self._all if one.found]
        frequency = Counter(term for one in own for term in one.words | self._headings[one.hit])
        self._weights = {term: math.log(1 + (1 + len(own)) / (1 + frequency[term])) for term in sorted(set(asked))}

    def words_of(self, n: int) -> frozenset[str]:
        """Return the terms of hit `n` and of its headings."""
        return self._own[n] | self._headings[n]

    def share(self, words: frozenset[str]) -> float:
        """Return the weighted share of the question's words that are in `words`, 0 to 1."""
        total = sum(self._weights.values())
        return sum(weight for term, weight in self._weights.items() if term in words) / total if total else 0.0

    def rank(self) -> list[Candidate]:
        """Return the passages with their scores, best first."""
        scored = [replace(one, score=self._score(one)) for one in self._all]
        return sorted(scored, key=lambda one: (-one.score, one.hit, one.passage.place))

    def rank_telling(self) -> list[Candidate]:
        """Return the ranking without passages that only announce others, unless all do."""
        ranking = self.rank()
        telling = [one for one in ranking if not is_bare(widen(self._passages[one.hit], one.passage.place))]
        return telling or ranking

    def _score(self, one: Candidate) -> float:
        """Return how well a passage fits, from its section, its words and its position.

        The weights come from a conditional logistic regression on the Ray documentation: on the passages of the
        sections behind 137 written questions, and on the passages most similar to the answers to 83 users' questions.
        Weights for features that are rare there (change lists, index entries, questions that name an object) are chosen
        by hand. The weights of a hit's cosine and of `found` come from 1,306 questions to eleven sites.
        """
        hit, passage, above = self.hits[one.hit], one.passage, self._headings[one.hit]
        covered = self._covered(hit)
        section = (
            1.65 * self.share(self._own[one.hit] | above)
            + 0.6 * covered
            + 5.0 * hit.scores.get(VECTOR, 0.0)
            + RANKED * self.below_best(one.hit)
            + 2.0 * self._named(hit)
            - 1.0 * (not self._asks_history and bool(_PHRASES["history"].search(f"{hit.title} {heading(hit)}")))
        )
        whole = list(sentences(passage.prose))
        first = whole[0] if whole else passage.plain.split("\n", 1)[0]
        words = (
            0.9 * self.share(one.words)
            + 1.1 * self.share(one.words | above)
            + 0.9 * self.share(one.words if first == passage.substance else frozenset(terms(first)))
            + 1.6 * (self.share(one.words) if self._compares else self._near(one.terms))
        )
        kind = 0.5 * (self._compares and bool(_PHRASES["contrast"].search(passage.prose))) + 0.4 * (
            self._asks_what and bool(_PHRASES["says_what"].match(first))
        )
        acts = ACTS * self._acts(one.terms, hit)
        place = (0.2 + 0.4 * covered) / (1 + passage.place) + 1.5 * one.found
        faults = (
            0.5 * (len(passage.plain.split()) < 12)
            + 0.6 * (not whole and not passage.has_code)
            + 0.25 * leans(passage)
            + 0.4 * is_aside(passage)
            + 1.5 * passage.plain.endswith("?")
            + DIGITS * (not self._asks_number) * max(0.0, _digits(passage) - USUAL_DIGITS)
        )
        return section + words + kind + acts + place - faults

    def below_best(self, n: int) -> float:
        """Return the distance of hit `n` below the best one: in log odds of the ranking, or by place without them."""
        best = max((hit.scores[LEARNED] for hit in self.hits if LEARNED in hit.scores), default=None)
        return PLACE * (1 / (1 + n) - 1) if best is None else self.hits[n].scores.get(LEARNED, best) - best

    def _near(self, found: Sequence[str]) -> float:
        """Return the share of the question's adjacent word pairs that are close together in `found`."""
        places: dict[str, list[int]] = {}
        for place, term in enumerate(found):
            places.setdefault(term, []).append(place)
        near = [
            any(0 < abs(one - other) <= NEAR for one in places.get(a, ()) for other in places.get(b, ()))
            for a, b in self._pairs
        ]
        return sum(near) / len(near) if near else 0.0

    def _acts(self, found: Sequence[str], hit: Hit) -> float:
        """Return how well a passage covers the action of a how-to question: verb and object, in text or heading."""
        above = frozenset(terms(own_heading(hit)))
        if self._verbs & above and self._objects & above:
            return 1.0
        objects = [place for place, term in enumerate(found) if term in self._objects]
        verbs = [place for place, term in enumerate(found) if term in self._verbs]
        if any(abs(one - other) <= NEAR for one in verbs for other in objects):
            return 1.0
        return 0.3 if verbs else 0.0

    def best_of(self, ranking: Sequence[Candidate]) -> Quote:
        """Return the best passages of the section that most likely answers."""
        likely = [replace(one, score=one.score + self._log_odds(one, ranking)) for one in ranking]
        ranking = sorted(likely, key=lambda one: -one.score)
        return self._settled(self._quote(ranking[0], ranking))

    def results_of(self, ranking: Sequence[Candidate], first: Set[int]) -> tuple[Quote, ...]:
        """Return the best passages of each section, ordered by hit, with the hits in `first` before the others.

        Repeated passages come only once.
        """
        best: dict[str, Candidate] = {}
        for one in sorted(ranking, key=lambda one: (one.hit not in first, one.hit, -one.score)):
            best.setdefault(self.hits[one.hit].source, one)
        quotes: list[Quote] = []
        for one in best.values():
            if len(quotes) < MOST_RESULTS and not any(_repeats(one.passage, quote.words) for quote in quotes):
                quote = self._quote(one, ranking)
                quotes.append(replace(quote, support=min(quote.support, UNCERTAIN)))
        return tuple(quotes)

    def _settled(self, best: Quote) -> Quote:
        """Return the best quote; it stays certain only if both legs rank its hit first and nothing is omitted."""
        first = all(self.hits[best.hit].ranks.get(leg) == 1 for leg in (VECTOR, BM25))
        certain = first and OMITTED not in write([best], self.hits)
        return best if certain else replace(best, support=min(best.support, UNCERTAIN))

    def _log_odds(self, one: Candidate, ranking: Sequence[Candidate]) -> float:
        """Return the log odds that a passage answers when quoted; its length and headings count too.

        Added to the score, this finds the page for 23 of 83 users' questions about Ray (21 without it), and for 167 of
        250 written ones either way.
        """
        quote = self._quote(one, ranking)
        support = min(max(quote.support, UNSURE if is_named([quote]) else 0.001), 0.999)
        return math.log(support / (1 - support))

    def _quote(self, one: Candidate, ranking: Sequence[Candidate] = ()) -> Quote:
        """Return a passage with others of its section that belong to it, fit almost as well, or begin the section."""
        section = self._passages[one.hit]
        core = {passage.place: passage for passage in whole_steps(section, one.passage.place)}
        passages = core | {passage.place: passage for passage in widen(section, one.passage.place)}
        for other in ranking:
            near = other.hit == one.hit and other.score >= SAME_SECTION * one.score
            if near and len(passages) < MOST_PASSAGES:
                passages[other.passage.place] = other.passage
        if self._begins_with_an_answer(one.hit):
            passages[0] = section[0]
        if sum(len(passage.plain.split()) for passage in section) <= SHORT:
            passages |= {passage.place: passage for passage in section if says_more(passage)}
        chosen = tuple(bound(passages[place], self._weights) for place in sorted(passages))
        whole, text = "\n".join(each.plain for each in chosen), "\n".join(each.substance for each in chosen)
        said = frozenset(terms(text))
        words = (said if whole == text else frozenset(terms(whole))) | self._headings[one.hit]
        length, asked = len(text.split()), self._weights.keys()
        support = support_of(said, length, self.hits[one.hit], asked, one.cosine, self._odds[one.hit])
        support = 0.0 if is_bare(chosen) else support
        doubtful = self._leaves_out_code(one.hit, chosen) or self._only_introduces(one.hit, chosen)
        if doubtful or not self._is_on_subject(one.hit, said):
            support = min(support, UNCERTAIN)
        headed = len(asked & self._headings[one.hit]) / len(asked) if len(asked) > 1 else 0.0
        return Quote(one.hit, chosen, one.score, support, words, headed, core=frozenset(core))

    def _is_on_subject(self, n: int, said: frozenset[str]) -> bool:
        """Return whether a quotation adds something to the headings of hit `n`, or its section is about the question.

        `said` are its terms. A section is not about the question if the parent headings contain the whole question and
        its own heading names something else (such as caveats), or if its own heading is mostly about something else. A
        heading that is itself a question may be long.
        """
        hit, asked = self.hits[n], self._weights.keys()
        own = frozenset(terms(own_heading(hit))) - STOP_TERMS
        above = frozenset(terms(" ".join({*hit.headings[:-1], hit.title} - {own_heading(hit)})))
        beyond = asked - own - above
        if beyond:
            return len(beyond & said) >= BEYOND * len(beyond)
        mostly = self._covered(hit) >= ABOUT or own_heading(hit).endswith("?")
        return mostly and not (asked <= above and own - asked)

    def _only_introduces(self, n: int, chosen: Sequence[Passage]) -> bool:
        """Return whether a quotation is prose that begins a page with more sections, or sends readers elsewhere.

        That answers "what is …", and hardly another question.
        """
        if self._asks_what or any(passage.attached for passage in chosen):
            return False
        own = self.hits[n]
        more = bool(own.below) or any(hit.url == own.url and hit.source != own.source for hit in self.hits)
        last = self._passages[n][-1]
        return (own_heading(own) == own.title and more) or is_aside(replace(last, blocks=last.blocks[-1:]))

    def _leaves_out_code(self, n: int, chosen: Sequence[Passage]) -> bool:
        """Return whether a quotation of hit `n` lacks its section's code, so that it only introduces the code."""
        return not self._asks_what and not _has_code(chosen) and _has_code(self._passages[n])

    def _begins_with_an_answer(self, hit: int) -> bool:
        """Return whether the section's heading is about the question, so that the section's beginning answers too."""
        first = self._passages[hit][0]
        telling = bool(first.attached) or count_sentences(first.prose) <= LEAD_SENTENCES
        return self._covered(self.hits[hit]) >= ABOUT and bool(first.prose) and telling and not is_aside(first)

    def _covered(self, hit: Hit) -> float:
        """Return the share of the words in the section's own heading, without its number, that are in the question."""
        last = {term for term in terms(own_heading(hit)) if term not in STOP_TERMS and any(map(str.isalpha, term))}
        return len(last & self._weights.keys()) / max(len(last), 1)

    def _named(self, hit: Hit) -> bool:
        """Return whether the question names the object that the section documents, such as `ray.put`."""
        name = own_heading(hit).split("(", 1)[0].strip().lower()
        return bool(_OBJECT.search(name)) and bool(re.search(rf"(?<![\w.]){re.escape(name)}(?!\w)", self._question))


def _digits(passage: Passage) -> float:
    """Return the share of a passage's words, outside code, that have a digit."""
    words = " ".join(block.plain for block in passage.blocks if block.kind is not BlockKind.CODE).split()
    return sum(any(map(str.isdigit, word)) for word in words) / max(len(words), 1)


def _repeats(passage: Passage, said: frozenset[str]) -> bool:
    words = frozenset(terms(passage.plain))
    return len(words & said) > REPEATED * len(words)


def _has_code(passages: Sequence[Passage]) -> bool:
    return any(passage.has_code for passage in passages)
