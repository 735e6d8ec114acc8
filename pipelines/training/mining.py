"""Finds chunks that answer a question, and similar ones that do not, as training data.

Knows the chunks and hits of a live index; knows no model.
"""

import random
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from pipelines.answering.retrieval.retriever import Retriever
from pipelines.answering.retrieval.search import Search
from pipelines.answering.settings import AnswerSettings
from pipelines.evaluation.dataset import Example
from pipelines.evaluation.questions.feedback import Feedback, question_key
from pipelines.page.stored import plain_of
from pipelines.records import Hit
from pipelines.store import RecordedQuestion, Store
from pipelines.text.counts import counted
from pipelines.training.folds import FOLDS, Places, group_folds, page_groups

# Negatives are drawn from this many of the best wrong hits, because the very best contain most of the unlabelled right
# ones (Qu et al., RocketQA, 2021, find up to 70% of top-ranked "negatives" to be right). Not tuned.
DRAWN_FROM = 20


class NothingToLearn(ValueError):
    """No question of the data set can be used for training; the message has the reason."""


class Corpus:
    """The chunks of an index by section and page, and which of them answer an example.

    Chunks with the same text count as one: if one answers, so do the others.
    """

    def __init__(self, chunks: Iterable[Hit]) -> None:
        self.chunks = tuple(sorted(chunks, key=lambda hit: (hit.url, hit.ordinal, hit.chunk_id)))
        self._by_source: dict[str, list[int]] = defaultdict(list)
        self._by_text: dict[str, list[int]] = defaultdict(list)
        for place, hit in enumerate(self.chunks):
            for source in (hit.url, *(f"{hit.url}#{anchor}" for anchor in hit.anchors)):
                self._by_source[source].append(place)
            self._by_text[hit.text_hash].append(place)

    def answering(self, example: Example) -> list[int]:
        """Return the indices of the chunks under a reference source, and of chunks with the same text."""
        return self._with_copies(place for source in example.sources for place in self._by_source.get(source, ()))

    def on_pages(self, example: Example) -> list[int]:
        """Return the indices of the chunks of the reference pages, and of chunks with the same text."""
        return self._with_copies(place for page in example.pages for place in self._by_source.get(page, ()))

    def pages_of(self, example: Example) -> set[str]:
        """Return the reference pages, and the pages with a copy of an answering text."""
        return {self.chunks[place].url for place in self.answering(example)} | example.pages

    def pages_with(self, hit: Hit) -> set[str]:
        """Return the pages that contain the text of `hit`."""
        return {hit.url, *(self.chunks[place].url for place in self._by_text.get(hit.text_hash, ()))}

    def _with_copies(self, places: Iterable[int]) -> list[int]:
        return sorted({copy for place in places for copy in self._by_text[self.chunks[place].text_hash]})


def pages_of(examples: Iterable[Example]) -> set[str]:
    """Return the reference pages of all examples."""
    return set().union(*(example.pages for example in examples))


# ------------------------------------------------------------------------------------------- both sides


def split(examples: Sequence[Example], corpus: Corpus, seed: int = 0) -> tuple[list[int], list[int]]:
    """Return the indices of the examples for training, and of one of FOLDS folds for judging. Raises BadFolds."""
    held_out, *rest = page_folds(examples, corpus, seed)
    return sorted(int(place) for fold in rest for place in fold), held_out.tolist()


def page_folds(examples: Sequence[Example], corpus: Corpus, seed: int = 0) -> list[Places]:
    """Return the indices of the examples in FOLDS folds; no page is in two of them.

    Pages with a copy of an answering text count as one page. Otherwise a text used for training could occur verbatim on
    a page used for judging. Raises BadFolds.
    """
    widened = [replace(each, sources=tuple(sorted(corpus.pages_of(each)))) for each in examples]
    return group_folds(page_groups(widened), FOLDS, seed)


def select_answered(examples: Sequence[Example], corpus: Corpus) -> list[Example]:
    """Return the examples whose reference section has a chunk in the index. Raises NothingToLearn."""
    answered = [example for example in examples if corpus.answering(example)]
    if not answered:
        source = examples[0].sources[0] if examples else ""
        raise NothingToLearn(
            f"none of {counted(len(examples), 'question')} has a reference section in the index (the first asks for "
            f"{source!r}): does the data set belong to this collection?"
        )
    return answered


# ------------------------------------------------------------------------------------------- triples


@dataclass(frozen=True, slots=True)
class Triple:
    """A question, a text that answers it, and texts that were retrieved for it but are on other pages."""

    question: str
    positive: str
    negatives: tuple[str, ...]


def mine_triples(
    examples: Sequence[Example], draw: "NegativeDraw", read: Callable[[Hit], str], seed: int = 0
) -> list[Triple]:
    """Return a triple for each example: a text of its reference section drawn with `seed`, and its negatives.

    `read` returns the text of a chunk as the model reads it. All triples have the same number of negatives, because the
    trainer needs that. Examples with fewer, or without a chunk of their section, are left out.
    """
    rng = random.Random(seed)
    triples = []
    for example in examples:
        positives, wrong = positives_of(example, draw.corpus), draw(example)
        if positives and len(wrong) == draw.negatives:
            triples.append(Triple(example.question, read(rng.choice(positives)), tuple(map(read, wrong))))
    return triples


def embedding_text(hit: Hit) -> str:
    """Return a chunk as the embedding model reads it: title and headings, without repeats in a row, above the text.

    Indexing shortens very long heading paths; here they are left whole.
    """
    names = [" ".join(name.split()) for name in (hit.title, *hit.headings)]
    path = [name for name, before in zip(names, ["", *names], strict=False) if name and name != before]
    text = plain_of(hit)
    return f"{' > '.join(path)}\n{text}" if path else text


