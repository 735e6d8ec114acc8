"""A question becomes an answer: retrieve, then synthesize. Plain classes, usable from a notebook.

Knows no HTTP, no Ray and no environment.
"""

import asyncio
import time
from dataclasses import replace
from typing import Protocol

from pipelines.answering.extractive import Synthesis
from pipelines.answering.retriever import Retrieval, Retriever, Search
from pipelines.records import Answer


class Synthesizer(Protocol):
    """Makes an answer from hits: one method. `agent` is its name in the answer."""

    agent: str

    def synthesize(self, retrieval: Retrieval) -> Synthesis: ...


class QueryEngine:
    """Answers questions: `QueryEngine(retriever, synthesizer).query("How …?")`.

    `k` is how many hits an answer is made from where the question names no number.
    """

    def __init__(self, retriever: Retriever, synthesizer: Synthesizer, *, k: int = 5) -> None:
        self.retriever = retriever
        self._synthesizer = synthesizer
        self._k = k

    def search(self, question: str, collection: str | None = None, k: int | None = None) -> Retrieval:
        """The hits for `question`, with the seconds of each step. Raises as `Retriever.retrieve`."""
        started = time.perf_counter()
        found = self.retriever.retrieve(Search((question,), collection, k or self._k))
        return replace(found, timings={**found.timings, "total": time.perf_counter() - started})

    def query(self, question: str, collection: str | None = None, k: int | None = None) -> Answer:
        """The answer to `question`, with citations and hits. Raises as `Retriever.retrieve`."""
        started = time.perf_counter()
        found = self.retriever.retrieve(Search((question,), collection, k or self._k))
        retrieved = time.perf_counter()
        made = self._synthesizer.synthesize(found)
        ended = time.perf_counter()
        return Answer(
            question=question,
            text=made.text,
            agent=self._synthesizer.agent,
            citations=made.citations,
            hits=found.hits,
            degraded=found.degraded,
            timings={**found.timings, "synthesize": ended - retrieved, "total": ended - started},
            index=found.index.id,
            revision=found.revision,
        )

    async def asearch(self, question: str, collection: str | None = None, k: int | None = None) -> Retrieval:
        """As `search`, in a thread."""
        return await asyncio.to_thread(self.search, question, collection, k)

    async def aquery(self, question: str, collection: str | None = None, k: int | None = None) -> Answer:
        """As `query`, in a thread."""
        return await asyncio.to_thread(self.query, question, collection, k)
