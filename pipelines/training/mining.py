"""What a model learns from: for each question the chunks that answer it, and retrieved ones that look as if they did.

Knows chunks and questions as data; not where they are stored, and no model.
"""

import random
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from pipelines.evaluation.dataset import Example, folds, page_of
from pipelines.records import Hit

# A fifth of the pages is held out: 5 folds, so that every question can be held out once.
FOLDS = 5


class NothingToLearn(ValueError):
    """No question of the data set can be learned from; the message says why."""


class Corpus:
    """The chunks of an index by section and page, and which of them answer an example.

    Chunks with the same text are one to a reader: where one answers, so do the others.
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
        """Places of the chunks that a reference source holds, and of those with the same text."""
        return self._alike(place for source in example.sources for place in self._by_source.get(source, ()))

    def on_pages(self, example: Example) -> list[int]:
        """Places of the chunks of the reference pages, and of those with the same text."""
        pages = {page_of(source) for source in example.sources}
        return self._alike(place for page in pages for place in self._by_source.get(page, ()))

    def pages_of(self, example: Example) -> set[str]:
        """The reference pages, and those on which a text that answers stands too."""
        copies = {self.chunks[place].url for place in self.answering(example)}
        return copies.union(map(page_of, example.sources))

    def pages_with(self, hit: Hit) -> set[str]:
        """The pages on which the text of `hit` stands."""
        return {hit.url, *(self.chunks[place].url for place in self._by_text.get(hit.text_hash, ()))}

    def _alike(self, places: Iterable[int]) -> list[int]:
        return sorted({same for place in places for same in self._by_text[self.chunks[place].text_hash]})


@dataclass(frozen=True, slots=True)
class Split:
    """Places of examples to learn from and to judge by; no page has questions in both."""

    train: list[int]
    held_out: list[int]


def split(examples: Sequence[Example], corpus: Corpus, seed: int = 0) -> Split:
    """One fold of FOLDS is held out. Raises BadFolds."""
    held_out, *rest = page_folds(examples, corpus, seed)
    return Split(sorted(place for fold in rest for place in fold), held_out)


def page_folds(examples: Sequence[Example], corpus: Corpus, seed: int = 0) -> list[list[int]]:
    """FOLDS lists of places that share no page; pages with a copy of a text that answers count as one. Raises BadFolds.

    Else a text that is learned as an answer could stand, word for word, on a page that judges.
    """
    return folds([replace(each, sources=tuple(sorted(corpus.pages_of(each)))) for each in examples], FOLDS, seed)


def answered(examples: Sequence[Example], corpus: Corpus) -> list[Example]:
    """The examples of which the index has a chunk of the reference section. Raises NothingToLearn."""
    found = [example for example in examples if corpus.answering(example)]
    if not found:
        source = examples[0].sources[0] if examples else ""
        raise NothingToLearn(
            f"none of {len(examples)} questions has a reference section in the index (the first asks for {source!r}): "
            "does the data set belong to this collection?"
        )
    return found


@dataclass(frozen=True, slots=True)
class Triple:
    """A question, a text that answers it, and texts that were retrieved for it but lie on other pages."""

    question: str
    positive: str
    negatives: tuple[str, ...]


def read_as(hit: Hit) -> str:
    """A chunk as the embedding model reads it: title and headings, none twice in a row, above the text.

    Very long heading paths are cut when an index is built; here they are left whole.
    """
    names = [" ".join(name.split()) for name in (hit.title, *hit.headings)]
    path = [name for name, before in zip(names, ["", *names], strict=False) if name and name != before]
    return f"{' > '.join(path)}\n{hit.text}" if path else hit.text


def hard_negatives(
    example: Example,
    found: Sequence[Hit],
    corpus: Corpus,
    forbidden: Collection[str] = (),
    most: int = 1,
    skip: int = 0,
) -> list[Hit]:
    """Up to `most` of the retrieved hits, best first after `skip`, that do not answer the example.

    Nothing that stands on a reference page is a negative, and nothing that stands on a page of `forbidden` (those
    that are held out) is learned from; a copy on another page is the same text.
    """
    pages = {page_of(source) for source in example.sources}.union(forbidden)
    wrong = [hit for hit in found if pages.isdisjoint(corpus.pages_with(hit))]
    return wrong[skip : skip + most]


def _best_positives(example: Example, corpus: Corpus) -> list[Hit]:
    """The chunks of the reference section itself; where it has none, those of the sections below it."""
    answering = [corpus.chunks[place] for place in corpus.answering(example)]
    return [hit for hit in answering if hit.source in example.sources] or answering


def triples(
    examples: Sequence[Example],
    corpus: Corpus,
    retrieve: Callable[[str], Sequence[Hit]],
    *,
    forbidden: Collection[str] = (),
    negatives: int = 1,
    skip: int = 0,
    seed: int = 0,
) -> list[Triple]:
    """A triple for each example: one of its answering chunks by `seed`, and its hard negatives by `retrieve`.

    All triples have the same number of negatives, as the trainer needs it; an example for which too few are retrieved
    is left out.
    """
    rng = random.Random(seed)
    mined = []
    for example in examples:
        positive = rng.choice(_best_positives(example, corpus))
        wrong = hard_negatives(example, retrieve(example.question), corpus, forbidden, negatives, skip)
        if len(wrong) == negatives:
            mined.append(Triple(example.question, read_as(positive), tuple(read_as(hit) for hit in wrong)))
    return mined
