"""A tag classifier learns from labelled questions which part of a site a question is about.

Two kinds of labels are there: questions with a reference page, whose part its URL says, and questions that people
asked and labelled. Judged on pages and questions that it has not seen, with the question alone.
"""

import csv
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pipelines.answering.classifier import TextClassifier
from pipelines.answering.reranker import OTHER, part_of
from pipelines.evaluation.dataset import BadDataset, Example, page_of
from pipelines.records import digest
from pipelines.training import curves

# A part with fewer labelled questions is "other". Not tuned: with the Ray docs it parts 9 labels from 6 rare ones.
AT_LEAST = 50
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
    ("How do I open the Ray dashboard?", "ray-observability"),
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

    `title` is what the study put beside the question, the words of the reference anchor.
    """
    return [
        Tagged(
            example.question,
            part_of(page_of(example.sources[0]), prefix) or OTHER,
            page_of(example.sources[0]),
            example.sources[0].partition("#")[2].replace("-", " ").replace(".", " "),
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

    `accuracy` has "all", "pages" (labelled by URL) and "people"; `study` is the accuracy the study's way, over random
    folds with the section's title in the input, of those that have one.
    """

    questions: int
    folds: int
    accuracy: dict[str, float]
    majority: float
    study: float | None
    macro_auc: float
    calibration: curves.Calibration
    brier: float
    by_label: dict[str, dict[str, float]]
    confusion: dict[str, dict[str, int]]
    curve: list[curves.Point]


def judge(
    rows: Sequence[Tagged], folds: int = curves.FOLDS, seed: int = 0, study: bool = True, **shape: Any
) -> Judgement:
    """Fit and ask over folds that share no page and no question. Raises TooFewGroups and CannotLearn."""
    labels = sorted({row.tag for row in rows})
    parts = curves.group_folds(groups(rows), folds, seed)
    out = curves.out_of_fold(
        lambda places: fit([rows[place] for place in places], **shape), [row.question for row in rows], labels, parts
    )
    truth = [row.tag for row in rows]
    said = [labels[place] for place in out.argmax(axis=1)]
    right = [a == b for a, b in zip(said, truth, strict=True)]
    sure = [float(p) for p in out.max(axis=1)]
    return Judgement(
        questions=len(rows),
        folds=folds,
        accuracy=_accuracy(rows, right),
        majority=curves.majority(truth),
        study=_study(rows, folds, seed, shape) if study else None,
        macro_auc=float(
            np.mean([curves.auc(out[:, i].tolist(), [t == label for t in truth]) for i, label in enumerate(labels)])
        ),
        calibration=curves.calibration(sure, right),
        brier=curves.brier(sure, right),
        by_label=curves.by_label(truth, said),
        confusion=curves.confusion(truth, said),
        curve=curves.threshold_curve(out, labels, truth, never=OTHER),
    )


def _accuracy(rows: Sequence[Tagged], right: Sequence[bool]) -> dict[str, float]:
    kinds = {
        "all": list(right),
        "pages": [r for r, row in zip(right, rows, strict=True) if row.page],
        "people": [r for r, row in zip(right, rows, strict=True) if not row.page],
    }
    return {name: sum(values) / len(values) for name, values in kinds.items() if values}


def _study(rows: Sequence[Tagged], folds: int, seed: int, shape: Mapping[str, Any]) -> float | None:
    """The study's way: one random fold held out, and the section's title before each question that has one."""
    titled = [Tagged(f"{row.title} {row.question}", row.tag) for row in rows if row.title]
    if len(titled) < folds:
        return None
    order = np.random.default_rng(seed).permutation(len(titled))
    held, rest = order[: len(titled) // folds], order[len(titled) // folds :]
    classifier = fit([titled[place] for place in rest], **shape)
    out = classifier.probabilities([titled[place].question for place in held]).argmax(axis=1)
    return float(np.mean([classifier.labels[best] == titled[place].tag for best, place in zip(out, held, strict=True)]))


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
