"""A tag classifier learns from labelled questions which part of a site a question is about.

Two kinds of labels are there: questions with a reference page, whose part its URL says, and questions that people
asked and labelled. Judged on pages and questions that it has not seen, with the question alone.
"""

import csv
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from pipelines.answering.reranking.tag import OTHER, part_of
from pipelines.answering.routing.classifier import TextClassifier
from pipelines.evaluation.dataset import BadDataset, Example, page_of
from pipelines.records import digest
from pipelines.training import curves

# A part with fewer labelled questions is "other". With the Ray docs that leaves the nine parts from which people who
# corrected labels could choose: they call "other" what URLs call workflows, ray-air or ray-contribute.
AT_LEAST = 100
# Words, pairs of words and runs of 2 to 4 letters by a margin; docs/training.md has what was tried.
SHAPE: Mapping[str, Any] = {"characters": (2, 4), "pairs": True, "margin": True, "strength": 0.3}

# Plain questions about the parts of the Ray docs, each with the only part it can mean: minimum functionality
# (Ribeiro et al., "Beyond Accuracy: Behavioral Testing of NLP models with CheckList", ACL 2020).
RAY_QUESTIONS = (
    ("How do I tune hyperparameters with ASHA?", "tune"),
    ("Which search algorithms does Ray Tune support?", "tune"),
    ("How do I train a PPO agent in RLlib?", "rllib"),
    ("What is a rollout worker in RLlib?", "rllib"),
    ("How do I deploy a model with Ray Serve?", "serve"),
    ("How do I set the number of replicas of a Serve deployment?", "serve"),
    ("How do I read parquet files into a Ray dataset?", "data"),
    ("What does map_batches do?", "data"),
    ("How do I use TorchTrainer for distributed training?", "train"),
    ("How do I report checkpoints from a TorchTrainer?", "train"),
    ("How do I start a Ray cluster on Kubernetes with KubeRay?", "cluster"),
    ("How do I configure the cluster launcher on AWS?", "cluster"),
    ("How do I create an actor with ray.remote?", "ray-core"),
    ("How do I put an object into the object store?", "ray-core"),
    ("How do I list tasks with the State API?", "ray-observability"),
)


@dataclass(frozen=True, slots=True)
class Tagged:
    """A question, its part of the site, and what it must not share with a question of another fold (page, or "")."""

    question: str
    tag: str
    page: str = ""
    title: str = ""


def of_examples(examples: Sequence[Example], prefix: str) -> list[Tagged]:
    """Questions labelled by the URL of their first reference source: the folder after `prefix`, "other" without one.

    `title` is what the study put before the question: file and anchor of the source.
    """
    return [
        Tagged(
            example.question,
            part_of(page_of(example.sources[0]), prefix) or OTHER,
            page_of(example.sources[0]),
            example.sources[0].rpartition("/")[2],
        )
        for example in examples
    ]


def read_corrections(path: Path) -> list[Tagged]:
    """Questions labelled by people: a CSV with question, tag (what was predicted), correction ("" where it was right).

    Raises BadDataset.
    """
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file)
            rows = [(reader.line_num, row) for row in reader]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise BadDataset(path, [(0, f"can't be read as CSV in UTF-8 ({error})")]) from error
    if missing := {"question", "tag", "correction"} - set(reader.fieldnames or ()):
        raise BadDataset(path, [(1, f"has no column {' and '.join(sorted(missing))}")])
    labelled = [
        (line, (row["question"] or "").strip(), (row["correction"] or row["tag"] or "").strip()) for line, row in rows
    ]
    if mistakes := [(line, "has no question or no tag") for line, question, tag in labelled if not question or not tag]:
        raise BadDataset(path, mistakes)
    if not labelled:
        raise BadDataset(path, [(0, "there is no question in it")])
    return [Tagged(question, tag) for _, question, tag in labelled]


def merged(rows: Sequence[Tagged], at_least: int = AT_LEAST) -> list[Tagged]:
    """`rows` with rare tags made "other"."""
    counts = Counter(row.tag for row in rows)
    return [Tagged(r.question, r.tag if counts[r.tag] >= at_least else OTHER, r.page, r.title) for r in rows]


def fingerprint(rows: Sequence[Tagged]) -> str:
    """Names the labelled questions."""
    return digest(*(f"{row.tag} {row.page} {row.question}" for row in rows))


def groups(rows: Sequence[Tagged]) -> list[int]:
    """The group of each row: what shares a page, or asks alike, is together."""
    group = curves.alike([row.question for row in rows])
    parents = {place: place for place in set(group)}

    def root(place: int) -> int:
        while parents[place] != place:
            parents[place] = place = parents[parents[place]]
        return place

    first: dict[str, int] = {}
    for row, place in zip(rows, group, strict=True):
        if row.page:
            parents[root(place)] = root(first.setdefault(row.page, place))
    return [root(place) for place in group]


def fit(rows: Sequence[Tagged], metadata: Mapping[str, Any] | None = None, **shape: Any) -> TextClassifier:
    """The classifier of questions alone."""
    return TextClassifier.fit(
        [row.question for row in rows], [row.tag for row in rows], metadata=metadata, **{**SHAPE, **shape}
    )


