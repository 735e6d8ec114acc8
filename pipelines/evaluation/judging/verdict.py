"""Parses a judge's verdict, a score with its reasoning, from a model's reply.

The model is asked for JSON with a schema. Models that can't follow it write damaged JSON or `Score: 4/5`. Other or
ambiguous replies count as no verdict: asking again costs one call, but a wrong score spoils the evaluation.
"""

import re
from dataclasses import dataclass
from typing import Any

from pipelines.llm.replies import read_objects
from pipelines.llm.retry import UnusableReply
from pipelines.text.cleaning import clean_for_model

LOWEST, HIGHEST = 1, 5  # the study's scale; higher is better in every dimension

Score = int | float

_NUMBER = r"(?P<number>-?\d+(?:\.\d+)?)(?:\s*/\s*(?P<of>\d+))?"
_DOUBTFUL = r"\d|[.,]\d|\s*%|\s*(?:[-–—/]|\bto\b|\bor\b)\s*\d"  # a longer number, a percentage, a range
_LABELLED = re.compile(rf"(?<![*_])[*_]*+\bscore\b[\s*_]*[:=][\s*_]*{_NUMBER}(?!{_DOUBTFUL})[*_]*", re.IGNORECASE)
_REASON = re.compile(r"^\W*reasoning\b[\s*_]*[:=]", re.IGNORECASE)


class NoVerdict(UnusableReply):
    """A judge's reply has no score, several different scores, or a score outside the scale."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """A score on the requested scale, and the reasoning for it."""

    score: Score
    reasoning: str


def parse_verdict(text: str, lowest: int = LOWEST, highest: int = HIGHEST) -> Verdict:
    """Return the verdict in `text`: a JSON object with `score`, possibly damaged, or `Score: 4/5`.

    Raises NoVerdict if there is no score, if scores differ, or if a score is not between `lowest` and `highest` or is
    on another scale.
    """
    text = clean_for_model(text).strip()
    objects = read_objects(text, ("score",))
    matches = [_number(found["score"]) for found in objects] or list(_LABELLED.finditer(text))
    scores = {_score(match, lowest, highest) for match in matches}
    if not scores:
        raise NoVerdict("there is no score in the reply")
    if len(scores) > 1:
        raise NoVerdict(f"the reply holds different scores: {', '.join(map(str, sorted(scores)))}")
    reasons = [str(found.get("reasoning") or "") for found in objects] or [_LABELLED.sub(" ", text).strip(" -\n")]
    return Verdict(scores.pop(), _REASON.sub("", next(filter(None, reasons), "")).strip())


def _number(value: Any) -> re.Match[str]:
    match = re.fullmatch(rf"\s*{_NUMBER}\s*", str(value))
    if match is None:
        raise NoVerdict(f"the score {value!r} is not a number")
    return match


def _score(match: re.Match[str], lowest: int, highest: int) -> Score:
    value, of = float(match["number"]), match["of"]
    if of and int(of) != highest:
        raise NoVerdict(f"the score {value:g} is out of {of}, not of {highest}")
    if not lowest <= value <= highest:
        raise NoVerdict(f"the score {value:g} is not from {lowest} to {highest}")
    return int(value) if value.is_integer() else value
