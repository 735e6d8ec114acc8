"""The tag classifier: assigns questions to parts of a site.

Labels come from two places: the URL of a question's reference page, and people. Judged on pages and questions that it
has not seen, by the gain from putting hits of the predicted part first.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
from pydantic import Field, model_validator

from pipelines.answering.reranking.tag import KIND, OTHER, TagReranker
from pipelines.answering.routing.classifier import Classifier, TextClassifier
from pipelines.embedding.tokens import TokenCounter
from pipelines.evaluation.dataset import read_answerable, sample
from pipelines.evaluation.questions import alike, tagged
from pipelines.evaluation.questions.tagged import TaggedQuestion
from pipelines.text.counts import counted
from pipelines.text.sheets import Fact, Part
from pipelines.training import classification, fine_tuning
from pipelines.training.fine_tuning import TrainerPlan
from pipelines.training.folds import FOLDS, BadFolds, Places, group_folds
from pipelines.training.mining import select_answered
from pipelines.training.ranking import GateVerdict, JudgingHits, judge_ranks, table_of, within
from pipelines.training.run import ModelKind, RerankingPlan, TrainingOrder, TrainingPlan, TrainingScores, Workplace
from pipelines.training.sequence_classifier import fit_sequence_classifier

# A part with fewer labelled questions becomes "other". The people who labelled the Ray assistant's questions chose
# among nine parts, which all have this many.
AT_LEAST = 100
# The thresholds of the Ray assistant's study; the gate chooses one of them.
THRESHOLDS = (0.0, 0.3, 0.5, 0.7, 0.9)

Fit = Callable[[Sequence[TaggedQuestion]], Classifier]


class BadPrefix(ValueError):
    """No reference source is in a folder below the prefix, or too few are."""


class TagPlan(TrainerPlan, RerankingPlan):
    """Settings for training and judging a tag classifier.

    Epochs, batch size and learning rate apply to a `base`; they are the usual ones for a head on BERT (Devlin et al.,
    2019).
    """

    prefix: str = Field(min_length=1, description="the site's URL; the next folder of a page's URL is its part")
    base: str = Field(
        "", description="a transformer to add a classification head to (default: TF-IDF and logistic regression)"
    )
    at_least: int = Field(
        AT_LEAST, ge=1, description='minimum number of questions of a part; smaller parts become "other"'
    )
    folds: int = Field(FOLDS, ge=2, description="one fold is for judging, the others are for training")
    held_out: int = Field(400, ge=0, description="held-out questions to measure the gain with; 0: all")
    epochs: float = Field(3.0, gt=0, description="passes over the questions, with a base")
    batch_size: int = Field(32, ge=1, description="questions per batch, with a base")
    learning_rate: float = Field(5e-5, gt=0, description="learning rate, with a base")

    @model_validator(mode="after")
    def _check_base(self) -> Self:
        of_base = self.model_fields_set & (TrainerPlan.model_fields.keys() - TrainingPlan.model_fields.keys())
        if of_base and not self.base:
            flags = " and ".join(f"--{name.replace('_', '-')}" for name in sorted(of_base))
            raise ValueError(f"only a transformer is trained with {flags}: give --base too, or leave this out")
        return self


@dataclass(frozen=True, slots=True)
class TagData:
    """Tagged questions, the indices of the judging ones, and their hits.

    No other question shares their page or wording.

    `base` has the weights below the classification head, None for TF-IDF with a regression.
    """

    plan: TagPlan
    rows: Sequence[TaggedQuestion]
    fold: Places
    hits: JudgingHits
    collection: str
    base: TokenCounter | None = None


class TagKind(ModelKind[TagPlan, TagData, Classifier]):
    """Judged by the gain from putting hits of the predicted part first."""

    name, card, plan = "tags", KIND, TagPlan
    help = "a classifier of questions by part of the site"

    def load(self, order: TrainingOrder, plan: TagPlan) -> TagData:
        """Tag the questions and retrieve the hits of the judging ones.

        Raises BadPrefix, BadFolds, NothingToLearn and TrainerMissing.
        """
        base = None
        if plan.base:
            fine_tuning.check_trainer()
            base = fine_tuning.base_model(plan.base)
        examples, people = read_answerable(order.dataset), order.corrections
        by_url = tagged.tag_by_url(examples, plan.prefix)
        if all(row.tag == OTHER for row in by_url):
            raise BadPrefix(f"--prefix is {plan.prefix}: no source lies in a folder below it, such as {by_url[0].page}")
        rows = merge_parts([*by_url, *(tagged.read_corrections(people) if people else [])], plan.at_least)
        fold = group_folds(tag_groups(rows), plan.folds, plan.seed)[0]
        judging = [examples[place] for place in fold if place < len(examples)]
        with order.open_collection() as collection:
            judging = select_answered(judging, collection.corpus)
            if len(judging) < 2:
                raise BadFolds("of the fold that judges, a single question has a source in the index: add questions")
            kept = sample(judging, plan.held_out or len(judging), plan.seed)
            hits = JudgingHits.retrieve(collection, kept, plan.depth)
        order.progress(f"{counted(len(rows), 'question')} with their part of the site, {len(kept):,} to judge by")
        return TagData(plan, rows, fold, hits, collection.index.collection, base)

    def fit(self, data: TagData, workplace: Workplace) -> Classifier:
        """Train on all questions. Raises CannotLearn."""
        return fitter(data, workplace)(data.rows)

    def judge(self, data: TagData, model: Classifier, workplace: Workplace) -> TrainingScores:
        """Judge by a classifier that has seen neither the page nor the question, and by the gain in the hits."""
        plan, judge = data.plan, fitter(data, workplace)(rows_without(data.rows, data.fold))
        metrics = score_tags(data, judge)
        verdict, threshold, by_threshold = measure_gain(data, judge)
        entries = {
            "prefix": plan.prefix,
            "collection": data.collection,
            "base": {"model": data.base.model, "identity": data.base.identity} if data.base else None,
            "data": {"fingerprint": tagged.fingerprint_tagged(data.rows), "questions": len(data.rows)},
            "settings": {**plan.model_dump(), "threshold": threshold},
            "metrics": metrics,
            "gate": asdict(verdict),
            "gain_by_threshold": by_threshold,
        }
        chosen = Fact("threshold", f"{threshold:g}")
        scores = [*describe(metrics), "", table_of(by_threshold), chosen, "", *verdict.described()]
        return TrainingScores(verdict.accepted, entries, scores, {})

    def save(self, model: Classifier, folder: Path, card: Mapping[str, Any]) -> None:
        """Write the classifier, which adds its labels to the card."""
        model.save(folder, card)


def merge_parts(rows: Sequence[TaggedQuestion], at_least: int) -> list[TaggedQuestion]:
    """Return `rows` with parts of fewer than `at_least` questions renamed "other".

    Raises BadPrefix if one label is left.
    """
    merged = tagged.merge_rare(rows, at_least)
    if len({row.tag for row in merged}) < 2:
        counts = Counter(row.tag for row in rows).most_common(5)
        most = ", ".join(f"{tag} {count:,}" for tag, count in counts)
        raise BadPrefix(
            f"--at-least is {at_least:,}: two parts of the site (or one and others) need so many questions, and there "
            f"are {most}. Lower it, add questions, or give another --prefix"
        )
    return merged


def tag_groups(rows: Sequence[TaggedQuestion]) -> list[int]:
    """Return the group of each row.

    Rows that share a page or have similar questions are linked, also through others.
    """
    groups = alike.question_groups([row.question for row in rows])
    keys = ([group, *([row.page] if row.page else [])] for row, group in zip(rows, groups, strict=True))
    return alike.connected_groups(len(rows), alike.pairs_sharing(keys))


def rows_without(rows: Sequence[TaggedQuestion], fold: Places) -> list[TaggedQuestion]:
    """Return the rows that are not in the fold."""
    return [rows[place] for place in np.setdiff1d(np.arange(len(rows)), fold)]


def fitter(data: TagData, workplace: Workplace) -> Fit:
    """Return a function that fits a classifier to questions: a head on the base, or TF-IDF with a regression."""

    def fit(rows: Sequence[TaggedQuestion]) -> Classifier:
        if data.base is None:
            return TextClassifier.fit([row.question for row in rows], [row.tag for row in rows])
        workplace.say(f"training a head on {data.base.model} with {counted(len(rows), 'question')}")
        return fit_sequence_classifier(data.base, rows, data.plan, workplace.checkpoints(data.base.identity))

    return fit


def score_tags(data: TagData, classifier: Classifier) -> dict[str, Any]:
    """Return the scores on the fold that `classifier` was not trained on.

    `accuracy` has "all", "pages" (tagged by URL) and "people".
    """
    from sklearn.metrics import brier_score_loss

    labels, rows = sorted({row.tag for row in data.rows}), [data.rows[place] for place in data.fold]
    out, truth = np.zeros((len(rows), len(labels))), [row.tag for row in rows]
    known = [labels.index(label) for label in classifier.labels]  # a label may have lost all its questions to the fold
    out[:, known] = classifier.probabilities([row.question for row in rows])
    predicted, confidence = [labels[place] for place in out.argmax(axis=1)], out.max(axis=1).tolist()
    right = [a == b for a, b in zip(predicted, truth, strict=True)]
    return {
        "questions": len(rows),
        "accuracy": _accuracy(rows, right),
        "majority": classification.majority_share(truth),
        "calibration": classification.calibration(confidence, right),
        "brier": float(brier_score_loss(right, confidence)),
        "by_label": classification.scores_by_label(truth, predicted),
        "confusion": classification.confusion(truth, predicted),
        "curve": classification.threshold_curve(out, labels, truth, never=OTHER, thresholds=THRESHOLDS),
    }


def _accuracy(rows: Sequence[TaggedQuestion], right: Sequence[bool]) -> dict[str, float]:
    pairs = list(zip(rows, right, strict=True))
    kinds = {
        "all": list(right),
        "pages": [is_right for row, is_right in pairs if row.page],
        "people": [is_right for row, is_right in pairs if not row.page],
    }
    return {name: sum(values) / len(values) for name, values in kinds.items() if values}


def measure_gain(data: TagData, classifier: Classifier) -> tuple[GateVerdict, float, list[dict[str, float]]]:
    """Return the verdict on pages that `classifier` has not seen, the threshold, and the gain at each threshold.

    The threshold is chosen on one half of the questions; the verdict is on the other half.
    """
    hits, k = data.hits, data.plan.k
    classifier.metadata = {"prefix": data.plan.prefix}
    before, after = hits.ranks(), {t: hits.ranks(TagReranker(classifier, t)) for t in THRESHOLDS}
    best = max(THRESHOLDS, key=lambda t: (sum(within(after[t][::2], k)), t))
    verdict = judge_ranks(before[1::2], after[best][1::2], k)
    return verdict, best, [_gain_row(t, judge_ranks(before, after[t], k)) for t in THRESHOLDS]


def _gain_row(threshold: float, verdict: GateVerdict) -> dict[str, float]:
    gain = verdict.gain
    return {
        "threshold": threshold,
        f"gain@{verdict.k}": gain.difference,
        "low": gain.low,
        "high": gain.high,
        "MRR before": verdict.before.mrr.value,
        "MRR": verdict.after.mrr.value,
    }


def describe(metrics: Mapping[str, Any]) -> list[Part]:
    """Return the scores on the fold for a person."""
    accuracy = ", ".join(f"{name} {value:.3f}" for name, value in metrics["accuracy"].items())
    return [
        Fact("judged by", f"{counted(metrics['questions'], 'question')} whose pages and wordings it has not seen"),
        Fact("accuracy", f"{accuracy}, majority {metrics['majority']:.3f}"),
        Fact("Brier", f"{metrics['brier']:.3f}, ECE {metrics['calibration']['ece']:.3f}"),
        "",
        table_of(metrics["curve"]),
    ]
