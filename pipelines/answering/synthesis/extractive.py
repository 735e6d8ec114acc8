"""Answers from hits without a language model: quotes the passage that answers best.

Knows candidates, quotes and vectors; no index, no model and no HTTP. docs/citations.md has the method and its figures.
"""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from pipelines.answering.grounding.answerable import BEFORE_QUOTING, is_possible
from pipelines.answering.grounding.confidence import UNCERTAIN
from pipelines.answering.grounding.subject import about_subject
from pipelines.answering.grounding.support import Embed, embed_in_time
from pipelines.answering.hits import heading
from pipelines.answering.retrieval.evidence import Evidence
from pipelines.answering.retrieval.legs import VECTOR
from pipelines.answering.synthesis.candidates import Candidate, Candidates
from pipelines.answering.synthesis.passages import Passage
from pipelines.answering.synthesis.quotes import Quote, fill
from pipelines.lexical import terms
from pipelines.page.stored import plain_of
from pipelines.records import Hit
from pipelines.text.phrases import read_phrases

log = logging.getLogger(__name__)

_PHRASES = read_phrases(__name__)

COSINE = 2.2  # weight of a passage's cosine beside its words; its support has a weight for it too
FINALISTS = 6  # passages that are embedded; with 8 and longer gists, twice the time, the choice was no better
GIST_WORDS, GIST_CODE_WORDS = 30, 10  # of a passage that is embedded: its beginning says what it is about


async def choose(
    question: str,
    hits: Sequence[Hit],
    embed: Embed | None = None,
    evidence: Evidence | None = None,
    about: str = "",
    parts: Sequence[str] = (),
) -> tuple[Quote, ...]:
    """Return what to quote, best first: one section, a second one if it adds something; for each of `parts` one.

    Only hits `about` the subject of a follow-up are quoted, if there are any. None if no hit fits, or if the
    `evidence` says that the index has nothing about the question.
    """
    if evidence and not is_possible(evidence):
        return ()
    return fill(await _choose(question, hits, embed, bool(evidence), about_subject(about, hits), parts), hits)


async def _choose(
    question: str,
    hits: Sequence[Hit],
    embed: Embed | None,
    possible: bool,
    fitting: Sequence[Hit],
    parts: Sequence[str] = (),
) -> tuple[Quote, ...]:
    answers = [await _choose(part, hits, embed, possible, fitting) for part in parts]
    of_parts = {hits[quotes[0].hit].source: quotes[0] for quotes in answers if quotes}
    if len(of_parts) > 1:
        return tuple(of_parts.values())
    candidates = await asyncio.to_thread(Candidates, question, hits)
    ranking = await asyncio.to_thread(_rank, candidates, possible)
    ranking = [one for one in ranking if not fitting or hits[one.hit] in fitting]
    if not ranking:
        return ()
    quotes = candidates.best_of(await _add_cosines(question, ranking, hits, embed))
    return quotes if len(quotes) > 1 else _doubt_half(question, quotes)


def _rank(candidates: Candidates, possible: bool) -> list[Candidate]:
    vectors = any(VECTOR in hit.scores for hit in candidates.hits)
    fits = possible or any(_fits(candidates, hit, vectors) for hit in candidates.hits)
    return candidates.rank_telling() if fits else []


def _fits(question: Candidates, hit: Hit, vectors: bool) -> bool:
    share = question.share(frozenset(terms(f"{heading(hit)} {hit.title}\n{plain_of(hit)}")))
    return BEFORE_QUOTING.passes(share, hit.scores.get(VECTOR, 0.0) if vectors else None)


def _doubt_half(question: str, quotes: tuple[Quote, ...]) -> tuple[Quote, ...]:
    """Return the quotes of one section, uncertain if the question asks two things."""
    if not _PHRASES["asks_on"].search(question):
        return quotes
    return tuple(replace(quote, support=min(quote.support, UNCERTAIN)) for quote in quotes)


async def _add_cosines(
    question: str, ranking: Sequence[Candidate], hits: Sequence[Hit], embed: Embed | None
) -> list[Candidate]:
    """Return the best candidates, ranked with their cosines to the question; by words alone if the model fails."""
    best = list(ranking[:FINALISTS])
    if embed is None or not best:
        return best
    try:
        vectors = await embed_in_time(embed, [question, *(gist(hits[one.hit], one.passage) for one in best)])
        cosines = np.nan_to_num(vectors[1:] @ vectors[0])
    except Exception as error:  # a failure of the embedding model costs the vectors, never the answer
        log.warning("choosing a passage by words alone: %s: %s", type(error).__name__, error)
        return best
    scored = [
        replace(one, score=one.score + COSINE * float(cosine), cosine=float(cosine))
        for one, cosine in zip(best, cosines, strict=True)
    ]
    return sorted(scored, key=lambda one: -one.score)


def gist(hit: Hit, passage: Passage) -> str:
    """Return what of a passage is embedded: its headings, its beginning and the first line of its code."""
    above = " > ".join(dict.fromkeys(hit.headings[-2:])) or hit.title
    prose = (passage.prose or passage.plain).split()[:GIST_WORDS]
    code = passage.attached[0].plain.split("\n", 1)[0].split()[:GIST_CODE_WORDS] if passage.attached else []
    return f"{above}\n{' '.join([*prose, *code])}".strip()
