"""Decides whether two questions mean the same, so that one's answer may be given to the other.

Vectors can't tell "read" from "write" or 2.9 from 2.10, so the decisive differences are checked word by word. This
module compares two questions, given the cosine of their vectors; `benchmarks/verified.py` measures it.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pipelines.answering.grounding.words import content_words, words_of, words_share
from pipelines.lexical import name_parts
from pipelines.text.phrases import read_table

# The least cosine, and the least share of each question's content words that the other has too. Chosen on the
# odd-numbered questions of benchmarks/questions/same-meaning.jsonl and checked on the others:
# benchmarks/results/verified-answers.md has the table.
SIMILAR, SHARED_WORDS = 0.89, 0.66

_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")
_NAME = re.compile(
    r"`[^`]+`|--?\w[\w-]*|\b\w++(?:\.\w+)+|\b\w*_\w+|(?<![A-Za-z])[A-Za-z]++\d\w*|\b\w*[a-z][A-Z]\w*"
    r"|\b[A-Z]{2,}\w*|(?<=[a-z,] )[A-Z][a-z]+"
)
_NEGATIONS = frozenset(["not", "no", "never", "none", "nor", "neither", "cannot", "without", "except", "unless"])
# Endings that aren't words: in "what's" and "node's", and in "CPUs".
_ENDING = re.compile(r"(?<=\w)['’](?:s|re|ll|ve|d|m)\b|(?<=[A-Z]{2})s\b")
_ASKING = words_of("explain describe define please")
# Words on either side of one of these must not change sides: "text to date" is not "date to text".
_SIDES = ("to", "from", "before", "after", "in", "on", "than", "as")
_WAYS = (["how"], ["way"])
_COUNTED = ("two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")

_TABLE = read_table(__name__)


def _pairs(table: str) -> list[list[str]]:
    return [group.split() for group in _TABLE[table].split(", ")]


_KINDS = {
    kind: [f" {phrase.replace('^', '^ ')} " for phrase in phrases.split(", ")]
    for kind, phrases in _TABLE["kinds"].items()
}
_OPEN = frozenset(["", *_TABLE["open"].split(", ")])
_OPPOSITES = [(words_of(one), words_of(other)) for one, other in _pairs("opposites")]
_SYNONYMS = [words_of(" ".join(group)) for group in _pairs("synonyms")]


@dataclass(frozen=True, slots=True)
class Meaning:
    """The parts of a question that must match for two questions to mean the same.

    `names` are code names and abbreviations, each with its parts; `sides` are the content words before and after a
    preposition.
    """

    words: frozenset[str]
    content: frozenset[str]
    numbers: tuple[tuple[str, int], ...]
    names: frozenset[tuple[str, frozenset[str]]]
    negated: bool
    kind: str
    sides: tuple[tuple[str, frozenset[str], frozenset[str]], ...]

    @classmethod
    def of(cls, question: str) -> "Meaning":
        """Return the meaning of a question."""
        plain = _ENDING.sub("", question)
        lower = plain.lower().replace("’", "'")
        said = re.findall(r"[\w']+", lower)
        numbers = Counter(_NUMBER.findall(lower))
        numbers.update(str(_COUNTED.index(word) + 2) for word in said if word in _COUNTED)
        return cls(
            words=words_of(plain),
            content=content_words(plain) - _ASKING,
            numbers=tuple(sorted(numbers.items())),
            names=frozenset(_named(name) for name in _NAME.findall(plain)),
            negated=any(word in _NEGATIONS or word.endswith("n't") for word in said),
            kind=_kind_of(said),
            sides=tuple(_sides_of(said)),
        )


def may_mean_same(one: Meaning, other: Meaning, shared: float = SHARED_WORDS) -> bool:
    """Return whether two questions may mean the same, judging by their words, not their vectors."""
    return (
        one.numbers == other.numbers
        and one.negated == other.negated
        and (one.kind == other.kind or ("" in (one.kind, other.kind) and {one.kind, other.kind} <= _OPEN))
        and _same_names(one, other)
        and not _crossed(one, other)
        and not _opposed(one.words, other.words)
        and _same_content(one, other, shared)
    )


def wording_key(question: str) -> str:
    """Return a question normalized in case, whitespace and final punctuation."""
    return " ".join(question.lower().split()).rstrip(" ?!.…")


def _kind_of(words: Sequence[str]) -> str:
    """Return the first kind with a phrase that the question contains, or begins with; otherwise ""."""
    said = f" ^ {' '.join(words)} "
    return next((kind for kind, phrases in _KINDS.items() if any(phrase in said for phrase in phrases)), "")


def _sides_of(words: Sequence[str]) -> Iterator[tuple[str, frozenset[str], frozenset[str]]]:
    """Yield each word of _SIDES with the content words before and after its first occurrence, except in "how to"."""
    plain = [{"into": "to", "onto": "to"}.get(word, word) for word in words]
    for side in _SIDES:
        places = [n for n, word in enumerate(plain) if word == side and (side != "to" or plain[n - 1 : n] not in _WAYS)]
        if places:
            before, after = words[: places[0]], words[places[0] + 1 :]
            yield side, content_words(" ".join(before)), content_words(" ".join(after))


def _named(name: str) -> tuple[str, frozenset[str]]:
    """Return a code name in lower case, and the terms of its parts."""
    plain = name.strip("`-")
    split = [part for word in re.findall(r"[\w.]+", plain) for part in name_parts(word) or (word,)]
    parts = {term for part in split for term in words_of(part)}
    return plain.lower(), frozenset(part for part in parts if "_" not in part and "." not in part)


def _same_names(one: Meaning, other: Meaning) -> bool:
    """Return whether each name in either question occurs in the other, whole or in parts (`read_csv`: "read csv")."""
    compound = [{name for name, parts in each.names if len(parts) > 1} for each in (one, other)]
    return _names_in(one, other) and _names_in(other, one) and (not all(compound) or compound[0] == compound[1])


def _names_in(one: Meaning, other: Meaning) -> bool:
    return all(parts <= other.words or words_of(name) <= other.words for name, parts in one.names)


def _crossed(one: Meaning, other: Meaning) -> bool:
    """Return whether words have changed sides around a preposition."""
    return any(
        word == same and (after & others_before - others_after) and (others_after & before - after)
        for word, before, after in one.sides
        for same, others_before, others_after in other.sides
    )


def _opposed(one: frozenset[str], other: frozenset[str]) -> bool:
    """Return whether one question has a word and the other has its opposite, which the first one lacks."""
    pairs = [*_OPPOSITES, *((b, a) for a, b in _OPPOSITES)]
    return any((a <= one and b <= other - one) or (a <= other and b <= one - other) for a, b in pairs)


def _same_content(one: Meaning, other: Meaning, shared: float) -> bool:
    """Return whether each question has a `shared` part of the other's content words, and no word is replaced."""
    only, others = _missing(one, other), _missing(other, one)
    least = min(_share(one.content, only, others), _share(other.content, others, only))
    return least >= shared and not _replaced(only, others)


