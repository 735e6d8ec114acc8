"""Declares every metric once: name, label, function, and where it is shown.

Results, rows by question, tables and the report take their lists from METRICS, so a metric is added only there. Pure
arithmetic over examples, hits and answers; knows no engine, no database and no language model.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from pipelines.answering.synthesis.modes import CONTEXT_ONLY
from pipelines.evaluation.answer_scores import (
    Embed,
    answered,
    cited,
    reference_cited,
    reference_first,
    refused,
    similarity,
    source_cited,
    supported_claims_share,
    supported_share,
    token_f1,
)
from pipelines.evaluation.dataset import Example, page_of
from pipelines.records import Answer, Hit


@dataclass(frozen=True, slots=True)
class HitSources:
    """The sources of one question's hits, best hit first.

    `sources` has, for each hit, every place where its text occurs, starting with the hit's own source, which an answer
    cites. `anchors` has the `url#anchor` of each anchor on the hit's path, from the outermost section to its own.
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
        """The page that each hit is cited with."""
        return [page_of(sources[0]) for sources in self.sources]


@dataclass(frozen=True, slots=True)
class Metric:
    """One score of a question; higher is better in every metric.

    It scores the first k hits, or an answer. A function of answers returns None if the score does not apply. Without
    `by_k` there is one score, over all hits. With `needs_reference`, only questions with a reference answer are scored.
    If each score is 0 or 1, the mean is a share of the things that `share_of` names, in the singular and the plural.
    `shown` controls how `evaluate` prints it. With `in_tables`, an experiment's tables contain it even if another
    metric ranks the runs. `by_question` keeps the score of each question in an experiment's records, for paired tests
    and the report.
    """

    name: str
    label: str
    of_hits: Callable[[Example, HitSources, int], float] | None = None
    of_answer: Callable[[Example, Answer, Embed], float | None] | None = None
    needs_reference: bool = False
    share_of: tuple[str, ...] = ()
    by_k: bool = True
    shown: Literal["interval", "mean", "no"] = "mean"
    in_tables: bool = False
    by_question: bool = True

    def columns(self, ks: Sequence[int]) -> list[str]:
        """Return the names of its scores: "recall@1", "recall@3", … or "mrr"."""
        return [f"{self.name}@{k}" for k in ks] if self.by_k else [self.name]


# ------------------------------------------------------------------------------------------- hits


def retrieval_score(example: Example, found: HitSources, k: int) -> float:
    """Return 1 if a reference page is among the pages of the first `k` sources, else 0.

    Same as `get_retrieval_score` of the study (ray-project/llm-applications). Only the source that an answer would cite
    counts. `any_source_score` also counts the other places with the same text.
    """
    return float(bool(example.pages & set(found.pages[:k])))


def any_source_score(example: Example, found: HitSources, k: int) -> float:
    """Return 1 if the text of one of the first `k` hits occurs on a reference page, even if cited elsewhere."""
    pages = {page_of(source) for sources in found.sources[:k] for source in sources}
    return float(bool(example.pages & pages))


def section_score(example: Example, found: HitSources, k: int) -> float:
    """Return 1 if one of the first `k` hits is in a reference section (the anchor is on its path), else 0.

    A reference without an anchor means the whole page.
    """
    inside = {anchor for anchors in found.anchors[:k] for anchor in anchors} | set(found.pages[:k])
    return float(bool(set(example.sources) & inside))


def recall(example: Example, found: HitSources, k: int) -> float:
    """Return the share of the reference pages that are among the pages of the first `k` hits."""
    return len(example.pages & set(found.pages[:k])) / max(1, len(example.pages))


def ndcg(example: Example, found: HitSources, k: int) -> float:
    """Return nDCG of the first `k` hits as trec_eval defines it.

    A reference page gains 1, discounted by log2(place + 1). It gains at its first hit; another hit on it takes a place
    and gains nothing.
    """
    discounts = [1 / math.log2(place + 1) for place in range(1, k + 1)]
    first = {page: place for place, page in reversed(list(enumerate(found.pages[:k])))}
    best = sum(discounts[: len(example.pages)])
    gained = sorted(place for page, place in first.items() if page in example.pages)
    return sum(discounts[place] for place in gained) / best if best else 0.0


def reciprocal_rank(example: Example, found: HitSources, k: int) -> float:
    """Return 1 / the place of the first hit on a reference page, 0 if none of the first `k` hits is on one."""
    place = rank(example, found)
    return 1 / place if place and place <= k else 0.0


def rank(example: Example, found: HitSources) -> int | None:
    """Return the place, from 1, of the first hit on a reference page; None if there is none."""
    pages = example.pages
    return next((place for place, page in enumerate(found.pages, 1) if page in pages), None)


# ------------------------------------------------------------------------------------------- the declaration

