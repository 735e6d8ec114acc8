"""Splits text into terms for BM25: lower case, stemmed, code names whole and in parts.

Words of a page in a language other than English are stemmed in that language, if it has a stemmer. Scripts without
spaces (Chinese, Japanese, Thai, Khmer, …), and Korean with its endings, become pairs of characters in any text. A
character is a grapheme: a letter with its vowel signs. Joiners and the vowel points of Arabic and Hebrew are ignored,
because most people leave them out.
"""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from functools import cache, lru_cache
from itertools import pairwise

import regex
import tantivy
from tantivy import Filter, TextAnalyzerBuilder, Tokenizer

from pipelines.text.languages import without_region
from pipelines.text.phrases import read_names, read_table

_NAMES = read_names(__name__)
STOP_TERMS = _NAMES["stop"]
STEMMERS: dict[str, str] = read_table(__name__)["stemmers"]

_ASCII_WORDS = re.compile(r"\w+(?:\.\w+)*(?:\+\+)?")
_WORDS = regex.compile(r"[\w\p{M}]+(?:\.[\w\p{M}]+)*(?:\+\+)?")
_UNSPACED = regex.compile(
    r"(?:[々〆〇ー\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]\p{M}*)+"
)
_CHARACTER = regex.compile(r"\X")
# Joiners, and signs that are usually omitted: vowels of Arabic and Hebrew, the long stroke of Arabic.
_UNWRITTEN = re.compile("[\u200c\u200d\u0610-\u061a\u0640\u064b-\u0652\u0670\u0591-\u05c7]")
_PART = regex.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|(?:[^\W\d_A-Za-z]|\p{M})+")


def terms(text: str) -> list[str]:
    """Return the terms of `text` as BM25 sees them."""
    return analyzer().analyze(with_name_parts(text))


def other_words(question: str, synonyms: Iterable[Sequence[str]]) -> str:
    """Return the synonyms of words in `question`: the rest of each group of `synonyms` that it has one of."""
    said = _stems(question)
    had = [(group, [words for words in group if _stems(words) in said]) for group in synonyms]
    return " ".join(words for group, own in had if own for words in group if words not in own)


def _stems(text: str) -> str:
    return f" {' '.join(analyzer().analyze(' '.join(_words(text))))} "


def question_terms(text: str, language: str = "") -> list[str]:
    """Return the distinct terms of a question, as on pages in `language`, without stop words."""
    if not language:
        found = list(dict.fromkeys(terms(text)))
        return [term for term in found if term not in STOP_TERMS] or found
    words = _words(text)
    telling = _own_terms(words, language, stop=True) or _own_terms(words, language)
    return list(dict.fromkeys([*telling, *analyzer().analyze(" ".join(_ascii_parts(words)))]))


def stemmed_language(language: str) -> str:
    """Return the language of a BCP 47 tag if it has a non-English stemmer, else "": de for de-AT."""
    tag = without_region(language)
    return tag if tag in STEMMERS else ""


def language_of(term: str) -> str:
    """Return the language whose stemmer made a term, "" for all others."""
    return term.split(":")[-2] if term.endswith(":") else ""


def with_name_parts(text: str, language: str = "") -> str:
    """Return the words of `text`, then the parts of its code names, so that both whole names and parts are found.

    In a `language` with its own stemmer, the words are replaced by their stems.
    """
    words = _words(text)
    if own := stemmed_language(language):
        return " ".join([*_own_terms(words, own), *_ascii_parts(words)])
    return " ".join([*words, *(part for word in words for part in name_parts(word))])


def _words(text: str) -> list[str]:
    if text.isascii():
        return _ASCII_WORDS.findall(text)
    return _WORDS.findall(_UNSPACED.sub(_pairs, _UNWRITTEN.sub("", unicodedata.normalize("NFC", text))))


def _pairs(run: regex.Match[str]) -> str:
    """Return the pairs of adjacent characters in text without spaces."""
    return f" {' '.join(map(''.join, pairwise(_CHARACTER.findall(run[0])))) or run[0]} "


def _own_terms(words: Iterable[str], language: str, stop: bool = False) -> list[str]:
    """Return the stems of words with their language; the final colon keeps the English stemmer from changing them."""
    return [f"{stem}:{language}:" for stem in _own_analyzer(STEMMERS[language], stop).analyze(" ".join(words))]


def _ascii_parts(words: Iterable[str]) -> list[str]:
    """Return the parts of the code names among `words`, which have no accents."""
    return [part for word in words if word.isascii() for part in name_parts(word)]


def plain_words(text: str) -> str:
    """Return the words of `text` that consist of letters and are not code names."""
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
    """Return the analyzer for the output of with_name_parts."""
    return _lower_case().filter(Filter.stemmer("english")).build()


@cache
def _own_analyzer(stemmer: str, stop: bool) -> tantivy.TextAnalyzer:
    builder = _lower_case()
    if stop and stemmer not in _NAMES["without_stop_words"]:
        builder = builder.filter(Filter.stopword(stemmer))
    return builder.filter(Filter.stemmer(stemmer)).build()


def word_analyzer() -> tantivy.TextAnalyzer:
    """Return the analyzer for the output of plain_words."""
    return _lower_case().build()


def _lower_case() -> TextAnalyzerBuilder:
    # 100 bytes: longer runs are hashes and encoded data that nobody searches for. The input is already split at spaces.
    return TextAnalyzerBuilder(Tokenizer.whitespace()).filter(Filter.lowercase()).filter(Filter.remove_long(100))
