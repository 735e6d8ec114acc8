"""Turns ratings of answers into questions to measure by and wrong hits to learn from.

Knows rows of rated questions; not where they are stored nor who rated.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pipelines.evaluation.dataset import Example
from pipelines.records import Hit, digest


@dataclass(frozen=True, slots=True)
class DislikedQuestion:
    """A question whose answer was rated down, and the hits that the answer was made from: they did not help."""

    question: str
    hits: tuple[Hit, ...]


@dataclass(frozen=True, slots=True)
class Feedback:
    """Liked answers as `examples`, with the sources that they cite; the questions of disliked ones as `disliked`."""

    examples: tuple[Example, ...]
    disliked: tuple[DislikedQuestion, ...]
    _wrong: Mapping[str, tuple[Hit, ...]] = field(init=False, repr=False, compare=False, default_factory=dict)

    def __post_init__(self) -> None:
        for row in self.disliked:
            key = question_key(row.question)
            self._wrong[key] = (*self._wrong.get(key, ()), *row.hits)  # type: ignore[index]

    def wrong(self, question: str) -> tuple[Hit, ...]:
        """Return the hits that did not help with `question`, of every disliked answer to it."""
        return self._wrong.get(question_key(question), ())


def from_ratings(rows: Iterable[Mapping[str, Any]]) -> Feedback:
    """Return the feedback of rated questions: rows of question, standalone, known, error, rating, citations and hits.

    `rating` is the sum over all who rated: above 0 is liked, below 0 disliked, 0 neither. An answer that does not
    know, or has no citation that its passage supports, is no example, however well it was liked. A source that is liked
    in one answer and disliked in another to the same question stays an example and is no wrong hit.
    """
    rows = list(rows)
    examples = _examples([row for row in rows if row["rating"] > 0])
    right = {(question_key(example.question), source) for example in examples for source in example.sources}
    disliked = [_disliked_question(row, right) for row in rows if row["rating"] < 0]
    return Feedback(tuple(examples), tuple(row for row in disliked if row.hits))


def question_key(question: str) -> str:
    """Return a question without differences of case and blanks."""
    return " ".join(question.lower().split())


def _question(row: Mapping[str, Any]) -> str:
    """Return the question as it reads without its conversation."""
    return str(row.get("standalone") or row["question"]).strip()


def _examples(liked: Sequence[Mapping[str, Any]]) -> list[Example]:
    """Return one example a question: the sources of all its liked answers, the newest answer as the reference."""
    sources: dict[str, dict[str, None]] = {}
    newest: dict[str, Mapping[str, Any]] = {}
    for row in liked:
        cited = dict.fromkeys(c["source"] for c in row["citations"] if c.get("source") and c.get("supported", True))
        if _question(row) and row.get("known", True) and not row.get("error") and cited:
            key = question_key(_question(row))
            sources.setdefault(key, {}).update(cited)
            newest[key] = row
    return [Example(_question(row), tuple(sources[key]), row.get("answer") or None) for key, row in newest.items()]


def _disliked_question(row: Mapping[str, Any], right: set[tuple[str, str]]) -> DislikedQuestion:
    question = _question(row)
    hits = [_hit(hit) for hit in row["hits"] if hit.get("source")]
    return DislikedQuestion(question, tuple(hit for hit in hits if (question_key(question), hit.source) not in right))


def _hit(row: Mapping[str, Any]) -> Hit:
    """Return a recorded hit; its text is the snippet that was kept."""
    url, _, anchor = str(row["source"]).partition("#")
    text = str(row.get("snippet") or "")
    return Hit(
        chunk_id=str(row.get("chunk_id") or ""),
        url=url,
        anchors=(anchor,) if anchor else (),
        title=str(row.get("title") or ""),
        headings=(),
        text=text,
        text_hash=digest(text),
        score=float(row.get("score") or 0.0),
        score_kind=str(row.get("score_kind") or ""),
    )
