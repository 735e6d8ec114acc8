"""Provides an engine and its retriever over the HITS of the test's file, with word vectors only."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from kit.answering import MemoryStore, WordEmbedder

from pipelines.answering.engine import QueryEngine
from pipelines.answering.retrieval.retriever import Retriever
from pipelines.lexical import LexicalIndex


@pytest.fixture
def store(request: pytest.FixtureRequest) -> MemoryStore:
    return MemoryStore(*request.module.HITS)


@pytest.fixture
def retriever(tmp_path: Path, store: MemoryStore) -> Iterator[Retriever]:
    with closing(Retriever(store, lambda _: WordEmbedder(), lambda _: LexicalIndex(tmp_path / "lexical"))) as made:
        made.prepare()
        yield made


@pytest.fixture
def engine(retriever: Retriever) -> QueryEngine:
    return QueryEngine(retriever)
