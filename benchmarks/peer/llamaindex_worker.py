"""Runs LlamaIndex: IngestionPipeline into PGVectorStore, QueryFusionRetriever over HNSW and BM25 in memory.

Follows its documentation: HNSW with m 16, ef_construction 64, ef_search 40, reciprocal rank fusion of ten hits each,
and a document store on disk, so that a second run skips unchanged documents.
"""

from pathlib import Path
from typing import Any

from llama_index.core import VectorStoreIndex
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.bridge.pydantic import PrivateAttr
from llama_index.core.ingestion import DocstoreStrategy, IngestionPipeline
from llama_index.core.llms import MockLLM
from llama_index.core.retrievers import QueryFusionRetriever
from llama_index.core.schema import Document, TextNode
from llama_index.core.storage.docstore import SimpleDocumentStore
from llama_index.embeddings.huggingface import HuggingFaceEmbedding
from llama_index.retrievers.bm25 import BM25Retriever
from llama_index.vector_stores.postgres import PGVectorStore
from worker import Opened, read_chunks, read_questions, read_vectors, serve

HNSW = {"hnsw_m": 16, "hnsw_ef_construction": 64, "hnsw_ef_search": 40, "hnsw_dist_method": "vector_cosine_ops"}
# Texts per model call, as in sentence-transformers by default. LlamaIndex's default of 10 is slower.
BATCH = 32
TABLE = "chunks"
opened = Opened()


class KnownVectors(BaseEmbedding):
    """An embedding model that knows its questions' vectors in advance."""

    _vectors: dict[str, list[float]] = PrivateAttr()

    def __init__(self, vectors: dict[str, list[float]]) -> None:
        super().__init__()
        self._vectors = vectors

    def _get_query_embedding(self, query: str) -> list[float]:
        return self._vectors[query]

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._vectors[query]

    def _get_text_embedding(self, text: str) -> list[float]:
        return self._vectors[text]


def vector_store(url: str, clients: int = 1, hnsw: bool = True) -> PGVectorStore:
    bare = url.removeprefix("postgresql://")
    return PGVectorStore.from_params(
        connection_string=f"postgresql+psycopg2://{bare}",
        async_connection_string=f"postgresql+asyncpg://{bare}",
        table_name=TABLE,
        embed_dim=384,
        hnsw_kwargs=dict(HNSW) if hnsw else None,
        create_engine_kwargs={"pool_size": clients},
    )


def as_node(kind: type[TextNode], chunk: dict[str, str]) -> TextNode:
    hidden = ["source"]
    return kind(
        id_=chunk["id"],
        text=chunk["text"],
        metadata={"source": chunk["source"]},
        excluded_embed_metadata_keys=hidden,
        excluded_llm_metadata_keys=hidden,
    )


def ingest(url: str, corpus: str, model: str, state: str) -> int:
    """Update the table to match the corpus, and return the number of embedded chunks."""
    pipeline = IngestionPipeline(
        transformations=[HuggingFaceEmbedding(model_name=model, device="cpu", embed_batch_size=BATCH)],
        vector_store=vector_store(url),
        docstore=SimpleDocumentStore(),
        docstore_strategy=DocstoreStrategy.UPSERTS,
        disable_cache=True,  # it would store every vector a second time, as JSON
    )
    if Path(state).exists():
        pipeline.load(state)
    nodes = pipeline.run(documents=[as_node(Document, chunk) for chunk in read_chunks(Path(corpus))])
    pipeline.persist(state)
    return len(nodes)


def load(url: str, corpus: str) -> None:
    """Fill the table with the corpus and its vectors, and build HNSW afterwards, which is faster."""
    store, folder, nodes = vector_store(url, hnsw=False), Path(corpus), []
    for chunk, vector in zip(read_chunks(folder), read_vectors(folder), strict=True):
        nodes.append(as_node(TextNode, chunk))
        nodes[-1].embedding = vector.tolist()
        if len(nodes) == 2_000:
            store.add(nodes)
            nodes.clear()
    store.add(nodes)
    vector_store(url)._initialize()


def open_searches(name: str, url: str, corpus: str, model: str, clients: int, k: int, depth: int) -> None:
    """Open the retriever. An empty `model` uses the questions' known vectors."""
    folder = Path(corpus)
    embed = HuggingFaceEmbedding(model_name=model, device="cpu") if model else KnownVectors(read_questions(folder))
    index = VectorStoreIndex.from_vector_store(vector_store(url, clients), embed_model=embed)
    fused = QueryFusionRetriever(
        [index.as_retriever(similarity_top_k=depth), bm25(folder, depth)],
        llm=MockLLM(),
        mode="reciprocal_rerank",
        similarity_top_k=k,
        num_queries=1,
        use_async=False,
    )

    def search(question: str) -> list[str]:
        return [found.node.metadata["source"] for found in fused.retrieve(question)]

    opened.add(name, [search] * clients)


_bm25: dict[Any, BM25Retriever] = {}


def bm25(folder: Path, depth: int) -> BM25Retriever:
    """Return a corpus's BM25 retriever, built once."""
    if (folder, depth) not in _bm25:
        nodes = [as_node(TextNode, chunk) for chunk in read_chunks(folder)]
        _bm25[folder, depth] = BM25Retriever.from_defaults(nodes=nodes, similarity_top_k=depth)
    return _bm25[folder, depth]


if __name__ == "__main__":
    serve({"ingest": ingest, "load": load, "open": open_searches, **opened.functions})
