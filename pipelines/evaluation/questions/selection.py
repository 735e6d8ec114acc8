"""Selects the questions to keep: unique, specific and findable.

Each question is kept once, with few sources, and only if a search finds one of them. Knows questions and a search
function; knows no model, database or engine.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any

from pipelines.evaluation.dataset import Example, page_of
from pipelines.lexical import terms
from pipelines.llm.retry import Progress, gather_all
from pipelines.records import Hit

MOST_SOURCES = 3  # a question that more pages answer is too general
# Words that say nothing about a question's subject, as BM25 stems them.
_EMPTY = {"what", "how", "why", "when", "where", "which", "who", "can", "could", "doe", "do", "is", "are", "should",
          "will", "would", "i", "you", "we", "my", "your", "a", "an", "the", "to", "it", "be"}  # fmt: skip


def deduplicate(examples: Sequence[Example], most_sources: int = MOST_SOURCES) -> list[Example]:
    """Return each question once, with all its sources; drop questions with more than `most_sources` pages.

    Two questions are the same if they have the same stemmed words, ignoring order and question words.
    """
    kept: dict[Any, Example] = {}
    for example in examples:
        known = kept.setdefault(_key(example.question), example)
        sources = tuple(dict.fromkeys((*known.sources, *example.sources)))
        kept[_key(example.question)] = replace(known, sources=sources)
    return [one for one in kept.values() if len(one.pages) <= most_sources]


def _key(question: str) -> Any:
    words = frozenset(terms(question)) - _EMPTY
    return words or " ".join(question.casefold().split())


async def keep_findable(
    examples: Sequence[Example],
    search: Callable[[str], Awaitable[Sequence[Hit]]],
    at_once: int = 4,
    progress: Progress | None = None,
) -> list[Example]:
    """Return the examples for which the hits of `search` include one of the reference pages.

    A question that is not found usually does not name its subject. The remaining questions favor the search that
    selected them, so let it look far deeper than the evaluation measures. Raises anything that `search` raises.
    """

    async def is_found(example: Example) -> bool:
        hits = await search(example.question)
        pages = {page_of(source) for hit in hits for source in (hit.source, *hit.sources)}
        return bool(pages & example.pages)

    kept = await gather_all(is_found, examples, at_once, progress)
    return [example for example, is_kept in zip(examples, kept, strict=True) if is_kept]
