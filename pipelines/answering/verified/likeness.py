"""Tells whether two questions mean the same, so that the answer to one may be given to the other.

Vectors alone do not tell "read" from "write" nor 2.9 from 2.10: what must not differ is compared word by word. Knows
two questions and the cosine of their vectors; `benchmarks/verified.py` measures it.
"""

import re
from collections import Counter
from dataclasses import dataclass
from functools import lru_cache

from pipelines.answering.grounding.words import content_words, words_of, words_share
from pipelines.lexical import name_parts

# Least cosine, and least share of each question's content words that the other has too. Chosen on the questions of
# odd place in benchmarks/questions/same-meaning.jsonl and checked on the others: docs/feedback.md has the table.
LIKENESS, SHARED_WORDS = 0.92, 0.66

_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")
_NAME = re.compile(
    r"`[^`]+`|--?\w[\w-]*|\w+(?:\.\w+)+|\w*_\w+|[A-Za-z]+\d\w*|\b\w*[a-z][A-Z]\w*|\b[A-Z]{2,}\w*"
    r"|(?<=[a-z,] )[A-Z][a-z]+"
)
_NEGATION = re.compile(r"\b(?:not|no|never|none|nor|neither|cannot|without|except|unless|\w+n['’]t)\b", re.IGNORECASE)
_COMPARISON = re.compile(r"\b(?:differ\w*|compare\w*|vs|versus|better|instead|rather)\b")
_ENDING = re.compile(r"(?<=\w)['’](?:s|re|ll|ve|d|m)\b")  # "what's", "node's"
_PLURAL = re.compile(r"(?<=[A-Z]{2})s\b")  # "CPUs"
_ASKING = words_of("explain describe define please")
# What stands on either side of one of these must not change sides: "text to date" is not "date to text".
_SIDES = {
    "to": re.compile(r"(?<!\bhow )(?<!\bway )\b(?:in|on)?to\b"),
    **{word: re.compile(rf"\b{word}\b") for word in ("from", "before", "after", "in", "on", "than", "as")},
}
_COUNTED = ("two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")

# The kind of a question, by its first words that tell. One of no kind ("cancel ray task") is how to do it, or what it
# is: it may mean either.
_KINDS = (
    ("why", re.compile(r"\b(?:why|how come|reasons?|what causes)\b")),
    ("amount", re.compile(r"\bhow (?:many|much|long|often|large|big|fast|old|far)\b")),
    ("when", re.compile(r"^\W*(?:\w+ )?\bwhen\b|\bin (?:which|what) cases?\b")),
    ("where", re.compile(r"^\W*where\b")),
    ("who", re.compile(r"^\W*who\b")),
    ("how", re.compile(r"\bhow (?:do|can|could|should|would|to|i)\b|\b(?:can|could|may) i\b|\b(?:way|possible) to\b")),
    ("what", re.compile(r"^\W*(?:what(?:'s|’s| is| are| does| do)|explain|define|describe)\b|\bmean(?:ing)?\b")),
    ("whether", re.compile(r"^\W*(?:is|are|does|do|did|was|were|has|have|will|should|can|could)\b")),
)  # fmt: skip
# Kinds that ask for the same: "where do I find" and "which is" are answered alike, "can I" and "how do I" are not kept
# apart where only one of them is said.
_OPEN = frozenset({"", "how", "what", "whether"})

# Words of which a question has one or the other: it is about the one, not about both.
_OPPOSITES = (
    "enable disable", "read write", "load save", "start stop", "begin end", "create delete", "create drop",
    "create remove", "add remove", "add delete", "insert delete", "increase decrease", "raise lower", "raise catch",
    "install uninstall", "upgrade downgrade", "import export", "encode decode", "encrypt decrypt", "before after",
    "maximum minimum", "max min", "default maximum", "default minimum", "largest smallest", "left right", "inner outer",
    "open close", "connect disconnect", "upload download", "push pull", "lock unlock", "mount unmount", "up down",
    "synchronous asynchronous", "sync async", "ascending descending", "local remote", "first last", "row column",
    "head worker", "client server", "source target", "input output", "grant revoke", "commit rollback", "show hide",
    "activate deactivate", "subscribe unsubscribe", "publish subscribe", "serialize deserialize", "compress decompress",
    "pack unpack", "parse format", "attach detach", "register unregister", "include exclude", "allow deny",
    "allow forbid", "pause resume", "send receive", "get set", "public private", "static dynamic", "manual automatic",
    "manually automatically", "mutable immutable", "parallel sequential", "online offline", "horizontal vertical",
    "dump restore", "backup restore", "schedule cancel", "hot cold", "all one", "all single", "single multiple",
    "one multiple", "cpu gpu", "task actor", "job task", "job actor", "table schema", "table row", "list dictionary",
    "train serve", "deprecated supported", "key value", "string bytes", "request response",
)  # fmt: skip

