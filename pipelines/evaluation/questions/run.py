"""Makes a data set out of a collection: questions, or missing reference answers.

The questions come from chunks, by a model or from headings, from ratings, or from users, to be labelled. Plain values
in, a data set with its counts out; usable from a notebook.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

from pipelines.answering.factory import make_engine, make_retriever
from pipelines.answering.grounding.answerable import is_likely
from pipelines.answering.retrieval.search import Retrieval
from pipelines.answering.settings import NONE, AnswerSettings, change
from pipelines.evaluation.dataset import Example
from pipelines.evaluation.questions.feedback import from_ratings
from pipelines.evaluation.questions.labelling import (
    LEAD,
    Confirmed,
    Label,
    choose_questions,
    confirm,
    make_label,
    measure_precision,
)
from pipelines.evaluation.questions.sections import LEAST_TEXT, draw_chunks, section_passages, section_starts
from pipelines.evaluation.questions.selection import deduplicate, keep_findable
from pipelines.evaluation.questions.writer import QuestionSet, questions_from_headings, write_answers, write_questions
from pipelines.llm.cached import CachedModel
from pipelines.llm.retry import ConcurrencyLimit, Progress, gather_all
from pipelines.records import Hit, Usage
from pipelines.store import Store

# The filter looks as deep as the legs of retrieval do: far deeper than what an evaluation measures.
FIND_IN = 50
PATIENCE_S = 60.0  # a first question builds BM25

LABEL_FROM = 30  # hits whose scores a label's lead is measured by: a page in all places where a leg ranks it high

Report = Callable[[str], None]
SearchIndex = Callable[[str], Awaitable[Retrieval]]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class QuestionOptions:
    """Which questions are made: about `limit` chunks (0: all) drawn by `seed`, at most `per_chunk` of each.

    A question is kept if its page is among the first `find_in` hits (0: keep all). `at_once` calls run at a time.
    A model writes in the manner of `style`, questions of users, if there are any.
    """

    limit: int = 200
    per_chunk: int = 2
    find_in: int = FIND_IN
    seed: int = 0
    at_once: int = 4
    style: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class DatasetDraft:
    """Examples to write, with the counts of how they came about and what a model was paid for them.

    `precision` has the rows of `measure_precision` where labels were checked.
    """

    examples: Sequence[Example]
    counts: Mapping[str, int]
    usage: Usage = Usage()
    errors: Mapping[str, int] = field(default_factory=dict)
    precision: Sequence[Mapping[str, Any]] = ()


@dataclass(frozen=True, slots=True)
class LabelOptions:
    """Which labels are kept: of a page with a `lead` of so much, that a model is so `sure` answers, both 0 to 1."""

    lead: float = LEAD
    sure: float = 0.0
    at_once: int = 4


def make_questions(
    store: Store,
    settings: AnswerSettings,
    collection: str,
    llm: CachedModel | None = None,
    options: QuestionOptions = QuestionOptions(),
    progress: Report = lambda _: None,
) -> DatasetDraft:
    """Return questions about the collection's chunks, written by `llm`, or from headings without one.

    Raises NoLiveIndex and StoreUnavailable.
    """
    with _scan(store, collection) as chunks:
        starts = section_starts(chunks)
    if llm:
        drawn = draw_chunks(starts, options.limit, options.seed, LEAST_TEXT)
        pace = _count("chunks", progress)
        made = _run(llm, lambda: write_questions(llm, drawn, options.per_chunk, options.at_once, pace, options.style))
    else:
        drawn, made = _questions_from_headings(starts, options)
    once = deduplicate(made.examples)
    kept = _keep_findable(store, settings, collection, once, options, progress) if options.find_in else once
    counts = {
        "chunks": len(drawn),
        "made": len(made.examples),
        "duplicates": len(made.examples) - len(once),
        "not_found": len(once) - len(kept),
    }
    return DatasetDraft(kept, counts, made.usage, made.errors)


def answer_questions(
    store: Store,
    collection: str,
    llm: CachedModel,
    examples: Sequence[Example],
    at_once: int = 4,
    progress: Report = lambda _: None,
) -> DatasetDraft:
    """Return the examples with the answers that `llm` gives where they have none. Raises as `make_questions`."""
    sources = {source for example in examples if example.answer is None for source in example.sources}
    with _scan(store, collection) as chunks:
        passages = section_passages(chunks, sources)
    pace = _count("answered", progress)
    made = _run(llm, lambda: write_answers(llm, examples, passages, at_once, pace))
    had = sum(example.answer is not None for example in examples)
    have = sum(example.answer is not None for example in made.examples)
    return DatasetDraft(made.examples, {"had_answers": had, "answered": have - had}, made.usage, made.errors)


def rated_questions(store: Store, collection: str) -> DatasetDraft:
    """Return the questions whose answers were rated well, with the sources that these cite."""
    feedback = from_ratings(store.rated_questions(collection))
    return DatasetDraft(feedback.examples, {"disliked": len(feedback.disliked)})


def label_questions(
    store: Store,
    settings: AnswerSettings,
    collection: str,
    llm: CachedModel | None,
    questions: Sequence[str],
    known: Sequence[Example] = (),
    options: LabelOptions = LabelOptions(),
    progress: Report = lambda _: None,
) -> DatasetDraft:
    """Return `questions` with the section that answers each, where retrieval and `llm` are sure of it.

    `known` are questions with a source: none of them, nor one like them, is labelled, and `precision` says how often
    their labels would be right. Raises NoLiveIndex and StoreUnavailable.
    """
    once = choose_questions(questions)
    chosen = choose_questions(once, [example.question for example in known])
    with _open_search(store, settings, collection, LABEL_FROM) as search:
        found = _label(search, chosen, options.at_once, progress)
        checked = _label(search, [example.question for example in known], options.at_once, progress)
    clear, clear_checked = ([one for one in some if one.lead >= options.lead] for some in (found, checked))
    said = Confirmed([*clear, *clear_checked])
    if llm:
        said = _run(llm, lambda: confirm(llm, said.labels, options.at_once, _count("judged", progress)))
    told, told_checked = said.labels[: len(clear)], said.labels[len(clear) :]
    sure = [one for one in told if one.sure is None or one.sure >= options.sure]
    counts = {
        "questions": len(questions),
        "duplicates": len(questions) - len(once),
        "like_checked": len(once) - len(chosen),
        "unlikely": len(chosen) - len(found),
        "unclear": len(found) - len(clear),
        "unsure": len(clear) - len(sure),
    }
    precision = measure_precision(checked, told_checked, known)
    return DatasetDraft([one.example for one in sure], counts, said.usage, said.errors, precision)


def _label(search: SearchIndex, questions: Sequence[str], at_once: int, progress: Report) -> list[Label]:
    """Return the labels of the questions that the index probably answers."""
    slots = ConcurrencyLimit(at_once)

    async def one(question: str) -> Retrieval:
        async with slots.free():
            return await search(question)

    found = asyncio.run(gather_all([partial(one, question) for question in questions], _count("searched", progress)))
    pairs = zip(questions, found, strict=True)
    return [make_label(asked, one.hits) for asked, one in pairs if one.hits and _is_answered(one)]


def _is_answered(retrieval: Retrieval) -> bool:
    return retrieval.evidence is None or is_likely(retrieval.evidence)


def _questions_from_headings(starts: Sequence[Hit], options: QuestionOptions) -> tuple[list[Hit], QuestionSet]:
    """Return the drawn chunks and their questions; those that too many pages ask are dropped before the draw."""
    good = {example.sources[0]: example for example in deduplicate(questions_from_headings(starts).examples)}
    drawn = draw_chunks([chunk for chunk in starts if chunk.source in good], options.limit, options.seed, least=0)
    return drawn, QuestionSet(tuple(good[chunk.source] for chunk in drawn))


def _run(llm: CachedModel, write: Callable[[], Awaitable[T]]) -> T:
    """Return what `write` gives; close the model's connections after it."""

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
    """Return the examples whose page retrieval finds."""
    with _open_search(store, settings, collection, options.find_in) as search:

        async def find(question: str) -> Sequence[Hit]:
            return (await search(question)).hits

        return asyncio.run(keep_findable(examples, find, options.at_once, _count("searched", progress)))


@contextlib.contextmanager
def _open_search(store: Store, settings: AnswerSettings, collection: str, k: int) -> Iterator[SearchIndex]:
    """Yield a search for the best `k` hits, without the steps that would ask a model for each question."""
    patient = change(settings, {"retrieval.patience_s": PATIENCE_S})
    free = change(patient, {"rewriting.num_queries": 1, "rewriting.hyde": False, "reranker.kind": NONE})
    with contextlib.closing(make_retriever(patient, store)) as retriever:
        engine = make_engine(free, retriever)
        yield lambda question: engine.asearch(question, collection=collection, k=k)


@contextlib.contextmanager
def _scan(store: Store, collection: str) -> Iterator[Iterator[Hit]]:
    """Yield the chunks of the collection's live index. Raises NoLiveIndex."""
    with store.scan_chunks(store.live_index(collection).id) as (_, chunks):
        yield chunks


def _count(what: str, progress: Report) -> Progress:
    """Return a counter that reports every tenth of the way."""

    def count(done: int, of: int) -> None:
        if done == of or done % max(1, of // 10) == 0:
            progress(f"{what}: {done:,} of {of:,}")

    return count
