"""Declares every metric once: name, label, function, and where it is shown.

Results, rows by question, tables and the report take their lists from METRICS: a metric is added there and nowhere
else. Pure arithmetic over examples, hits and answers; knows no engine, no database and no language model.
"""

import re
import string
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any, Literal

import numpy as np

from pipelines.evaluation.dataset import Example, page_of
from pipelines.records import Answer, Hit

Embed = Callable[[Sequence[str]], np.ndarray]
"""Return the embeddings of texts: rows of length 1."""


@dataclass(frozen=True, slots=True)
class HitSources:
    """The sources of one question's hits, best hit first.

    `sources` has for each hit every place where its text stands, the hit's own (which an answer cites) first;
    `anchors` the `url#anchor` of each anchor on the hit's path, from the outermost section to its own.
    """

    sources: tuple[tuple[str, ...], ...]
    anchors: tuple[tuple[str, ...], ...]

    @classmethod
    def of(cls, hits: Sequence[Hit]) -> "HitSources":
        """Return the sources of `hits`."""
        return cls(
            tuple(tuple(dict.fromkeys((hit.source, *hit.sources))) for hit in hits),
            tuple(tuple(f"{hit.url}#{anchor}" for anchor in hit.anchors) for hit in hits),
        )

    @property
    def pages(self) -> list[str]:
        """The page that each hit is cited by."""
        return [page_of(sources[0]) for sources in self.sources]


@dataclass(frozen=True, slots=True)
class Metric:
    """One score of a question; higher is better in every metric.

    It scores the first k hits, by a function or by a `measure` of ir-measures, or an answer; a function of answers
    returns None where there is nothing to score. Without `by_k` there is one score, over all hits. Where
    `needs_reference`, only questions with a reference answer are scored. `shown` is how `evaluate` prints it,
    `beside` puts it into an experiment's tables whatever they rank by, `by_question` keeps the score of each question
    in an experiment's records, for paired tests and the report.
    """

    name: str
    label: str
    of_hits: Callable[[Example, HitSources, int], float] | None = None
    measure: str = ""
    of_answer: Callable[[Example, Answer, Embed], float | None] | None = None
    needs_reference: bool = False
    by_k: bool = True
    shown: Literal["interval", "mean", "no"] = "mean"
    beside: bool = False
    by_question: bool = True

    def columns(self, ks: Sequence[int]) -> list[str]:
        """Return the names of its scores: "recall@1", "recall@3", … or "mrr"."""
        return [f"{self.name}@{k}" for k in ks] if self.by_k else [self.name]


# ------------------------------------------------------------------------------------------- hits


def retrieval_score(example: Example, found: HitSources, k: int) -> float:
    """Return 1 if a reference page is among the pages of the first `k` sources, else 0.

    `get_retrieval_score` of the study (ray-project/llm-applications). A source is what an answer cites: of a text that
    stands in several places the hit's own; `any_source_score` counts the others too.
    """
    return float(bool(_pages(example) & set(found.pages[:k])))


def any_source_score(example: Example, found: HitSources, k: int) -> float:
    """Return 1 if the text of one of the first `k` hits stands on a reference page, whichever place it is cited by."""
    pages = {page_of(source) for sources in found.sources[:k] for source in sources}
    return float(bool(_pages(example) & pages))


def section_score(example: Example, found: HitSources, k: int) -> float:
    """Return 1 if one of the first `k` hits lies in a reference section (the anchor is on its path), else 0.

    A reference without an anchor means its whole page.
    """
    inside = {anchor for anchors in found.anchors[:k] for anchor in anchors} | set(found.pages[:k])
    return float(bool(set(example.sources) & inside))


def rank(example: Example, found: HitSources) -> int | None:
    """Return the place, from 1, of the first hit on a reference page; None if there is none."""
    pages = _pages(example)
    return next((place for place, page in enumerate(found.pages, 1) if page in pages), None)


def _pages(example: Example) -> set[str]:
    return {page_of(source) for source in example.sources}


# ------------------------------------------------------------------------------------------- answers

_MARKERS = re.compile(r"\[\d+(?:\s*,\s*\d+)*\]")
_ARTICLES = re.compile(r"\b(a|an|the)\b")
_WITHOUT_PUNCTUATION = str.maketrans("", "", string.punctuation)


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


def supported_share(answer: Answer) -> float | None:
    """Return the share of the answer's citations that their passages support; None without any citation."""
    if not answer.citations:
        return None
    return sum(citation.supported for citation in answer.citations) / len(answer.citations)


# ------------------------------------------------------------------------------------------- the declaration

