"""Scores answers: claims and citations, what was answered or refused, similarity to a reference.

Pure arithmetic over an example and an answer, called by the metrics that METRICS declares; asks no language model. A
score is None where the question has nothing to score.
"""

import re
import string
from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np

from pipelines.evaluation.dataset import Example, page_of
from pipelines.records import Answer

Embed = Callable[[Sequence[str]], np.ndarray]
"""Return the embeddings of texts: rows of length 1."""

_MARKERS = re.compile(r"\[\d+(?:\s*,\s*\d+)*\]")
_ARTICLES = re.compile(r"\b(a|an|the)\b")
_WITHOUT_PUNCTUATION = str.maketrans("", "", string.punctuation)

# ------------------------------------------------------------------------------------------- claims and citations


def supported_share(answer: Answer) -> float | None:
    """Return the share of the citations that their passages support; None without one, and for "I do not know"."""
    if not answer.known or not answer.citations:
        return None
    return sum(citation.supported for citation in answer.citations) / len(answer.citations)


def cited(answer: Answer) -> float | None:
    """Return 1 if an answer that claims something has a supported citation, else 0; None if it claims nothing."""
    return float(bool(supported_pages(answer))) if claims_something(answer) else None


def supported_claims_share(answer: Answer) -> float | None:
    """Return the share of the answer's claims that a citation of theirs supports; None if it claims nothing."""
    return answer.claims.supported / answer.claims.total if claims_something(answer) else None


def claims_something(answer: Answer) -> bool:
    """Return whether an answer says more than that it does not know."""
    return answer.known and answer.claims.total > 0


def supported_pages(answer: Answer) -> list[str]:
    """Return the pages of the supported citations, in their order."""
    return [page_of(citation.source) for citation in answer.citations if citation.supported]


# ------------------------------------------------------------------------------------------- answered and refused


def answered(example: Example, answer: Answer) -> float | None:
    """Return 1 if a question whose reference page is among the answer's hits is answered, 0 for "I do not know".

    None where the page was not found, which is retrieval's fault, and for questions about other things.
    """
    return float(answer.known) if example.pages & _hit_pages(answer) else None


def refused(example: Example, answer: Answer) -> float | None:
    """Return 1 for "I do not know" to a question about other things, 0 for an answer; None for other questions."""
    return None if example.answerable else float(not answer.known)


def reference_cited(example: Example, answer: Answer) -> float | None:
    """Return 1 if a supported citation names a reference page, else 0; None where that was not among the hits.

    An answer that refuses cites nothing, so that agents that answer more or fewer questions compare.
    """
    return _cites_reference(example, answer, supported_pages(answer))


def source_cited(example: Example, answer: Answer) -> float:
    """Return 1 if the answer is known and a supported citation lies in a reference section, else 0, found or not.

    To a question about other things: 1 for "I do not know". So each question has this score: a gate for regressions.
    """
    if not example.answerable:
        return float(not answer.known)
    places: dict[str, set[str]] = {}
    for hit in answer.hits:
        places[hit.source] = {hit.url, hit.source, *(f"{hit.url}#{anchor}" for anchor in hit.anchors)}
    cited = (places.get(one.source, {one.source}) for one in answer.citations if one.supported)
    return float(answer.known and any(not within.isdisjoint(example.sources) for within in cited))


def reference_first(example: Example, answer: Answer) -> float | None:
    """Return 1 if the first supported citation names a reference page, else 0; None as `reference_cited`."""
    return _cites_reference(example, answer, supported_pages(answer)[:1])


def _cites_reference(example: Example, answer: Answer, pages: Sequence[str]) -> float | None:
    wanted = example.pages
    return float(not wanted.isdisjoint(pages)) if wanted & _hit_pages(answer) else None


def _hit_pages(answer: Answer) -> set[str]:
    return {page_of(hit.source) for hit in answer.hits}


# ------------------------------------------------------------------------------------------- beside a reference


def token_f1(answer: str, reference: str) -> float:
    """Return the harmonic mean of precision and recall of the answer's words, 0 to 1.

    As SQuAD does (Rajpurkar et al., 2016): lower case, without punctuation and articles, words counted as often as
    they stand. Citation markers, [n], are no words. 1 if neither text has words, 0 if one of them has none.
    """
    words, wanted = Counter(_words(answer)), Counter(_words(reference))
    if not words or not wanted:
        return float(words == wanted)
    return 2 * sum((words & wanted).values()) / (words.total() + wanted.total())


def _words(text: str) -> list[str]:
    bare = _MARKERS.sub(" ", text).lower().translate(_WITHOUT_PUNCTUATION)
    return _ARTICLES.sub(" ", bare).split()


def similarity(embed: Embed, answer: str, reference: str) -> float:
    """Return the cosine of the two texts' embeddings, -1 to 1.

    A model reads a limited number of tokens: of a long answer it sees the beginning.
    """
    one, other = embed([_MARKERS.sub("", answer), reference])
    return float(np.clip(np.dot(one, other), -1, 1))
