"""Chooses the questions of a trial: some about known sections of a collection, some off-topic.

Verified answers come first, then headings rephrased as a reader would ask, then headings as they are.
"""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pipelines.answering.engine import QueryEngine
from pipelines.answering.grounding.answerable import is_likely
from pipelines.answering.verified.writing import GIVEN, review_answers
from pipelines.evaluation.dataset import Example
from pipelines.evaluation.questions.examples import choose_examples
from pipelines.evaluation.questions.sections import draw_chunks, section_starts
from pipelines.evaluation.questions.writer import ask_headings
from pipelines.page.stored import plain_of
from pipelines.records import Hit
from pipelines.store import SectionStart, Store
from pipelines.text.counts import counted
from pipelines.text.phrases import read_table
from pipelines.text.progress import Passing, Progress

LEAST = 5  # fewer are not meaningful
SPARE = 3  # times as many headings are tried: if retrieval misses the section, a question says nothing about a model
FOREIGN: Sequence[str] = read_table("pipelines.evaluation.trials.foreign")["questions"]
SHOWN = 3  # passages shown with an off-topic question


class TooFewQuestions(ValueError):
    """A collection has too few questions with known sections."""

    def __init__(self, collection: str, found: int) -> None:
        super().__init__(
            f"collection {collection!r} gives {counted(found, 'question')} whose section is found, and a trial needs "
            f"{LEAST}: index more pages, or write verified answers (`raydex answers add`), which are asked first"
        )


@dataclass(frozen=True, slots=True)
class ForeignQuestion:
    """An off-topic question, with the passages that a search finds for it anyway."""

    question: str
    passages: tuple[str, ...]


async def choose_asked(
    store: Store, engine: QueryEngine, collection: str, most: int, progress: Progress
) -> list[Example]:
    """Return up to `most` questions whose section is among the hits. Raises TooFewQuestions, NoLiveIndex."""
    candidates = await asyncio.to_thread(lambda: list(_candidates(store, collection, SPARE * most)))
    chosen: dict[tuple[str, ...], Example] = {}
    for example in candidates:
        if len(chosen) == most:
            break
        if example.sources not in chosen:
            found = await engine.asearch(example.question, collection=collection)
            if not places_of(found.hits).isdisjoint(example.sources):
                chosen[example.sources] = example
                progress(Passing(f"chose {len(chosen)} of {counted(most, 'question')} of {collection}"))
    if len(chosen) < LEAST:
        raise TooFewQuestions(collection, len(chosen))
    return list(chosen.values())


async def choose_foreign(engine: QueryEngine, collection: str, most: int) -> list[ForeignQuestion]:
    """Return up to `most` questions that the collection probably can't answer."""
    chosen: list[ForeignQuestion] = []
    for question in FOREIGN:
        found = await engine.asearch(question, collection=collection)
        if found.evidence is not None and not is_likely(found.evidence) and len(chosen) < most:
            chosen.append(ForeignQuestion(question, tuple(hit.text for hit in found.hits[:SHOWN])))
    return chosen


def places_of(hits: Sequence[Hit]) -> set[str]:
    """Return the sources of all sections that contain the hits."""
    return {f"{hit.url}#{anchor}" for hit in hits for anchor in hit.anchors} | {hit.source for hit in hits}


def _candidates(store: Store, collection: str, most: int) -> Iterator[Example]:
    for reviewed in review_answers(store, collection):
        if reviewed.state == GIVEN:
            answer = reviewed.answer
            yield Example(answer.questions[0], tuple(section.source for section in answer.sections))
    with store.scan_chunks(store.live_index(collection).id) as (_, chunks):
        starts = section_starts(chunks)
    for made in choose_examples(map(_as_start, starts), most):
        yield Example(made.question, (made.url,))
    asked = {example.sources[0]: example for example in ask_headings(starts).examples}
    for chunk in draw_chunks([chunk for chunk in starts if chunk.source in asked], most):
        yield asked[chunk.source]


def _as_start(chunk: Hit) -> SectionStart:
    """Return the beginning of a section, with its own source as its URL."""
    return SectionStart(chunk.source, chunk.title, chunk.headings, plain_of(chunk), language=chunk.language)
