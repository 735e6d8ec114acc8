"""Extracts the words by which a claim is compared with a passage.

They are the terms of BM25; in scripts without spaces they are pairs of characters, as whole runs would never match.
"""

import itertools
import re

from pipelines.lexical import STOP_TERMS, terms

_UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\u0e00-\u0e7f]+")


def words_of(text: str) -> frozenset[str]:
    """Return the distinct terms of `text`."""
    runs = _UNSPACED.findall(text)
    if not runs:
        return frozenset(terms(text))
    pairs = (one + other for run in runs for one, other in itertools.pairwise(run))
    return frozenset(terms(_UNSPACED.sub(" ", text))).union(pairs)


def words_share(words: frozenset[str], among: frozenset[str]) -> float:
    """Return the share of `words` that are `among` others; 1 for no words."""
    return len(words & among) / len(words) if words else 1.0


def content_words(text: str) -> frozenset[str]:
    """Return the distinct terms of `text` that carry meaning."""
    return words_of(text) - STOP_TERMS
