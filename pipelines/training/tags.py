"""Trains a classifier of questions by the part of a site that they are about.

Labels come from two places: the URL of a question's reference page, and people. Judged on pages and questions that it
has not seen, with the question alone.
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

import numpy as np
from pydantic import Field

from pipelines.answering.reranking.tag import OTHER, TagReranker
from pipelines.answering.routing.classifier import ClassifierShape, TextClassifier
from pipelines.evaluation.dataset import Example, sample
from pipelines.evaluation.questions import alike
from pipelines.evaluation.questions.labelled import TaggedQuestion, fingerprint_tagged, merge_rare, tag_by_url
from pipelines.training import card, classification, folds
from pipelines.training.card import GateVerdict, ModelFolder, Progress, RerankingPlan, TrainingResult, silent
from pipelines.training.classification import Calibration, ThresholdPoint, markdown_table
from pipelines.training.folds import FOLDS, Places, Probabilities
from pipelines.training.mining import IndexedCollection
from pipelines.training.ranking import JudgingHits

KIND = "tag"
# A part with fewer labelled questions is "other". With the Ray docs that leaves the nine parts from which people who
# corrected labels could choose: they call "other" what URLs call workflows, ray-air or ray-contribute.
AT_LEAST = 100
# Words, pairs of words and runs of 2 to 4 letters by a margin; docs/training.md has the alternatives.
SHAPE = ClassifierShape(characters=(2, 4), pairs=True, margin=True, strength=0.3)
# The thresholds from which the gate chooses: below 0.3 hardly a question is left alone.
THRESHOLDS = (0.3, 0.5, 0.7, 0.8, 0.9, 0.95)

# Plain questions about the parts of the Ray docs, each with the only part it can mean: minimum functionality
# (Ribeiro et al., "Beyond Accuracy: Behavioral Testing of NLP models with CheckList", ACL 2020).
RAY_QUESTIONS = {
    "How do I tune hyperparameters with ASHA?": "tune",
    "Which search algorithms does Ray Tune support?": "tune",
    "How do I train a PPO agent in RLlib?": "rllib",
    "What is a rollout worker in RLlib?": "rllib",
    "How do I deploy a model with Ray Serve?": "serve",
    "How do I set the number of replicas of a Serve deployment?": "serve",
    "How do I read parquet files into a Ray dataset?": "data",
    "What does map_batches do?": "data",
    "How do I use TorchTrainer for distributed training?": "train",
    "How do I report checkpoints from a TorchTrainer?": "train",
    "How do I start a Ray cluster on Kubernetes with KubeRay?": "cluster",
    "How do I configure the cluster launcher on AWS?": "cluster",
    "How do I create an actor with ray.remote?": "ray-core",
    "How do I put an object into the object store?": "ray-core",
    "How do I list tasks with the State API?": "ray-observability",
}


class BadPrefix(ValueError):
    """No reference source lies in a folder below the prefix."""


class TagPlan(RerankingPlan):
    """How a tag classifier is trained and judged."""

    prefix: str = Field(description="the site's URL: the folder after it is the part of a page")
    at_least: int = Field(AT_LEAST, ge=1, description='questions that a part needs, otherwise it is "other"')
    folds: int = Field(FOLDS, ge=2, description="of the cross-validation")
    held_out: int = Field(400, ge=0, description="questions to measure the gain by; 0: all that are held out")
    plain: Literal["ray", "none"] = Field("none", description="plain questions that must be right")


def train_tags(
    examples: Sequence[Example],
    output: ModelFolder,
    plan: TagPlan,
    *,
    corrections: Sequence[TaggedQuestion] = (),
    hits: "TagHits | None" = None,
    accept: bool = False,
    progress: Progress = silent,
) -> TrainingResult:
    """Judge classifiers on pages that they have not seen, then put one that learned from all into `output`.

    Without `hits` no gain is measured, so only `accept` accepts the result. Raises BadPrefix, BadFolds and CannotLearn.
    """
    by_url = tag_by_url(examples, plan.prefix)
    if all(row.tag == OTHER for row in by_url):
        raise BadPrefix(f"--prefix is {plan.prefix}: no source lies in a folder below it, such as {by_url[0].page}")
    rows = merge_rare([*by_url, *corrections], plan.at_least)
    scores = score_tags(rows, plan.folds, plan.seed)
    progress(f"accuracy on {plan.folds} folds: {_numbers(scores.accuracy)}")
    gain = measure_gain(rows, hits, plan) if hits else None
    classifier = fit_tags(rows)
    plain = check_plain(classifier, RAY_QUESTIONS if plan.plain == "ray" else {})
    classifier.metadata = tag_card(rows, scores, plain, gain, plan, accept)
    classifier.save(output.path, KIND)
    return TrainingResult(output.path, classifier.metadata, describe(scores, plain, gain), {"kind": KIND})


# ------------------------------------------------------------------------------------------- questions


def tag_groups(rows: Sequence[TaggedQuestion]) -> list[int]:
    """Return the group of each row: those that share a page or ask alike, over however many others."""
    groups = alike.question_groups([row.question for row in rows])
    keys = ([group, *([row.page] if row.page else [])] for row, group in zip(rows, groups, strict=True))
    return alike.connected_groups(len(rows), alike.pairs_sharing(keys))


def fit_tags(rows: Sequence[TaggedQuestion], metadata: Mapping[str, Any] | None = None) -> TextClassifier:
    """Return the classifier of questions alone. Raises CannotLearn."""
    return TextClassifier.fit([row.question for row in rows], [row.tag for row in rows], SHAPE, metadata)


# ------------------------------------------------------------------------------------------- accuracy


@dataclass(frozen=True, slots=True)
class TagScores:
    """Scores of out-of-fold probabilities, by the origin of the labels.

    `accuracy` has "all", "pages" (tagged by URL) and "people", over folds that share no page and no near-duplicate, as
    have the fields from `macro_auc` on. `page_disjoint` is over folds that share no page, where another page may have
    the same question; `question_disjoint` over folds that share no question in the same words, but pages. `study` is
    the study's way, on one random fold of the rows with a title: "titled" learns and reads the title before the
    question (its 0.92), "question" the question alone (0.84).
    """

    questions: int
    folds: int
    accuracy: dict[str, float]
    page_disjoint: dict[str, float]
    question_disjoint: dict[str, float]
    majority: float
    study: dict[str, float] | None
    macro_auc: float
    calibration: Calibration
    brier: float
    by_label: dict[str, dict[str, float]]
    confusion: dict[str, dict[str, int]]
    curve: list[ThresholdPoint]


def score_tags(rows: Sequence[TaggedQuestion], count: int = FOLDS, seed: int = 0) -> TagScores:
    """Fit and predict over `count` folds that share no page and no question. Raises BadFolds and CannotLearn."""
    from sklearn.metrics import brier_score_loss

    labels = sorted({row.tag for row in rows})
    questions, truth = [row.question for row in rows], [row.tag for row in rows]

    def predict(groups: Sequence[Hashable]) -> Probabilities:
        parts = folds.group_folds(groups, count, seed)
        return folds.predict_out_of_fold(lambda places: fit_tags(_take(rows, places)), questions, labels, parts)

    def best(out: Probabilities) -> list[str]:
        return [labels[place] for place in out.argmax(axis=1)]

    out, same_words = predict(tag_groups(rows)), alike.question_groups(questions, share=1.0)
    by_page = [row.page or group for row, group in zip(rows, same_words, strict=True)]
    predicted, confidence = best(out), out.max(axis=1).tolist()
    right = [a == b for a, b in zip(predicted, truth, strict=True)]
    return TagScores(
        questions=len(rows),
        folds=count,
        accuracy=_accuracy(rows, predicted),
        page_disjoint=_accuracy(rows, best(predict(by_page))),
        question_disjoint=_accuracy(rows, best(predict(same_words))),
        majority=classification.majority_share(truth),
        study=_score_as_study(rows, count, seed),
        macro_auc=float(
            np.mean(
                [
                    classification.area_under_curve(out[:, i].tolist(), [t == tag for t in truth])
                    for i, tag in enumerate(labels)
                ]
            )
        ),
        calibration=classification.calibration(confidence, right),
        brier=float(brier_score_loss(right, confidence)),
        by_label=classification.scores_by_label(truth, predicted),
        confusion=classification.confusion(truth, predicted),
        curve=classification.threshold_curve(out, labels, truth, never=OTHER),
    )


def _take(rows: Sequence[TaggedQuestion], places: Places) -> list[TaggedQuestion]:
    return [rows[place] for place in places]


def _accuracy(rows: Sequence[TaggedQuestion], predicted: Sequence[str]) -> dict[str, float]:
    right = [(row, row.tag == tag) for row, tag in zip(rows, predicted, strict=True)]
    kinds = {
        "all": [r for _, r in right],
        "pages": [r for row, r in right if row.page],
        "people": [r for row, r in right if not row.page],
    }
    return {name: sum(values) / len(values) for name, values in kinds.items() if values}


def _score_as_study(rows: Sequence[TaggedQuestion], count: int, seed: int) -> dict[str, float] | None:
    """Hold out one random fold of the rows that have a title, whatever else they share."""
    bare = [row for row in rows if row.title]
    if len(bare) < count:
        return None
    titled = [replace(row, question=f"{row.title} {row.question}") for row in bare]
    judging, train = np.split(np.random.default_rng(seed).permutation(len(bare)), [len(bare) // count])

    def accuracy(some: Sequence[TaggedQuestion]) -> float:
        classifier, kept = fit_tags(_take(some, train)), _take(some, judging)
        best = classifier.probabilities([row.question for row in kept]).argmax(axis=1)
        return float(np.mean([classifier.labels[i] == row.tag for i, row in zip(best, kept, strict=True)]))

    return {"titled": accuracy(titled), "question": accuracy(bare)}


@dataclass(frozen=True, slots=True)
class PlainCheck:
    """How many plain questions a classifier gets right; `failed` has (question, tag, predicted)."""

    passed: int
    failed: tuple[tuple[str, str, str], ...]


def check_plain(classifier: TextClassifier, questions: Mapping[str, str]) -> PlainCheck:
    """Ask the plain questions, {question: tag}; those whose tag the classifier lacks are left out."""
    known = {question: tag for question, tag in questions.items() if tag in classifier.labels}
    rows = [(question, tag, classifier.predict(question)[0]) for question, tag in known.items()]
    failed = tuple(row for row in rows if row[1] != row[2])
    return PlainCheck(len(rows) - len(failed), failed)


# ------------------------------------------------------------------------------------------- the gain in retrieval


@dataclass(frozen=True, slots=True)
class TagGain:
    """The gain from putting hits of the predicted part first, at the chosen threshold and at each one."""

    verdict: GateVerdict
    threshold: float
    by_threshold: list[dict[str, float]]


@dataclass(frozen=True, slots=True)
class TagHits:
    """The hits that judge a gain, and the places of all examples that must not be learned from."""

    judging: JudgingHits
    places: Sequence[int]


def gather_tag_hits(collection: IndexedCollection, examples: Sequence[Example], plan: TagPlan) -> TagHits:
    """Hold out a fold of the pages and retrieve the hits of its questions. Raises BadFolds."""
    places = folds.group_folds(folds.page_groups(examples), FOLDS, plan.seed)[0].tolist()
    kept = [examples[place] for place in places]
    kept = sample(kept, plan.held_out or len(kept), plan.seed)
    return TagHits(JudgingHits.retrieve(collection, kept, plan.depth), places)


def measure_gain(rows: Sequence[TaggedQuestion], hits: TagHits, plan: TagPlan) -> TagGain:
    """Measure on pages that the classifier has not seen.

    The threshold is chosen on one half of the questions, the verdict is of the other.
    """
    classifier = fit_tags(select_unseen(rows, hits.places), {"prefix": plan.prefix})
    before, half = hits.judging.ranks(), len(hits.judging.examples) // 2
    after = {t: hits.judging.ranks(TagReranker(classifier, t)) for t in THRESHOLDS}
    best = max(THRESHOLDS, key=lambda t: (sum(card.within(after[t][:half], plan.k)), t))
    verdict = card.judge_ranks(before[half:], after[best][half:], plan.k)
    return TagGain(verdict, best, [_gain_row(t, card.judge_ranks(before, after[t], plan.k)) for t in THRESHOLDS])


def select_unseen(rows: Sequence[TaggedQuestion], judging: Sequence[int]) -> list[TaggedQuestion]:
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


# ------------------------------------------------------------------------------------------- the card


def tag_card(
    rows: Sequence[TaggedQuestion],
    scores: TagScores,
    plain: PlainCheck,
    gain: TagGain | None,
    plan: TagPlan,
    accept: bool = False,
) -> dict[str, Any]:
    """Return the entries of the classifier's card beside its labels."""
    return {
        "prefix": plan.prefix,
        **card.acceptance(gain is not None and gain.verdict.accepted and not plain.failed, accept),
        "data": {"fingerprint": fingerprint_tagged(rows), "questions": len(rows)},
        "settings": {
            **asdict(SHAPE),
            "at_least": plan.at_least,
            "folds": plan.folds,
            "seed": plan.seed,
            "threshold": gain.threshold if gain else 0.0,
        },
        "metrics": {**asdict(scores), "minimum_functionality": asdict(plain)},
        "gate": asdict(gain.verdict) if gain else None,
        "gain_by_threshold": gain.by_threshold if gain else [],
    }


def describe(scores: TagScores, plain: PlainCheck, gain: TagGain | None) -> str:
    """Return the scores for a person."""
    lines = [
        f"{scores.questions:,} questions, {scores.folds} folds; majority {scores.majority:.3f}, accuracy where",
        f"  folds share no page and no near-duplicate: {_numbers(scores.accuracy)}",
        f"  folds share no page: {_numbers(scores.page_disjoint)}",
        f"  folds share no question: {_numbers(scores.question_disjoint)}",
        f"  the study's way, one random fold: {_numbers(scores.study or {})}",
        f"macro AUC {scores.macro_auc:.3f}, Brier {scores.brier:.3f}, ECE {scores.calibration.ece:.3f}",
        "",
        markdown_table([asdict(point) for point in scores.curve]),
        "",
        f"plain questions: {plain.passed} right, wrong {[list(row) for row in plain.failed]}",
    ]
    if gain:
        lines += ["", markdown_table(gain.by_threshold), f"\nthreshold {gain.threshold:g}", str(gain.verdict)]
    return "\n".join(lines)


def _numbers(by_name: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {value:.3f}" for name, value in by_name.items())