# Words for the same: where each question has a word that the other lacks, only these may stand for each other.
_SYNONYMS = (
    "create make build generate define write", "start begin launch run", "find get obtain retrieve locate see",
    "remove delete drop erase", "enable activate", "disable deactivate", "restrict limit cap",
    "change modify alter edit",
    "set configure", "convert turn transform cast", "load read import", "put upload store", "multiple several",
    "show display print list", "large big", "error exception", "fail break", "catch handle", "config configuration",
    "env environment", "async asynchronous", "postgres postgresql", "directory folder", "stop terminate kill",
    "function method", "parameter argument option", "stored located find", "support", "perform do execute run",
    "maximum max", "minimum min", "log logging", "allow permit", "need require", "version release",
    "automatically automatic", "manually hand", "increase raise", "decrease lower reduce", "connect connection",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Meaning:
    """What must not differ between two questions, read off their words.

    `names` are the code names and abbreviations, each with its parts; `sides` are the content words before and
    after a preposition.
    """

    words: frozenset[str]
    content: frozenset[str]
    numbers: tuple[tuple[str, int], ...]
    names: frozenset[tuple[str, frozenset[str]]]
    negated: bool
    compares: bool
    kind: str
    sides: tuple[tuple[str, frozenset[str], frozenset[str]], ...]

    @classmethod
    def of(cls, question: str) -> "Meaning":
        """Return the meaning of a question."""
        plain = _PLURAL.sub("", _ENDING.sub("", question))
        lower = plain.lower()
        numbers = Counter(_NUMBER.findall(lower))
        numbers.update(str(_COUNTED.index(word) + 2) for word in re.findall(r"\w+", lower) if word in _COUNTED)
        parts = [(word, *side.split(lower, maxsplit=1)) for word, side in _SIDES.items() if side.search(lower)]
        return cls(
            words=words_of(plain),
            content=content_words(plain) - _ASKING,
            numbers=tuple(sorted(numbers.items())),
            names=frozenset(_named(name) for name in _NAME.findall(plain)),
            negated=bool(_NEGATION.search(plain)),
            compares=bool(_COMPARISON.search(lower)),
            kind=next((kind for kind, said in _KINDS if said.search(lower)), ""),
            sides=tuple((word, content_words(before), content_words(after)) for word, before, after in parts),
        )


def may_mean_same(one: Meaning, other: Meaning, shared: float = SHARED_WORDS) -> bool:
    """Return whether nothing speaks against two questions meaning the same, whatever their vectors say."""
    return (
        one.numbers == other.numbers
        and (one.negated, one.compares) == (other.negated, other.compares)
        and _same_kind(one.kind, other.kind)
        and _same_names(one, other)
        and not _crossed(one, other)
        and min(_share(one, other), _share(other, one)) >= shared
        and not _opposed(one.words, other.words)
        and not _replaced(_missing(one, other), _missing(other, one))
    )


def wording_key(question: str) -> str:
    """Return a question without differences of case, blanks and the marks at its end."""
    return " ".join(question.lower().split()).rstrip(" ?!.…")


def _same_kind(one: str, other: str) -> bool:
    return one == other or ("" in (one, other) and {one, other} <= _OPEN)


def _named(name: str) -> tuple[str, frozenset[str]]:
    """Return a code name in lower case and the terms of its parts."""
    plain = name.strip("`-")
    split = [part for word in re.findall(r"[\w.]+", plain) for part in name_parts(word) or (word,)]
    parts = {term for part in split for term in words_of(part)}
    return plain.lower(), frozenset(part for part in parts if "_" not in part and "." not in part)


def _same_names(one: Meaning, other: Meaning) -> bool:
    """Return whether each name of either question is in the other, whole or in parts (`read_csv`: "read csv")."""
    compound = [{name for name, parts in each.names if len(parts) > 1} for each in (one, other)]
    return _names_in(one, other) and _names_in(other, one) and (not all(compound) or compound[0] == compound[1])


def _names_in(one: Meaning, other: Meaning) -> bool:
    return all(parts <= other.words or words_of(name) <= other.words for name, parts in one.names)


def _crossed(one: Meaning, other: Meaning) -> bool:
    """Return whether words have changed sides of a preposition."""
    return any(
        word == same and (after & others_before - others_after) and (others_after & before - after)
        for word, before, after in one.sides
        for same, others_before, others_after in other.sides
    )


def _opposed(one: frozenset[str], other: frozenset[str]) -> bool:
    """Return whether one has a word and the other its opposite, which the first one lacks."""
    pairs = [*_opposites(), *((b, a) for a, b in _opposites())]
    return any((a <= one and b <= other - one) or (a <= other and b <= one - other) for a, b in pairs)


def _missing(one: Meaning, other: Meaning) -> frozenset[str]:
    """Return the content words of one that the other lacks, also in two words for one ("shut down", "shutdown")."""
    joined = {a + b for a in one.words for b in one.words} & other.words
    return frozenset(
        word
        for word in one.content - other.words
        if not any(word[:cut] in other.words and word[cut:] in other.words for cut in range(2, len(word) - 1))
        and not any(compound.startswith(word) or compound.endswith(word) for compound in joined)
    )


def _share(one: Meaning, other: Meaning) -> float:
    """Return the share of the content words of one that the other has too, itself or by a synonym."""
    missing, others = _missing(one, other), _missing(other, one)
    synonyms = {word for word in missing if _means_one_of(word, others)}
    return words_share(one.content, one.content - missing | synonyms)


def _replaced(only: frozenset[str], others: frozenset[str]) -> bool:
    """Return whether a word that one alone has stands for a word that the other alone has and is no synonym of it."""
    if not only or not others:
        return False
    return not (all(_means_one_of(word, others) for word in only) or all(_means_one_of(word, only) for word in others))


def _means_one_of(word: str, others: frozenset[str]) -> bool:
    return any(word in group and group & others for group in _synonyms())


@lru_cache(maxsize=1)
def _synonyms() -> tuple[frozenset[str], ...]:
    return tuple(map(words_of, _SYNONYMS))


@lru_cache(maxsize=1)
def _opposites() -> tuple[tuple[frozenset[str], frozenset[str]], ...]:
    return tuple((words_of(pair.split()[0]), words_of(pair.split()[1])) for pair in _OPPOSITES)