# recall, nDCG and MRR are computed over pages, because references name pages reliably. A page counts at its first hit;
# another hit on it takes a place and gains nothing. MRR sees all hits. Experiments keep only the means of recall and
# any_source_score: per question they add little to retrieval_score and nDCG.
FOUND = ("question whose page was found", "questions whose page was found")
METRICS: dict[str, Metric] = {
    metric.name: metric
    for metric in (
        Metric("retrieval_score", "page found", of_hits=retrieval_score, shown="interval"),
        Metric("section_score", "section found", of_hits=section_score, shown="interval", in_tables=True),
        Metric("any_source_score", "any source score", of_hits=any_source_score, shown="no", by_question=False),
        Metric("recall", "recall", of_hits=recall, by_question=False),
        Metric("ndcg", "nDCG", of_hits=ndcg),
        Metric("mrr", "MRR", of_hits=reciprocal_rank, by_k=False, shown="interval", in_tables=True),
        Metric(
            "cited",
            "cited",
            of_answer=lambda _, a, __: cited(a),
            share_of=("answer that claims something", "answers that claim something"),
        ),
        Metric("claims_supported", "claims supported", of_answer=lambda _, a, __: supported_claims_share(a)),
        Metric("answered", "answered", of_answer=lambda e, a, _: answered(e, a), share_of=FOUND),
        Metric(
            "refused",
            "refused",
            of_answer=lambda e, a, _: refused(e, a),
            share_of=("question about other things", "questions about other things"),
        ),
        Metric("reference_cited", "reference cited", of_answer=lambda e, a, _: reference_cited(e, a), share_of=FOUND),
        Metric("reference_first", "reference first", of_answer=lambda e, a, _: reference_first(e, a), share_of=FOUND),
        Metric("source_cited", "source cited", of_answer=lambda e, a, _: source_cited(e, a), share_of=("question",)),
        Metric(
            "similarity",
            "similarity",
            of_answer=lambda e, a, embed: similarity(embed, a.text, e.answer or ""),
            needs_reference=True,
        ),
        Metric(
            "token_f1", "token F1", of_answer=lambda e, a, _: token_f1(a.text, e.answer or ""), needs_reference=True
        ),
        Metric("supported", "citations supported", of_answer=lambda _, a, __: supported_share(a)),
    )
}


def hit_metrics() -> list[Metric]:
    """Return the metrics of hits, in order."""
    return [metric for metric in METRICS.values() if metric.of_answer is None]


def answer_metrics() -> list[Metric]:
    """Return the metrics of answers, in order; a judge's dimensions are additional scores."""
    return [metric for metric in METRICS.values() if metric.of_answer is not None]


def is_of_hits(column: str) -> bool:
    """Return whether a score such as "ndcg@9" or "mrr" is about hits; other scores are about answers."""
    return column.partition("@")[0] in {metric.name for metric in hit_metrics()}


def is_share(name: str) -> bool:
    """Return whether each score with this name is 0 or 1, so that its mean is a share."""
    return name in METRICS and bool(METRICS[name].share_of)


def label_of(column: str) -> str:
    """Return the display name of a score: "nDCG @ 9" for "ndcg@9"."""
    name, _, k = column.partition("@")
    label = METRICS[name].label if name in METRICS else name.replace("_", " ")
    return f"{label} @ {k}" if k else label


def score_names(
    ks: Sequence[int], answers: bool = False, judged: Sequence[str] = (), component: bool = False
) -> list[str]:
    """Return the names of all scores of an evaluation at `ks`: "ndcg@9", "mrr", and with `answers` "cited"."""
    hits = [column for metric in hit_metrics() for column in metric.columns(ks)]
    of_answers = [*(metric.name for metric in answer_metrics()), *judged] if answers else []
    return [*hits, *of_answers, *(f"{CONTEXT_ONLY}_{name}" for name in of_answers if component)]


def answer_score_order() -> list[str]:
    """Return the answer scores in order of preference for a single score: the judge's quality first."""
    return list(dict.fromkeys(["quality", "similarity", *(metric.name for metric in answer_metrics())]))


# ------------------------------------------------------------------------------------------- all questions


def score_hits(examples: Sequence[Example], found: Sequence[HitSources], ks: Sequence[int]) -> list[dict[str, float]]:
    """Return every score of each question's hits, by names like "ndcg@9"."""
    ks = sorted(set(ks))
    rows: list[dict[str, float]] = []
    for example, one in zip(examples, found, strict=True):
        row: dict[str, float] = {}
        for metric in hit_metrics():
            assert metric.of_hits is not None
            depths = ks if metric.by_k else [len(one.sources)]
            for column, k in zip(metric.columns(ks), depths, strict=True):
                row[column] = metric.of_hits(example, one, k)
        rows.append(row)
    return rows
