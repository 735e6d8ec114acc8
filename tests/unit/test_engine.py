"""The engine: from a notebook, without Ray or HTTP, with the time of each step."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from answering_fakes import MemoryStore, WordEmbedder, make_hit

from pipelines.answering.engine import QueryEngine
from pipelines.answering.retriever import Retrieval, Retriever
from pipelines.answering.extractive import Synthesis
from pipelines.lexical import LexicalIndex
from pipelines.records import Citation

HITS = [make_hit(f"https://d.test/#{n}", f"Topic {n} is about datasets.") for n in range(8)]


class Echo:
    agent = "echo"

    def synthesize(self, retrieval: Retrieval) -> Synthesis:
        citation = Citation(1, retrieval.hits[0].source, "T", "s")
        return Synthesis(f"{len(retrieval.hits)} hits for {retrieval.question} [1]", (citation,))


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[QueryEngine]:
    store = MemoryStore(*HITS)
    retriever = Retriever(store, lambda model: WordEmbedder(), lambda index: LexicalIndex(tmp_path / "1"))
    yield QueryEngine(retriever, Echo(), k=3)
    retriever.close()


def test_an_answer_holds_text_hits_and_timings(engine: QueryEngine) -> None:
    answer = engine.query("datasets?")
    assert answer.text == "3 hits for datasets? [1]" and answer.agent == "echo" and len(answer.hits) == 3
    assert str(answer).endswith(f"[1] T\n    {answer.hits[0].source}")
    steps = {name: seconds for name, seconds in answer.timings.items() if name != "total"}
    assert {"embed", "bm25", "search", "synthesize"} <= steps.keys()
    assert max(steps.values()) <= answer.timings["total"]


def test_k_of_the_question_beats_the_engines(engine: QueryEngine) -> None:
    assert len(engine.query("datasets", k=5).hits) == 5 and len(engine.search("datasets").hits) == 3


def test_questions_are_answered_concurrently(engine: QueryEngine) -> None:
    async def both() -> list[str]:
        answer, found = await asyncio.gather(engine.aquery("one datasets"), engine.asearch("two datasets"))
        return [answer.question, found.question]

    assert asyncio.run(both()) == ["one datasets", "two datasets"]
