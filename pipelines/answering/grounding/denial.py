"""Detects passages that say the opposite of a claim, or less than it.

The opposite has the same words, with or without a "not". A claim says more if it has an "only" that its passage does
not have, or a "must" where the passage has a "can". This module looks only at texts; the words are in exact.yaml.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache

from pipelines.answering.grounding.words import content_words
from pipelines.text.languages import ENGLISH
from pipelines.text.phrases import read_table

_TABLE = read_table("pipelines.answering.grounding.exact")
_NEGATIONS = {language: frozenset(row.split()) for language, row in _TABLE["negations"].items()}
_CONDITIONS = {language: frozenset(row.split()) for language, row in _TABLE["conditions"].items()}
# Words that decide how strong a statement is, by kind and language; in scripts without spaces, parts of words.
_FORCES = {
    kind: {language: frozenset(row.split()) for language, row in (_TABLE[kind] | _TABLE[f"unspaced_{kind}"]).items()}
    for kind in ("exclusive", "obliging", "choosing")
}
_UNSPACED = {language: tuple(row.split()) for language, row in _TABLE["unspaced_negations"].items()}
_RELATIVES = {
    language: re.compile(rf"\b{before}(?:n['’]t| (?:{_TABLE['negations'][language].replace(' ', '|')})\b)", re.I)
    for language, before in _TABLE["relatives"].items()
}
_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?")
_COMPOUND = re.compile(r"\b\w++(?>(?:-\w++)+)")  # "read-only" excludes nothing
_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+|(?<=[。！？])")

LEAST = 3  # the fewest words that a sentence and a claim must share for one to deny the other
DENIED = 0.75  # share of a denying sentence's words that the claim must have
STATED = 0.8  # share of a denying claim's words that one sentence must have
LONGEST = 25  # words; a longer sentence says too much for one "not" to negate it


@dataclass(frozen=True, slots=True)
class Said:
    """A sentence with its content words, whether it denies something, and whether that depends on a condition.

    `forces` are the kinds of its words that decide how strong it is: "exclusive", "obliging", "choosing".
    """

    text: str
    words: frozenset[str]
    denies: bool
    depends: bool
    forces: frozenset[str]

    @classmethod
    def of(cls, text: str, language: str = ENGLISH) -> "Said":
        """Return the analysis of a sentence in `language`; "no" and "se" mean different things in other languages."""
        words = {word.casefold().replace("’", "'") for word in _WORD.findall(text)}
        words |= {part for word in words for part in _elided(word)}
        signs, conditions = _UNSPACED.get(language, ()), _CONDITIONS.get(language, frozenset())
        denies = not words.isdisjoint(_NEGATIONS.get(language, ())) or any(sign in text for sign in signs)
        depends = not words.isdisjoint(conditions) or (bool(signs) and any(sign in text for sign in conditions))
        depends = depends or (denies and language in _RELATIVES and bool(_RELATIVES[language].search(text)))
        meaning = content_words(text) - content_words(_TABLE["negations"].get(language, ""))
        free = {word.casefold() for word in _WORD.findall(_COMPOUND.sub(" ", text))}
        forces = frozenset(
            kind
            for kind, found in _FORCES.items()
            if any(sign in text if signs else sign in free for sign in found.get(language, ()))
        )
        return cls(text, meaning, denies, depends, forces)


def _elided(word: str) -> tuple[str, ...]:
    """Return the contracted parts of a word with an apostrophe: "n't" in "can't", "n'" in "n'est"."""
    return (word.partition("'")[0] + "'", word[-3:]) if "'" in word else ()


def sentences_of(text: str, language: str = ENGLISH) -> list[Said]:
    """Return the sentences of a passage in `language` that may deny, or be denied."""
    found = (
        Said.of(one.strip(), language)
        for one in _SENTENCE.split(text)
        if len(one.strip()) >= LEAST and not one.rstrip().endswith("?")
    )
    return [one for one in found if LEAST <= len(one.words) <= LONGEST]


def denied_by(claim: str, sentences: Iterable[Said], language: str = ENGLISH) -> str:
    """Return the sentence that says the opposite of `claim`, or ""."""
    said, sentences = Said.of(claim, language), list(sentences)
    if said.depends or not LEAST <= len(said.words) <= LONGEST:
        return ""
    return _denying(said, sentences) if not said.denies else _stating(said, sentences)


def weaker_than(claim: str, sentences: Iterable[Said], language: str = ENGLISH) -> str:
    """Return the sentence that says the same as `claim` with less force, or "" if none does or one has its force."""
    said = Said.of(claim, language)
    strong = said.forces & {"exclusive", "obliging"}
    if not strong or said.denies or not LEAST <= len(said.words) <= LONGEST:
        return ""
    plain = said.words - _force_words(language)
    share = {one: len(one.words & plain) / len(plain) for one in sentences} if plain else {}
    near = [one for one in share if share[one] >= STATED]
    for force in sorted(strong):
        weaker = near if force == "exclusive" else [one for one in near if "choosing" in one.forces]
        if weaker and not any(force in one.forces or one.denies for one in share if share[one] >= STATED / 2):
            return max(weaker, key=lambda one: share[one]).text
    return ""


@cache
def _force_words(language: str) -> frozenset[str]:
    return frozenset(content_words(" ".join(word for kind in _FORCES.values() for word in kind.get(language, ()))))


def is_said(claim: str, sentences: Iterable[Said], language: str = ENGLISH) -> bool:
    """Return whether a sentence has most words of `claim`, and denies exactly if the claim does."""
    said = Said.of(claim, language)
    return any(
        one.denies == said.denies and len(one.words & said.words) >= STATED * len(said.words) for one in sentences
    )


def _denying(claim: Said, sentences: Sequence[Said]) -> str:
    """Return the sentence that denies a claim, unless another one with the same shared words supports it."""
    against = [one for one in sentences if one.denies and not one.depends and _covers(claim, one) >= DENIED]
    if not against:
        return ""
    best = max(against, key=lambda one: len(one.words & claim.words))
    shared = best.words & claim.words
    for_it = any(not one.denies and shared <= one.words for one in sentences)
    return "" if len(shared) < LEAST or for_it else best.text


def _stating(claim: Said, sentences: Sequence[Said]) -> str:
    """Return the sentence that states what a negative claim denies, unless another one denies it too."""
    share = {one: len(one.words & claim.words) / len(claim.words) for one in sentences}
    against = [one for one in sentences if not one.denies and share[one] >= STATED]
    if not against or any(one.denies and share[one] >= STATED / 2 for one in sentences):
        return ""
    return max(against, key=lambda one: share[one]).text


def _covers(claim: Said, sentence: Said) -> float:
    return len(claim.words & sentence.words) / len(sentence.words)
