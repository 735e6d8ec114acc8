"""Corrects words of a question that the index does not have, to words that it has.

Knows the words of a commit and how many chunks have them; knows no chunks and no model. Only plain words are corrected.
English words, code names, capitalized names and quoted words stay as they are.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import tantivy
from rapidfuzz import process
from rapidfuzz.distance import OSA

from pipelines.lexical.documents import BOOSTS, WORDS
from pipelines.lexical.terms import question_terms

# Chosen on 1,884 user questions, against their own site, where nearly all corrections are right, and against two other
# sites, where product names must not change (`dataframe` is not `datagram`): benchmarks/results/typos.md.
SHORTEST = 4  # minimum letters: too many three-letter words are one letter apart
TWO_EDITS = 10  # minimum letters of a word with two typos
MOST_UNREADABLE = 1 / 3  # share of a question's words: above it, the question is in another language or not prose
MOST_WORDS = 64  # maximum words of a question: a longer one is a log or a file

_TOKEN = re.compile(r"(?P<quoted>`[^`]*`|\"[^\"]*\"|(?<!\w)'[^']*'(?!\w))|[^\s`\"]+")
_EDGE = re.compile(r"^(\W*+)((?:.*\w)?)(\W*)$", re.DOTALL)


class Vocabulary:
    """The words of a commit of an index, plus correct words in `known`; `languages` are the languages of its texts."""

    def __init__(self, searcher: tantivy.Searcher, languages: Iterable[str], known: str) -> None:
        self._searcher, self._languages = searcher, languages
        self._known = frozenset(known.lower().split())
        self.texts = searcher.num_docs

    def knows(self, word: str) -> bool:
        """Return whether the index has the word, in any of its forms."""
        return word in self._known or any(all(map(self._has, _terms(word, language))) for language in self._languages)

    def _has(self, term: str) -> bool:
        return any(self._searcher.doc_freq(field, term) for field in BOOSTS)

    def words(self, prefix: str) -> list[tuple[str, int]]:
        """Return the words with that prefix, in lower case, and the number of chunks with each."""
        return self._searcher.terms_with_prefix(WORDS, prefix)


@dataclass(frozen=True, slots=True)
class _Word:
    """A plain word of a question, with its position."""

    start: int
    end: int
    text: str


@lru_cache(10_000)
def _terms(word: str, language: str) -> list[str]:
    return question_terms(word, language)


def correct(question: str, vocabulary: Vocabulary, is_english: Callable[[str], bool]) -> str:
    """Return `question` with unknown words corrected to a word of the vocabulary that is close enough.

    A word that `is_english` knows stays, even next to typos: "invent" seldom means "indent".
    """
    words = list(_plain_words(question))
    corrections: dict[_Word, str] = {}
    for word in words if len(words) <= MOST_WORDS else ():
        plain = word.text.lower()
        if vocabulary.knows(plain) or is_english(plain):
            continue
        corrections[word] = _nearest(plain, vocabulary)
        if list(corrections.values()).count("") > MOST_UNREADABLE * len(words):
            return question
    for word in reversed(corrections):
        if correction := corrections[word]:
            cased = correction.capitalize() if word.text[0].isupper() else correction
            question = question[: word.start] + cased + question[word.end :]
    return question


def _plain_words(question: str) -> Iterator[_Word]:
    """Yield the words that are only letters, and neither quoted nor capitalized within a sentence."""
    begins = True
    for token in _TOKEN.finditer(question):
        edges = _EDGE.match(token[0])
        assert edges is not None
        before, text, after = edges.groups()
        plain = text.isalpha() and not token["quoted"] and (text.islower() or (begins and text.istitle()))
        if plain and not set(before + after) & set("`<>/\\$@#=_*[]{}"):
            yield _Word(token.start() + len(before), token.start() + len(before) + len(text), text)
        begins = after[-1:] in (".", "!", "?", ":")


def _nearest(word: str, vocabulary: Vocabulary) -> str:
    """Return the word of the vocabulary that `word` most likely means, "" for none.

    Its first letter is assumed to be right.
    """
    if len(word) < SHORTEST:
        return ""
    least = max(1, vocabulary.texts // 1000)  # rarer ones may be typos themselves
    counts = {other: count for other, count in vocabulary.words(word[0]) if count >= least and len(other) >= SHORTEST}
    edits = 2 if len(word) >= TWO_EDITS else 1
    scorer: Any = OSA.distance  # overloaded: rapidfuzz's own types don't accept it
    near = process.extract(word, list(counts), scorer=scorer, score_cutoff=edits, limit=None)
    likely = [(distance, -counts[other], other) for other, distance, _ in near if _may_mean(word, other)]
    return min(likely)[2] if likely else ""


def _may_mean(word: str, other: str) -> bool:
    """Return whether `word` may be `other` with a typo, and not just a similar word.

    Another ending makes another word (`extractor`, `searcher`, `jsonb` are not `extract`, `searches`, `json`). In a
    short word, so does another letter. An accent is not a typo.
    """
    if word.isascii() != other.isascii():
        return False
    if word.startswith(other):
        return len(word) == len(other) + 1 and word[-1] == other[-1]
    if len(word) == len(other):
        return word[:-1] != other[:-1] and (len(word) > SHORTEST or sorted(word) == sorted(other))
    return True
