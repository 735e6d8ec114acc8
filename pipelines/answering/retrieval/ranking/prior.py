"""Weighs pages before their words count: a site's boosts, unnamed reference pages, other versions.

Knows titles and the words of a question, not how a hit was found.
"""

import math
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import lru_cache

from pipelines.store.chunks import RankableChunk
from pipelines.text.detection import may_be_asked_in, same_language

Prior = Callable[[RankableChunk], float]

# `ray.data.Dataset.map`, `std::vector`, `os.path.join()`: the whole title of a page that a documentation generator
# makes for one object (Sphinx autosummary, rustdoc, Doxygen, …).
_OBJECT = re.compile(r"[A-Za-z_]\w*(?:(?:\.|::)[A-Za-z_]\w*)+(?:\(\))?")
_SITE = re.compile(r"(?<!\s)\s++[—–|-]\s[^—–|]*$")  # " — Ray 3.0.0" after a page's own title
_WORD = re.compile(r"\w+")
# The prior of another version than that of the page that the reader has open: the first of another one counts as the
# last of a leg's 50 hits. On the Rust book in four editions, of 100 questions with a random page open the first hit is
# of its edition 68 times, 51 with 0.1 and 43 without a prior (benchmarks/open_page.py).
OTHER_VERSION = 0.02
# The prior of another language than that of the question, where a hit has that. On 128 pages of Tauri's documentation
# in English, French and Spanish with 0.3: of 17 English questions the MRR is 0.971 instead of 0.961, of 12 in the other
# languages 0.958 as before. Of 10 French and Spanish ones that only an English page answers, 8 have it among five hits
# as before, with an MRR of 0.545 instead of 0.583; with 0.2 they are 7, with 0.1 6.
OTHER_LANGUAGE = 0.3


def no_prior(_: RankableChunk) -> float:
    """Weigh every chunk alike."""
    return 1.0


def version_prior(version: str | None, language: str) -> Prior:
    """Return a prior that prefers chunks of one version (None: of pages without one) and language ("": of any)."""

    def prior(chunk: RankableChunk) -> float:
        own = not language or not chunk.language or same_language(chunk.language, language)
        other = chunk.version != version or not own
        return OTHER_VERSION if other else 1.0

    return prior


def language_prior(asked_in: str, found: Iterable[RankableChunk]) -> Prior:
    """Return a prior that prefers chunks in the language that a question is asked in ("" and "und": not known).

    Where no chunk that was `found` is in it, none is preferred, not even one whose language is unknown.
    """
    if asked_in in ("", "und") or not any(may_be_asked_in(asked_in, chunk.language) for chunk in found):
        return no_prior

    def prior(chunk: RankableChunk) -> float:
        own = not chunk.language or may_be_asked_in(asked_in, chunk.language)
        return 1.0 if own else OTHER_LANGUAGE

    return prior


def boost_prior(boosts: Mapping[str, float]) -> Prior:
    """Return a prior: the product of the weights of all patterns (regular expressions) that a chunk's source has."""
    if not boosts:
        return no_prior

    def prior(chunk: RankableChunk) -> float:
        return math.prod(weight for pattern, weight in boosts.items() if re.search(pattern, chunk.source))

    return prior


def both_priors(one: Prior, other: Prior) -> Prior:
    """Return the product of two priors."""
    if no_prior in (one, other):
        return other if one is no_prior else one
    return lambda chunk: one(chunk) * other(chunk)


def reference_prior(queries: Collection[str], weight: float) -> Prior:
    """Return a prior: `weight` for a chunk of the reference page of an object that no query names, 1 for all others.

    A site has thousands of such pages, and each repeats the words of the guide that a question is about: without
    the prior they crowd it out. A query names an object by the last part of its name: "map" for `ray.data.Dataset.map`.
    """
    if weight == 1:
        return no_prior
    words = {word for query in queries for word in _WORD.findall(query.lower())}

    def prior(chunk: RankableChunk) -> float:
        last = object_name(_SITE.sub("", chunk.title) if chunk.heading is None else chunk.heading)
        return weight if last and last not in words else 1.0

    return prior


@lru_cache(maxsize=65_536)
def object_name(title: str) -> str:
    """Return the last part, in lower case, of the object that a reference page with this title documents, or ""."""
    if not _OBJECT.fullmatch(title):
        return ""
    return re.split(r"\.|::", title.removesuffix("()"))[-1].lower()
