"""Runs Raydex: hybrid retrieval by its Retriever from a published index."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import numpy as np
from worker import Opened, read_questions, serve

from pipelines.answering.factory import make_embedder
from pipelines.answering.retrieval.live import QueryEmbedder
from pipelines.answering.retrieval.retriever import Retriever
from pipelines.answering.retrieval.search import RetrievalSettings, Search
from pipelines.answering.settings import AnswerSettings
from pipelines.lexical import LexicalIndex, lexical_folder
from pipelines.store import Store

opened = Opened()


class KnownVectors:
    """An embedder that knows its questions' vectors in advance.

    A question that the retriever rewords, such as a corrected spelling, gets another question's vector: the search
    takes as long.
    """

    def __init__(self, vectors: dict[str, list[float]]) -> None:
        self._vectors = {text: np.asarray(vector, np.float32) for text, vector in vectors.items()}
        self._other = next(iter(self._vectors.values()))

    def embed_query(self, text: str) -> np.ndarray:
        return self._vectors.get(text, self._other)

    def embed_chunks(self, texts: list[str]) -> np.ndarray:
        return np.stack([self.embed_query(text) for text in texts])


def open_searches(
    name: str, url: str, corpus: str, model: str, clients: int, k: int, home: str, collection: str
) -> None:
    """Open the retriever with the default settings. An empty `model` uses the questions' known vectors."""
    settings, store = AnswerSettings(home=Path(home), collection=collection), Store(url)
    embedder: QueryEmbedder = make_embedder(settings, model) if model else KnownVectors(read_questions(Path(corpus)))
    retriever = Retriever(
        store,
        lambda _: embedder,
        lambda index: LexicalIndex(lexical_folder(settings.home, store.url, index.id)),
        collection=settings.collection,
        settings=RetrievalSettings(leg_depth=settings.retrieval.leg_depth),
    )
    retriever.prepare()

    def search(question: str) -> list[str]:
        found = retriever.retrieve(Search((question,), k=k))
        if found.degraded:
            raise RuntimeError(f"degraded: {found.degraded}")
        return [hit.source for hit in found.hits]

    opened.add(name, [search] * clients)


if __name__ == "__main__":
    serve({"open": open_searches, **opened.functions})
