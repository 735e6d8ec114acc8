"""Splits texts into terms for BM25: lower case, stemmed, code names whole and in parts."""

import re
from collections.abc import Iterable, Sequence
from functools import cache, lru_cache

import tantivy
from tantivy import Filter, TextAnalyzerBuilder, Tokenizer

# Terms that every question has and that help to find no answer. In the headings of a manual ("How do I …?") they are
# rare enough to outweigh the question's own words.
STOP_TERMS = frozenset(
    """
    a about after all also am an and ani are as at be been befor but by can could did differ do doe for from get
    give go had has have how i if in into is it its just like make me my need no not of on one onli or other our
    out pleas possibl shall should so some tell than that the their them then there these they thing this those
    to up us use via want was way we were what when where whether which while who whi will with without work
    would you your
    """.split()  # noqa: SIM905
)

_WORDS = re.compile(r"\w+(?:\.\w+)*(?:\+\+)?")
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[^\W\d_A-Za-z]+")


def terms(text: str) -> list[str]:
    """Return the terms of `text` as BM25 sees them."""
    return analyzer().analyze(with_name_parts(text))


def other_words(question: str, synonyms: Iterable[Sequence[str]]) -> str:
    """Return what else stands for words of `question`: the rest of each group of `synonyms` that it has one of."""
    said = _stems(question)
    had = [(group, [words for words in group if _stems(words) in said]) for group in synonyms]
    return " ".join(words for group, own in had if own for words in group if words not in own)


def _stems(text: str) -> str:
    return f" {' '.join(analyzer().analyze(' '.join(_WORDS.findall(text))))} "


def with_name_parts(text: str) -> str:
    """Return the words of `text`, then the parts of its code names, so that both whole names and parts are found."""
    words = _WORDS.findall(text)
    return " ".join([*words, *(part for word in words for part in name_parts(word))])


def plain_words(text: str) -> str:
    """Return the words of `text` that are only letters and no code names."""
    return " ".join(word for word in _WORDS.findall(text) if word.isalpha() and not name_parts(word))


@lru_cache(maxsize=65_536)
def name_parts(word: str) -> tuple[str, ...]:
    """Return the parts of a code name, none for a plain word.

    `ray.data.read_csv` gives ray, data, read_csv, read, csv; `ActorPoolStrategy` gives Actor, Pool, Strategy.
    """
    names = word.split(".")
    parts = [part for name in names for part in _PART.findall(name) if part != name]
    return tuple(dict.fromkeys((names if len(names) > 1 else []) + parts))


@cache
def analyzer() -> tantivy.TextAnalyzer:
    """Return the analyzer of the words that with_name_parts returns."""
    return _lower_case().filter(Filter.stemmer("english")).build()


def word_analyzer() -> tantivy.TextAnalyzer:
    """Return the analyzer of the words that plain_words returns."""
    return _lower_case().build()


def _lower_case() -> TextAnalyzerBuilder:
    # 100 bytes: longer runs are hashes and encoded data that nobody searches for. The words have been found already.
    return TextAnalyzerBuilder(Tokenizer.whitespace()).filter(Filter.lowercase()).filter(Filter.remove_long(100))
