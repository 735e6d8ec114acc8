"""Answers from hits without a language model: quotes the passage that answers best.

Knows texts, words, ranks and vectors; no index, no model and no HTTP. docs/citations.md has the method and its figures.
"""

import asyncio
import itertools
import logging
import math
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from pipelines.answering.grounding.answerable import BEFORE_QUOTING, Threshold, content_terms, is_likely
from pipelines.answering.grounding.citations import SUPPORTED, Support
from pipelines.answering.hits import heading, snippet
from pipelines.answering.retrieval.evidence import Evidence
from pipelines.answering.retrieval.legs import VECTOR
from pipelines.answering.synthesis.passages import (
    Kind,
    Passage,
    TextBlock,
    count_sentences,
    is_aside,
    is_code,
    leans,
    sentences,
    split_passages,
    widen,
)
from pipelines.lexical import STOP_TERMS, terms
from pipelines.records import Hit

log = logging.getLogger(__name__)

Embed = Callable[[Sequence[str]], Awaitable[np.ndarray]]

COSINE = 1.5  # weight of a passage's cosine beside its words
FINALISTS = 5  # passages that are embedded, the others are out by their words
GIST_WORDS, GIST_CODE_WORDS = 40, 12  # of a passage that is embedded: its beginning says what it is about
LONGEST_SIGNATURE = 200  # characters: the types of every parameter answer nothing
MOST_CODE_LINES = 40  # longer code is cut: the source's own page has all of it
ABOUT = 0.5  # share of a heading's words that a question has which is about that section
LEAD_SENTENCES = 3  # longer beginnings without code introduce, they do not answer
NEAR = 4  # words between two words of the question that belong together
SECOND = 0.9  # share of the best score that a second section needs

