"""Runs Haystack: embeds and writes documents into PgvectorDocumentStore, and retrieves with a hybrid pipeline.

Follows its documentation: HNSW, ten hits by vectors and ten by Postgres' full-text search, reciprocal rank fusion, and
a CacheChecker, so that a second run skips unchanged documents.
"""

import os
from pathlib import Path

os.environ.setdefault("HAYSTACK_TELEMETRY_ENABLED", "False")

from haystack import Document, Pipeline
from haystack.components.caching import CacheChecker
from haystack.components.joiners import DocumentJoiner
from haystack.components.writers import DocumentWriter
from haystack.document_stores.types import DuplicatePolicy
from haystack.utils import ComponentDevice, Secret
from haystack_integrations.components.embedders.sentence_transformers import (
    SentenceTransformersDocumentEmbedder,
    SentenceTransformersTextEmbedder,
)
from haystack_integrations.components.retrievers.pgvector import PgvectorEmbeddingRetriever, PgvectorKeywordRetriever
from haystack_integrations.document_stores.pgvector import PgvectorDocumentStore
from worker import Opened, Search, read_chunks, read_questions, read_vectors, serve

opened = Opened()


def document_store(url: str, hnsw: bool = True) -> PgvectorDocumentStore:
    return PgvectorDocumentStore(
        connection_string=Secret.from_token(url),
        table_name="chunks",
        embedding_dimension=384,
        vector_function="cosine_similarity",
        search_strategy="hnsw" if hnsw else "exact_nearest_neighbor",
        hnsw_index_creation_kwargs={"m": 16, "ef_construction": 64},
        hnsw_ef_search=40,
    )


def as_document(chunk: dict[str, str], vector: list[float] | None = None) -> Document:
    return Document(id=chunk["id"], content=chunk["text"], meta={"source": chunk["source"]}, embedding=vector)


def ingest(url: str, corpus: str, model: str, state: str) -> int:
    """Update the table to match the corpus, and return the number of embedded chunks."""
    store = document_store(url)
    documents = {chunk["id"]: as_document(chunk) for chunk in read_chunks(Path(corpus))}
    missing = CacheChecker(store, "id").run(items=list(documents))["misses"]
    if missing:
        pipeline = Pipeline()
        pipeline.add_component(
            "embedder", SentenceTransformersDocumentEmbedder(model=model, device=cpu(), progress_bar=False)
        )
        pipeline.add_component("writer", DocumentWriter(store, DuplicatePolicy.OVERWRITE))
        pipeline.connect("embedder", "writer")
        pipeline.run({"embedder": {"documents": [documents[name] for name in missing]}})
    return len(missing)


def load(url: str, corpus: str) -> None:
    """Fill the table with the corpus and its vectors, and build HNSW afterwards, which is faster."""
    store, folder, documents = document_store(url, hnsw=False), Path(corpus), []
    for chunk, vector in zip(read_chunks(folder), read_vectors(folder), strict=True):
        documents.append(as_document(chunk, vector.tolist()))
        if len(documents) == 2_000:
            store.write_documents(documents, DuplicatePolicy.OVERWRITE)
            documents.clear()
    if documents:  # it fails for an empty list
        store.write_documents(documents, DuplicatePolicy.OVERWRITE)
    document_store(url).count_documents()


def open_searches(name: str, url: str, corpus: str, model: str, clients: int, k: int, depth: int) -> None:
    """Open a pipeline per client, because a document store has one connection. An empty `model` uses known vectors."""
    known = {} if model else read_questions(Path(corpus))
    opened.add(name, [make_search(url, known, model, k, depth) for _ in range(clients)])


def make_search(url: str, known: dict[str, list[float]], model: str, k: int, depth: int) -> Search:
    store, pipeline = document_store(url), Pipeline()
    pipeline.add_component("vectors", PgvectorEmbeddingRetriever(document_store=store, top_k=depth))
    pipeline.add_component("keywords", PgvectorKeywordRetriever(document_store=store, top_k=depth))
    pipeline.add_component("joiner", DocumentJoiner(join_mode="reciprocal_rank_fusion", top_k=k))
    pipeline.connect("vectors", "joiner")
    pipeline.connect("keywords", "joiner")
    if model:
        pipeline.add_component(
            "embedder", SentenceTransformersTextEmbedder(model=model, device=cpu(), progress_bar=False)
        )
        pipeline.connect("embedder.embedding", "vectors.query_embedding")

    def search(question: str) -> list[str]:
        first = {"embedder": {"text": question}} if model else {"vectors": {"query_embedding": known[question]}}
        found = pipeline.run({**first, "keywords": {"query": question}})
        return [document.meta["source"] for document in found["joiner"]["documents"]]

    return search


def cpu() -> ComponentDevice:
    return ComponentDevice.from_str("cpu")


if __name__ == "__main__":
    serve({"ingest": ingest, "load": load, "open": open_searches, **opened.functions})