def positives_of(example: Example, corpus: Corpus) -> list[Hit]:
    """Return the chunks of the reference section itself, or if it has none, the chunks of its subsections."""
    answering = [corpus.chunks[place] for place in corpus.answering(example)]
    return [hit for hit in answering if hit.source in example.sources] or answering


def hard_negatives(
    example: Example, hits: Sequence[Hit], corpus: Corpus, forbidden: Collection[str] = (), most: int = 1, skip: int = 0
) -> list[Hit]:
    """Return up to `most` of the hits, best first after `skip`, that do not answer the example.

    Texts of a reference page are never negatives, nor are texts of a page in `forbidden` (the held-out pages). A copy
    on another page counts as the same text.
    """
    pages = example.pages.union(forbidden)
    wrong = [hit for hit in hits if pages.isdisjoint(corpus.pages_with(hit))]
    return wrong[skip : skip + most]


def describe_named(examples: Sequence[Example]) -> str:
    """Return how many of the examples have sources that a person marked as wrong; "" for none."""
    named = sum(bool(example.negatives) for example in examples)
    return f", {named:,} with wrong sources that people named" if named else ""


def named_negatives(example: Example, corpus: Corpus, forbidden: Collection[str] = ()) -> list[Hit]:
    """Return the chunks of the sections that a person marked as wrong for the example.

    They may be on a reference page, because a person has read them. None answers the example or is on a page in
    `forbidden`.
    """
    right = set(corpus.answering(example))
    places = corpus.answering(replace(example, sources=example.negatives))
    named = [corpus.chunks[place] for place in places if place not in right]
    own = [hit for hit in named if hit.source in example.negatives] or named
    return [hit for hit in own if set(forbidden).isdisjoint(corpus.pages_with(hit))]


class NegativeDraw:
    """Chooses the negatives of an example: marked by people, then disliked by readers, then the best wrong hits.

    The wrong hits are drawn with `seed`; without a seed they are the very best, after `skip`. None of the negatives is
    on a page in `forbidden`.
    """

    def __init__(
        self,
        corpus: Corpus,
        retrieve: Callable[[str], Sequence[Hit]],
        negatives: int,
        forbidden: Collection[str] = frozenset(),
        seed: int | None = None,
        *,
        skip: int = 0,
        disliked: Callable[[str], Sequence[Hit]] = lambda question: (),
    ) -> None:
        self.corpus, self.retrieve, self.negatives, self.forbidden = corpus, retrieve, negatives, forbidden
        self.skip, self.disliked = skip, disliked
        self._rng = None if seed is None else random.Random(seed)

    def __call__(self, example: Example) -> list[Hit]:
        """Return `negatives` hits, or fewer if retrieval finds no more."""
        named = named_negatives(example, self.corpus, self.forbidden)
        disliked = hard_negatives(example, self.disliked(example.question), self.corpus, self.forbidden, self.negatives)
        known = {hit.chunk_id: hit for hit in [*named, *disliked]}
        hits = self.retrieve(example.question)
        wrong = hard_negatives(example, hits, self.corpus, self.forbidden, DRAWN_FROM, self.skip)
        others = [hit for hit in wrong if hit.chunk_id not in known]
        if self._rng:
            others = self._rng.sample(others, max(0, min(self.negatives - len(known), len(others))))
        return [*known.values(), *others][: self.negatives]


def select_apart(examples: Sequence[Example], held_out: Sequence[Example]) -> list[Example]:
    """Return the examples that share neither a page nor a question with `held_out`."""
    pages, questions = pages_of(held_out), {question_key(example.question) for example in held_out}
    return [e for e in examples if pages.isdisjoint(e.pages) and question_key(e.question) not in questions]


def disliked_hits(feedback: Feedback, corpus: Corpus) -> Callable[[str], list[Hit]]:
    """Return a function from a question to the chunks that did not help with it and are still in the index."""
    chunks = {hit.chunk_id: hit for hit in corpus.chunks} if feedback.disliked else {}

    def find(question: str) -> list[Hit]:
        ids = dict.fromkeys(hit.chunk_id for hit in feedback.wrong(question))
        return [chunks[id] for id in ids if id in chunks]

    return find


# ------------------------------------------------------------------------------------------- the live index


class IndexedCollection:
    """The live index of a collection as training needs it: its chunks, the hits of a question, rated answers.

    `name` None means the only collection. `settings` are the settings of the retriever. Raises the errors of
    Retriever.prepare.
    """

    def __init__(self, store: Store, retriever: Retriever, settings: AnswerSettings, name: str | None = None) -> None:
        self._store, self._retriever, self.settings = store, retriever, settings
        self.index = retriever.prepare(name)

    @cached_property
    def corpus(self) -> Corpus:
        """All chunks of the index."""
        with self._store.scan_chunks(self.index.id) as (_, chunks):
            return Corpus(chunks)

    def vectors(self) -> Mapping[str, np.ndarray]:
        """Return the vectors of the chunks by their ids."""
        return self._store.vectors(self.index.id)

    def retrieve(self, question: str, k: int) -> Sequence[Hit]:
        """Return the best `k` hits."""
        return self._retriever.retrieve(Search((question,), self.index.collection, k=k)).hits

    def ratings(self) -> Sequence[RecordedQuestion]:
        """Return the rated questions, as input for `from_ratings`."""
        return self._store.rated_questions(self.index.collection)