def _missing(one: Meaning, other: Meaning) -> frozenset[str]:
    """Return the content words of one question that the other lacks, even as two words ("shut down", "shutdown")."""
    joined = [word for word in other.words if _is_joined(word, one.words, 1)]
    return frozenset(
        word
        for word in one.content - other.words
        if not _is_joined(word, other.words, 2)
        and not any(compound.startswith(word) or compound.endswith(word) for compound in joined)
    )


def _is_joined(word: str, words: frozenset[str], least: int) -> bool:
    """Return whether `word` joins two of `words`, each of at least `least` letters."""
    return any(word[:cut] in words and word[cut:] in words for cut in range(least, len(word) - least + 1))


def _share(content: frozenset[str], missing: frozenset[str], others: frozenset[str]) -> float:
    """Return the share of `content` that is not `missing`, counting synonyms of one of `others` as present."""
    synonyms = {word for word in missing if _means_one_of(word, others)}
    return words_share(content, content - missing | synonyms)


def _replaced(only: frozenset[str], others: frozenset[str]) -> bool:
    """Return whether a word only in one question takes the place of a word only in the other that isn't its synonym."""
    if not only or not others:
        return False
    return not (all(_means_one_of(word, others) for word in only) or all(_means_one_of(word, only) for word in others))


def _means_one_of(word: str, others: frozenset[str]) -> bool:
    return any(word in group and group & others for group in _SYNONYMS)
