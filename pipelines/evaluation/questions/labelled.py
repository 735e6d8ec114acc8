"""Reads labelled questions: whether a cheap model suffices, and the part of the site.

Knows files and rows; not what is learned from them.
"""

import csv
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pipelines.answering.reranking.tag import OTHER, part_of
from pipelines.evaluation.dataset import NO_QUESTION, BadDataset, Example, page_of, parse_rows
from pipelines.records import digest

# ------------------------------------------------------------------------------------------- for a router


@dataclass(frozen=True, slots=True)
class LabelledQuestion:
    """A question, and whether the cheap model answers it well enough."""

    question: str
    suffices: bool


def read_labelled(path: Path) -> list[LabelledQuestion]:
    """Return the rows of a file of {"question", "target"}: target 1, the cheap model suffices, or 0.

    Raises BadDataset.
    """
    rows = parse_rows(path, _parse)
    if not rows:
        raise BadDataset(path, [(0, NO_QUESTION)])
    return rows


def _parse(row: Any) -> LabelledQuestion:
    question = row.get("question") if isinstance(row, dict) else None
    if not isinstance(question, str) or not question.strip():
        raise ValueError(f"question is {question!r}: it must be a text")
    if row.get("target") not in (0, 1):
        raise ValueError(f"target is {row.get('target')!r}: it must be 1 (the cheap model suffices) or 0")
    return LabelledQuestion(question.strip(), bool(row["target"]))


def fingerprint_labelled(rows: Sequence[LabelledQuestion]) -> str:
    """Return a name of exactly these questions and labels."""
    return digest(*(f"{row.suffices:d}{row.question}" for row in rows))


# ------------------------------------------------------------------------------------------- by part of the site


@dataclass(frozen=True, slots=True)
class TaggedQuestion:
    """A question with its part of the site, and the page that it shares with no question of another fold (or "").

    `title` is what the study put before the question: file and anchor of the source.
    """

    question: str
    tag: str
    page: str = ""
    title: str = ""


def tag_by_url(examples: Sequence[Example], prefix: str) -> list[TaggedQuestion]:
    """Return the questions, tagged by their first reference source: the folder after `prefix`, or "other"."""
    return [
        TaggedQuestion(
            example.question,
            part_of(page_of(example.sources[0]), prefix) or OTHER,
            page_of(example.sources[0]),
            example.sources[0].rpartition("/")[2],
        )
        for example in examples
    ]


def read_corrections(path: Path) -> list[TaggedQuestion]:
    """Return questions tagged by people, from a CSV of question, tag (as predicted) and correction ("" if right).

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
    tagged = [
        (line, (row["question"] or "").strip(), (row["correction"] or row["tag"] or "").strip()) for line, row in rows
    ]
    if mistakes := [(line, "has no question or no tag") for line, question, tag in tagged if not question or not tag]:
        raise BadDataset(path, mistakes)
    if not tagged:
        raise BadDataset(path, [(0, NO_QUESTION)])
    return [TaggedQuestion(question, tag) for _, question, tag in tagged]


def merge_rare(rows: Sequence[TaggedQuestion], at_least: int) -> list[TaggedQuestion]:
    """Return `rows` with the tags of fewer than `at_least` questions made "other"."""
    counts = Counter(row.tag for row in rows)
    return [row if counts[row.tag] >= at_least else replace(row, tag=OTHER) for row in rows]


def fingerprint_tagged(rows: Sequence[TaggedQuestion]) -> str:
    """Return a name of exactly these questions and tags."""
    return digest(*(f"{row.tag} {row.page} {row.question}" for row in rows))
