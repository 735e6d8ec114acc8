"""Makes a data set from a collection: new questions, or missing reference answers.

Questions are written by a model from chunks, taken from headings, or taken from ratings. Takes plain values and returns
a data set with counts; usable from a notebook.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import replace
from typing import TypeVar

from pydantic import BaseModel, ConfigDict, Field

from pipelines.answering.factory import make_engine, make_retriever
from pipelines.answering.settings import NONE, AnswerSettings, change
from pipelines.evaluation.dataset import Example
from pipelines.evaluation.questions.feedback import from_clicks, from_ratings
from pipelines.evaluation.questions.sections import LEAST_TEXT, draw_chunks, section_passages, section_starts
from pipelines.evaluation.questions.selection import deduplicate, keep_findable
from pipelines.evaluation.questions.writer import QuestionSet, ask_headings, write_answers, write_questions
from pipelines.llm.cached import CachedModel
from pipelines.llm.retry import Progress
from pipelines.records import Hit
from pipelines.store import Store

# The filter searches as deep as the legs of retrieval do, far deeper than an evaluation measures.
FIND_IN = 50
PATIENCE_S = 60.0  # the first question builds BM25

Report = Callable[[str], None]
T = TypeVar("T")


class QuestionOptions(BaseModel):
    """Options for making questions. A model imitates the questions in `style`, if there are any.

    A field with a description is a flag of `raydex questions make`.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    limit: int = Field(default=200, ge=0, description="chunks to ask about, 0 for all")
    per_chunk: int = Field(default=2, ge=1, le=20, description="maximum number of questions per chunk")
    find_in: int = Field(
        default=FIND_IN, ge=0, le=100, description="keep questions whose page is among the first K hits; 0: all"
    )
    seed: int = Field(default=0, description="seed for sampling chunks")
    at_once: int = Field(default=4, ge=1, le=1_000, description="concurrent calls of the model")
    style: tuple[str, ...] = ()


def make_questions(
    store: Store,
    settings: AnswerSettings,
    collection: str,
    llm: CachedModel | None = None,
    options: QuestionOptions | None = None,
    progress: Report = lambda _: None,
) -> QuestionSet:
    """Return questions about the collection's chunks, written by `llm`, or taken from headings without one.

    Raises NoLiveIndex and StoreUnavailable.
    """
    options = options or QuestionOptions()
    with _scan(store, collection) as chunks:
        starts = section_starts(chunks)
    if llm:
        drawn = draw_chunks(starts, options.limit, options.seed, LEAST_TEXT)
        pace = _count("chunks", progress)
        made = _run(llm, lambda: write_questions(llm, drawn, options.per_chunk, options.at_once, pace, options.style))
    else:
        asked = {example.sources[0]: example for example in deduplicate(ask_headings(starts).examples)}
        drawn = draw_chunks([chunk for chunk in starts if chunk.source in asked], options.limit, options.seed)
        made = QuestionSet(tuple(asked[chunk.source] for chunk in drawn))
    once = deduplicate(made.examples)
    kept = _keep_findable(store, settings, collection, once, options, progress) if options.find_in else once
    counts = {
        "chunks": len(drawn),
        "made": len(made.examples),
        "duplicates": len(made.examples) - len(once),
        "not_found": len(once) - len(kept),
    }
    return replace(made, examples=kept, counts=counts)


def answer_questions(
    store: Store,
    collection: str,
    llm: CachedModel,
    examples: Sequence[Example],
    at_once: int = 4,
    progress: Report = lambda _: None,
) -> QuestionSet:
    """Return the examples, with missing answers written by `llm`. Raises the same errors as `make_questions`."""
    sources = {source for example in examples if example.answer is None for source in example.sources}
    with _scan(store, collection) as chunks:
        passages = section_passages(chunks, sources)
    pace = _count("answered", progress)
    made = _run(llm, lambda: write_answers(llm, examples, passages, at_once, pace))
    had = sum(example.answer is not None for example in examples)
    have = sum(example.answer is not None for example in made.examples)
    return replace(made, counts={"had_answers": had, "answered": have - had})


def rated_questions(store: Store, collection: str) -> QuestionSet:
    """Return the questions whose answers were rated well, with the sources that the answers cite.

    They are followed by the questions and searches whose readers opened a source, with these sources.
    """
    feedback = from_ratings(store.rated_questions(collection))
    opened = from_clicks(store.opened_questions(collection), feedback.examples)
    counts = {"disliked": len(feedback.disliked), "opened": len(opened)}
    return QuestionSet((*feedback.examples, *opened), counts=counts)


def _run(llm: CachedModel, write: Callable[[], Awaitable[T]]) -> T:
    """Return the result of `write`, then close the model's connections."""

    async def closing() -> T:
        try:
            return await write()
        finally:
            await llm.close()

    return asyncio.run(closing())


def _keep_findable(
    store: Store,
    settings: AnswerSettings,
    collection: str,
    examples: Sequence[Example],
    options: QuestionOptions,
    progress: Report,
) -> list[Example]:
    """Return the examples whose page retrieval finds, without the steps that would call a model for each question."""
    patient = change(settings, {"retrieval.patience_s": PATIENCE_S})
    free = change(patient, {"rewriting.num_queries": 0, "rewriting.hyde": False, "reranker.kind": NONE})
    with contextlib.closing(make_retriever(patient, store)) as retriever:
        engine = make_engine(free, retriever)

        async def find(question: str) -> Sequence[Hit]:
            return (await engine.asearch(question, collection=collection, k=options.find_in)).hits

        return asyncio.run(keep_findable(examples, find, options.at_once, _count("searched", progress)))


@contextlib.contextmanager
def _scan(store: Store, collection: str) -> Iterator[Iterator[Hit]]:
    """Yield the chunks of the collection's live index. Raises NoLiveIndex."""
    with store.scan_chunks(store.live_index(collection).id) as (_, chunks):
        yield chunks


def _count(what: str, progress: Report) -> Progress:
    """Return a counter that reports progress in steps of a tenth."""

    def count(done: int, of: int) -> None:
        if done == of or done % max(1, of // 10) == 0:
            progress(f"{what}: {done:,} of {of:,}")

    return count
