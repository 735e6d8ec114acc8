"""Reads questions labelled with whether a cheap model suffices.

Knows files and rows; does not know what they are used for.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipelines.evaluation.dataset import NO_QUESTION, BadDataset, parse_rows
from pipelines.records import digest


@dataclass(frozen=True, slots=True)
class LabelledQuestion:
    """A question, and whether the cheap model answers it well enough."""

    question: str
    suffices: bool


def read_labelled(path: Path) -> list[LabelledQuestion]:
    """Return the rows of a file of {"question", "target"}: target is 1 if the cheap model suffices, else 0.

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
    """Return a fingerprint of these questions and labels."""
    return digest(*(f"{row.suffices:d}{row.question}" for row in rows))
