"""Answers from hits without a language model by quoting the passage that answers best.

This module works with candidates, quotes and vectors, without an index, a language model or HTTP. docs/citations.md
describes the method and links to its figures.
"""

import asyncio
import itertools
import logging
from collections import Counter
from collections.abc import Sequence, Set
from dataclasses import dataclass, replace

import numpy as np

from pipelines.answering.grounding.answerable import BEFORE_QUOTING, is_possible, likelihood
from pipelines.answering.grounding.confidence import UNCERTAIN, answers_for_certain
from pipelines.answering.grounding.subject import about_subject
from pipelines.answering.grounding.support import Embed, embed_in_time
from pipelines.answering.retrieval.evidence import Evidence
from pipelines.answering.retrieval.legs import VECTOR
from pipelines.answering.synthesis.candidates import Candidate, Candidates
from pipelines.answering.synthesis.passages import Passage
from pipelines.answering.synthesis.quotes import Quote, fill, is_certain
from pipelines.answering.synthesis.results import MOST_RESULTS, fill_results
from pipelines.records import Hit
from pipelines.text.phrases import read_phrases

log = logging.getLogger(__name__)

_PHRASES = read_phrases(__name__)

COSINE = 2.2  # weight of a passage's cosine added to its word score; its support weighs the cosine too
# Passages that are embedded to find the answer; 8 with longer gists took twice as long and chose no better.
FINALISTS = 6
SECTIONS, OF_SECTION = MOST_RESULTS, 3  # sections that may be results, and embedded passages of each
GIST_WORDS, GIST_CODE_WORDS = 30, 10  # embedded words of a passage: its beginning names its subject


async def choose(
    question: str,
    hits: Sequence[Hit],
    embed: Embed | None = None,
    evidence: Evidence | None = None,
    about: str = "",
    parts: Sequence[str] = (),
) -> tuple[Quote, ...]:
    """Return the quotes: the first section if it certainly answers, otherwise the results in the order of the hits.

    Each of `parts` gets a separate section that answers, or all get results. If any hit is `about` the subject of a
    follow-up, only such a hit is quoted as the answer. The result is empty if no hit fits, or if the `evidence` says
    that the index has nothing about the question.
    """
    if evidence and not is_possible(evidence):
        return ()
    fitting = about_subject(about, hits)
    sought = _Sought(hits, fitting or hits, embed, likelihood(evidence) if evidence else None, astray=not fitting)
    chosen = [await _choose(part, sought) for part in parts]
    if len({hits[quotes[0].hit].source for quotes in chosen if quotes}) < 2:
        chosen = [await _choose(question, sought)]
    quotes = tuple(quote for quotes in chosen for quote in quotes)
    if is_certain(quotes):
        return fill(quotes, hits)
    sections: dict[str, Quote] = {}
    for quote in filter(None, itertools.chain.from_iterable(itertools.zip_longest(*chosen))):
        sections.setdefault(hits[quote.hit].source, replace(quote, certain=False))
    return fill_results(list(sections.values())[:MOST_RESULTS], hits)


@dataclass(frozen=True, slots=True)
class _Sought:
    """The hits of a question, the ones that may be quoted, and how likely the index answers it.

    It is `astray` if no hit is about the subject of the follow-up.
    """

    hits: Sequence[Hit]
    fitting: Sequence[Hit]
    embed: Embed | None
    likely: float | None
    astray: bool


async def _choose(question: str, sought: _Sought) -> tuple[Quote, ...]:
    hits = sought.hits
    candidates = await asyncio.to_thread(Candidates, question, hits)
    ranking = await asyncio.to_thread(_rank, candidates, sought.likely is not None)
    fitting = [one for one in ranking if hits[one.hit] in sought.fitting]
    if not fitting:
        return ()
    finalists = {(one.hit, one.passage.place) for one in fitting[:FINALISTS]}
    ranking = await _add_cosines(question, _worth_embedding(ranking, finalists, hits), hits, sought.embed)
    best = _doubt_half(
        question, candidates.best_of([one for one in ranking if (one.hit, one.passage.place) in finalists])
    )
    is_first = hits[best.hit].source == sought.fitting[0].source
    if is_first and not sought.astray and answers_for_certain(best.support, sought.likely):
        return (replace(best, certain=True),)
    return candidates.results_of(ranking, {one.hit for one in fitting})


def _worth_embedding(
    ranking: Sequence[Candidate], finalists: Set[tuple[int, int]], hits: Sequence[Hit]
) -> list[Candidate]:
    """Return the finalists, and the best candidates of each section that may be a result."""
    sections = list(dict.fromkeys(hits[n].source for n in sorted({one.hit for one in ranking})))[:SECTIONS]
    taken: Counter[str] = Counter()
    kept: list[Candidate] = []
    for one in ranking:
        source = hits[one.hit].source
        if (one.hit, one.passage.place) in finalists or (source in sections and taken[source] < OF_SECTION):
            kept.append(one)
            taken[source] += 1
    return kept


def _rank(candidates: Candidates, possible: bool) -> list[Candidate]:
    vectors = any(VECTOR in hit.scores for hit in candidates.hits)
    fits = possible or any(_fits(candidates, n, vectors) for n in range(len(candidates.hits)))
    return candidates.rank_telling() if fits else []


def _fits(candidates: Candidates, n: int, vectors: bool) -> bool:
    share = candidates.share(candidates.words_of(n))
    return BEFORE_QUOTING.passes(share, candidates.hits[n].scores.get(VECTOR, 0.0) if vectors else None)


def _doubt_half(question: str, quote: Quote) -> Quote:
    """Return the quote of one section, marked as uncertain if the question asks two things."""
    return replace(quote, support=min(quote.support, UNCERTAIN)) if _PHRASES["asks_on"].search(question) else quote


async def _add_cosines(
    question: str, candidates: Sequence[Candidate], hits: Sequence[Hit], embed: Embed | None
) -> list[Candidate]:
    """Return the candidates ranked with their cosines to the question, or only by words if the model fails."""
    if embed is None or not candidates:
        return list(candidates)
    try:
        vectors = await embed_in_time(embed, [question, *(gist(hits[one.hit], one.passage) for one in candidates)])
        cosines = np.nan_to_num(vectors[1:] @ vectors[0])
    except Exception as error:  # a failure of the embedding model costs the vectors, never the answer
        log.warning("choosing a passage by words only: %s: %s", type(error).__name__, error)
        return list(candidates)
    scored = [
        replace(one, score=one.score + COSINE * float(cosine), cosine=float(cosine))
        for one, cosine in zip(candidates, cosines, strict=True)
    ]
    return sorted(scored, key=lambda one: -one.score)


def gist(hit: Hit, passage: Passage) -> str:
    """Return the part of a passage to embed: its headings, its beginning and the first line of its code."""
    above = " > ".join(dict.fromkeys(hit.headings[-2:])) or hit.title
    prose = (passage.prose or passage.plain).split()[:GIST_WORDS]
    code = passage.attached[0].plain.split("\n", 1)[0].split()[:GIST_CODE_WORDS] if passage.attached else []
    return f"{above}\n{' '.join([*prose, *code])}".strip()