@dataclass(frozen=True, slots=True)
class Judgement:
    """What out-of-fold probabilities say of a tag classifier, by where the labels are from.

    `accuracy` has "all", "pages" (labelled by URL) and "people", over folds that share no page and no near-duplicate,
    as has all that follows it. `page_disjoint` is it over folds that share no page, where a question of one page may
    stand on another in the same words; `question_disjoint` over folds that share no question in the same words, but
    pages.
    `study` is it the study's way, of those that have a title, on one random fold: "titled" learns and reads the title
    before the question (its 0.92), "question" the question alone (0.84).
    """

    questions: int
    folds: int
    accuracy: dict[str, float]
    page_disjoint: dict[str, float]
    question_disjoint: dict[str, float]
    majority: float
    study: dict[str, float] | None
    macro_auc: float
    calibration: curves.Calibration
    brier: float
    by_label: dict[str, dict[str, float]]
    confusion: dict[str, dict[str, int]]
    curve: list[curves.Point]


def judge(rows: Sequence[Tagged], folds: int = curves.FOLDS, seed: int = 0, **shape: Any) -> Judgement:
    """Fit and ask over folds that share no page and no question. Raises TooFewGroups and CannotLearn."""
    labels = sorted({row.tag for row in rows})
    asked, truth = [row.question for row in rows], [row.tag for row in rows]

    def out_of(group: Sequence[Hashable]) -> curves.Probabilities:
        parts = curves.group_folds(group, folds, seed)
        return curves.out_of_fold(lambda places: fit([rows[p] for p in places], **shape), asked, labels, parts)

    def best(out: curves.Probabilities) -> list[str]:
        return [labels[place] for place in out.argmax(axis=1)]

    out, same_words = out_of(groups(rows)), curves.alike(asked, share=1.0)
    by_page = [row.page or group for row, group in zip(rows, same_words, strict=True)]
    said, sure = best(out), [float(p) for p in out.max(axis=1)]
    right = [a == b for a, b in zip(said, truth, strict=True)]
    return Judgement(
        questions=len(rows),
        folds=folds,
        accuracy=_accuracy(rows, said),
        page_disjoint=_accuracy(rows, best(out_of(by_page))),
        question_disjoint=_accuracy(rows, best(out_of(same_words))),
        majority=curves.majority(truth),
        study=_study(rows, folds, seed, shape),
        macro_auc=float(
            np.mean([curves.auc(out[:, i].tolist(), [t == label for t in truth]) for i, label in enumerate(labels)])
        ),
        calibration=curves.calibration(sure, right),
        brier=curves.brier(sure, right),
        by_label=curves.by_label(truth, said),
        confusion=curves.confusion(truth, said),
        curve=curves.threshold_curve(out, labels, truth, never=OTHER),
    )


def _accuracy(rows: Sequence[Tagged], said: Sequence[str]) -> dict[str, float]:
    right = [(row, row.tag == tag) for row, tag in zip(rows, said, strict=True)]
    kinds = {
        "all": [r for _, r in right],
        "pages": [r for row, r in right if row.page],
        "people": [r for row, r in right if not row.page],
    }
    return {name: sum(values) / len(values) for name, values in kinds.items() if values}


def _study(rows: Sequence[Tagged], folds: int, seed: int, shape: Mapping[str, Any]) -> dict[str, float] | None:
    """The study's way: one random fold of the rows that have a title is held out, whatever else they share."""
    bare = [row for row in rows if row.title]
    if len(bare) < folds:
        return None
    titled = [replace(row, question=f"{row.title} {row.question}") for row in bare]
    order = np.random.default_rng(seed).permutation(len(bare))
    held, rest = np.split(order, [len(bare) // folds])
    return {name: _right(some, held, rest, shape) for name, some in (("titled", titled), ("question", bare))}


def _right(rows: Sequence[Tagged], held: Iterable[int], rest: Iterable[int], shape: Mapping[str, Any]) -> float:
    classifier = fit([rows[place] for place in rest], **shape)
    asked = [rows[place] for place in held]
    said = classifier.probabilities([row.question for row in asked]).argmax(axis=1)
    return float(np.mean([classifier.labels[best] == row.tag for best, row in zip(said, asked, strict=True)]))


@dataclass(frozen=True, slots=True)
class Functionality:
    """Which plain questions a classifier gets right: `failed` has (question, tag, said)."""

    passed: int
    failed: tuple[tuple[str, str, str], ...]


def minimum(classifier: TextClassifier, questions: Sequence[tuple[str, str]]) -> Functionality:
    """Minimum functionality: plain questions of each part are understood. Tags the classifier lacks are left out."""
    asked = [(question, tag) for question, tag in questions if tag in classifier.labels]
    said = [(question, tag, classifier.predict(question)[0]) for question, tag in asked]
    failed = tuple(row for row in said if row[1] != row[2])
    return Functionality(len(asked) - len(failed), failed)


def card(
    rows: Sequence[Tagged], judgement: Judgement, functionality: Functionality, more: Mapping[str, Any]
) -> dict[str, Any]:
    """What the classifier's card says beside its labels; `more` holds prefix, settings, the gate and its word."""
    return {
        "data": {"fingerprint": fingerprint(rows), "questions": len(rows)},
        "metrics": {**asdict(judgement), "minimum_functionality": asdict(functionality)},
        **more,
    }
