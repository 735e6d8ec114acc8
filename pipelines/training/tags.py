"""The tag classifier: questions by the part of a site that they are about.

Labels come from two places: the URL of a question's reference page, and people. Judged on pages and questions that it
has not seen, with the question alone.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from pydantic import Field

from pipelines.answering.reranking.tag import OTHER, TagReranker
from pipelines.answering.routing.classifier import ClassifierShape, TextClassifier
from pipelines.evaluation.dataset import Example, read_answerable, sample
from pipelines.evaluation.questions import alike, labelled
from pipelines.training import classification, folds
from pipelines.training.classification import ClassifierKind, markdown_table
from pipelines.training.folds import FOLDS
from pipelines.training.ranking import GateVerdict, JudgingHits, judge_ranks, within
from pipelines.training.run import RerankingPlan, TrainingOrder, TrainingScores, Workplace

# A part with fewer labelled questions is "other": docs/training.md has what other bounds give.
AT_LEAST = 100
# Words, pairs of words and runs of 2 to 4 letters by a margin; docs/training.md has the alternatives.
SHAPE = ClassifierShape(characters=(2, 4), pairs=True, margin=True, strength=0.3)
# The thresholds from which the gate chooses: below 0.3 hardly a question is left alone.
THRESHOLDS = (0.3, 0.5, 0.7, 0.8, 0.9, 0.95)


class BadPrefix(ValueError):
    """No reference source lies in a folder below the prefix."""


class TagPlan(RerankingPlan):
    """How a tag classifier is trained and judged."""

    prefix: str = Field(description="the site's URL: the folder after it is the part of a page")
    at_least: int = Field(AT_LEAST, ge=1, description='questions that a part needs, otherwise it is "other"')
    folds: int = Field(FOLDS, ge=2, description="of the cross-validation")
    held_out: int = Field(400, ge=0, description="questions to measure the gain by; 0: all that are held out")


@dataclass(frozen=True, slots=True)
class TagData:
    """Tagged questions; the hits that judge a gain, if there are any, and the places of `rows` that they stand for."""

    plan: TagPlan
    rows: Sequence[labelled.TaggedQuestion]
    hits: JudgingHits | None = None
    places: Sequence[int] = ()


class TagKind(ClassifierKind[TagPlan, TagData]):
    """Judged by the gain from putting hits of the predicted part first; without hits nothing is accepted."""

    name, card, plan = "tags", "tag", TagPlan
    help = "a classifier of questions by part of the site"

    def load(self, order: TrainingOrder, plan: TagPlan) -> TagData:
        """Tag the questions and, in a collection, retrieve the hits of a fold of the pages. Raises BadPrefix."""
        examples, people = read_answerable(order.dataset), order.corrections
        by_url = labelled.tag_by_url(examples, plan.prefix)
        if all(row.tag == OTHER for row in by_url):
            raise BadPrefix(f"--prefix is {plan.prefix}: no source lies in a folder below it, such as {by_url[0].page}")
        rows = labelled.merge_rare([*by_url, *(labelled.read_corrections(people) if people else [])], plan.at_least)
        return _with_hits(TagData(plan, rows), examples, order) if order.collection else TagData(plan, rows)

    def fit(self, data: TagData, workplace: Workplace) -> TextClassifier:
        """Learn from all questions. Raises CannotLearn."""
        return fit_tags(data.rows)

    def judge(self, data: TagData, model: TextClassifier, workplace: Workplace) -> TrainingScores:
        """Judge over folds that share no page and no question, and by the gain in the hits."""
        plan, metrics = data.plan, score_tags(data.rows, data.plan.folds, data.plan.seed)
        workplace.say(f"accuracy on {plan.folds} folds: {_numbers(metrics['accuracy'])}")
        verdict, threshold, by_threshold = measure_gain(data) if data.hits else (None, 0.0, [])
        entries = {
            "prefix": plan.prefix,
            "data": {"fingerprint": labelled.fingerprint_tagged(data.rows), "questions": len(data.rows)},
            "settings": {
                **asdict(SHAPE),
                **plan.model_dump(include={"at_least", "folds", "seed"}),
                "threshold": threshold,
            },
            "metrics": metrics,
            "gate": asdict(verdict) if verdict else None,
            "gain_by_threshold": by_threshold,
        }
        scores = [describe(metrics)]
        if verdict:
            scores += ["", markdown_table(by_threshold), f"\nthreshold {threshold:g}", str(verdict)]
        return TrainingScores(verdict is not None and verdict.accepted, entries, "\n".join(scores), {})


def _with_hits(data: TagData, examples: Sequence[Example], order: TrainingOrder) -> TagData:
    """Return the data with the hits of a held-out fold of the pages. Raises BadFolds."""
    plan = data.plan
    places = folds.group_folds(folds.page_groups(examples), FOLDS, plan.seed)[0].tolist()
    kept = [examples[place] for place in places]
    with order.open_collection() as collection:
        judging = JudgingHits.retrieve(collection, sample(kept, plan.held_out or len(kept), plan.seed), plan.depth)
    return TagData(plan, data.rows, judging, places)


def tag_groups(rows: Sequence[labelled.TaggedQuestion]) -> list[int]:
    """Return the group of each row: those that share a page or ask alike, over however many others."""
    groups = alike.question_groups([row.question for row in rows])
    keys = ([group, *([row.page] if row.page else [])] for row, group in zip(rows, groups, strict=True))
    return alike.connected_groups(len(rows), alike.pairs_sharing(keys))


def fit_tags(rows: Sequence[labelled.TaggedQuestion], metadata: Mapping[str, Any] | None = None) -> TextClassifier:
    """Return the classifier of questions alone. Raises CannotLearn."""
    return TextClassifier.fit([row.question for row in rows], [row.tag for row in rows], SHAPE, metadata)


def score_tags(rows: Sequence[labelled.TaggedQuestion], count: int = FOLDS, seed: int = 0) -> dict[str, Any]:
    """Return the scores over `count` folds that share no page and no question. Raises BadFolds and CannotLearn.

    `accuracy` has "all", "pages" (tagged by URL) and "people".
    """
    from sklearn.metrics import brier_score_loss

    labels, truth = sorted({row.tag for row in rows}), [row.tag for row in rows]
    parts = folds.group_folds(tag_groups(rows), count, seed)
    questions = [row.question for row in rows]
    out = folds.predict_out_of_fold(lambda places: fit_tags([rows[p] for p in places]), questions, labels, parts)
    predicted, confidence = [labels[place] for place in out.argmax(axis=1)], out.max(axis=1).tolist()
    right = [a == b for a, b in zip(predicted, truth, strict=True)]
    aucs = [
        classification.area_under_curve(out[:, i].tolist(), [t == tag for t in truth]) for i, tag in enumerate(labels)
    ]
    return {
        "questions": len(rows),
        "folds": count,
        "accuracy": _accuracy(rows, right),
        "majority": classification.majority_share(truth),
        "macro_auc": float(np.mean(aucs)),
        "calibration": classification.calibration(confidence, right),
        "brier": float(brier_score_loss(right, confidence)),
        "by_label": classification.scores_by_label(truth, predicted),
        "confusion": classification.confusion(truth, predicted),
        "curve": classification.threshold_curve(out, labels, truth, never=OTHER),
    }


def _accuracy(rows: Sequence[labelled.TaggedQuestion], right: Sequence[bool]) -> dict[str, float]:
    pairs = list(zip(rows, right, strict=True))
    kinds = {
        "all": list(right),
        "pages": [is_right for row, is_right in pairs if row.page],
        "people": [is_right for row, is_right in pairs if not row.page],
    }
    return {name: sum(values) / len(values) for name, values in kinds.items() if values}


def measure_gain(data: TagData) -> tuple[GateVerdict, float, list[dict[str, float]]]:
    """Return the verdict on pages that the classifier has not seen, the threshold, and the gain at each one.

    The threshold is chosen on one half of the questions, the verdict is of the other.
    """
    hits, plan = data.hits, data.plan
    assert hits is not None
    classifier = fit_tags(select_unseen(data.rows, data.places), {"prefix": plan.prefix})
    before, half = hits.ranks(), len(hits.examples) // 2
    after = {t: hits.ranks(TagReranker(classifier, t)) for t in THRESHOLDS}
    best = max(THRESHOLDS, key=lambda t: (sum(within(after[t][:half], plan.k)), t))
    verdict = judge_ranks(before[half:], after[best][half:], plan.k)
    return verdict, best, [_gain_row(t, judge_ranks(before, after[t], plan.k)) for t in THRESHOLDS]


def select_unseen(rows: Sequence[labelled.TaggedQuestion], judging: Sequence[int]) -> list[labelled.TaggedQuestion]:
    """Return the rows that share neither a page nor a near-duplicate question with those at `judging`."""
    groups = tag_groups(rows)
    unseen = {groups[place] for place in judging}
    return [row for row, group in zip(rows, groups, strict=True) if group not in unseen]


def _gain_row(threshold: float, verdict: GateVerdict) -> dict[str, float]:
    gain = verdict.gain
    return {
        "threshold": threshold,
        "before": verdict.before.retrieval_score.get(verdict.k, verdict.before.mrr).value,
        "gain": gain.difference,
        "low": gain.low,
        "high": gain.high,
        "mrr before": verdict.before.mrr.value,
        "mrr": verdict.after.mrr.value,
    }


def describe(metrics: Mapping[str, Any]) -> str:
    """Return the scores of folds for a person."""
    ece = metrics["calibration"]["ece"]
    lines = [
        f"{metrics['questions']:,} questions, {metrics['folds']} folds that share no page and no near-duplicate",
        f"majority {metrics['majority']:.3f}, accuracy {_numbers(metrics['accuracy'])}",
        f"macro AUC {metrics['macro_auc']:.3f}, Brier {metrics['brier']:.3f}, ECE {ece:.3f}",
        "",
        markdown_table(metrics["curve"]),
    ]
    return "\n".join(lines)


def _numbers(by_name: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {value:.3f}" for name, value in by_name.items())
