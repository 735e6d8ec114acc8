"""Trims passages to the parts around what a question asks, for models that read slowly.

Knows texts and scores; no prompt and no model.
"""

from collections.abc import Iterator, Sequence

from pipelines.answering.synthesis.candidates import Candidate, Candidates
from pipelines.records import Hit

GAP = "…"


def trim(question: str, hits: Sequence[Hit], words: int) -> list[str]:
    """Return each hit's passage, cut to about `words` words; 0 leaves all whole.

    The parts that fit the question best are kept in their order, with `…` where others are left out. Code, lists and
    tables stay whole, so one part may be longer.
    """
    if not words or all(_count(hit.passage) <= words for hit in hits):
        return [hit.passage for hit in hits]
    ranking = Candidates(question, hits).rank()
    return [_trim(hit.passage, [one for one in ranking if one.hit == n], words) for n, hit in enumerate(hits)]


def _trim(text: str, ranking: Sequence[Candidate], words: int) -> str:
    if _count(text) <= words or not ranking:
        return text
    kept = sorted(_best(ranking, words), key=lambda one: one.passage.place)
    parts: list[str] = []
    at = 0
    for one in kept:
        parts += [GAP] if one.passage.place > at else []
        parts.append(one.passage.text)
        at = one.passage.place + 1
    return "\n\n".join([*parts, GAP] if at < len(ranking) else parts)


def _best(ranking: Sequence[Candidate], words: int) -> Iterator[Candidate]:
    """Yield the best part, and those after it for which there is room."""
    left = words
    for one in ranking:
        length = _count(one.passage.text)
        if left == words or length <= left:
            yield one
            left = max(left - length, 0)
            if not left:
                return


def _count(text: str) -> int:
    return len(text.split())
