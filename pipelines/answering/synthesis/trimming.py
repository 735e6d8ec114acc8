"""Trims passages to the parts relevant to a question, for models that read slowly.

This module works with texts and scores; it knows nothing about prompts or models.
"""

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from pipelines.answering.synthesis.candidates import Candidates
from pipelines.records import Hit

GAP = "…"
# A part's beginning ends at a sentence or line end between these numbers of words, otherwise at the second.
LEAD_WORDS, MOST_LEAD_WORDS = 12, 30


def choose_parts(question: str, hits: Sequence[Hit], fits: Callable[[Sequence[str]], bool]) -> list[str]:
    """Return parts of the hits' passages that fit together, "" for a hit without one; at least one part is kept.

    First, each hit's best part gets its beginning, in the order of the hits; then the best parts of all are shown
    whole.
    """
    ranking = Candidates(question, hits).rank()
    best, number = {one.hit: one for one in reversed(ranking)}, Counter(one.hit for one in ranking)
    kept: list[dict[int, str]] = [{} for _ in hits]

    def show() -> list[str]:
        return [_join(parts, number[n]) for n, parts in enumerate(kept)]

    begun = [(best[n], _begin(best[n].passage.plain)) for n in sorted(best)]
    for one, text in [*begun, *((one, one.passage.text) for one in ranking)]:
        before, is_first = kept[one.hit], not any(kept)
        kept[one.hit] = {**before, one.passage.place: text}
        if not is_first and not fits(show()):
            kept[one.hit] = before
    return show()


def _begin(text: str) -> str:
    """Return the beginning of a part."""
    words = list(re.finditer(r"\S+", text))
    if len(words) <= MOST_LEAD_WORDS:
        return text
    early = [word.end() for word in words[LEAD_WORDS - 1 : MOST_LEAD_WORDS]]
    ends = [end for end in early if text[end - 1] in ".!?" or text[end] == "\n"]
    return f"{text[: (ends or early[-1:])[0]]} {GAP}"


def _join(parts: Mapping[int, str], all_parts: int) -> str:
    """Return parts in the order of the passage, with GAP for omitted ones."""
    shown: list[str] = []
    at = 0
    for place in sorted(parts):
        shown += [GAP] if place > at else []
        shown.append(parts[place])
        at = place + 1
    return "\n\n".join([*shown, GAP] if shown and at < all_parts else shown)
