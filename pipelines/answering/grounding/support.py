"""Measures how well passages support a claim: by words, by vectors, and by exact lookup.

This module works with texts, words and vectors. It knows nothing about answers, prompts or HTTP. docs/citations.md
describes the method, benchmarks/results/claim-checks.md has its figures.
"""

import asyncio
import itertools
import logging
import re
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from pipelines.answering.grounding.denial import Said, denied_by, is_said, sentences_of, weaker_than
from pipelines.answering.grounding.exact import CAPITAL_NOUNS, Exact, Token, found_nowhere, tokens_of, without_names
from pipelines.answering.grounding.words import content_words, words_of, words_share
from pipelines.answering.hits import full_text
from pipelines.page.stored import plain_text, readable_text
from pipelines.records import DENIED, NOWHERE, Hit, Reason
from pipelines.text.detection import find_language, is_foreign
from pipelines.text.languages import ENGLISH

log = logging.getLogger(__name__)

Embed = Callable[[Sequence[str]], Awaitable[np.ndarray]]

# From benchmarks/support.py on 548 pairs. By words, 0.475 is best (balanced accuracy 0.82), and 0.5 keeps 0.76 of the
# supported claims and rejects 0.88 of the others; by words and vectors, 0.45 is best (0.815).
SUPPORTED, SUPPORTED_BY_WORDS = 0.5, 0.5
# Chosen on 76 claims (benchmarks/claims.py). The share of words in the best passage is below CLEAR for 1 of 47 true
# claims, and for 12 of 29 false ones. A paraphrase passes by a vector that is NEAR instead.
CLEAR, NEAR = 0.545, 0.62
MANY_PROSE = 4  # with at least this many words outside names, a claim must be CLEAR by these words too
TOGETHER = 0.9  # share of a claim's words that its passages must contain together to support it
# Two passages support a claim with at least MANY_WORDS if each adds ADDED_WORDS; almost any two contain the words of a
# shorter claim. Of three pairs that add fewer, on answers of a small model, one was right. With 0.8 of the words
# instead of TOGETHER, 3 more of 61 false claims pass.
MANY_WORDS, ADDED_WORDS = 8, 2

LEAST_NAMES = 3  # a claim in another language is compared by the words it shares with the passages, if at least these

SAMPLE = 500  # characters of a passage used to detect its language
# The words of a window, about two sentences, and the step to the next window.
WINDOW, STEP = 60, 30
CANDIDATES = 3  # passages whose vectors are compared with a claim: the ones with the most of its words
# The longest wait for the vectors of a claim, a quotation or a known question: many times longer than a model needs for
# a few sentences. After that, words decide.
WAIT_S = 5.0


@dataclass(frozen=True, slots=True)
class Support:
    """How well a passage supports a claim or answers a question (0 to 1), whether that is enough, and its best part."""

    score: float
    enough: bool
    window: str


async def embed_in_time(embed: Embed, texts: Sequence[str]) -> np.ndarray:
    """Return the vectors of a few texts. Raises TimeoutError after WAIT_S, and the errors of `embed`."""
    return await asyncio.wait_for(embed(texts), WAIT_S)


def combine(share: float, cosine: float) -> float:
    """Return the support by words and vectors, 0 to 1: their mean, with negative cosines as 0."""
    return (share + min(max(cosine, 0.0), 1.0)) / 2


def best_window(claim: str, passage: str) -> str:
    """Return the first part of a passage, about two sentences, that shares the most words with `claim`."""
    return _best(content_words(claim), _windows(passage))


@dataclass(frozen=True, slots=True)
class _Passage:
    """A passage with its words and its headings', its windows with their words, and the data for exact lookup."""

    text: str
    words: frozenset[str]
    windows: Sequence[tuple[str, frozenset[str]]]
    exact: Exact
    said: Sequence[Said]

    @classmethod
    def of(cls, hit: Hit, language: str) -> "_Passage":
        text, readable = full_text(hit), readable_text(hit.passage)
        return cls(text, words_of(text), _windows(readable), Exact.of(text), sentences_of(readable, language))


