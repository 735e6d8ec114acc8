"""Reads questions with the part of the site that they belong to, by their source or by people.

Knows files and rows; does not know what they are used for.
"""

import csv
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pipelines.answering.reranking.tag import OTHER, part_of
from pipelines.evaluation.dataset import NO_QUESTION, BadDataset, Example, page_of
from pipelines.records import digest

COLUMNS = ("question", "tag", "correction")


@dataclass(frozen=True, slots=True)
class TaggedQuestion:
    """A question with its part of the site, and its page (or ""), which no question of another fold shares."""

    question: str
    tag: str
    page: str = ""


def tag_by_url(examples: Sequence[Example], prefix: str) -> list[TaggedQuestion]:
    """Return the questions, tagged by their first reference source: the folder after `prefix`, or "other"."""
    pages = [page_of(example.sources[0]) for example in examples]
    return [
        TaggedQuestion(example.question, part_of(page, prefix) or OTHER, page)
        for example, page in zip(examples, pages, strict=True)
    ]


def read_corrections(path: Path) -> list[TaggedQuestion]:
    """Return questions tagged by people, from a CSV of question, tag (the prediction) and correction ("" if right).

    Raises BadDataset.
    """
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file)
            rows = [(reader.line_num, row) for row in reader]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise BadDataset(path, [(0, f"can't be read as CSV in UTF-8 ({error})")]) from error
    if missing := [name for name in COLUMNS if name not in (reader.fieldnames or ())]:
        raise BadDataset(path, [(1, f"has no column {' and '.join(missing)}: it needs {', '.join(COLUMNS)}")])
    tagged = [
        (line, (row["question"] or "").strip(), (row["correction"] or row["tag"] or "").strip()) for line, row in rows
    ]
    if mistakes := [(line, "has no question or no tag") for line, question, tag in tagged if not question or not tag]:
        raise BadDataset(path, mistakes)
    if not tagged:
        raise BadDataset(path, [(0, NO_QUESTION)])
    return [TaggedQuestion(question, tag) for _, question, tag in tagged]


def merge_rare(rows: Sequence[TaggedQuestion], at_least: int) -> list[TaggedQuestion]:
    """Return `rows` with tags of fewer than `at_least` questions replaced by "other"."""
    counts = Counter(row.tag for row in rows)
    return [row if counts[row.tag] >= at_least else replace(row, tag=OTHER) for row in rows]


def fingerprint_tagged(rows: Sequence[TaggedQuestion]) -> str:
    """Return a fingerprint of these questions and tags."""
    return digest(*(f"{row.tag} {row.page} {row.question}" for row in rows))
