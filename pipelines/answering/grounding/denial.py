"""Tells whether a passage says the opposite of a claim: the same words, one with and one without a "not".

Knows texts only; the words are in exact.yaml.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pipelines.answering.grounding.words import content_words
from pipelines.text.phrases import read_table

_TABLE = read_table("pipelines.answering.grounding.exact")
_NEGATIONS = frozenset(word for row in _TABLE["negations"].values() for word in row.split())
_UNSPACED = tuple(word for row in _TABLE["unspaced_negations"].values() for word in row.split())
_CONDITIONS = frozenset(word for row in _TABLE["conditions"].values() for word in row.split())
_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?")
_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+|(?<=[。！？])")

LEAST = 3  # words that a sentence and a claim share, if one denies the other
DENIED = 0.75  # share of a denying sentence's words that the claim has
STATED = 0.8  # share of a denying claim's words that one sentence has
LONGEST = 25  # words of a sentence: a longer one says too much for one "not"


@dataclass(frozen=True, slots=True)
class Said:
    """A sentence with its words of meaning, and whether it denies something, or under a condition."""

    text: str
    words: frozenset[str]
    denies: bool
    depends: bool

    @classmethod
    def of(cls, text: str) -> "Said":
        words = [word.casefold().replace("’", "'") for word in _WORD.findall(text)]
        denies = any(word in _NEGATIONS or word.endswith("n't") or word.startswith("n'") for word in words)
        denies = denies or any(sign in text for sign in _UNSPACED)
        depends = any(word in _CONDITIONS for word in words)
        return cls(text, content_words(text), denies, depends)


def sentences_of(text: str) -> list[Said]:
    """Return the sentences of a passage that may deny or be denied."""
    found = (Said.of(one.strip()) for one in _SENTENCE.split(text) if one.strip() and not one.rstrip().endswith("?"))
    return [one for one in found if LEAST <= len(one.words) <= LONGEST]


def denied_by(claim: str, sentences: Iterable[Said]) -> str:
    """Return the sentence that says the opposite of `claim`, "" if none does."""
    said, sentences = Said.of(claim), list(sentences)
    if said.depends or not LEAST <= len(said.words) <= LONGEST:
        return ""
    return _denying(said, sentences) if not said.denies else _stating(said, sentences)


def _denying(claim: Said, sentences: Sequence[Said]) -> str:
    """Return the sentence that denies a claim; if another has as many of its words, that one may support it."""
    against = [one for one in sentences if one.denies and not one.depends and _covers(claim, one) >= DENIED]
    if not against:
        return ""
    best = max(against, key=lambda one: len(one.words & claim.words))
    shared = len(best.words & claim.words)
    for_it = any(not one.denies and len(one.words & claim.words) >= shared for one in sentences)
    return "" if shared < LEAST or for_it else best.text


def _stating(claim: Said, sentences: Sequence[Said]) -> str:
    """Return the sentence that states what a claim denies, if none denies it too."""
    share = {one: len(one.words & claim.words) / len(claim.words) for one in sentences}
    against = [one for one in sentences if not one.denies and share[one] >= STATED]
    if not against or any(one.denies and share[one] >= STATED / 2 for one in sentences):
        return ""
    return max(against, key=lambda one: share[one]).text


def _covers(claim: Said, sentence: Said) -> float:
    return len(claim.words & sentence.words) / len(sentence.words)