class Passages:
    """The passages of an answer's hits, found for `question`; `[n]` is `hits[n - 1]`.

    `embed` returns rows of length 1 for texts. Without it, or once it fails or takes longer than WAIT_S, only words
    decide.
    """

    def __init__(self, hits: Sequence[Hit], embed: Embed | None = None, question: str = "") -> None:
        self.hits, self._embed, self._question = hits, embed, Exact.of(question)
        self._asked_in_english = not is_foreign(question)
        self._vectors: dict[str, np.ndarray] = {}
        self._looked_up: dict[tuple[str, str | None], Sequence[Token]] = {}

    async def analyse(self) -> None:
        """Analyse the passages in a thread, because many long ones take a tenth of a second."""
        if "_passages" not in self.__dict__:
            await asyncio.to_thread(lambda: self._passages)

    @cached_property
    def _passages(self) -> list[_Passage]:
        return [_Passage.of(hit, self._language) for hit in self.hits]

    @cached_property
    def _language(self) -> str:
        """The language of the passages, or English if it is uncertain."""
        return find_language(" ".join(hit.text[:SAMPLE] for hit in self.hits)) or ENGLISH

    @cached_property
    def _words(self) -> frozenset[str]:
        return frozenset[str]().union(*(passage.words for passage in self._passages))

    @cached_property
    def _are_foreign(self) -> bool:
        return any(is_foreign(plain_text(hit.passage)) for hit in self.hits)

    def refute(self, claim: str, code: str | None = None) -> Reason | None:
        """Return why `claim` can't hold: no passage has one of its names or numbers, or a passage says the opposite.

        `code` has the lines of a claim that is a code block. Proper names are not looked up in another language, which
        may have other words for them.
        """
        if not self.hits:
            return None
        foreign = is_foreign(claim) and not self._are_foreign
        tokens = self._tokens(claim, code)
        nowhere = found_nowhere(tokens, [passage.exact for passage in self._passages], self._question)
        if nowhere:
            return Reason(NOWHERE, nowhere[0].text)
        said = [one for passage in self._passages for one in passage.said] if code is None and not foreign else []
        denied = denied_by(claim, said, self._language) or weaker_than(claim, said, self._language)
        return Reason(DENIED, denied) if denied else None

    def has_said(self, claim: str) -> bool:
        """Return whether one sentence of a passage has nearly all words of a claim, and the same negation."""
        return is_said(claim, [one for passage in self._passages for one in passage.said], self._language)

    async def check(self, claim: str, numbers: Collection[int], code: str | None = None) -> dict[int, Support]:
        """Return how well each of the passages `numbers` supports `claim`; `code` is as in `refute`.

        A passage that does not support it by itself still does together with the others if it adds words to theirs.
        """
        claimed, tokens = self._comparable_words(claim), self._tokens(claim, code)
        supports = await self._measure(claim, claimed, tokens, numbers)
        together = self._together(claimed, numbers) if self._have(tokens, numbers) else ()
        return {n: Support(s.score, s.enough or n in together, s.window) for n, s in supports.items()}

    async def find(
        self, claim: str, without: Collection[int] = (), prefer: Collection[int] = (), code: str | None = None
    ) -> dict[int, Support]:
        """Return the passage that supports `claim` best, or two that only do so together; {} if there are none.

        Of equally good passages, the first one wins; but a passage in `prefer` wins if it supports the claim at all.
        Passages in `without` are skipped; `code` is as in `refute`.
        """
        claimed, tokens = self._comparable_words(claim), self._tokens(claim, code)
        shares = {n: self._share(claimed, n) for n in range(1, len(self.hits) + 1) if n not in without}
        nearest = sorted((n for n, share in shares.items() if share), key=lambda n: (n not in prefer, -shares[n], n))
        supports = await self._measure(claim, claimed, tokens, nearest[:CANDIDATES])
        for n in nearest[:CANDIDATES]:
            if n in prefer and supports[n].enough:
                return {n: supports[n]}
        enough = {n: support for n, support in supports.items() if support.enough}
        if enough:
            best = min(enough, key=lambda n: (-round(enough[n].score, 2), n))
            return {best: enough[best]}
        both = self._find_pair(claimed, tokens, sorted(supports))
        return {n: Support(supports[n].score, True, supports[n].window) for n in both}

    def closest(self, most: int) -> dict[int, Support]:
        """Return the first passages without support, for an answer without a source."""
        return {n: Support(0.0, False, readable_text(hit.passage)) for n, hit in enumerate(self.hits[:most], 1)}

    def _comparable_words(self, claim: str) -> frozenset[str]:
        """Return the words of a claim; for one in another language than the passages, the shared words (names)."""
        words = content_words(claim)
        if not is_foreign(claim) or self._are_foreign:
            return words
        names = words & self._words
        return names if len(names) >= LEAST_NAMES else words

    def _tokens(self, claim: str, code: str | None) -> Sequence[Token]:
        """Return the tokens of a claim to look up; capitalized words only in the language of the passages."""
        if (claim, code) not in self._looked_up:
            names = self._asked_in_english and not is_foreign(claim) and find_language(claim) not in CAPITAL_NOUNS
            self._looked_up = {(claim, code): tokens_of(claim, code=code, names=names)}
        return self._looked_up[claim, code]

    def _have(self, tokens: Sequence[Token], numbers: Collection[int]) -> bool:
        """Return whether the passages `numbers` together have all of `tokens`."""
        return not found_nowhere(tokens, [self._passages[n - 1].exact for n in numbers], self._question)

    async def _measure(
        self, claim: str, claimed: frozenset[str], tokens: Sequence[Token], numbers: Collection[int]
    ) -> dict[int, Support]:
        windows = {n: _best(claimed, self._passages[n - 1].windows) for n in numbers}
        prose = (
            content_words(without_names(claim)) & claimed
        )  # names are looked up separately, and say nothing about the rest
        said = prose if len(prose) >= MANY_PROSE else claimed
        cosines = await self._cosines(claim, windows)
        supports = {}
        for n, window in windows.items():
            share = self._share(claimed, n)
            score = combine(share, cosines[n]) if cosines else share
            least = min(share, self._share(said, n))
            clear = least >= CLEAR or cosines[n] >= NEAR if cosines else least >= SUPPORTED_BY_WORDS
            supports[n] = Support(score, score >= SUPPORTED and clear and self._have(tokens, [n]), window)
        return supports

    def _share(self, claimed: frozenset[str], n: int) -> float:
        return words_share(claimed, self._passages[n - 1].words)

    def _find_pair(self, claimed: frozenset[str], tokens: Sequence[Token], numbers: Sequence[int]) -> tuple[int, ...]:
        """Return the first two of `numbers` that support a claim together by words, each adding some."""
        for pair in itertools.combinations(numbers, 2) if len(claimed) >= MANY_WORDS else ():
            one, other = (claimed & self._passages[n - 1].words for n in pair)
            if min(len(one - other), len(other - one)) < ADDED_WORDS or not self._together(claimed, pair):
                continue
            if self._have(tokens, pair):
                return pair
        return ()

    def _together(self, claimed: frozenset[str], numbers: Collection[int]) -> frozenset[int]:
        """Return the `numbers` that support a claim by words together with the others, and add words to them."""
        own = {n: claimed & self._passages[n - 1].words for n in sorted(numbers)}
        if len(own) < 2 or len(frozenset().union(*own.values())) < TOGETHER * len(claimed):
            return frozenset()
        others = {n: frozenset().union(*(own[m] for m in own if m != n)) for n in own}
        return frozenset(n for n in own if own[n] - others[n])

    async def _cosines(self, claim: str, windows: Mapping[int, str]) -> dict[int, float]:
        """Return the cosine of the claim with each window, embedded in one call; {} without vectors."""
        if self._embed is None or not windows:
            return {}
        new = [text for text in dict.fromkeys([claim, *windows.values()]) if text not in self._vectors]
        try:
            if new:
                found = await embed_in_time(self._embed, new)
                self._vectors |= dict(zip(new, np.asarray(found, np.float32), strict=True))
            vectors = self._vectors
            cosines = {n: float(vectors[claim] @ vectors[window]) for n, window in windows.items()}
            if not np.isfinite(list(cosines.values())).all():
                raise ValueError("the vectors are not finite")
        except Exception as error:  # a failure of the embedding model costs the vectors, never the answer
            log.warning("checking claims by words only: %s: %s", type(error).__name__, error)
            self._embed = None
            return {}
        return cosines


def _windows(passage: str) -> list[tuple[str, frozenset[str]]]:
    words = list(re.finditer(r"\S+", passage))
    starts = range(0, max(len(words) - STEP, 1), STEP)
    ends = [(words[at].start(), words[min(at + WINDOW, len(words)) - 1].end()) for at in starts] if words else [(0, 0)]
    return [(passage[begin:end], words_of(passage[begin:end])) for begin, end in ends]


def _best(claimed: frozenset[str], windows: Sequence[tuple[str, frozenset[str]]]) -> str:
    return max(windows, key=lambda window: len(claimed & window[1]))[0]