_LETTER = re.compile(r"[^\W\d_]")  # what is without is the number of a section
_HISTORY = re.compile(r"what.?s new|release (?:notes|history|\d)|change ?log|version history", re.IGNORECASE)
_ASKS_HISTORY = re.compile(r"\b(?:new|changed?|release|version|since|deprecated|removed)\b|\d\.\d", re.IGNORECASE)
# What a question asks for shows in its words, and in those of a passage that answers it.
_COMPARES = re.compile(r"\b(?:differen\w+|vs\.?|versus|compared?|or)\b", re.IGNORECASE)
_CONTRAST = re.compile(r"\b(?:differ\w*|whereas|while|unlike|contrast|instead|in comparison|but)\b", re.IGNORECASE)
_ASKS_WHAT = re.compile(r"\s*what(?:'s| is| are)\b(?!.*differen)", re.IGNORECASE)
_SAYS_WHAT = re.compile(r"\W*(?:\S+\s+){1,6}?(?:is|are) (?:an? |the |essentially |one of )", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Quote:
    """Passages of hit n (from 0) that follow each other in its section.

    `score` ranks them, `support` is how well they answer the question (0 to 1), `words` are theirs and their headings'.
    """

    hit: int
    passages: tuple[Passage, ...]
    score: float
    support: float
    words: frozenset[str]


class ExtractiveSynthesizer:
    """Quotes the best passages of the hits, or none. `threshold` decides which hits fit where nothing else tells."""

    def __init__(self, *, threshold: Threshold = BEFORE_QUOTING) -> None:
        self._threshold = threshold

    async def choose(
        self, question: str, hits: Sequence[Hit], embed: Embed | None = None, evidence: Evidence | None = None
    ) -> tuple[Quote, ...]:
        """Return what to quote, best first: one section, a second one if it adds something.

        None if no hit fits, or if the `evidence` says that the index does not answer the question.
        """
        if evidence and not is_likely(evidence):
            return ()
        candidates = await asyncio.to_thread(_Candidates, question, hits)
        ranking = await asyncio.to_thread(self._rank, candidates, bool(evidence))
        return candidates.best_of(await _add_cosines(question, ranking, hits, embed)) if ranking else ()

    def _rank(self, candidates: "_Candidates", likely: bool) -> list["_Candidate"]:
        vectors = any(VECTOR in hit.scores for hit in candidates.hits)
        fits = likely or any(self._fits(candidates, hit, vectors) for hit in candidates.hits)
        return candidates.rank() if fits else []

    def _fits(self, question: "_Candidates", hit: Hit, vectors: bool) -> bool:
        share = question.share(frozenset(terms(f"{heading(hit)} {hit.title}\n{hit.text}")))
        return self._threshold.passes(share, hit.scores.get(VECTOR, 0.0) if vectors else None)


@dataclass(frozen=True, slots=True)
class _Candidate:
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
    def of(cls, n: int, hit: Hit, passage: Passage) -> "_Candidate":
        found = tuple(terms(passage.text))
        return cls(n, passage, found, frozenset(found), passage.blocks[-1].text[:50] in hit.text)


class _Candidates:
    """The passages of all hits, scored by the question's words, weighted by rarity in them, and by the hits' ranks."""

    def __init__(self, question: str, hits: Sequence[Hit]) -> None:
        asked = [term for term in terms(question) if term not in STOP_TERMS]
        self._pairs = list(dict.fromkeys(itertools.pairwise(asked)))
        self._compares = bool(_COMPARES.search(question))
        self._asks_what = bool(_ASKS_WHAT.match(question))
        self._asks_history = bool(_ASKS_HISTORY.search(question))
        self.hits = hits
        self._passages = [split_passages(hit.passage) for hit in hits]
        self._all = [_Candidate.of(n, hits[n], passage) for n, own in enumerate(self._passages) for passage in own]
        self._headings = [frozenset(terms(f"{heading(hit)} {hit.title}")) for hit in hits]
        self._own = [frozenset(terms(hit.text)) for hit in hits]
        own = [one for one in self._all if one.found]
        frequency = Counter(term for one in own for term in one.words | self._headings[one.hit])
        self._weights = {
            term: math.log(1 + (1 + len(own)) / (1 + frequency[term])) for term in sorted(content_terms(question))
        }

    def share(self, words: frozenset[str]) -> float:
        """Return the weighted share of the question's words that are in `words`, 0 to 1."""
        total = sum(self._weights.values())
        return sum(weight for term, weight in self._weights.items() if term in words) / total if total else 0.0

    def rank(self) -> list[_Candidate]:
        """Return the passages with their scores, best first."""
        scored = [replace(one, score=self._score(one)) for one in self._all]
        return sorted(scored, key=lambda one: (-one.score, one.hit, one.passage.place))

    def _score(self, one: _Candidate) -> float:
        """Return how well a passage fits: its section, then its words, then its place."""
        hit, passage, above = self.hits[one.hit], one.passage, self._headings[one.hit]
        covered = self._covered(hit)
        section = (
            1.65 * self.share(self._own[one.hit] | above)
            + 0.6 * covered
            + 0.7 * hit.scores.get(VECTOR, 0.0)
            + 0.8 / (1 + one.hit)
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

    def best_of(self, ranking: Sequence[_Candidate]) -> tuple[Quote, ...]:
        """Return the best passages widened, and those of a second section if they add something."""
        best = self._quote(ranking[0])
        for other in ranking[1:]:
            if other.hit != best.hit and other.score >= SECOND * best.score and self._adds(other, best):
                return best, self._quote(other)
        return (best,)

    def _quote(self, one: _Candidate) -> Quote:
        section = self._passages[one.hit]
        passages = tuple(widen(section, one.passage.place))
        if passages[0].place and self._begins_with_an_answer(one.hit):
            passages = (section[0], *passages)
        words = frozenset(terms("\n".join(passage.text for passage in passages))) | self._headings[one.hit]
        support = estimate_support(self.share(words), self._near(one.terms), one.cosine)
        return Quote(one.hit, passages, one.score, support, words)

    def _begins_with_an_answer(self, hit: int) -> bool:
        """Return whether the question is what the section is about, by its heading: then its beginning answers too."""
        first = self._passages[hit][0]
        telling = bool(first.attached) or count_sentences(first.prose) <= LEAD_SENTENCES
        return self._covered(self.hits[hit]) >= ABOUT and bool(first.prose) and telling and not is_aside(first)

    def _covered(self, hit: Hit) -> float:
        """Return the share of the words of the section's own heading that are the question's."""
        last = {term for term in content_terms(hit.headings[-1] if hit.headings else hit.title) if _LETTER.search(term)}
        return len(last & self._weights.keys()) / max(len(last), 1)

    def _adds(self, one: _Candidate, best: Quote) -> bool:
        """Return whether a passage has a word of the question that the best lacks, or code where that has none."""
        new = self.share(one.words - best.words) > 0.1
        code = _has_code([one.passage]) and not _has_code(best.passages)
        return (new or code) and len(one.words & best.words) < 0.6 * len(one.words)


def _has_code(passages: Sequence[Passage]) -> bool:
    return any(block.kind is Kind.CODE for passage in passages for block in passage.blocks)


# ---------------------------------------------------------------------------------------------- vectors


async def _add_cosines(
    question: str, ranking: Sequence[_Candidate], hits: Sequence[Hit], embed: Embed | None
) -> list[_Candidate]:
    """Return the best candidates, ranked with their cosines to the question; by words alone if the model fails."""
    best = list(ranking[:FINALISTS])
    if embed is None or len(best) < 2:
        return best
    try:
        vectors = await embed([question, *(gist(hits[one.hit], one.passage) for one in best)])
        cosines = np.nan_to_num(vectors[1:] @ vectors[0])
    except Exception as error:  # a failure of the embedding model costs the vectors, never the answer
        log.warning("choosing a passage by words alone: %s: %s", type(error).__name__, error)
        return best
    scored = [
        replace(one, score=one.score + COSINE * float(cosine), cosine=float(cosine))
        for one, cosine in zip(best, cosines, strict=True)
    ]
    return sorted(scored, key=lambda one: -one.score)


def gist(hit: Hit, passage: Passage) -> str:
    """Return what of a passage is embedded: its headings, its beginning and the first line of its code."""
    above = " > ".join(dict.fromkeys(hit.headings[-2:])) or hit.title
    prose = (passage.prose or passage.text).split()[:GIST_WORDS]
    code = passage.attached[0].text.split("\n", 1)[0].split()[:GIST_CODE_WORDS] if passage.attached else []
    return f"{above}\n{' '.join([*prose, *code])}".strip()


def estimate_support(share: float, near: float, cosine: float | None) -> float:
    """Return how well a passage answers a question, 0 to 1."""
    return share if cosine is None else (share + min(max(cosine, 0.0), 1.0)) / 2


# ---------------------------------------------------------------------------------------------- text


def in_order(quotes: Sequence[Quote], hits: Sequence[Hit]) -> tuple[tuple[Quote, ...], tuple[Hit, ...]]:
    """Return the quotes and the hits with those first that are quoted, so that numbers appear in order."""
    order = list(dict.fromkeys([*(quote.hit for quote in quotes), *range(len(hits))]))
    places = {hit: place for place, hit in enumerate(order)}
    return tuple(replace(quote, hit=places[quote.hit]) for quote in quotes), tuple(hits[n] for n in order)


def supports(quotes: Sequence[Quote]) -> dict[int, Support]:
    """Return how well each quoted source answers the question, by its number."""
    return {
        quote.hit + 1: Support(quote.support, quote.support >= SUPPORTED, quote.passages[0].text) for quote in quotes
    }


def write(quotes: Sequence[Quote], hits: Sequence[Hit]) -> str:
    """Return the answer: each quote under its heading, `[n]` after its last sentence."""
    return "\n\n".join(_write_quote(quote, hits[quote.hit]) for quote in quotes)


def _write_quote(quote: Quote, hit: Hit) -> str:
    written = [_write_passage(passage) for passage in quote.passages]
    prose = [
        (n, at)
        for n, passage in enumerate(quote.passages)
        for at, block in enumerate(passage.blocks)
        if block.kind is Kind.PROSE
    ]
    if prose:
        n, at = prose[-1]
        written[n][at] += f" [{quote.hit + 1}]"
    else:
        written.append([f"[{quote.hit + 1}]"])
    gaps = [n for n, (one, other) in enumerate(itertools.pairwise(quote.passages)) if other.place > one.place + 1]
    for n in gaps:
        written[n].append("…")
    return "\n\n".join([f"**{heading(hit)}**", *itertools.chain.from_iterable(written)])


def _write_passage(passage: Passage) -> list[str]:
    return [_write_block(block) for block in passage.blocks]


def _write_block(block: TextBlock) -> str:
    if block.kind in (Kind.CODE, Kind.TABLE):
        return fence(block.text)
    if block.kind is Kind.LABEL and (is_code(block.text) or "(" in block.text) and "`" not in block.text:
        return f"`{snippet(block.text, LONGEST_SIGNATURE)}`"
    return hide_numbers(block.text)


_NUMBERS = re.compile(r"(?<![\w`\])])\[\d[\d,; -]*\]")


def hide_numbers(prose: str) -> str:
    """Return prose with its own numbers in brackets, which are no citations, as code."""
    return _NUMBERS.sub(lambda found: f"`{found[0]}`", prose)


def fence(code: str) -> str:
    """Return code as a fenced block, cut if it is long."""
    lines = code.splitlines()
    kept = lines[:MOST_CODE_LINES] + (["…"] if len(lines) > MOST_CODE_LINES else [])
    mark = "`" * max(3, 1 + max((len(run) for run in re.findall(r"`+", code)), default=0))
    return "\n".join([mark, *kept, mark])