# recall, nDCG and MRR are over pages, which references name reliably: a page counts at its first hit, a further hit of
# it takes a place and gains nothing. MRR sees all hits. recall and any_source_score have means alone in experiments:
# by question they say little beyond retrieval_score and nDCG.
METRICS: dict[str, Metric] = {
    metric.name: metric
    for metric in (
        Metric("retrieval_score", "retrieval score", of_hits=retrieval_score, shown="interval"),
        Metric("section_score", "section score", of_hits=section_score, shown="interval", beside=True),
        Metric("any_source_score", "any source score", of_hits=any_source_score, shown="no", by_question=False),
        Metric("recall", "recall", measure="R", by_question=False),
        Metric("ndcg", "nDCG", measure="nDCG"),
        Metric("mrr", "MRR", measure="RR", by_k=False, shown="interval", beside=True),
        Metric(
            "similarity",
            "similarity",
            of_answer=lambda example, answer, embed: similarity(embed, answer.text, example.answer or ""),
            needs_reference=True,
        ),
        Metric(
            "token_f1",
            "token F1",
            of_answer=lambda example, answer, _: token_f1(answer.text, example.answer or ""),
            needs_reference=True,
        ),
        Metric("supported", "supported", of_answer=lambda _, answer, __: supported_share(answer)),
    )
}


def hit_metrics() -> list[Metric]:
    """Return the metrics of hits, in their order."""
    return [metric for metric in METRICS.values() if metric.of_answer is None]


def answer_metrics() -> list[Metric]:
    """Return the metrics of answers, in their order; a judge's dimensions are scores beside them."""
    return [metric for metric in METRICS.values() if metric.of_answer is not None]


def is_of_hits(column: str) -> bool:
    """Return whether a score such as "ndcg@9" or "mrr" is one of hits; others are of answers."""
    return column.partition("@")[0] in {metric.name for metric in hit_metrics()}


def label_of(column: str) -> str:
    """Return a score's name for a person: "nDCG @ 9" for "ndcg@9"."""
    name, _, k = column.partition("@")
    label = METRICS[name].label if name in METRICS else name.replace("_", " ")
    return f"{label} @ {k}" if k else label


def answer_score_order() -> list[str]:
    """Return the scores of answers in the order in which one stands for the answers: the judge's quality first."""
    return ["quality", *(metric.name for metric in answer_metrics())]


def main_answer_score(names: Collection[str]) -> str:
    """Return which of `names` stands for the answers, "" if none does."""
    return next((name for name in answer_score_order() if name in names), "")


# ------------------------------------------------------------------------------------------- all questions


def score_hits(examples: Sequence[Example], found: Sequence[HitSources], ks: Sequence[int]) -> list[dict[str, float]]:
    """Return every score of each question's hits, by names like "ndcg@9"."""
    ks = sorted(set(ks))
    measured = _score_by_measures(examples, found, ks)
    rows: list[dict[str, float]] = []
    for example, one, by_measure in zip(examples, found, measured, strict=True):
        row: dict[str, float] = {}
        for metric in hit_metrics():
            depths = ks if metric.by_k else [len(one.sources)]
            for column, k in zip(metric.columns(ks), depths, strict=True):
                row[column] = metric.of_hits(example, one, k) if metric.of_hits else by_measure[column]
        rows.append(row)
    return rows


def _score_by_measures(
    examples: Sequence[Example], found: Sequence[HitSources], ks: Sequence[int]
) -> list[dict[str, float]]:
    """Return the scores of those metrics that ir-measures computes (binary gains, log2 discount of nDCG)."""
    import ir_measures

    columns: dict[Any, str] = {}
    for metric in hit_metrics():
        if metric.measure:
            measure = ir_measures.parse_measure(metric.measure)
            measures = [measure @ k for k in ks] if metric.by_k else [measure]
            columns |= dict(zip(measures, metric.columns(ks), strict=True))
    numbers = defaultdict[str, str](map(str, count()).__next__)  # trec_eval dies of some names, of a NUL in a URL
    relevant = {str(n): {numbers[page]: 1 for page in _pages(example)} for n, example in enumerate(examples)}
    run = {str(n): _rank_pages([numbers[page] for page in one.pages]) for n, one in enumerate(found)}
    rows = [dict.fromkeys(columns.values(), 0.0) for _ in examples]
    for score in ir_measures.iter_calc(list(columns), relevant, run):
        rows[int(score.query_id)][columns[score.measure]] = float(score.value)
    return rows


def _rank_pages(pages: Sequence[str]) -> dict[str, float]:
    """Return the hits as a ranked list: a page at its first hit, each further hit of it under a name of its own."""
    ranked: dict[str, float] = {}
    for place, page in enumerate(pages):
        ranked[f"again {place}" if page in ranked else page] = -float(place)
    return ranked
