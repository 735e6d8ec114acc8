"""How good retrieved sources and answers are, with intervals, and whether one configuration is better than another.

Pure arithmetic over examples and what was found for them. Knows no engine, no database and no language model.
"""

import re
import string
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count

import numpy as np

from pipelines.evaluation.dataset import Example, page_of
from pipelines.evaluation.statistics import Interval, NothingToScore, bootstrap
from pipelines.records import Answer, Hit


@dataclass(frozen=True, slots=True)
class Retrieved:
    """What was found for one question, best hit first.

    `sources` has for each hit every place where its text stands, the hit's own (what an answer cites) first; `anchors`
    the `url#anchor` of each anchor on the hit's path, from the outermost section to its own.
    """

    sources: tuple[tuple[str, ...], ...]
    anchors: tuple[tuple[str, ...], ...]

    @classmethod
    def of(cls, hits: Sequence[Hit]) -> "Retrieved":
        """What these hits stand for."""
        return cls(
            tuple(tuple(dict.fromkeys((hit.source, *hit.sources))) for hit in hits),
            tuple(tuple(f"{hit.url}#{anchor}" for anchor in hit.anchors) for hit in hits),
        )

    @property
    def pages(self) -> list[str]:
        """The page that each hit is cited by."""
        return [page_of(sources[0]) for sources in self.sources]


@dataclass(frozen=True, slots=True)
class Scores:
    """Means over questions by metric; `by_k` of those that depend on k: {metric: {k: Interval}}.

    `rows` has the values of each question, by names like "retrieval_score@9" and "mrr", in the order given.
    """

    by_k: Mapping[str, Mapping[int, Interval]]
    mrr: Interval
    rows: tuple[Mapping[str, float], ...]


# ------------------------------------------------------------------------------------------- one question


def retrieval_score(example: Example, found: Retrieved, k: int) -> float:
    """1 if a reference page is among the pages of the first `k` sources, else 0: `get_retrieval_score` of the study.

    The study is ray-project/llm-applications. A source is what an answer cites: of a text that stands in several
    places the hit's own; `any_source_score` counts the others as well.
    """
    return float(bool(_pages(example) & set(found.pages[:k])))


def any_source_score(example: Example, found: Retrieved, k: int) -> float:
    """As `retrieval_score`, if the text of a hit stands on a reference page, though another is cited for it."""
    pages = {page_of(source) for sources in found.sources[:k] for source in sources}
    return float(bool(_pages(example) & pages))


def section_score(example: Example, found: Retrieved, k: int) -> float:
    """1 if one of the first `k` hits lies in a reference section (the anchor is on its path), else 0.

    A reference without an anchor means its whole page.
    """
    inside = {anchor for anchors in found.anchors[:k] for anchor in anchors} | set(found.pages[:k])
    return float(bool(set(example.sources) & inside))


def rank(example: Example, found: Retrieved) -> int | None:
    """The place, from 1, of the first hit on a reference page; None if there is none."""
    pages = _pages(example)
    return next((place for place, page in enumerate(found.pages, 1) if page in pages), None)


def _pages(example: Example) -> set[str]:
    return {page_of(source) for source in example.sources}


# ------------------------------------------------------------------------------------------- all questions

BY_K: Mapping[str, Callable[[Example, Retrieved, int], float]] = {
    "retrieval_score": retrieval_score,
    "section_score": section_score,
    "any_source_score": any_source_score,
}


def summarise(examples: Sequence[Example], found: Sequence[Retrieved], ks: Sequence[int], seed: int = 0) -> Scores:
    """Every retrieval metric over all questions, each with its interval.

    recall, nDCG and MRR are over pages, which is what the references name reliably: a page counts at its first hit,
    a further hit of the same page is one that brings nothing. MRR sees all that was found. Raises NothingToScore.
    """
    if not examples:
        raise NothingToScore
    ks = sorted(set(ks))
    rows: list[dict[str, float]] = [
        {f"{name}@{k}": score(example, one, k) for name, score in BY_K.items() for k in ks}
        for example, one in zip(examples, found, strict=True)
    ]
    for n, ranked in enumerate(ranking(examples, found, ks)):
        rows[n] |= ranked
    means = bootstrap({name: [row[name] for row in rows] for name in rows[0]}, seed)
    by_k = {name: {k: means[f"{name}@{k}"] for k in ks} for name in (*BY_K, "recall", "ndcg")}
    return Scores(by_k, means["mrr"], tuple(rows))


def ranking(examples: Sequence[Example], found: Sequence[Retrieved], ks: Sequence[int]) -> list[dict[str, float]]:
    """recall@k, nDCG@k (binary gains, log2 discount) and the reciprocal rank of each question, by ir-measures."""
    import ir_measures
    from ir_measures import RR, R, nDCG

    named = {R @ k: f"recall@{k}" for k in ks} | {nDCG @ k: f"ndcg@{k}" for k in ks} | {RR: "mrr"}
    numbers = defaultdict[str, str](map(str, count()).__next__)  # trec_eval dies of some names, of a NUL in a URL
    relevant = {str(n): {numbers[page]: 1 for page in _pages(example)} for n, example in enumerate(examples)}
    run = {str(n): _ranked([numbers[page] for page in one.pages]) for n, one in enumerate(found)}
    rows = [dict.fromkeys(named.values(), 0.0) for _ in examples]
    for metric in ir_measures.iter_calc(list(named), relevant, run):
        rows[int(metric.query_id)][named[metric.measure]] = float(metric.value)
    return rows


def _ranked(pages: Sequence[str]) -> dict[str, float]:
    """The hits as a ranked list of documents: a page at its first hit, and a name of its own for each further one."""
    ranked: dict[str, float] = {}
    for place, page in enumerate(pages):
        ranked[f"again {place}" if page in ranked else page] = -float(place)
    return ranked


# ------------------------------------------------------------------------------------------- answers

_MARKERS = re.compile(r"\[\d+(?:\s*,\s*\d+)*\]")
_ARTICLES = re.compile(r"\b(a|an|the)\b")
_WITHOUT_PUNCTUATION = str.maketrans("", "", string.punctuation)


def token_f1(answer: str, reference: str) -> float:
    """Harmonic mean of precision and recall of the answer's words, 0 to 1.

    As SQuAD does (Rajpurkar et al., 2016): lower case, without punctuation and articles, words counted as often as
    they stand. Markers of citations, [n], are no words. 1 if neither text has words, 0 if one of them has none.
    """
    said, wanted = Counter(_words(answer)), Counter(_words(reference))
    if not said or not wanted:
        return float(said == wanted)
    return 2 * sum((said & wanted).values()) / (said.total() + wanted.total())


def _words(text: str) -> list[str]:
    bare = _MARKERS.sub(" ", text).lower().translate(_WITHOUT_PUNCTUATION)
    return _ARTICLES.sub(" ", bare).split()


def similarity(embed: Callable[[Sequence[str]], np.ndarray], answer: str, reference: str) -> float:
    """Cosine of the two texts' embeddings, -1 to 1; `embed` gives rows of length 1.

    A model reads only so many tokens: of a long answer it sees the beginning.
    """
    one, other = embed([_MARKERS.sub("", answer), reference])
    return float(np.clip(np.dot(one, other), -1, 1))


def supported_share(answer: Answer) -> float | None:
    """Share of the answer's citations whose passage bears out what is said; None without any citation."""
    if not answer.citations:
        return None
    return sum(citation.supported for citation in answer.citations) / len(answer.citations)
