"""Scores answers: claims and citations, answering or refusing, similarity to a reference.

Pure arithmetic over an example and an answer, called by the metrics that METRICS declares. Calls no language model. A
score is None if it does not apply to the question.
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
    """Return the share of citations that their passages support; None without citations or for "I do not know"."""
    if not answer.known or not answer.citations:
        return None
    return sum(citation.supported for citation in answer.citations) / len(answer.citations)


def cited(answer: Answer) -> float | None:
    """Return 1 if an answer with claims has a supported citation, else 0; None if it makes no claim."""
    return float(bool(supported_pages(answer))) if claims_something(answer) else None


def supported_claims_share(answer: Answer) -> float | None:
    """Return the share of the answer's claims that one of their citations supports; None if it makes no claim."""
    return answer.claims.supported / answer.claims.total if claims_something(answer) else None


def claims_something(answer: Answer) -> bool:
    """Return whether an answer says more than that it does not know."""
    return answer.known and answer.claims.total > 0


def supported_pages(answer: Answer) -> list[str]:
    """Return the pages of the supported citations, in order."""
    return [page_of(citation.source) for citation in answer.citations if citation.supported]


# ------------------------------------------------------------------------------------------- answered and refused


def answered(example: Example, answer: Answer) -> float | None:
    """Return 1 if a question is answered and a reference page is among the answer's hits, 0 for "I do not know".

    None if the page was not found, which is a failure of retrieval, and for off-topic questions.
    """
    return float(answer.known) if example.pages & _hit_pages(answer) else None


def refused(example: Example, answer: Answer) -> float | None:
    """Return 1 for "I do not know" to an off-topic question, 0 for an answer; None for other questions."""
    return None if example.answerable else float(not answer.known)


def reference_cited(example: Example, answer: Answer) -> float | None:
    """Return 1 if a supported citation names a reference page, else 0; None if no hit was on a reference page.

    A refusal cites nothing and scores 0, so agents that answer more or fewer questions are comparable.
    """
    return _cites_reference(example, answer, supported_pages(answer))


def source_cited(example: Example, answer: Answer) -> float:
    """Return 1 if the answer is known and a supported citation is in a reference section, else 0, even if not found.

    For an off-topic question, return 1 for "I do not know". Every question has this score, so a regression gate can use
    it.
    """
    if not example.answerable:
        return float(not answer.known)
    places: dict[str, set[str]] = {}
    for hit in answer.hits:
        places[hit.source] = {hit.url, hit.source, *(f"{hit.url}#{anchor}" for anchor in hit.anchors)}
    cited = (places.get(one.source, {one.source}) for one in answer.citations if one.supported)
    return float(answer.known and any(not within.isdisjoint(example.sources) for within in cited))


def reference_first(example: Example, answer: Answer) -> float | None:
    """Return 1 if the first supported citation names a reference page, else 0; None as for `reference_cited`."""
    return _cites_reference(example, answer, supported_pages(answer)[:1])


def _cites_reference(example: Example, answer: Answer, pages: Sequence[str]) -> float | None:
    wanted = example.pages
    return float(not wanted.isdisjoint(pages)) if wanted & _hit_pages(answer) else None


def _hit_pages(answer: Answer) -> set[str]:
    return {page_of(hit.source) for hit in answer.hits}


# ------------------------------------------------------------------------------------------- with a reference


def token_f1(answer: str, reference: str) -> float:
    """Return the harmonic mean of precision and recall of the answer's words, 0 to 1.

    As in SQuAD (Rajpurkar et al., 2016): in lower case, without punctuation and articles, counting repeated words.
    Citation markers, [n], are not words. 1 if neither string has words, 0 if only one has.
    """
    words, wanted = Counter(_words(answer)), Counter(_words(reference))
    if not words or not wanted:
        return float(words == wanted)
    return 2 * sum((words & wanted).values()) / (words.total() + wanted.total())


def _words(text: str) -> list[str]:
    bare = _MARKERS.sub(" ", text).lower().translate(_WITHOUT_PUNCTUATION)
    return _ARTICLES.sub(" ", bare).split()


def similarity(embed: Embed, answer: str, reference: str) -> float:
    """Return the cosine similarity of the two embeddings, -1 to 1.

    A model reads a limited number of tokens, so of a long answer it sees only the beginning.
    """
    one, other = embed([_MARKERS.sub("", answer), reference])
    return float(np.clip(np.dot(one, other), -1, 1))
