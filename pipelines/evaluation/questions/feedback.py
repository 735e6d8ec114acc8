"""What users said of answers becomes questions to measure by, and hits to learn from as wrong ones.

Knows rows of rated questions; not where they are stored nor who rated.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pipelines.evaluation.dataset import Example
from pipelines.records import Hit, digest


@dataclass(frozen=True, slots=True)
class Disliked:
    """A question whose answer was rated down, and the hits it was made from: they did not help."""

    question: str
    hits: tuple[Hit, ...]


@dataclass(frozen=True, slots=True)
class Feedback:
    """`examples`: questions with the sources that well-rated answers cite. `disliked`: those of badly rated answers."""

    examples: tuple[Example, ...]
    disliked: tuple[Disliked, ...]
    _wrong: Mapping[str, tuple[Hit, ...]] = field(init=False, repr=False, compare=False, default_factory=dict)

    def __post_init__(self) -> None:
        for row in self.disliked:
            key = same(row.question)
            self._wrong[key] = (*self._wrong.get(key, ()), *row.hits)  # type: ignore[index]

    def wrong(self, question: str) -> tuple[Hit, ...]:
        """Hits that did not help with `question`, of every badly rated answer to it."""
        return self._wrong.get(same(question), ())


def from_ratings(rows: Iterable[Mapping[str, Any]]) -> Feedback:
    """What rated questions say; each row has question, standalone, known, error, rating, citations and hits.

    `rating` is the sum over those who rated: above 0 is liked, below disliked, 0 says nothing. An answer that said it
    does not know, or cites nothing that its passages bear out, is no example however well it was liked. Where a source
    is liked in one answer and disliked in another to the same question, it stays an example and is no wrong hit.
    """
    rows = list(rows)
    examples = _examples([row for row in rows if row["rating"] > 0])
    right = {(same(example.question), source) for example in examples for source in example.sources}
    disliked = [_disliked(row, right) for row in rows if row["rating"] < 0]
    return Feedback(tuple(examples), tuple(row for row in disliked if row.hits))


def same(question: str) -> str:
    """A question without what people write differently: case and blanks."""
    return " ".join(question.lower().split())


def _asked(row: Mapping[str, Any]) -> str:
    """The question as it can be understood without its conversation."""
    return str(row.get("standalone") or row["question"]).strip()


def _examples(liked: Sequence[Mapping[str, Any]]) -> list[Example]:
    """One example a question: the sources of all its liked answers; the newest answer is the reference."""
    sources: dict[str, dict[str, None]] = {}
    newest: dict[str, Mapping[str, Any]] = {}
    for row in liked:
        cited = dict.fromkeys(c["source"] for c in row["citations"] if c.get("source") and c.get("supported", True))
        if _asked(row) and row.get("known", True) and not row.get("error") and cited:
            key = same(_asked(row))
            sources.setdefault(key, {}).update(cited)
            newest[key] = row
    return [Example(_asked(row), tuple(sources[key]), row.get("answer") or None) for key, row in newest.items()]


def _disliked(row: Mapping[str, Any], right: set[tuple[str, str]]) -> Disliked:
    question = _asked(row)
    hits = [_hit(hit) for hit in row["hits"] if hit.get("source")]
    return Disliked(question, tuple(hit for hit in hits if (same(question), hit.source) not in right))


def _hit(row: Mapping[str, Any]) -> Hit:
    """A recorded hit; of its text the snippet is kept."""
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
