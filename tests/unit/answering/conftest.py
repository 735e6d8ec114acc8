"""A retriever over the hits of a test's own `store`, by words alone."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from kit.answering import MemoryStore, WordEmbedder

from pipelines.answering.retrieval.retriever import Retriever
from pipelines.lexical import LexicalIndex


@pytest.fixture
def retriever(tmp_path: Path, store: MemoryStore) -> Iterator[Retriever]:
    with closing(Retriever(store, lambda _: WordEmbedder(), lambda _: LexicalIndex(tmp_path / "lexical"))) as made:
        made.prepare()
        yield made
