"""Weighs pages independently of their words: boosts, unnamed reference pages, other versions.

This module uses titles and the words of a question; it doesn't know how a hit was found.
"""

import math
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import lru_cache

from pipelines.records import Hit
from pipelines.text.detection import may_be_asked_in, same_language

Prior = Callable[[Hit], float]

# `ray.data.Dataset.map`, `std::vector`, `os.path.join()`: the whole title of a page that a documentation generator
# makes for one object (Sphinx autosummary, rustdoc, Doxygen, …).
_OBJECT = re.compile(r"[A-Za-z_]\w*(?:(?:\.|::)[A-Za-z_]\w*)+(?:\(\))?")
_SITE = re.compile(r"(?<!\s)\s++[—–|-]\s[^—–|]*$")  # " — Ray 3.0.0" after a page's own title
_WORD = re.compile(r"\w+")
# The prior of pages with a different version from the reader's open page: the first hit of another version counts like
# the last of a leg's 50 hits. On the Rust book in four editions, with a random page open, the first hit is from its
# edition for 68 of 100 questions; with 0.1 for 51, and without a prior for 43 (benchmarks/open_page.py).
OTHER_VERSION = 0.02
# The prior of pages in a different language from the question, if some hit is in the question's language. On 128 pages
# of Tauri's documentation in English, French and Spanish, 0.3 raises the MRR of 17 English questions from 0.961 to
# 0.971 and keeps the MRR of 12 in the other languages at 0.958. Of 10 French and Spanish questions that only an English
# page answers, 8 still have it among five hits (MRR 0.545 instead of 0.583); with 0.2, 7 have it, and with 0.1, 6.
OTHER_LANGUAGE = 0.3


def no_prior(_: Hit) -> float:
    """Weigh every chunk equally."""
    return 1.0


def version_prior(version: str | None, language: str) -> Prior:
    """Return a prior that prefers chunks of one version (None: without a version) and one language ("": any)."""

    def prior(chunk: Hit) -> float:
        own = not language or not chunk.language or same_language(chunk.language, language)
        other = chunk.version != version or not own
        return OTHER_VERSION if other else 1.0

    return prior


def language_prior(asked_in: str, found: Iterable[Hit]) -> Prior:
    """Return a prior that prefers chunks in the question's language ("" and "und": unknown).

    If no chunk in `found` has that language, none is preferred, not even one whose language is unknown.
    """
    if asked_in in ("", "und"):
        return no_prior
    languages = {chunk.language for chunk in found}
    own = {language for language in languages if may_be_asked_in(asked_in, language)}
    if not own or own | {""} >= languages:
        return no_prior
    return lambda chunk: 1.0 if not chunk.language or chunk.language in own else OTHER_LANGUAGE


def boost_prior(boosts: Mapping[str, float]) -> Prior:
    """Return a prior: the product of the weights of all patterns (regular expressions) that match a chunk's source."""
    if not boosts:
        return no_prior

    def prior(chunk: Hit) -> float:
        return math.prod(weight for pattern, weight in boosts.items() if re.search(pattern, chunk.source))

    return prior


def both_priors(one: Prior, other: Prior) -> Prior:
    """Return the product of two priors."""
    if no_prior in (one, other):
        return other if one is no_prior else one
    return lambda chunk: one(chunk) * other(chunk)


def reference_prior(queries: Collection[str], weight: float) -> Prior:
    """Return a prior: `weight` for chunks from reference pages of objects that no query names, 1 for all others.

    A site has thousands of such pages, and each repeats words of the guide that a question is about; without the prior,
    they crowd it out. A query names an object by the last part of its name: "map" for `ray.data.Dataset.map`.
    """
    if weight == 1:
        return no_prior
    words = {word for query in queries for word in _WORD.findall(query.lower())}

    def prior(chunk: Hit) -> float:
        last = object_name(chunk.headings[0] if chunk.headings else _SITE.sub("", chunk.title))
        return weight if last and last not in words else 1.0

    return prior


@lru_cache(maxsize=65_536)
def object_name(title: str) -> str:
    """Return the last part, in lower case, of the object name in a reference page's title, or ""."""
    if not _OBJECT.fullmatch(title):
        return ""
    return re.split(r"\.|::", title.removesuffix("()"))[-1].lower()
